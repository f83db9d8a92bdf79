"""Accuracy of the normal approximation: the error of quadrature and the skewness of the sum."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.jit import jit_unoptimized
from dpjax._util.validation import fail
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Key, Model, Parameters
from dpjax.clt.density import release_noise
from dpjax.clt.moments import Source, build_missing, build_moments, is_small
from dpjax.clt.number import number_at, reference_number
from dpjax.models.data_sets import take_number
from dpjax.models.programs import jit_model
from dpjax.numerics import leading_size
from dpjax.numerics.linear_algebra import factorize, solve_lower
from dpjax.numerics.quadrature import Rule, pad
from dpjax.release import Release

__all__ = ["MAX_ERROR", "Errors", "check_errors", "measure_errors"]

MAX_ERROR = 0.1
"""Largest quadrature error of the value's mean, in its standard deviations, and of its variance, relative."""

NUM_DRAWS = 64
"""Number of draws of the posterior at which the error is measured."""

LEVEL = 0.9
"""The reported error is this quantile over the draws."""

MAX_MISSING = 0.01
"""Largest probability of counts beyond the finer rule: float32 rounds it by some thousandths."""

MAX_SKEWNESS = 0.45
"""Largest skewness of a sum with its noise without a warning; standard deviations are then off by a tenth."""

NUM_RECORDS = 2**16
"""Number of identically distributed records drawn at each draw of the posterior."""

REPLICATES = 4
"""Number of draws of each record if records are not identically distributed."""

MAX_RECORDS = 2**24
"""Largest number of records drawn in total."""

FEW_RECORDS = 2**16
"""In total: with more, a program that was compiled quickly takes longer than that saves."""


class Errors(NamedTuple):
    """The error of quadrature: of the mean, in standard deviations of the value, and of its variance, relative []."""

    mean: Any
    variance: Any


def measure_errors(
    model: Model, release: Release, source: Source, rule: Any, finer: Any, simulated: Array, parameters: Parameters
) -> Errors:
    """The errors relative to a finer rule at draws [draw, ...] of the posterior; infinite where not finite.

    They are infinite too if counts have more than `MAX_MISSING` of their probability beyond the finer rule: neither
    rule then knows what such records add.
    """
    same = pad(rule, len(finer.weights)) if isinstance(rule, Rule) else rule  # by the same program
    evaluate = moments_at.unoptimized if is_small(model, release, source, finer) else moments_at
    coarse, fine = (evaluate(model, release, source, nodes, parameters) for nodes in (same, finer))
    numbers = numbers_of(release, parameters)
    errors = moment_errors(numbers, release_noise(release, simulated).variance, coarse, fine)
    finite = [np.nan_to_num(np.asarray(error, float), nan=np.inf, posinf=np.inf) for error in errors]
    if source.points == "counts":
        lacking = np.asarray(missing_at(model, release, finer, parameters), float) > MAX_MISSING
        finite = [np.where(lacking, np.inf, error) for error in finite]
    return Errors(*(float(np.quantile(error, LEVEL, method="higher")) for error in finite))


@partial(jit_model, static_argnames=("source",))
def moments_at(
    model: Model, release: Release, source: Source, rule: Any, parameters: Parameters
) -> tuple[Array, Array]:
    """The moments [draw, d] and [draw, d, d] at each draw."""
    return jax.lax.map(build_moments(model, release, source, rule), take_number(parameters)[0])


@jit_model
def missing_at(model: Model, release: Release, counts: Array, parameters: Parameters) -> Array:
    """The probability [draw] that records have at none of the counts [q], at each draw."""
    return jax.lax.map(build_missing(model, reference_number(release), counts), take_number(parameters)[0])


def numbers_of(release: Release, parameters: Parameters) -> Array:
    """The number of records [draw] of each draw, as real numbers."""
    return jnp.broadcast_to(jnp.asarray(number_at(release, parameters), float), leading_size(parameters))


