"""DP-SGLD: Langevin dynamics with noisy clipped gradients of Poisson samples."""

from dataclasses import replace
from functools import partial
from math import sqrt
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, check_moderate, fail
from dpjax.base import Array, Key, SamplingAlgorithm
from dpjax.private.accounting.query import Query
from dpjax.private.arguments import check_bound, check_noise, check_real, check_target, check_tau
from dpjax.private.kernels.base import KernelInfo, NotPrivate, PrivateKernel, build_answer, make_kernel, ravel
from dpjax.private.kernels.penalty import Answer
from dpjax.private.kernels.schedules import check_step
from dpjax.private.noise import Noise
from dpjax.private.sums.poisson import SampledSum, choose_block, sampled_gradients
from dpjax.private.targets.target import Target

__all__ = ["SGLDState", "dp_sgld", "largest_langevin_noise", "sgld_core"]


class SGLDState(NamedTuple):
    """The parameters, unconstrained."""

    position: Any


class SGLDSettings(NamedTuple):
    """The numbers of DP-SGLD."""

    step_size: float
    rate: float
    bound: float
    multiplier: float
    block: int


@names_arguments
def dp_sgld(
    target: Target,
    noise: Noise,
    *,
    step_size: float,
    sampling_rate: float,
    gradient_bound: float,
    noise_multiplier: float,
    block: int | None = None,
) -> PrivateKernel:
    """Leaves the posterior invariant as the step goes to zero, if no gradient is clipped (Wang et al. 2015).

    θ += (η/2) ∇̂ + N(0, η), where ∇̂ is the noisy sum of clipped gradients of a Poisson sample over its rate, plus the
    gradient of the log-prior. The noise of the release is part of N(0, η), and the rest is added.

    Parameters
    ----------
    target
        See `target`, `model_target`.
    noise
        The source of noise: there is no default.
    step_size
        η.
    sampling_rate
        q: each record takes part with probability q, and the sum of a sample is scaled by 1 / q. Like every setting it
        is published by the draws and the ledger: if n is confidential, as under ``"add-or-remove"``, choose it
        without n, never as a sample's size over n.
    gradient_bound
        Each record's gradient is clipped to this norm.
    noise_multiplier
        The standard deviation of the noise of the sum over `gradient_bound`; at most `largest_langevin_noise`.
    block
        How many sampled records are held at once; see `sampled_gradients`.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, or the noise alone is larger than N(0, η).

    Notes
    -----
    Its queries are simulation-grade with any noise source, unless every record takes part: amplification by subsampling
    requires an unpredictable sample, and JAX's generator draws it.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> from dpjax import private
    >>> def density(mean, y):
    ...     return -((y - mean) ** 2) / 2
    >>> data = jnp.array([0.0, 1.0, 9.0])
    >>> target = private.target(density, lambda mean: -(mean**2) / 2, data, jnp.zeros(()))
    >>> kernel = dpjax.private.dp_sgld(
    ...     target, private.noise.jax, step_size=0.01, sampling_rate=0.5, gradient_bound=2.0, noise_multiplier=1.0
    ... )
    """
    check_target("target", target)
    check_noise(noise)
    check_step(step_size)
    sampling = check_sampling(target, sampling_rate, gradient_bound, noise_multiplier, block)
    settings = SGLDSettings(float(step_size), *sampling)
    check_temperature(settings)
    queries = (sampled_query(target, noise, settings),)
    return make_kernel(target, partial(build, settings, noise), queries)


@names_arguments
def largest_langevin_noise(step_size: float, sampling_rate: float, gradient_bound: float) -> float:
    """The noise multiplier 2q / (b√η) whose release is all the noise that a Langevin step N(0, η) needs.

    Parameters
    ----------
    step_size
        η.
    sampling_rate
        q.
    gradient_bound
        b.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.private.largest_langevin_noise(step_size=1e-4, sampling_rate=0.1, gradient_bound=2.0)
    10.0
    """
    for name, value in (("step_size", step_size), ("sampling_rate", sampling_rate), ("gradient_bound", gradient_bound)):
        check_moderate(name, check_real(name, value))
    return 2 * sampling_rate / (gradient_bound * sqrt(step_size))


