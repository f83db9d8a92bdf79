"""Noise of known laws as standard Normal numbers, for moves that need a Gaussian reference."""

import jax.numpy as jnp
from jax.scipy.special import log_ndtr, ndtr, ndtri

from dpjax.base import Array, NormalScores

__all__ = ["EXPONENTIAL_SCORES", "NORMAL_SCORES", "UNIFORM_SCORES"]


def same(noise: Array) -> Array:
    """The noise itself."""
    return noise


def score_of_uniform(noise: Array) -> Array:
    """The Normal quantile of uniforms, kept finite at 0 and at the last number below 1."""
    tiny = jnp.finfo(noise.dtype).tiny
    return ndtri(jnp.clip(noise, tiny, jnp.nextafter(jnp.ones_like(noise), jnp.zeros_like(noise))))


def uniform_of_score(score: Array) -> Array:
    """The Normal distribution function, kept below 1."""
    return jnp.minimum(ndtr(score), jnp.nextafter(jnp.ones_like(score), jnp.zeros_like(score)))


def score_of_exponential(noise: Array) -> Array:
    """The Normal score of standard Exponential noise, through whichever tail is the smaller."""
    noise = jnp.maximum(noise, jnp.finfo(noise.dtype).tiny)
    lower = noise < jnp.log(2.0).astype(noise.dtype)
    return jnp.where(lower, ndtri(-jnp.expm1(-jnp.where(lower, noise, 0.5))), -ndtri(jnp.exp(-noise)))


def exponential_of_score(score: Array) -> Array:
    """Standard Exponential noise -log(1 - Φ(score))."""
    return -log_ndtr(-score)


NORMAL_SCORES = NormalScores(same, same)
UNIFORM_SCORES = NormalScores(score_of_uniform, uniform_of_score)
EXPONENTIAL_SCORES = NormalScores(score_of_exponential, exponential_of_score)
