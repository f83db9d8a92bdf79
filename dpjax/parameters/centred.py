"""The centred step: parameters given the records, by the model's own update or by a BlackJAX kernel."""

from collections.abc import Callable
from typing import Any

import blackjax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records, SamplingAlgorithm
from dpjax.parameters.coordinates import Tuning, build_log_density, constrain, to_vector

ParameterKernel = Callable[[Callable[[Array], Array]], SamplingAlgorithm]


def slice_kernel(log_density: Callable[[Array], Array]) -> SamplingAlgorithm:
    """Coordinate-wise slice sampling of a whitened vector, which needs no step size."""
    return blackjax.coordinate_slice(log_density, initial_widths=2.0, interval=blackjax.mcmc.slice.stepping_out)


def build_centred_step(
    model: Model, parameter_kernel: ParameterKernel | None
) -> Callable[[Key, Parameters, Records, Tuning], tuple[Parameters, Any]]:
    """The step ``(rng_key, parameters, records, tuning) -> (parameters, info)``, invariant for p(parameters | records).

    Parameters
    ----------
    parameter_kernel
        ``log_density -> SamplingAlgorithm`` on whitened vectors [k]: any BlackJAX kernel. None takes the model's own
        update where it has one, else coordinate-wise slice sampling.
    """
    if parameter_kernel is None and model.update is not None:
        update = model.update
        return lambda rng_key, parameters, records, tuning: (update(rng_key, parameters, records), None)
    algorithm_of = slice_kernel if parameter_kernel is None else parameter_kernel

    def step(rng_key: Key, parameters: Parameters, records: Records, tuning: Tuning) -> tuple[Parameters, Any]:
        vector, unravel = to_vector(model, parameters)
        log_density = build_log_density(model, tuning, unravel, build_log_likelihood(model, records))
        # The records have moved since the last sweep, so the kernel's cached density is built afresh.
        algorithm = algorithm_of(log_density)
        state, info = algorithm.step(rng_key, algorithm.init(tuning.whiten(vector)))
        return constrain(model, unravel(tuning.colour(state.position))), info

    return step


def build_log_likelihood(model: Model, records: Records) -> Callable[[Parameters], Array]:
    """The log-density [] of all records as a function of the parameters, through the summary if there is one."""
    if model.summarize is None or model.log_likelihood is None:
        return lambda parameters: jnp.sum(model.log_density(parameters, records))
    summary, log_likelihood = model.summarize(records), model.log_likelihood
    return lambda parameters: log_likelihood(parameters, summary)
