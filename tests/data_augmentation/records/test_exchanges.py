"""Counts of units beside known totals of their groups: pairs exchange counts, against sums over all counts."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import dpjax
from dpjax import mechanisms
from dpjax.data_augmentation.records import exchanges
from dpjax.data_augmentation.records.possible import with_possible_counts
from tests.data_augmentation.records.test_possible import COUNTS, GRID, POPULATION, Units

REGION = np.array([0, 0, 0, 1, 1, 2, 1, 0])
TOTALS = np.bincount(REGION, COUNTS).astype(int)


class Regions(Units):
    """The same units, of which each record says in which region it is."""

    def sample_records(self, key, parameters, n):
        return super().sample_records(key, parameters, n) | {"region": jnp.asarray(REGION[:n])}


def by_region(record):
    """The count of a unit, in the place of its region."""
    return jnp.where(jnp.arange(3) == record["region"], record["y"], 0)


def with_totals(release: Any, totals: Any = TOTALS) -> Any:
    return dpjax.joint(release, dpjax.Release(totals.astype(float), dpjax.Exact(), by_region, len(COUNTS)))


SUPPRESSED = mechanisms.PrimarySuppression(10)
CASES = {
    "suppressed": dpjax.LocalRelease(SUPPRESSED.sample(jax.random.key(1), jnp.asarray(COUNTS)), SUPPRESSED, "y"),
    "noisy": dpjax.LocalRelease(COUNTS + np.array([1, -2, 4, 0, -3, 1, 2, -5]), dpjax.DiscreteLaplace(3.0), "y"),
}
MODEL = Regions()


def log_channel(case: str, counts: np.ndarray) -> np.ndarray:
    """The log-density [c, n] of what was released."""
    values = np.asarray(CASES[case].values)
    with np.errstate(divide="ignore"):
        if case == "suppressed":
            return np.log(np.where(values == -1, counts < 10, counts == values) + 0.0)
        return stats.dlaplace.logpmf(values - counts, 1 / 3)


def grid(case: str) -> tuple[float, float]:
    """The mean and deviation of the rate, by convolution of the counts of each region."""
    counts = np.arange(TOTALS.max() + 1)
    weight = np.exp(stats.poisson.logpmf(counts[:, None, None], GRID * POPULATION[:, None]))
    weight = weight * np.exp(log_channel(case, counts[:, None]))[..., None]  # [count, unit, rate]
    total = np.zeros(len(GRID))
    for region, known in enumerate(TOTALS):
        law = np.zeros((len(counts), len(GRID)))
        law[0] = 1
        for unit in np.flatnonzero(np.equal(REGION, region)):
            law = np.stack([np.sum(law[: c + 1] * weight[c::-1, unit], axis=0) for c in counts])
        with np.errstate(divide="ignore"):
            total += np.log(law[known])
    weights = special.softmax(total + np.log(GRID) - GRID)
    mean = np.sum(weights * GRID)
    return mean, np.sqrt(np.sum(weights * GRID**2) - mean**2)


@pytest.mark.parametrize("case", CASES)
def test_records_start_with_the_known_totals(case: str):
    """Catches starts whose totals are others, or of which a count is impossible."""
    release = with_totals(CASES[case])
    parameters = {"rate": jnp.array(0.3)}
    records = release.hold(MODEL.sample_records(jax.random.key(2), parameters, release.n))
    found = with_possible_counts(jax.random.key(3), MODEL, release, parameters, records)
    assert np.bincount(REGION, found["y"]).tolist() == TOTALS.tolist()
    assert np.isfinite(release.log_likelihood(found))
    assert np.all(np.asarray(found["y"]) >= 0)


def test_pairs_are_of_the_same_totals():
    """Catches pairs across regions, and records that are in two pairs."""
    slopes = jnp.asarray((np.arange(3)[:, None] == REGION) + 0.0)
    seen = set()
    for number in range(40):
        keys = jax.random.split(jax.random.key(number))
        partner, sign = map(np.asarray, exchanges.match(keys[0], slopes, keys[1]))
        np.testing.assert_array_equal(partner[partner], np.arange(8))
        np.testing.assert_array_equal(sign[partner], -sign)
        np.testing.assert_array_equal(REGION[partner], REGION)
        assert sign[5] == 0
        seen |= set(zip(np.arange(8).tolist(), partner.tolist(), strict=True))
    assert {(0, 1), (0, 2), (0, 7), (3, 4), (3, 6)} <= seen


@pytest.mark.parametrize("case", CASES)
def test_imputed_counts_beside_totals_agree_with_convolutions(case: str):
    """Catches totals that were refused, and windows whose weights leave out one record of a pair."""
    release = with_totals(CASES[case])
    posterior = dpjax.sample(
        jax.random.key(5), MODEL, release, imputation=dpjax.imwg(), num_warmup=500, num_samples=3_000, progress=False
    )
    row, (mean, deviation) = posterior.summary()["rate"], grid(case)
    assert np.sum(posterior.info["num_nonfinite"]) == 0
    assert abs(row["mean"] - mean) < 4.5 * row["mcse_mean"]
    assert row["sd"] == pytest.approx(deviation, rel=0.08)


@pytest.mark.parametrize("case", CASES)
def test_exchanges_leave_the_distribution_of_counts_as_it_is(case: str):
    """Catches windows that are not symmetric: counts of three units given the rate, by enumeration."""
    release = with_totals(CASES[case])
    kernel = exchanges.build_exchange_kernel(MODEL, release, {"y"})
    parameters = {"rate": jnp.array(0.05)}
    records = MODEL.sample_records(jax.random.key(2), parameters, release.n)
    start = with_possible_counts(jax.random.key(3), MODEL, release, parameters, records)

    @jax.jit
    def chain(key: jax.Array) -> jax.Array:
        def step(latent: Any, one: jax.Array) -> Any:
            latent = kernel(one, latent, parameters)[0]
            return latent, latent.records["y"][jnp.array([3, 4, 6])]

        first = exchanges.init_latent(release, start)
        return jax.lax.scan(step, first, jax.random.split(key, 40_000))[1]

    drawn = np.asarray(chain(jax.random.key(6)))[100:]
    units, counts = [3, 4, 6], np.arange(TOTALS[1] + 1)
    table = np.array([(a, b, TOTALS[1] - a - b) for a in counts for b in counts if a + b <= TOTALS[1]])
    of_count = stats.poisson.logpmf(counts[:, None], 0.05 * POPULATION[units])
    weight = of_count + log_channel(case, counts[:, None])[:, units]
    law = special.softmax(weight[table, np.arange(3)].sum(axis=1))
    mean = law @ table
    deviation = np.sqrt(law @ (table - mean) ** 2)
    batches = drawn[: len(drawn) // 100 * 100].reshape(100, -1, 3).mean(axis=1)
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - mean), 5 * batches.std(axis=0) / 10 + 1e-9)
    np.testing.assert_allclose(drawn.std(axis=0), deviation, rtol=0.1, atol=1e-9)


def squares(record):
    """No sum of counts."""
    return jnp.atleast_1d(record["y"] ** 2)


def test_other_known_totals_are_refused_by_name():
    """Catches the advice to impute counts of values, which microdata cannot have."""
    total = dpjax.Release([100.0], dpjax.Exact(), squares, len(COUNTS))
    with pytest.raises(ValueError, match=r"^imputation: given .*that are no sums of 'y'.*noise of a small scale"):
        dpjax.sample(
            jax.random.key(1), MODEL, dpjax.joint(CASES["noisy"], total), imputation=dpjax.imwg(), progress=False
        )
