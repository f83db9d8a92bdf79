"""The centred step: parameters given the records, by the model's own update or by a BlackJAX kernel."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.step_size import dual_averaging_adaptation

from dpjax.base import Array, Key, Model, Parameters, Records, SamplingAlgorithm
from dpjax.data_augmentation.parameters.coordinates import Tuning, build_log_density
from dpjax.data_augmentation.parameters.kernels import (
    HMC,
    NUTS,
    CoordinateSlice,
    KernelBuilder,
    ParameterKernel,
    SteppedKernel,
    parameter_kernel,
)
from dpjax.models.programs import jit_model
from dpjax.models.simulation import draw_position, parameter_shapes
from dpjax.models.unconstrained import to_vector
from dpjax.numerics import all_finite, leading_size, tree_where

MOST_FOR_HMC = 20
"""Largest number of parameters that HMC with four gradients moves by default; NUTS moves more.

On local releases with 10, 30 and 100 parameters NUTS gave 1.4, 5.6 and 3.2 times as many effective draws. Per CPU
second it gave 0.6, 1.2 and 0.3 times as many. HMC's chains of 30 and more did not mix, so that its speeds mean
little. On sums NUTS gave 0.5, 0.8 and 0.9 times as many per CPU second. See `benchmarks/kernel_choice.py`.
"""

NUM_PROBES = 8
"""Number of prior draws at which gradients are checked."""

NUM_STEPS = 100
"""Number of steps for one fit: enough to come near the target rate from a step size a hundred times too wide."""

ALONE = 0.9
"""The acceptance rate aimed at for parameters that move alone: at 0.8 chains stuck where a scale is near zero.

Deaths by interval with a random walk then had a third of the effective draws, and noisy sums of hospitals a thirtieth.
"""

FEW_RECORDS = 2**12
"""Largest number of records of all chains for which a quickly compiled program is used: it runs more slowly."""


def build_centred_step(
    model: Model, kernel: ParameterKernel | None
) -> Callable[[Key, Parameters, Records, Tuning | None], tuple[Parameters, Any, Array]]:
    """The step ``(rng_key, parameters, records, tuning) -> (parameters, info, num_nonfinite)``.

    It leaves p(parameters | records) invariant. Parameters stay as they were if the new ones are not finite, which
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
        return tree_where(finite, moved, parameters), info, (~(finite & possible)).astype(int)

    return step


def build_update(model: Model) -> Callable[[Key, Parameters, Records, Tuning | None], tuple[Parameters, None, Array]]:
    """The model's own update, as a move."""
    return lambda key, parameters, records, tuning: (model.update(key, parameters, records), None, jnp.array(True))


def build_move(
    model: Model, kernel: ParameterKernel
) -> Callable[[Key, Parameters, Records, Tuning | None], tuple[Parameters, Any, Array]]:
    """The move by a kernel, which also reports whether the density was finite at its start []."""

    def move(
        rng_key: Key, parameters: Parameters, records: Records, tuning: Tuning | None
    ) -> tuple[Parameters, Any, Array]:
        return build_move_by(model, kernel, build_log_likelihood(model, records))(rng_key, parameters, tuning)

    return move


def build_move_by(
    model: Model, kernel: ParameterKernel, log_likelihood: Callable[[Parameters], Array]
) -> Callable[[Key, Parameters, Tuning | None], tuple[Parameters, Any, Array]]:
    """The move ``(rng_key, parameters, tuning) -> (parameters, info, possible)`` under a likelihood.

    It also reports whether the density was finite at its start [].
    """

    def move(rng_key: Key, parameters: Parameters, tuning: Tuning | None) -> tuple[Parameters, Any, Array]:
        assert tuning is not None, "kernels move in whitened coordinates"
        vector, unravel = to_vector(model, parameters)
        log_density = build_log_density(model, tuning, unravel, log_likelihood)
        algorithm, start = kernel.build(log_density, vector.size, tuning.step_size), tuning.whiten(vector)
        whitened, info = make_steps(rng_key, kernel, algorithm, start)
        moved = model.constrain(unravel(tuning.colour(whitened)))
        return moved, info, jnp.isfinite(log_density(start))

    return move


