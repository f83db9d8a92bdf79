"""Beta and Dirichlet distributions on floats, exact for shapes so small that draws accumulate at 0 and 1.

All draws in an end cell of `dpjax.numerics.ends` are one number, and the density there is its average over the cell. By
the series of the incomplete Beta function (DLMF 8.17.8), with the width δ of the upper cell,

    P(1 - Y < δ) = δ^b (1 - δ)^(a - 1) / (b B(a, b)) (1 + (a - 1) Σ_k (a + b)_k / (b + 1)_(k + 1) δ^(k + 1)),

and P(Y < ε) = ε^a / (a B(a, b)) to rounding, as ε is tiny.
"""

from math import log, log1p

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, gammaln

from dpjax.base import Array, Key
from dpjax.numerics.ends import beyond_upper_end, lower_end, upper_gap, within_lower_end
from dpjax.numerics.gamma import draw_log_gamma, log_gamma_moments

__all__ = [
    "beta_features",
    "beta_log_density",
    "beta_log_likelihood",
    "binomial_log_marginals",
    "dirichlet_log_density",
    "dirichlet_log_normaliser",
    "dirichlet_log_powers",
    "draw_beta",
    "draw_dirichlet",
    "draw_dirichlets",
    "draw_shares",
    "logit_log_density",
    "logit_moments",
    "logit_within",
    "share_features",
    "value_at",
]

TERMS = 12
"""Number of terms of the series: exact to rounding for shapes up to 10⁵ in float32, and 10¹³ in float64."""


def draw_beta(key: Key, a: Array, b: Array) -> Array:
    """Independent Beta(a, b) draws, one for each entry of the shapes [...], strictly inside (0, 1)."""
    return value_at(draw_logit(key, a, b))


def draw_logit(key: Key, a: Array, b: Array) -> Array:
    """The logits of independent Beta(a, b) draws, one for each entry of the shapes [...]."""
    log_gammas = draw_log_gamma(key, jnp.stack([a, b]))
    return log_gammas[0] - log_gammas[1]


def value_at(logit: Array) -> Array:
    """The float that represents a logit."""
    low, gap = lower_end(logit.dtype), upper_gap(logit.dtype)
    value = jax.nn.sigmoid(logit)
    above = jnp.where(logit > log1p(-gap) - log(gap), 1 - gap / 2, jnp.minimum(value, 1 - gap))
    return jnp.where(value < low, low / 2, above)


def beta_features(value: Array) -> tuple[Array, Array, Array, Array]:
    """The features of the Beta density: log y and log(1 - y) up to the end cells, and whether y lies in each."""
    low, gap = lower_end(value.dtype), upper_gap(value.dtype)
    between = jnp.clip(value, low, 1 - gap)
    at_zero, at_one = (end.astype(value.dtype) for end in (within_lower_end(value), beyond_upper_end(value)))
    return jnp.log(between), jnp.log1p(-between), at_zero, at_one


def beta_log_likelihood(a: Array, b: Array, count: Array | float, features: tuple[Array, ...]) -> Array:
    """The log-density of `count` values from the sums of their features."""
    log_value, log_rest, at_zero, at_one = features
    inside = (a - 1) * log_value + (b - 1) * log_rest - count * betaln(a, b)
    return inside - at_zero * jnp.log(a) + at_one * log_mean_power(a, b)


def log_mean_power(a: Array, b: Array) -> Array:
    """The logarithm of the average density in the upper end cell over the density at its inner edge."""
    gap = upper_gap(b.dtype)
    return jnp.log1p((a - 1) * gap * series(a, b, gap)) - jnp.log(b)


def series(a: Array, b: Array, x: float) -> Array:
    """Σ_k (a + b)_k / (b + 1)_(k + 1) x^k for small x."""
    term = total = 1 / (b + 1)
    for k in range(TERMS):
        term = term * x * (a + b + k) / (b + 2 + k)
        total = total + term
    return total


def beta_log_density(value: Array, a: Array, b: Array) -> Array:
    """log Beta(y | a, b), elementwise; -inf outside [0, 1], and averaged over the cell in an end cell."""
    density = beta_log_likelihood(a, b, 1.0, beta_features(value))
    return jnp.where((value >= 0) & (value <= 1), density, -jnp.inf)


def binomial_log_marginals(a: Array, b: Array, num_trials: int) -> Array:
    """The log-probabilities [m + 1] of 0, ..., m successes in m trials whose probability is Beta(a, b), for numbers [].

    Neighbours have a simple ratio, and all of them the sum 1. So no log-gammas are needed, whose differences are
    inaccurate for large shapes. Ratios are added up from the likelier end: large sums are then of negligible terms.
    """
    done = jnp.arange(num_trials, dtype=a.dtype)
    left = num_trials - 1 - done
    steps = jnp.log((left + 1) / (done + 1)) + jnp.log(a + done) - jnp.log(b + left)
    none = jnp.zeros(1, a.dtype)
    upwards = jnp.concatenate([none, jnp.cumsum(steps)])
    downwards = jnp.concatenate([-jax.lax.cumsum(steps, reverse=True), none])
    return jax.nn.log_softmax(jnp.where(upwards[-1] > 0, downwards, upwards))


