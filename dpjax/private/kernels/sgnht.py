"""DP-SGNHT: Nosé–Hoover dynamics with noisy clipped gradients of Poisson samples."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_number, check_positive
from dpjax.base import Array, Key, SamplingAlgorithm
from dpjax.private.arguments import check_noise, check_numbers, check_target
from dpjax.private.kernels.base import KernelInfo, PrivateKernel, build_answer, make_kernel, ravel
from dpjax.private.kernels.penalty import Answer
from dpjax.private.kernels.schedules import check_step
from dpjax.private.kernels.sgld import check_sampling, describe, noisy_gradient, sampled_query
from dpjax.private.noise import Noise
from dpjax.private.sums.poisson import SampledSum, sampled_gradients
from dpjax.private.targets.target import Target

__all__ = ["SGNHTState", "dp_sgnht", "sgnht_core"]


class SGNHTState(NamedTuple):
    """The parameters, unconstrained, their momentum [d] and the thermostat's friction []."""

    position: Any
    momentum: Array
    friction: Array


class PhasePoint(NamedTuple):
    """A point of phase space: parameters [d], momentum [d] and the thermostat's friction []."""

    vector: Array
    momentum: Array
    friction: Array


class SGNHTSettings(NamedTuple):
    """The numbers of DP-SGNHT."""

    step_size: float
    diffusion: float
    rate: float
    bound: float
    multiplier: float
    block: int


@names_arguments
def dp_sgnht(
    target: Target,
    noise: Noise,
    *,
    step_size: float,
    diffusion: float,
    sampling_rate: float,
    gradient_bound: float,
    noise_multiplier: float,
    block: int | None = None,
) -> PrivateKernel:
    """Leaves the posterior invariant as the step goes to zero, if no gradient is clipped (Ding et al. 2014).

    p += h ∇̂ − h ξ p + N(0, 2Ah), θ += h p, ξ += h (pᵀp/d − 1). The noise of the release is part of N(0, 2Ah), and the
    rest is added. If it is more than that, the friction ξ, which starts at A, takes the surplus up.

    Parameters
    ----------
    target
        See `target`, `model_target`.
    noise
        The source of noise: there is no default.
    step_size
        h.
    diffusion
        A.
    sampling_rate
        As in `dp_sgld`.
    gradient_bound
        As in `dp_sgld`.
    noise_multiplier
        As in `dp_sgld`; the noise of the release is all of N(0, 2Ah) at multiplier (q / b) √(2A / h).
    block
        As in `dp_sgld`.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> from dpjax import private
    >>> def density(mean, y):
    ...     return -((y - mean) ** 2) / 2
    >>> data = jnp.array([0.0, 1.0, 9.0])
    >>> target = private.target(density, lambda mean: -(mean**2) / 2, data, jnp.zeros(()))
    >>> kernel = dpjax.private.dp_sgnht(
    ...     target,
    ...     private.noise.jax,
    ...     step_size=0.01,
    ...     diffusion=5.0,
    ...     sampling_rate=0.5,
    ...     gradient_bound=2.0,
    ...     noise_multiplier=1.0,
    ... )
    """
    check_target("target", target)
    check_noise(noise)
    check_step(step_size)
    check_number("diffusion", diffusion)
    check_numbers("diffusion", diffusion)
    check_positive("diffusion", diffusion)
    sampling = check_sampling(target, sampling_rate, gradient_bound, noise_multiplier, block)
    settings = SGNHTSettings(float(step_size), float(diffusion), *sampling)
    return make_kernel(target, partial(build, settings, noise), (sampled_query(target, noise, settings),))


def build(settings: SGNHTSettings, noise: Noise, target: Target) -> SamplingAlgorithm:
    """The algorithm: each step draws the sample and the innovations of `sgnht_core`; momenta start at zero."""

    def init(position: Any, rng_key: Key | None = None) -> SGNHTState:
        del rng_key
        vector = ravel(position)
        friction = jnp.asarray(settings.diffusion, vector.dtype)
        return SGNHTState(position, jnp.zeros_like(vector), friction)

    def step(rng_key: Key, state: SGNHTState) -> tuple[SGNHTState, KernelInfo]:
        sample_key, normal_key, noise_key = jax.random.split(rng_key, 3)
        point = PhasePoint(ravel(state.position), state.momentum, state.friction)
        sampling_key = noise.sampling_key(sample_key)
        total = sampled_gradients(
            target, sampling_key, point.vector, rate=settings.rate, bound=settings.bound, block=settings.block
        )
        normals = jax.random.normal(normal_key, point.vector.shape, point.vector.dtype)
        point = sgnht_core(target, settings, build_answer(noise, noise_key), point, total, normals)
        return SGNHTState(target.unravel(point.vector), point.momentum, point.friction), describe(total)

    return SamplingAlgorithm(init, step)


def sgnht_core(
    target: Target, settings: SGNHTSettings, answer: Answer, point: PhasePoint, total: SampledSum, normals: Array
) -> PhasePoint:
    """One step as a function of a sampled sum, of the answer to its one query and of standard Normals [d]."""
    gradient = noisy_gradient(target, settings, answer, point.vector, total)
    step_size = jnp.asarray(settings.step_size, point.vector.dtype)
    released = step_size * settings.multiplier * settings.bound / settings.rate
    rest = jnp.sqrt(jnp.maximum(2 * settings.diffusion * step_size - released**2, 0.0))
    damped = point.momentum * (1 - step_size * point.friction)
    momentum = damped + step_size * gradient + rest * normals
    friction = point.friction + step_size * (jnp.mean(momentum**2) - 1)
    return PhasePoint(point.vector + step_size * momentum, momentum, friction)
