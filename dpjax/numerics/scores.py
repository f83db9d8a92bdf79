"""Maps between noise of known distributions and standard Normal variables, for moves with a Gaussian reference."""

from math import pi

import jax.numpy as jnp
from jax.scipy.special import erf, erfinv, log_ndtr, ndtr, ndtri

from dpjax.base import Array, NormalScores
from dpjax.numerics.tails import LOG_HALF, normal_inverse, normal_tail, score_of_log

__all__ = [
    "EXPONENTIAL_SCORES",
    "HALF_CAUCHY_SCORES",
    "HALF_NORMAL_SCORES",
    "NORMAL_SCORES",
    "UNIFORM_SCORES",
]


def same(noise: Array) -> Array:
    """The noise itself."""
    return noise


def score_of_uniform(noise: Array) -> Array:
    """The Normal quantile of uniforms, finite at 0 and at the last number below 1."""
    tiny = jnp.finfo(noise.dtype).tiny
    return ndtri(jnp.clip(noise, tiny, jnp.nextafter(jnp.ones_like(noise), jnp.zeros_like(noise))))


def uniform_of_score(score: Array) -> Array:
    """The Normal distribution function, kept below 1."""
    return jnp.minimum(ndtr(score), jnp.nextafter(jnp.ones_like(score), jnp.zeros_like(score)))


def score_of_exponential(noise: Array) -> Array:
    """The Normal score of standard Exponential noise, through its smaller tail."""
    noise = jnp.maximum(noise, jnp.finfo(noise.dtype).tiny)
    lower = noise < jnp.log(2.0).astype(noise.dtype)
    return jnp.where(lower, ndtri(-jnp.expm1(-jnp.where(lower, noise, 0.5))), -ndtri(jnp.exp(-noise)))


def exponential_of_score(score: Array) -> Array:
    """Standard Exponential noise -log(1 - Φ(score))."""
    return -log_ndtr(-score)


def score_of_half_normal(noise: Array) -> Array:
    """The Normal score of standard half-Normal noise."""
    return score_of_log(jnp.log(erf(noise / jnp.sqrt(2.0).astype(noise.dtype))), normal_tail(-noise) - LOG_HALF)


def half_normal_of_score(score: Array) -> Array:
    """The inverse of `score_of_half_normal`."""
    upper = -normal_inverse(jnp.minimum(normal_tail(-jnp.abs(score)) + LOG_HALF, LOG_HALF))
    lower = jnp.sqrt(2.0).astype(score.dtype) * erfinv(ndtr(-jnp.abs(score)))
    return jnp.where(score > 0, upper, lower)


def score_of_half_cauchy(noise: Array) -> Array:
    """The Normal score of standard half-Cauchy noise."""
    lower, upper = jnp.arctan(noise), jnp.arctan2(jnp.ones_like(noise), noise)
    return score_of_log(jnp.log(2 / pi * lower), jnp.log(2 / pi * upper))


def half_cauchy_of_score(score: Array) -> Array:
    """The inverse of `score_of_half_cauchy`."""
    tangent = jnp.tan(pi / 2 * ndtr(-jnp.abs(score)))
    return jnp.where(score > 0, 1 / tangent, tangent)


NORMAL_SCORES = NormalScores(same, same)
UNIFORM_SCORES = NormalScores(score_of_uniform, uniform_of_score)
EXPONENTIAL_SCORES = NormalScores(score_of_exponential, exponential_of_score)
HALF_NORMAL_SCORES = NormalScores(score_of_half_normal, half_normal_of_score)
HALF_CAUCHY_SCORES = NormalScores(score_of_half_cauchy, half_cauchy_of_score)