def logit_log_density(logit: Array, a: Array, b: Array) -> Array:
    """The log-density of the logit of a Beta variable, elementwise."""
    return a * jax.nn.log_sigmoid(logit) + b * jax.nn.log_sigmoid(-logit) - betaln(a, b)


def logit_moments(a: Array, b: Array) -> tuple[Array, Array]:
    """Approximate mean and standard deviation of the logit of a Beta variable, elementwise."""
    (upper, upper_scale), (lower, lower_scale) = log_gamma_moments(a), log_gamma_moments(b)
    return upper - lower, jnp.sqrt(upper_scale**2 + lower_scale**2)


def logit_within(key: Key, value: Array, a: Array, b: Array) -> Array:
    """The logits of values; in an end cell a draw from their distribution given that cell."""
    low, gap = lower_end(value.dtype), upper_gap(value.dtype)
    log_uniform = jnp.log1p(-jax.random.uniform(key, value.shape, value.dtype))
    below = log(low) + log_uniform / a
    log_rest = log_small_rest(log_uniform, a, b, gap)
    between = jnp.clip(value, low, 1 - gap)
    logit = jnp.where(within_lower_end(value), below, jnp.log(between) - jnp.log1p(-between))
    return jnp.where(beyond_upper_end(value), jnp.log1p(-jnp.exp(log_rest)) - log_rest, logit)


def log_small_rest(log_uniform: Array, a: Array, b: Array, gap: float) -> Array:
    """log s of s = 1 - y below the gap, of density ∝ s^(b - 1) (1 - s)^(a - 1), at uniforms.

    The distribution function is ∝ s^b (1 + c s) with c = (1 - a) b / (b + 1), but for terms in (a s)²; it is inverted
    by iteration.
    """
    slope = (1 - a) * b / (b + 1)
    target = log_uniform + jnp.log1p(jnp.maximum(slope * gap, -0.5))
    log_rest = log(gap) + log_uniform / b
    for _ in range(2):
        log_rest = log(gap) + (target - jnp.log1p(jnp.maximum(slope * jnp.exp(log_rest), -0.5))) / b
        log_rest = jnp.minimum(log_rest, log(gap))
    return log_rest


def draw_dirichlet(key: Key, concentration: Array) -> Array:
    """Independent Dirichlet draws [..., c], one for each row of the concentration [..., c]; 0 if they underflow."""
    return jax.nn.softmax(draw_log_gamma(key, concentration), axis=-1)


def draw_dirichlets(key: Key, concentrations: dict[str, Array]) -> dict[str, Array]:
    """Independent Dirichlet draws along the last axis of each array of concentrations, by one call."""
    flat = draw_log_gamma(key, jnp.concatenate([one.ravel() for one in concentrations.values()]))
    ends = np.cumsum([one.size for one in concentrations.values()])[:-1]
    pieces = zip(concentrations.items(), jnp.split(flat, ends), strict=True)
    return {name: jax.nn.softmax(piece.reshape(one.shape), axis=-1) for (name, one), piece in pieces}


def draw_shares(key: Key, concentration: Array) -> Array:
    """Independent Dirichlet draws [..., c] as `draw_dirichlet`, but above 0: one number represents the end cell."""
    shares = draw_dirichlet(key, concentration)
    return jnp.where(within_lower_end(shares), lower_end(shares.dtype) / 2, shares)


def share_features(value: Array) -> tuple[Array, Array]:
    """The features of the Dirichlet density at shares [..., c]: logarithms down to the end cell, and whether in it."""
    at_zero = within_lower_end(value).astype(value.dtype)
    return jnp.log(jnp.maximum(value, lower_end(value.dtype))), at_zero


def dirichlet_log_powers(concentration: Array, features: tuple[Array, Array]) -> Array:
    """Σ (a - 1) log share, less Σ log a over the shares in the end cell, over the last axis [...], from features."""
    log_share, at_zero = features
    terms = jnp.broadcast_to(concentration, log_share.shape)
    return jnp.sum((terms - 1) * log_share - at_zero * jnp.log(terms), axis=-1)


def dirichlet_log_normaliser(concentration: Array) -> Array:
    """log Γ(Σ a) - Σ log Γ(a) over the last axis [...]."""
    return gammaln(jnp.sum(concentration, axis=-1)) - jnp.sum(gammaln(concentration), axis=-1)


def dirichlet_log_density(concentration: Array, value: Array) -> Array:
    """The Dirichlet log-density [...] with respect to the first c - 1 coordinates of the value [..., c].

    One concentration [c] may be given for all values. The density is -inf if an entry is not in [0, 1].
    """
    density = dirichlet_log_normaliser(concentration) + dirichlet_log_powers(concentration, share_features(value))
    return jnp.where(jnp.all((value >= 0) & (value <= 1), axis=-1), density, -jnp.inf)