def make_steps(
    rng_key: Key, kernel: ParameterKernel, algorithm: SamplingAlgorithm, position: Array
) -> tuple[Array, Any]:
    """The position after a kernel's steps, and the report: rates and flags average over them, and counts add up."""
    # The records have moved since the last sweep, so the kernel's cached state is rebuilt.
    steps_key, state = kernel.start(rng_key, algorithm, position)
    if kernel.num_steps == 1:
        state, info = algorithm.step(steps_key, state)
        return state.position, info

    def step(state: Any, index: Array) -> tuple[Any, Any]:
        return algorithm.step(jax.random.fold_in(steps_key, index), state)

    state, infos = jax.lax.scan(step, state, jnp.arange(kernel.num_steps))
    return state.position, jax.tree.map(pool, infos)


def pool(leaf: Array) -> Array:
    """Reports [step, ...] as one: whole numbers added up, all others averaged."""
    return jnp.sum(leaf, axis=0) if jnp.issubdtype(leaf.dtype, jnp.integer) else jnp.mean(leaf, axis=0)


def build_log_likelihood(model: Model, records: Records) -> Callable[[Parameters], Array]:
    """The log-density [] of all records as a function of the parameters, through their summary."""
    summary = model.summarize(records)
    return lambda parameters: model.log_likelihood(parameters, summary)


def choose_kernel(
    model: Model, choice: str | KernelBuilder | ParameterKernel | None, alone: bool = False, smooth: bool = False
) -> ParameterKernel | None:
    """The kernel that a choice stands for; None stands for the model's exact update, else for the default.

    If there are no parameters there is none to move. Parameters that move alone, with the records summed out, have no
    exact update, and trajectories as long as they need by default. Their likelihood may be known to be `smooth`.

    Raises
    ------
    TypeError, ValueError
        As `parameter_kernel`.
    """
    if choice is None and alone:
        return NUTS(target_acceptance=ALONE) if smooth or has_gradients(model) else CoordinateSlice()
    if choice is None or not parameter_shapes(model):
        return None if model.has("update") or not parameter_shapes(model) else default_kernel(model)
    return choice if isinstance(choice, ParameterKernel) else parameter_kernel(choice)


def default_kernel(model: Model) -> ParameterKernel:
    """The kernel of a model without an exact update: HMC, NUTS for many parameters, slices if gradients are unusable.

    NUTS is taken for more than twenty parameters, for which four gradients of HMC are too short a trajectory. Slices
    along the coordinates are taken for a single parameter, where one is nearly an exact draw. They are also taken if
    some gradient is missing, non-finite, or zero at all of a few draws from the prior.

    Parameters
    ----------
    model
        The model whose parameters it moves.

    Notes
    -----
    The evidence is one run each at n = 100 on a busy core; see the guide. Effective draws per CPU second of HMC, NUTS
    and coordinate slices. For a Dirichlet with three parameters: 4,800, 2,000 and 1,100. For a logistic regression with
    fifteen: 3,000, 2,700 and 590. For a regression with three, interweaved: 24,000, 21,000 and 20,000. That slices fall
    behind as parameters are added is clear. Between 10 and 30 parameters NUTS overtakes HMC for local releases.

    Examples
    --------
    >>> from dpjax.data_augmentation.parameters.centred import default_kernel
    >>> import dpjax
    >>> model = dpjax.models.exponential(dpjax.models.GammaPrior(2.0, 1.0))
    >>> default_kernel(model)
    CoordinateSlice(num_steps=1, width=2.0)
    """
    if not has_gradients(model):
        return CoordinateSlice()
    return HMC() if num_parameters(model) <= MOST_FOR_HMC else NUTS()


def num_parameters(model: Model) -> int:
    """How many numbers the parameters are."""
    return sum(leaf.size for leaf in jax.tree.leaves(parameter_shapes(model)))


def has_gradients(model: Model) -> bool:
    """Whether there are two or more parameters, and usable gradients."""
    if num_parameters(model) < 2:
        return False
    try:
        slopes = np.asarray(probe_gradients.unoptimized(model, jax.random.key(0)))
    except (NotImplementedError, TypeError, ValueError):  # as JAX puts it if no derivative is defined
        return False
    return bool(np.all(np.isfinite(slopes)) and np.all(np.any(slopes != 0, axis=0)))


@jit_model
def probe_gradients(model: Model, rng_key: Key) -> Array:
    """Gradients [draw, k] of the log-density on the unconstrained scale, each at a draw from the model."""
    # Known covariates fix the number of records.
    n = 2 if model.num_records is None else model.num_records

    def gradient(key: Key) -> Array:
        parameters, records = draw_position(key, model, n)
        vector, unravel = to_vector(model, parameters)
        size, dtype = vector.size, vector.dtype
        unit = Tuning(jnp.zeros(size, dtype), jnp.eye(size, dtype=dtype), jnp.ones((), dtype))
        return jax.grad(build_log_density(model, unit, unravel, build_log_likelihood(model, records)))(vector)

    return jax.vmap(gradient)(jax.random.split(rng_key, NUM_PROBES))


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
    fit = average_steps.unoptimized if jax.tree.leaves(records)[0].size <= FEW_RECORDS else average_steps
    return fit(key, model, replace(kernel, num_steps=1), tuning, parameters, records)


