"""DP-HMC: Hamiltonian Monte Carlo with noisy clipped gradients and a noisy clipped acceptance test."""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_count, check_positive, fail
from dpjax.base import Array, Key, SamplingAlgorithm
from dpjax.numerics.linear_algebra import product
from dpjax.private.arguments import check_bound, check_noise, check_numbers, check_target, check_tau
from dpjax.private.kernels.base import (
    KernelInfo,
    NotPrivate,
    PrivateKernel,
    build_answer,
    make_kernel,
    ravel,
)
from dpjax.private.kernels.decision import AcceptanceTest, Test, choose_test
from dpjax.private.kernels.penalty import Answer, PenaltyTest, ProposedMove, exact
from dpjax.private.kernels.schedules import Schedule, as_schedule
from dpjax.private.noise import Noise
from dpjax.private.sums.clipped import clipped_gradients
from dpjax.private.targets.target import Target

__all__ = ["HMCInnovations", "dp_hmc", "hmc", "hmc_core", "leapfrog", "metric"]


class HMCState(NamedTuple):
    """The parameters, unconstrained, and the number of iterations made []."""

    position: Any
    iteration: Array


class HMCInnovations(NamedTuple):
    """The randomness of one iteration that needs no protection.

    Attributes
    ----------
    momentum
        Standard Normal numbers [d].
    log_uniform
        The logarithm [] of a uniform number.
    """

    momentum: Array
    log_uniform: Array


class Metric(NamedTuple):
    """The kinetic energy ½ pᵀM⁻¹p.

    Attributes
    ----------
    momentum
        From standard Normal numbers [d] to a momentum N(0, M).
    velocity
        ``p -> M⁻¹p``.
    """

    momentum: Callable[[Array], Array]
    velocity: Callable[[Array], Array]

    def kinetic(self, momentum: Array) -> Array:
        """½ pᵀM⁻¹p []."""
        return 0.5 * product(momentum, self.velocity(momentum))


def metric(mass: Any, dimension: int) -> Metric:
    """The metric of a mass matrix M given as a number, a diagonal [d] or a matrix [d, d].

    Raises
    ------
    ValueError
        If it has another shape or is not positive definite.
    """
    check_numbers("mass", mass)
    shape = np.shape(mass)
    if shape not in ((), (dimension,), (dimension, dimension)):
        remedy = "Pass one mass for all coordinates, one for each, or a matrix."
        fail("mass", f"shape {shape}", f"a number, [{dimension}] or [{dimension}, {dimension}]", remedy)
    if len(shape) < 2:
        check_positive("mass", mass)
        masses = jnp.asarray(mass, float)
        return Metric(lambda normals: jnp.sqrt(masses) * normals, lambda momentum: momentum / masses)
    check_array("mass", mass, lambda matrix: np.allclose(matrix, matrix.T), "a symmetric matrix", "Symmetrize it.")
    try:
        factor = jnp.asarray(np.linalg.cholesky(np.asarray(mass, float)), float)
    except np.linalg.LinAlgError:
        fail("mass", "a matrix without a Cholesky factor", "a positive definite matrix", "Add to its diagonal.")
    return Metric(
        lambda normals: product(factor, normals), lambda momentum: jax.scipy.linalg.cho_solve((factor, True), momentum)
    )


class HMCSettings(NamedTuple):
    """Algorithm 1's numbers and test; τ_g = 0 is no noise, an infinite bound no clipping, scale None θ itself."""

    schedule: Schedule
    num_leapfrog: int
    metric: Metric
    gradient_bound: float
    tau_g: float
    test: AcceptanceTest
    scale: np.ndarray | None = None


