"""Refreshes of two chains by common proposals: the chains are the same at once if both accept."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail
from dpjax.base import Array, Key, Model, Parameters
from dpjax.coupling.pairs import RecordPair
from dpjax.data_augmentation.refresh import RefreshTuning, alone, decide, draw_vectors, prior_alone, propose
from dpjax.models.simulation import Position, init_state, parameter_shapes
from dpjax.numerics import decision_uniforms, tree_where
from dpjax.release import PrivateRelease

CoupledRefresh = Callable[
    [Key, Parameters, Parameters, Array, RecordPair], tuple[Parameters, Parameters, Array, RecordPair]
]
"""``(rng_key, first, second, same, records) -> ...`` of the parameters of two chains, their flag [] and the records."""


def build_coupled_refresh(model: Model, release: PrivateRelease, tuning: Any) -> CoupledRefresh:
    """The step that proposes the same parameters and records to both chains, and accepts by the same uniform.

    Each chain alone is refreshed as in `dpjax.sample`, so that p(parameters, records | release) is invariant.

    Raises
    ------
    TypeError
        If the tuning is not that of refreshes of this model.
    """
    check_refresh(model, tuning)

    def step(
        rng_key: Key, first: Parameters, second: Parameters, same: Array, records: RecordPair
    ) -> tuple[Parameters, Parameters, Array, RecordPair]:
        kind_key, vector_key, record_key, decision_key = jax.random.split(rng_key, 4)
        from_prior = jax.random.uniform(kind_key, dtype=tuning.prior_share.dtype) < tuning.prior_share
        like = init_state(release, Position(first, records.first))
        vector = draw_vectors(vector_key, model, tuning, from_prior, 1)[0]
        proposed = alone(model, tuning, from_prior, propose(record_key, model, release, vector, like))
        log_uniform = jnp.log(decision_uniforms(decision_key))

        def move(position: Position) -> tuple[Position, Array]:
            present = alone(model, tuning, from_prior, init_state(release, position))
            (state, *_), info = decide(present, proposed, log_uniform)
            return Position(state.parameters, state.latent.records), info.num_accepted > 0

        one, accepted = move(Position(first, records.first))
        other, accepted_too = move(Position(second, records.second))
        # If chains have met, the same decision computed twice could differ by rounding.
        met = (same & jnp.all(records.same)) | (accepted & accepted_too)
        other = tree_where(met, one, other)
        stayed = ~(accepted | accepted_too)
        flags = RecordPair(one.records, other.records, met | (records.same & stayed))
        return one.parameters, other.parameters, met | (same & stayed), flags

    return step


def check_refresh(model: Model, tuning: Any) -> None:
    """Raise unless this is a tuning of refreshes of the model."""
    remedy = "Pass the refresh of a run of this model: dpjax.sample(...).refresh."
    if not isinstance(tuning, RefreshTuning) or not parameter_shapes(model):
        kind = "a RefreshTuning, of a model with parameters"
        fail("refresh", type(tuning).__name__, kind, remedy, error=TypeError)
    expected, given = (tuple(map(np.shape, one[:3])) for one in (prior_alone(model), tuning))
    if given != expected:
        fail("refresh", f"shapes {given}", f"shapes {expected}", remedy, error=TypeError)