@partial(jit_model, static_argnames=("kernel",))
def average_steps(
    key: Key, model: Model, kernel: SteppedKernel, tuning: Tuning, parameters: Parameters, records: Records
) -> Tuning:
    """The tuning after dual averaging from its own step size.

    The first trajectories are so wide that they take last bits far apart, and chains differ in these if a program is
    compiled for fewer of them. So the fit begins at numbers without them.
    """
    step = jax.vmap(build_centred_step(model, kernel), in_axes=(0, 0, 0, None))
    rough = jax.tree.map(halve_precision, tuning)
    parameters, records = jax.vmap(partial(forget_last_bits, model))(parameters, records)

    def move(keys: Key, parameters: Parameters, tuning: Tuning) -> tuple[Parameters, Any]:
        parameters, info, _ = step(keys, parameters, records, tuning)
        return parameters, info

    step_size = average_rates(key, kernel, rough, parameters, move)
    return tuning._replace(step_size=step_size.astype(tuning.step_size.dtype))


def average_steps_under(
    key: Key,
    model: Model,
    kernel: ParameterKernel | None,
    tuning: Tuning,
    parameters: Parameters,
    log_likelihood: Callable[[Parameters], Array],
) -> Tuning:
    """As `fit_step_size`, for parameters that move alone under a likelihood."""
    if not isinstance(kernel, SteppedKernel):
        return tuning
    one = build_move_by(model, replace(kernel, num_steps=1), log_likelihood)

    def move(keys: Key, parameters: Parameters, tuning: Tuning) -> tuple[Parameters, Any]:
        moved, info, _ = jax.vmap(one, in_axes=(0, 0, None))(keys, parameters, tuning)
        return jax.vmap(lambda new, old: tree_where(all_finite(new), new, old))(moved, parameters), info

    return tuning._replace(step_size=average_rates(key, kernel, tuning, parameters, move))


def average_rates(
    key: Key,
    kernel: SteppedKernel,
    tuning: Tuning,
    parameters: Parameters,
    move: Callable[[Key, Parameters, Tuning], tuple[Parameters, Any]],
) -> Array:
    """The step size [] by dual averaging of the rates of moves of chains [chain, ...]."""
    init, update, final = dual_averaging_adaptation(kernel.target_acceptance)
    numbers = jnp.arange(leading_size(parameters))

    def body(carry: tuple[Any, Parameters], index: Array) -> tuple[tuple[Any, Parameters], None]:
        averaging, parameters = carry
        keys = jax.vmap(partial(jax.random.fold_in, jax.random.fold_in(key, index)))(numbers)
        step_size = jnp.exp(averaging.log_step_size).astype(tuning.step_size.dtype)
        parameters, info = move(keys, parameters, tuning._replace(step_size=step_size))
        updated = update(averaging, jnp.mean(info.acceptance_rate).astype(float))
        return (jax.tree.map(keep_type, averaging, updated), parameters), None

    start = jax.tree.map(jnp.asarray, init(tuning.step_size.astype(float)))
    (averaging, _), _ = jax.lax.scan(body, (start, parameters), jnp.arange(NUM_STEPS))
    return final(averaging).astype(tuning.step_size.dtype)


def forget_last_bits(model: Model, parameters: Parameters, records: Records) -> tuple[Parameters, Records]:
    """A chain's parameters and records in half the precision, unless that takes them out of their support."""
    vector, unravel = to_vector(model, parameters)
    rough = model.constrain(unravel(halve_precision(vector))), jax.tree.map(halve_precision, records)
    return tree_where(jnp.isfinite(build_log_likelihood(model, rough[1])(rough[0])), rough, (parameters, records))


def halve_precision(leaf: Array) -> Array:
    """Numbers of float64 with half of their mantissa; half of float32 would be too coarse for records."""
    if leaf.dtype != jnp.float64:
        return leaf
    kind = jnp.finfo(leaf.dtype)
    return jax.lax.reduce_precision(leaf, kind.nexp, kind.nmant // 2)


def keep_type(old: Array, new: Array) -> Array:
    """The new value in the type of the old one."""
    return new.astype(old.dtype)
