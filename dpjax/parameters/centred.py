"""The centred step: parameters given the records, by the model's own update or by a BlackJAX kernel."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records, SamplingAlgorithm
from dpjax.numerics import all_finite, take_if
from dpjax.parameters.coordinates import Tuning, build_log_density, constrain, to_vector
from dpjax.parameters.kernels import ParameterKernel


def build_centred_step(
    model: Model, kernel: ParameterKernel | None
) -> Callable[[Key, Parameters, Records, Tuning | None], tuple[Parameters, Any, Array]]:
    """The step ``(rng_key, parameters, records, tuning) -> (parameters, info, num_nonfinite)``.

    It leaves p(parameters | records) invariant. Parameters stay as they were where the new ones are not finite, which
    `num_nonfinite` [] counts, as it does a density of the records that is not finite.

    Parameters
    ----------
    kernel
        None takes the model's own update, which needs no tuning; see `choose_kernel`.
    """
    move = build_update(model) if kernel is None else build_move(model, kernel)

    def step(
        rng_key: Key, parameters: Parameters, records: Records, tuning: Tuning | None
    ) -> tuple[Parameters, Any, Array]:
        moved, info, possible = move(rng_key, parameters, records, tuning)
        finite = all_finite(moved)
        return take_if(finite, moved, parameters), info, (~(finite & possible)).astype(int)

    return step


def build_update(model: Model) -> Callable[[Key, Parameters, Records, Tuning | None], tuple[Parameters, None, Array]]:
    """The model's own update, as a move; of no parameters where it has none."""
    update = keep if model.update is None else model.update
    return lambda rng_key, parameters, records, tuning: (update(rng_key, parameters, records), None, jnp.array(True))


def keep(rng_key: Key, parameters: Parameters, records: Records) -> Parameters:
    """The update of no parameters."""
    del rng_key, records
    assert not parameters, "parameters without an update are moved by a kernel"
    return parameters


def build_move(
    model: Model, kernel: ParameterKernel
) -> Callable[[Key, Parameters, Records, Tuning | None], tuple[Parameters, Any, Array]]:
    """The move by a kernel, which says too whether the density was finite where it began []."""

    def move(
        rng_key: Key, parameters: Parameters, records: Records, tuning: Tuning | None
    ) -> tuple[Parameters, Any, Array]:
        assert tuning is not None, "kernels move in whitened coordinates"
        vector, unravel = to_vector(model, parameters)
        log_density = build_log_density(model, tuning, unravel, build_log_likelihood(model, records))
        algorithm, start = kernel.build(log_density, vector.size, tuning.step_size), tuning.whiten(vector)
        whitened, info = advance(rng_key, algorithm, start, kernel.num_steps)
        moved = constrain(model, unravel(tuning.colour(whitened)))
        return moved, info, jnp.isfinite(log_density(start))

    return move


def advance(rng_key: Key, algorithm: SamplingAlgorithm, position: Array, num_steps: int) -> tuple[Array, Any]:
    """The position after some steps, and the report: over several steps, rates and flags average and counts add up."""
    # The records have moved since the last sweep, so what the kernel's state caches is built afresh.
    state = algorithm.init(position)
    if num_steps == 1:
        state, info = algorithm.step(rng_key, state)
        return state.position, info

    def step(state: Any, index: Array) -> tuple[Any, Any]:
        return algorithm.step(jax.random.fold_in(rng_key, index), state)

    state, infos = jax.lax.scan(step, state, jnp.arange(num_steps))
    return state.position, jax.tree.map(pool, infos)


def pool(leaf: Array) -> Array:
    """Reports [step, ...] as one: whole numbers added up, all others averaged."""
    return jnp.sum(leaf, axis=0) if jnp.issubdtype(leaf.dtype, jnp.integer) else jnp.mean(leaf, axis=0)


def build_log_likelihood(model: Model, records: Records) -> Callable[[Parameters], Array]:
    """The log-density [] of all records as a function of the parameters, through the summary if there is one."""
    if model.summarize is None or model.log_likelihood is None:
        return lambda parameters: jnp.sum(model.log_density(parameters, records))
    summary, log_likelihood = model.summarize(records), model.log_likelihood
    return lambda parameters: log_likelihood(parameters, summary)