def build(settings: SGLDSettings, noise: Noise, target: Target) -> SamplingAlgorithm:
    """The algorithm: each step draws the sample and the innovations of `sgld_core`."""

    def init(position: Any, rng_key: Key | None = None) -> SGLDState:
        del rng_key
        return SGLDState(position)

    def step(rng_key: Key, state: SGLDState) -> tuple[SGLDState, KernelInfo]:
        sample_key, normal_key, noise_key = jax.random.split(rng_key, 3)
        vector = ravel(state.position)
        sampling_key = noise.sampling_key(sample_key)
        total = sampled_gradients(
            target, sampling_key, vector, rate=settings.rate, bound=settings.bound, block=settings.block
        )
        normals = jax.random.normal(normal_key, vector.shape, vector.dtype)
        vector = sgld_core(target, settings, build_answer(noise, noise_key), vector, total, normals)
        return SGLDState(target.unravel(vector)), describe(total)

    return SamplingAlgorithm(init, step)


def sgld_core(
    target: Target, settings: SGLDSettings, answer: Answer, vector: Array, total: SampledSum, normals: Array
) -> Array:
    """One Langevin step as a function of a sampled sum, of the answer to its one query and of standard Normals [d]."""
    gradient = noisy_gradient(target, settings, answer, vector, total)
    step_size = jnp.asarray(settings.step_size, vector.dtype)
    released = step_size / 2 * settings.multiplier * settings.bound / settings.rate
    rest = jnp.sqrt(jnp.maximum(step_size - released**2, 0.0))
    return vector + step_size / 2 * gradient + rest * normals


def noisy_gradient(target: Target, settings: Any, answer: Answer, vector: Array, total: SampledSum) -> Array:
    """The noisy estimate [d] of the gradient of the log-posterior from a sampled sum."""
    noisy = total.gradients.released(partial(answer, jnp.zeros((), jnp.int32)), settings.multiplier)
    return noisy / settings.rate + jax.grad(target.log_prior)(vector)


def describe(total: SampledSum) -> KernelInfo:
    """The report of an iteration without an acceptance test."""
    clipped = total.gradients.clipped / jnp.maximum(total.size, 1.0)
    return KernelInfo(jnp.ones((), bool), NotPrivate(clipped, jnp.full_like(clipped, jnp.nan)))


def sampled_query(target: Target, noise: Noise, settings: Any) -> Query:
    """The one query of an iteration.

    It is simulation-grade with any noise: its cost assumes an unpredictable sample, which JAX's generator draws.
    """
    rate, multiplier = settings.rate, settings.multiplier
    query = noise.query("sampled gradient", multiplier, dimension=target.dimension, sampling_rate=rate)
    return query if rate == 1 else replace(query, grade="simulation-grade")


def check_sampling(
    target: Target, rate: float, bound: float, multiplier: float, block: int | None
) -> tuple[float, float, float, int]:
    """The rate, the bound, the noise multiplier and the block of a subsampled algorithm."""
    size = None if block is None else check_count("block", block)
    rate, bound = check_rate(rate), check_bound("gradient_bound", bound)
    return rate, bound, check_tau("noise_multiplier", multiplier), choose_block(rate, target.num_records, size)


def check_rate(rate: Any) -> float:
    """The sampling rate, or an error unless it is a probability above zero."""
    remedy = "Pass the probability with which one record takes part, chosen without looking at the records."
    share = check_real("sampling_rate", rate)
    if not 0 < share <= 1:
        fail("sampling_rate", rate, "a probability in (0, 1]", remedy)
    return share


def check_temperature(settings: SGLDSettings) -> None:
    """Raise if the released noise exceeds N(0, η)."""
    largest = largest_langevin_noise(settings.step_size, settings.rate, settings.bound)
    if settings.multiplier > largest * (1 + 1e-6):
        given = f"{settings.multiplier:.4g} at step size {settings.step_size:.4g}"
        remedy = "Use a smaller step size, which allows more noise in the gradient."
        fail("noise_multiplier", given, f"at most {largest:.4g}, with which the noise is N(0, η)", remedy)