@names_arguments
def dp_hmc(
    target: Target,
    noise: Noise,
    *,
    step_size: float | Schedule,
    num_leapfrog: int,
    gradient_bound: float,
    ratio_bound: float,
    tau_g: float,
    tau_l: float,
    mass: Any = 1.0,
    scale: np.ndarray | None = None,
    test: Test = "penalty",
) -> PrivateKernel:
    """Leaves the posterior invariant if no log-likelihood ratio is clipped: Algorithm 1 of Räisä et al. (2021).

    Each iteration asks for L + 1 noisy gradients and one noisy log-likelihood ratio. Clipped gradients cost acceptance
    alone; clipped ratios change the invariant distribution.

    Parameters
    ----------
    target
        See `target`, `model_target`.
    noise
        The source of noise: there is no default.
    step_size
        η, or a schedule such as `halton_steps`.
    num_leapfrog
        L.
    gradient_bound
        b_g: each record's gradient is clipped to this norm.
    ratio_bound
        b_l: each record's log-likelihood ratio is clipped to ±b_l‖θ − θ′‖.
    tau_g
        τ_g: the noise of a gradient has standard deviation 2 τ_g b_g.
    tau_l
        τ_l: the noise of a ratio has standard deviation 2 τ_l b_l‖θ − θ′‖.
    mass
        M: a number, a diagonal [d] or a matrix [d, d]. Choose it without looking at the records.
    scale
        An invertible matrix S [d, d]: the algorithm runs on u with θ = S u, to which step size, mass and norms then
        belong. On a posterior that is much narrower in some directions than in others, clipping and noise on the
        parameters' own scale let it move in the wide ones alone. Choose it without looking at the records.
    test
        As in `dp_penalty`.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import dpjax
    >>> import jax, jax.numpy as jnp
    >>> from dpjax import private
    >>> def density(mean, y):
    ...     return -((y - mean) ** 2) / 2
    >>> data = jnp.array([0.0, 1.0, 9.0])
    >>> target = private.target(density, lambda mean: -(mean**2) / 2, data, jnp.zeros(()))
    >>> bounds = {"gradient_bound": 1.0, "ratio_bound": 1.0, "tau_g": 50.0, "tau_l": 50.0}
    >>> kernel = dpjax.private.dp_hmc(target, private.noise.jax, step_size=0.1, num_leapfrog=5, **bounds)
    >>> [query.count for query in kernel.queries]
    [6, 1]
    """
    check_target("target", target)
    check_noise(noise)
    settings = HMCSettings(
        schedule=as_schedule(step_size),
        num_leapfrog=check_count("num_leapfrog", num_leapfrog),
        metric=metric(mass, target.dimension),
        gradient_bound=check_bound("gradient_bound", gradient_bound),
        tau_g=check_tau("tau_g", tau_g),
        test=choose_test(test, target, check_bound("ratio_bound", ratio_bound), tau_l=check_tau("tau_l", tau_l)),
        scale=check_scale(scale, target.dimension),
    )
    queries = (
        noise.query("gradient", 2 * settings.tau_g, dimension=target.dimension, count=settings.num_leapfrog + 1),
        settings.test.query(noise),
    )
    return make_kernel(target, partial(build, settings, partial(build_answer, noise)), queries)


@names_arguments
def hmc(
    target: Target,
    *,
    step_size: float | Schedule,
    num_leapfrog: int,
    mass: Any = 1.0,
    scale: np.ndarray | None = None,
    gradient_bound: float = inf,
    ratio_bound: float = inf,
) -> PrivateKernel:
    """Leaves the posterior invariant, **without any privacy**: `dp_hmc` with no noise and no clipping.

    Bounds are for the study of clipping: clipped ratios change the invariant distribution.

    Parameters
    ----------
    target
        As in `dp_hmc`.
    step_size
        As in `dp_hmc`.
    num_leapfrog
        As in `dp_hmc`.
    mass
        As in `dp_hmc`.
    scale
        As in `dp_hmc`.
    gradient_bound
        As in `dp_hmc`; without one nothing is clipped.
    ratio_bound
        As in `dp_hmc`; without one nothing is clipped.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import dpjax
    >>> import jax, jax.numpy as jnp
    >>> from dpjax import private
    >>> def density(mean, y):
    ...     return -((y - mean) ** 2) / 2
    >>> data = jnp.array([0.0, 1.0, 9.0])
    >>> target = private.target(density, lambda mean: -(mean**2) / 2, data, jnp.zeros(()))
    >>> kernel = dpjax.private.hmc(target, step_size=0.3, num_leapfrog=5)
    >>> kernel.queries
    ()
    """
    check_target("target", target)
    settings = HMCSettings(
        schedule=as_schedule(step_size),
        num_leapfrog=check_count("num_leapfrog", num_leapfrog),
        metric=metric(mass, target.dimension),
        gradient_bound=check_bound("gradient_bound", gradient_bound, largest=inf),
        tau_g=0.0,
        test=PenaltyTest(check_bound("ratio_bound", ratio_bound, largest=inf), 0.0),
        scale=check_scale(scale, target.dimension),
    )
    return make_kernel(target, partial(build, settings, lambda key: exact), ())


def check_scale(scale: object, dimension: int) -> np.ndarray | None:
    """The matrix [d, d], or None; an error unless it is invertible."""
    if scale is None:
        return None
    check_numbers("scale", scale)
    matrix = np.asarray(scale, float)
    if matrix.shape != (dimension, dimension):
        fail("scale", f"shape {matrix.shape}", f"[{dimension}, {dimension}]", "Pass a matrix, such as np.diag(...).")
    if not np.all(np.isfinite(matrix)) or not np.linalg.cond(matrix) < 1 / np.finfo(float).eps:
        fail("scale", "a matrix without an inverse", "a finite, invertible matrix", "No direction may be left out.")
    return matrix


