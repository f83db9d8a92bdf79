"""How skew the released sum is, which its Normal law leaves out: the error of the law itself, as of rare cells.

The posterior of a Poisson count's mean, with a flat prior, has the standard deviation √(k + 1) at a count of k, and
under N(k; λ, λ) one that is a factor of about 1 + γ² / 2 larger, where γ = 1 / √(k + 1) is the skewness of the count: a
tenth at four, a hundredth at fifty.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model, Parameters
from dpjax.large.noise import noise_law
from dpjax.numbered import jit_model
from dpjax.numerics import leading_size
from dpjax.release import Release

LARGEST_SKEWNESS = 0.45
"""Of a sum with its noise, at which standard deviations are a tenth off."""

NUM_RECORDS = 2**16
"""Drawn of one law, at each draw of the posterior."""

REPLICATES = 4
"""Draws of each record, where each is of its own law."""

TOTAL = 2**24
"""So many records are drawn in all."""


def measure_skewness(key: Key, model: Model, release: Release, simulated: Array, parameters: Parameters) -> np.ndarray:
    """The root mean square skewness [d] of the sum and its noise, at draws [draw, ...] of the posterior."""
    size = min(release.n, NUM_RECORDS) if model.exchangeable else REPLICATES * release.n
    some = jax.tree.map(lambda leaf: leaf[: max(1, TOTAL // size)], parameters)
    keys = jax.random.split(key, leading_size(some))
    found = skewness_at(model, release, noise_law(release, simulated).variance, keys, some)
    return np.sqrt(np.mean(np.square(np.asarray(found, float)), axis=0))


@jit_model
def skewness_at(model: Model, release: Release, variance: Array, keys: Key, parameters: Parameters) -> Array:
    """The skewness [draw, d] at each draw, for noise of this variance [d], from records drawn there."""

    def one(arguments: tuple[Key, Parameters]) -> Array:
        second, third = cumulants(draw_contributions(model, release, *arguments))
        spread = jnp.sqrt(float(release.n) * second + variance)
        return float(release.n) * third / jnp.where(spread > 0, spread, jnp.inf) ** 3

    return jax.lax.map(one, (keys, parameters))


def draw_contributions(model: Model, release: Release, key: Key, parameters: Parameters) -> Array:
    """Contributions [replicate, record, d] of records drawn given the parameters: replicates have one law."""
    if model.exchangeable:
        records = model.sample_records(key, parameters, min(release.n, NUM_RECORDS))
        return release.contributions(records).T[:, None]

    def draw(key: Key) -> Array:
        return release.contributions(model.sample_records(key, parameters, release.n)).T

    return jax.lax.map(draw, jax.random.split(key, REPLICATES))


def cumulants(contributions: Array) -> tuple[Array, Array]:
    """Unbiased estimates of the second and third cumulants [d], averaged over records (Fisher's k-statistics)."""
    size = contributions.shape[0]
    deviations = contributions - jnp.mean(contributions, axis=0, keepdims=True)
    second = jnp.sum(jnp.square(deviations), axis=0) / (size - 1)
    third = jnp.sum(deviations**3, axis=0) * (size / ((size - 1) * (size - 2)))
    return jnp.mean(second, axis=0), jnp.mean(third, axis=0)


def warn_of_skewness(skewness: np.ndarray, stacklevel: int) -> None:
    """Warn where a coordinate's skewness is so large that its Normal law is far off."""
    worst = int(np.argmax(skewness))
    if not skewness[worst] > LARGEST_SKEWNESS:
        return
    message = (
        f"Coordinate {worst} of the released sum has skewness {skewness[worst]:.2g}, as a count of about "
        f"{max(1 / skewness[worst] ** 2, 0.1):.1g} has, and the Normal law has none: standard deviations of what "
        f"depends on it may be {50 * skewness[worst] ** 2:.0f} % too large. Use dpjax.sample, which is exact, or ask "
        "dpjax.referee."
    )
    warnings.warn(message, stacklevel=stacklevel + 1)