@jit_unoptimized
def moment_errors(numbers: Array, variance: Array, coarse: tuple[Array, Array], fine: tuple[Array, Array]) -> Errors:
    """The errors [draw] of coarse moments, for these numbers of records [draw] and noise of this variance [d]."""

    def one(n: Array, coarse: tuple[Array, Array], fine: tuple[Array, Array]) -> Errors:
        factor = factorize(fine[1] + jnp.diag(variance / n))
        shift = jnp.sqrt(n) * solve_lower(factor, (coarse[0] - fine[0])[:, None])
        change = solve_lower(factor, solve_lower(factor, coarse[1] - fine[1]).T)
        return Errors(jnp.sqrt(jnp.sum(jnp.square(shift))), jnp.max(jnp.abs(jnp.linalg.eigvalsh(change))))

    return jax.vmap(one)(numbers, coarse, fine)


def choose_draws(draws: Parameters, most: int = NUM_DRAWS) -> Parameters:
    """Evenly spaced draws [number, ...] among those of all chains [chain, draw, ...]."""
    merged = {name: leaf.reshape(-1, *leaf.shape[2:]) for name, leaf in draws.items()}
    total = len(next(iter(merged.values())))
    chosen = np.linspace(0, total - 1, min(most, total)).round().astype(int)
    return {name: jnp.asarray(leaf[chosen]) for name, leaf in merged.items()}


def check_errors(errors: Errors, num_points: int, statistic: str) -> None:
    """Raise if the quadrature is too coarse for this number of records."""
    if max(errors) <= MAX_ERROR:
        return
    given = (
        f"{num_points} points, by which the mean of the released sum is off by {errors.mean:.2g} of its standard "
        f"deviation and its variance by {100 * errors.variance:.2g} %"
    )
    remedy = (
        f"Pass more points. Clamps and steps of {statistic} need the more the more records there are, and counts as "
        "many as the largest of them. Or give the model statistic_moments, or use dpjax.sample."
    )
    fail("num_points", given, f"errors up to {MAX_ERROR}, and {100 * MAX_ERROR:g} %", remedy)


def measure_skewness(key: Key, model: Model, release: Release, simulated: Array, parameters: Parameters) -> np.ndarray:
    """The root mean square skewness [d] of the sum and its noise, at draws [draw, ...] of the posterior."""
    n = reference_number(release)
    size = min(n, NUM_RECORDS) if model.exchangeable else REPLICATES * n
    some = jax.tree.map(lambda leaf: leaf[: max(1, MAX_RECORDS // size)], parameters)
    keys = jax.random.split(key, leading_size(some))
    evaluate = skewness_at.unoptimized if size * leading_size(some) <= FEW_RECORDS else skewness_at
    found = evaluate(model, release, release_noise(release, simulated).variance, keys, some)
    return np.sqrt(np.mean(np.square(np.asarray(found, float)), axis=0))


@jit_model
def skewness_at(model: Model, release: Release, variance: Array, keys: Key, parameters: Parameters) -> Array:
    """The skewness [draw, d] at each draw, for noise of this variance [d], from records drawn there."""

    def one(arguments: tuple[Key, Parameters, Array]) -> Array:
        key, own, n = arguments
        second, third = cumulants(draw_contributions(model, release, key, own))
        spread = jnp.sqrt(n * second + variance)
        return n * third / jnp.where(spread > 0, spread, jnp.inf) ** 3

    return jax.lax.map(one, (keys, take_number(parameters)[0], numbers_of(release, parameters)))


def draw_contributions(model: Model, release: Release, key: Key, parameters: Parameters) -> Array:
    """Contributions [replicate, record, d] of records drawn given the parameters."""
    if model.exchangeable:
        records = model.sample_records(key, parameters, min(reference_number(release), NUM_RECORDS))
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


def warn_of_skewness(skewness: np.ndarray) -> None:
    """Warn if a coordinate's skewness is too large for the normal approximation."""
    worst = int(np.argmax(skewness))
    if not skewness[worst] > MAX_SKEWNESS:
        return
    message = (
        f"Coordinate {worst} of the released sum has skewness {skewness[worst]:.2g}, as a count of about "
        f"{max(1 / skewness[worst] ** 2, 0.1):.1g} has, and the normal approximation has none: standard deviations of "
        f"what depends on it may be {50 * skewness[worst] ** 2:.0f} % too large. Use dpjax.sample, which is exact, or "
        "check with dpjax.sampler_tests.invariance_test."
    )
    warn_at_the_call(message)
