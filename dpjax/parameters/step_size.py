"""The step size of parameter kernels, fitted by BlackJAX's dual averaging (Hoffman and Gelman 2014, section 3.2.1)."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from blackjax.adaptation.step_size import dual_averaging_adaptation

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.numbered import jit_model
from dpjax.numerics import leading_size, take_if
from dpjax.parameters.centred import build_centred_step, build_log_likelihood
from dpjax.parameters.coordinates import Tuning, constrain, to_vector
from dpjax.parameters.kernels import ParameterKernel, SteppedKernel

NUM_STEPS = 100
"""Steps of the chains for one fit: enough to come near the target rate from a step size a hundred times too wide."""

FEW_RECORDS = 2**12
"""Of all chains together: with more, these steps by a program that was compiled quickly take longer than it saves."""


def fit_step_size(
    key: Key,
    model: Model,
    kernel: ParameterKernel | None,
    tuning: Tuning | None,
    parameters: Parameters,
    records: Records,
) -> Tuning | None:
    """The tuning with the step size at which chains at given parameters and records [chain, ...] meet the target rate.

    The chains move under p(parameters | records) with the records held; what is averaged is the rate of all chains
    together, since they share the step size. Kernels without a step size leave the tuning, if there is one, as it is.
    """
    if tuning is None or not isinstance(kernel, SteppedKernel):
        return tuning
    fit = average_steps.quickly if jax.tree.leaves(records)[0].size <= FEW_RECORDS else average_steps
    return fit(key, model, replace(kernel, num_steps=1), tuning, parameters, records)


@partial(jit_model, static_argnames=("kernel",))
def average_steps(
    key: Key, model: Model, kernel: SteppedKernel, tuning: Tuning, parameters: Parameters, records: Records
) -> Tuning:
    """The tuning after dual averaging from its own step size.

    The first trajectories are so wide that they take last bits far apart, and chains differ in these where a program is
    compiled for fewer of them: the fit begins at numbers without them.
    """
    step = jax.vmap(build_centred_step(model, kernel), in_axes=(0, 0, 0, None))
    rough = jax.tree.map(halve_precision, tuning)
    parameters, records = jax.vmap(partial(forget_last_bits, model))(parameters, records)
    init, update, final = dual_averaging_adaptation(kernel.target_acceptance)
    numbers = jnp.arange(leading_size(records))

    def body(carry: tuple[Any, Parameters], index: Array) -> tuple[tuple[Any, Parameters], None]:
        averaging, parameters = carry
        keys = jax.vmap(partial(jax.random.fold_in, jax.random.fold_in(key, index)))(numbers)
        step_size = jnp.exp(averaging.log_step_size).astype(tuning.step_size.dtype)
        parameters, info, _ = step(keys, parameters, records, rough._replace(step_size=step_size))
        updated = update(averaging, jnp.mean(info.acceptance_rate).astype(float))
        return (jax.tree.map(keep_type, averaging, updated), parameters), None

    start = jax.tree.map(jnp.asarray, init(rough.step_size.astype(float)))
    (averaging, _), _ = jax.lax.scan(body, (start, parameters), jnp.arange(NUM_STEPS))
    return tuning._replace(step_size=final(averaging).astype(tuning.step_size.dtype))


def forget_last_bits(model: Model, parameters: Parameters, records: Records) -> tuple[Parameters, Records]:
    """A chain's parameters and records in half the precision, unless that takes them out of their support."""
    vector, unravel = to_vector(model, parameters)
    rough = constrain(model, unravel(halve_precision(vector))), jax.tree.map(halve_precision, records)
    return take_if(jnp.isfinite(build_log_likelihood(model, rough[1])(rough[0])), rough, (parameters, records))


def halve_precision(leaf: Array) -> Array:
    """Numbers of float64 with half of their mantissa; half of float32 would be too coarse for records."""
    if leaf.dtype != jnp.float64:
        return leaf
    kind = jnp.finfo(leaf.dtype)
    return jax.lax.reduce_precision(leaf, kind.nexp, kind.nmant // 2)


def keep_type(old: Array, new: Array) -> Array:
    """The new value in the type of the old one."""
    return new.astype(old.dtype)