def build(settings: HMCSettings, answer_with: Callable[[Key], Answer], target: Target) -> SamplingAlgorithm:
    """The algorithm: each step draws the innovations of `hmc_core`, which runs on u with θ = S u."""
    scaled, ravel_scaled = on_scale(target, settings.scale)

    def init(position: Any, rng_key: Key | None = None) -> HMCState:
        del rng_key
        return HMCState(position, jnp.zeros((), jnp.int32))

    def step(rng_key: Key, state: HMCState) -> tuple[HMCState, KernelInfo]:
        momentum_key, uniform_key, noise_key = jax.random.split(rng_key, 3)
        vector = ravel_scaled(state.position)
        normals = jax.random.normal(momentum_key, vector.shape, vector.dtype)
        innovations = HMCInnovations(normals, jnp.log(jax.random.uniform(uniform_key, (), vector.dtype)))
        step_size = settings.schedule(state.iteration).astype(vector.dtype)
        vector, info = hmc_core(scaled, settings, answer_with(noise_key), step_size, vector, innovations)
        # S S⁻¹ θ is θ up to rounding only, and a chain whose proposal is rejected stays exactly where it is.
        position = jax.tree.map(partial(jnp.where, info.is_accepted), scaled.unravel(vector), state.position)
        return HMCState(position, state.iteration + 1), info

    return SamplingAlgorithm(init, step)


def on_scale(target: Target, scale: np.ndarray | None) -> tuple[Target, Callable[[Any], Array]]:
    """The target as a function of u with θ = S u, and the function of a position that returns u [d]."""
    if scale is None:
        return target, ravel
    inverse = jnp.asarray(np.linalg.inv(scale), target.dtype)
    scaled = target.scaled(jnp.asarray(scale, target.dtype))
    return scaled, lambda position: product(inverse, ravel(position))


def hmc_core(
    target: Target,
    settings: HMCSettings,
    answer: Answer,
    step_size: Array,
    vector: Array,
    innovations: HMCInnovations,
) -> tuple[Array, KernelInfo]:
    """One iteration of Algorithm 1 as a function of its innovations and of the answers to its queries.

    Queries 0, ..., L are the gradients along the trajectory, query L + 1 is that of the acceptance test.
    """

    def gradient(index: Array, at: Array) -> tuple[Array, Array]:
        total = clipped_gradients(target, at, settings.gradient_bound)
        noisy = total.released(partial(answer, index), 2 * settings.tau_g)
        return noisy + jax.grad(target.log_prior)(at), total.clipped / target.num_records

    momentum = settings.metric.momentum(innovations.momentum).astype(vector.dtype)
    proposal, end, clipped = leapfrog(
        gradient, vector, momentum, step_size, settings.num_leapfrog, settings.metric.velocity
    )
    last = jnp.asarray(settings.num_leapfrog + 1)
    move = ProposedMove(vector, proposal, settings.metric.kinetic(momentum) - settings.metric.kinetic(end))
    accepted, clipped_ratios = settings.test.decide(target, partial(answer, last), move, innovations.log_uniform)
    info = KernelInfo(accepted, NotPrivate(jnp.mean(clipped), clipped_ratios))
    return jnp.where(accepted, proposal, vector), info


def leapfrog(
    gradient: Callable[[Array, Array], tuple[Array, Array]],
    vector: Array,
    momentum: Array,
    step_size: Array,
    num_steps: int,
    velocity: Callable[[Array], Array],
) -> tuple[Array, Array, Array]:
    """The end of a leapfrog trajectory with momentum updates p + s g(θ), and the reports of `gradient`.

    Parameters
    ----------
    gradient
        ``(index, vector) -> (gradient of the log-posterior [d], report [])``, asked L + 1 times.

    Notes
    -----
    A kick comes before each drift, and the last drift is of length zero, so that there is one loop with one gradient
    in it.
    """

    def leap(phase: tuple[Array, Array], index: Array) -> tuple[tuple[Array, Array], Array]:
        at, momentum = phase
        slope, report = gradient(index, at)
        is_end = (index == 0) | (index == num_steps)
        momentum = momentum + jnp.where(is_end, step_size / 2, step_size) * slope
        at = jnp.where(index < num_steps, at + step_size * velocity(momentum), at)
        return (at, momentum), report

    (vector, momentum), reports = jax.lax.scan(leap, (vector, momentum), jnp.arange(num_steps + 1))
    return vector, momentum, reports
