"""Coupled parameter updates and coupled proposals of a model."""

from collections.abc import Callable
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp

from dpjax._util.dependence import depends_on
from dpjax._util.validation import check_choice, fail
from dpjax.base import Array, Key, Model, Parameters
from dpjax.coupling.couplings import maximal, maximal_records
from dpjax.coupling.pairs import RecordPair
from dpjax.coupling.random_walk import build_coupled_walk
from dpjax.models.simulation import parameter_shapes, position_shapes
from dpjax.numerics import tree_where

__all__ = ["ParameterCoupling", "build_coupled_update", "couple_proposals"]

ParameterCoupling = Literal["maximal", "common", "random walk"]
CoupledUpdate = Callable[[Key, Parameters, Parameters, Array, RecordPair], tuple[Parameters, Parameters, Array]]

MAX_PARAMETER_TRIALS = 20.0
"""Bound on the expected trials of a coupled parameter update; it costs at most 1/20 of the probability to meet."""

MAX_TRIALS_PER_RECORD = 100.0
"""The same per record; it costs at most 1/100 of the probability that all proposals of a sweep are the same."""


def build_coupled_update(model: Model, n: int, coupling: ParameterCoupling | None) -> CoupledUpdate:
    """The update ``(key, first, second, same, pair) -> (first, second, same)`` of the parameters of two chains.

    Parameters
    ----------
    n
        The number of records.
    coupling
        ``"maximal"`` uses `Model.update_log_density`, so that parameters can meet while records differ. ``"common"``
        uses common random numbers: both chains use the same key, which brings them closer, and their parameters meet
        once all records have. ``"random walk"`` makes Metropolis steps, which any model has. None chooses the first if
        the density is known, else the second for an update that does not read the parameters, else the third.

    Raises
    ------
    ValueError
        If the model has no such update, or the parameters could never meet by it.
    """
    if not parameter_shapes(model):
        return lambda key, first, second, same, pair: (first, second, jnp.asarray(True))
    if coupling is not None:
        check_choice("parameters", coupling, get_args(ParameterCoupling), "None takes what the model allows.")
    has_update = model.has("update")
    ignores_parameters = has_update and not reads_parameters(model)
    has_density = has_update and model.has("update_log_density")
    possible = {"maximal": has_density, "common": has_density or ignores_parameters, "random walk": True}
    chosen: str = coupling or next(name for name, is_possible in possible.items() if is_possible)
    if not possible[chosen]:
        missing = "update_log_density" if has_update else "update"
        remedy = "Give the model `update` and `update_log_density`, or take parameters='random walk'."
        fail("model", f"no {missing}", f"parameters that can meet by parameters={chosen!r}", remedy)
    if chosen == "random walk":
        return build_coupled_walk(model, n)
    return build_maximal_update(model) if chosen == "maximal" else build_common_update(model, ignores_parameters)


def build_common_update(model: Model, ignores_parameters: bool) -> CoupledUpdate:
    """The update by common random numbers; `ignores_parameters` says whether it depends on the records alone."""

    def step(key: Key, first: Parameters, second: Parameters, same: Array, pair: RecordPair) -> Any:
        met = jnp.all(pair.same) & jnp.logical_or(same, ignores_parameters)
        drawn = model.update(key, first, pair.first)
        # Both chains use the same key on purpose; `clone` keeps the key reuse checker from reporting it.
        other = model.update(jax.random.clone(key), second, pair.second)
        return drawn, tree_where(met, drawn, other), met

    return step


def build_maximal_update(model: Model) -> CoupledUpdate:
    """The maximally coupled update; each chain alone uses the model's update."""

    def step(key: Key, first: Parameters, second: Parameters, same: Array, pair: RecordPair) -> Any:
        drawn, other, common = maximal(
            key,
            lambda key: model.update(key, first, pair.first),
            lambda new: model.update_log_density(new, first, pair.first),
            lambda key: model.update(key, second, pair.second),
            lambda new: model.update_log_density(new, second, pair.second),
            MAX_PARAMETER_TRIALS,
        )
        met = common | (same & jnp.all(pair.same))
        return drawn, tree_where(met, drawn, other), met

    return step


def reads_parameters(model: Model) -> bool:
    """Whether the update depends on the current parameters."""
    key = jax.eval_shape(jax.random.key, 0)
    parameters, records = position_shapes(model, model.num_records or 2)
    return depends_on(lambda values, key, records: model.update(key, values, records), parameters, key, records)


def couple_proposals(
    key: Key, model: Model, first: Parameters, second: Parameters, same: Array, num: int
) -> RecordPair:
    """Proposals from f(·|θ) and f(·|θ̃), coupled maximally record by record; common for equal parameters."""
    if not first:  # without parameters both chains have the same distribution of records
        common = model.sample_records(key, first, num)
        return RecordPair(common, common, jnp.ones(num, bool))
    drawn, other, same_proposals = maximal_records(
        key,
        lambda key, num: model.sample_records(key, first, num),
        lambda records: model.log_density(first, records),
        lambda key, num: model.sample_records(key, second, num),
        lambda records: model.log_density(second, records),
        num,
        1 + MAX_TRIALS_PER_RECORD * num,
        equal=same,
        exchangeable=model.exchangeable,
    )
    return RecordPair(drawn, other, same_proposals)
