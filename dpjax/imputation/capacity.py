"""How many rows stand for records of an unknown number: as many as its prior and the release allow."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model, Statistic
from dpjax.numbered import jit_model
from dpjax.release import Release
from dpjax.release.unknown import CountPrior, KnownTail, UnknownCount
from dpjax.simulate import draw_parameters
from dpjax.validation import fail, is_traced

__all__ = ["MAX_CAPACITY", "find_capacity"]

MAX_CAPACITY = 2**20
"""The rows of the largest arrays."""

NEGLIGIBLE = 1e-12
"""The probability, by its prior, that a number without a bound exceeds the capacity."""

LEAST_LOG_RATIO = -35.0
"""Numbers whose prior times likelihood may come so near its largest value are given rows."""

NUM_PARAMETERS, NUM_ROWS = 128, 1_024

NUMBERS = np.unique(np.append(np.arange(1, 2_048), np.rint(np.geomspace(2_048, MAX_CAPACITY, 256)))).astype(int)
"""Those that are looked at."""

REACH = 4.0
"""Standard deviations by which a sum may be off its mean."""

REMEDY = "Use dpjax.counts(), or pass dpjax.models.UniformCount(low, high) of what is possible."


def find_capacity(model: Model, release: Release) -> int:
    """The rows that hold all numbers which the prior allows or the release makes likely.

    Without the release these are all but a probability of 1e-12. A released value that the prior did not expect may
    need more. A capacity that the user gave is taken as it is.

    Raises
    ------
    ValueError
        If the prior has neither a bound nor quantiles, would need too many rows, or leaves out numbers in between,
        which records added and deleted one by one never get past.
    """
    assert isinstance(release.n, UnknownCount)
    prior, capacity = release.n.prior, release.n.capacity
    if capacity is None:
        capacity = capacity_by_prior(prior)
        if prior.bounds[1] is None and not is_traced(release.value):
            likely = capacity_by_release(model, release, prior)
            # A power of two, so that values a little apart share their programs.
            capacity = capacity if likely <= capacity else min(1 << (likely - 1).bit_length(), MAX_CAPACITY)
    check_capacity(prior, capacity)
    return capacity


def capacity_by_prior(prior: CountPrior) -> int:
    """The rows that hold all numbers but for a probability of 1e-12."""
    high = prior.bounds[1]
    if high is None and not isinstance(prior, KnownTail):
        given = f"{prior!r}, which has no greatest number"
        fail("release.n", given, "a bound or `quantile_beyond(mass)`", REMEDY)
    return max(prior.quantile_beyond(NEGLIGIBLE) if high is None else high, 1)  # type: ignore[attr-defined]


def check_capacity(prior: CountPrior, capacity: int) -> None:
    """Raise if there are too many rows, or numbers between the least and the greatest are impossible."""
    if capacity > MAX_CAPACITY:
        expected = f"at most {MAX_CAPACITY}, where records are imputed one by one"
        fail("release.n", f"{prior!r}, which with this release allows {capacity} records", expected, REMEDY)
    possible = np.flatnonzero(np.isfinite(prior.log_probability(jnp.arange(capacity + 1))))
    if not possible.size or np.any(np.diff(possible) != 1):
        given = f"{prior!r}, of positive probability at {possible.size} numbers up to {capacity}"
        fail("release.n", given, "a prior of all numbers between the least and the greatest", REMEDY)


def capacity_by_release(model: Model, release: Release, prior: CountPrior) -> int:
    """The largest number whose probability given the release may be more than nothing.

    The likelihood of a number is bounded from above by that of the sums most favourable to the value among those
    within reach of their mean, at parameters drawn from the prior.
    """
    # The points at which laws are looked at are the same for every run.
    moments = moments_of_rows.quickly(model, release.statistic, jax.random.key(0))
    bound = np.asarray(bound_log_likelihood(release, *moments, jnp.asarray(NUMBERS)), np.float64)
    bound = bound + np.asarray(prior.log_probability(jnp.asarray(NUMBERS)))
    if not np.any(bound > -np.inf):
        return 1
    likely = np.flatnonzero(bound > np.max(bound) + LEAST_LOG_RATIO)
    return int(NUMBERS[min(likely[-1] + 1, len(NUMBERS) - 1)])


@partial(jit_model, static_argnames=("statistic",))
def moments_of_rows(model: Model, statistic: Statistic, key: Key) -> tuple[Array, Array]:
    """The mean and standard deviation of a row's statistic [parameters, d] at parameters from the prior."""
    parameter_key, row_key = jax.random.split(key)
    parameters = draw_parameters(parameter_key, model, NUM_PARAMETERS)

    def moments(key: Key, parameters: Any) -> tuple[Array, Array]:
        contributions = jax.vmap(statistic)(model.sample_records(key, parameters, NUM_ROWS)).astype(float)
        return jnp.mean(contributions, axis=0), jnp.std(contributions, axis=0)

    return jax.vmap(moments)(jax.random.split(row_key, NUM_PARAMETERS), parameters)


@jax.jit
def bound_log_likelihood(release: Release, mean: Array, sd: Array, numbers: Array) -> Array:
    """An upper bound of log p(value | n) for each number n [k], from the rows' moments [parameters, d]."""
    value = release.origin

    def of_sum(number: Array, mean: Array, sd: Array) -> Array:
        # The mean itself is known from some rows only.
        reach = REACH * sd * (jnp.sqrt(number) + number / np.sqrt(NUM_ROWS))
        centre = number * mean
        total = jnp.clip(value.astype(float), centre - reach, centre + reach)
        rounded = jnp.rint(total) if jnp.issubdtype(value.dtype, jnp.integer) else total
        return release.log_density_at(value - rounded.astype(value.dtype))

    over_parameters = jax.vmap(of_sum, in_axes=(None, 0, 0))
    densities = jax.lax.map(lambda number: over_parameters(number, mean, sd), numbers.astype(float))
    return jnp.max(jnp.where(jnp.isnan(densities), -jnp.inf, densities), axis=1)
