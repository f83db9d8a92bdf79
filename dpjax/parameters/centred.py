"""The centred step: parameters given the records, by the model's own update or by a BlackJAX kernel."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records, SamplingAlgorithm
from dpjax.parameters.coordinates import Tuning, build_log_density, constrain, to_vector
from dpjax.parameters.kernels import ParameterKernel


def build_centred_step(
    model: Model, kernel: ParameterKernel | None
) -> Callable[[Key, Parameters, Records, Tuning], tuple[Parameters, Any]]:
    """The step ``(rng_key, parameters, records, tuning) -> (parameters, info)``, invariant for p(parameters | records).

    Parameters
    ----------
    kernel
        None takes the model's own update; see `choose_kernel`.
    """
    if kernel is None:
        assert model.update is not None
        update = model.update
        return lambda rng_key, parameters, records, tuning: (update(rng_key, parameters, records), None)

    def step(rng_key: Key, parameters: Parameters, records: Records, tuning: Tuning) -> tuple[Parameters, Any]:
        vector, unravel = to_vector(model, parameters)
        log_density = build_log_density(model, tuning, unravel, build_log_likelihood(model, records))
        algorithm = kernel.build(log_density, vector.size, tuning.step_size)
        whitened, info = advance(rng_key, algorithm, tuning.whiten(vector), kernel.num_steps)
        return constrain(model, unravel(tuning.colour(whitened))), info

    return step


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
