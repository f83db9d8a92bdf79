"""Counts of units that were rounded, suppressed or coded: starts, and posteriors against a sum over all counts."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln
from scipy import special, stats

import dpjax
from dpjax import mechanisms
from dpjax.data_augmentation.records.hidden_numbers import noise_width
from dpjax.data_augmentation.records.possible import with_possible_counts

POPULATION = np.array([40.0, 100.0, 300.0, 20.0, 900.0, 150.0, 60.0, 400.0])
COUNTS = np.array([2, 0, 17, 1, 41, 9, 3, 22])
GRID = np.linspace(0.005, 0.2, 1_500)
KEYS = mechanisms.CellKeys([[1.0, 0.0, 0.0, 0.0, 0.0], [0.3, 0.4, 0.3, 0.0, 0.0], [0.1, 0.2, 0.4, 0.2, 0.1]])
KEPT = mechanisms.KeptZeros(mechanisms.Rounded(dpjax.Laplace(3.0), step=1.0))


class Units(dpjax.Model):
    """Poisson counts of units of known size, whose rate is small against what its prior Gamma(2, 1) says."""

    def sample_prior(self, key):
        return {"rate": jax.random.gamma(key, 2.0)}

    def log_prior(self, parameters):
        return jnp.log(parameters["rate"]) - parameters["rate"]

    def sample_records(self, key, parameters, n):
        return {"y": jax.random.poisson(key, parameters["rate"] * jnp.asarray(POPULATION[:n]))}

    def log_density(self, parameters, records):
        y = records["y"].astype(float)
        mean = parameters["rate"] * jnp.asarray(POPULATION[: len(y)])
        return jnp.where(y >= 0, y * jnp.log(mean) - mean - gammaln(y + 1), -jnp.inf)

    def update(self, key, parameters, records):
        total = jnp.sum(records["y"]).astype(float)
        return {"rate": jax.random.gamma(key, 2.0 + total) / (1 + POPULATION.sum())}

    @property
    def count_field(self):
        return "y"

    @property
    def num_records(self):
        return len(POPULATION)

    @property
    def exchangeable(self):
        return False


UNITS = Units()


def released(channel: Any) -> dpjax.LocalRelease:
    """The counts through a channel."""
    return dpjax.LocalRelease(channel.sample(jax.random.key(2), jnp.asarray(COUNTS)), channel, "y")


ROUNDED, SUPPRESSED = released(mechanisms.RandomRounding(5)), released(mechanisms.PrimarySuppression(10))
IS_SMALL = COUNTS < 4
CODES = np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])
CODED = dpjax.Microdata(
    {
        "y": [
            (COUNTS, dpjax.Exact(), ~IS_SMALL),
            (np.array([1, 0, 0, 0, 0, 0, 1, 0]), mechanisms.LocalChannel(jnp.log(jnp.asarray(CODES))), IS_SMALL),
        ]
    }
)
STARTS = {
    "rounded at random": ROUNDED,
    "suppressed": SUPPRESSED,
    "cell keys": released(KEYS),
    "midpoints": released(mechanisms.Coarsened.midpoints(6)),
    "bins": released(mechanisms.Coarsened.bins([0, 1, 5, 10])),
    "kept zeros": released(mechanisms.KeptZeros(dpjax.Laplace(3.0))),
    "far apart": released(mechanisms.Coarsened([0.0, 1.0] + [2.0] * 300, period=0)),
}


@pytest.mark.parametrize("case", STARTS)
def test_counts_start_where_their_value_is_possible(case: str):
    """Catches starts from the model alone, which for eight units are hardly ever possible."""
    release = STARTS[case]

    @jax.jit
    def start(key: jax.Array) -> Any:
        record_key, count_key = jax.random.split(key)
        parameters = {"rate": jnp.array(2.0)}
        records = UNITS.sample_records(record_key, parameters, release.n)
        return records, with_possible_counts(count_key, UNITS, release, parameters, records)

    drawn, found = start(jax.random.key(1))
    before = np.isfinite(release.log_densities(drawn))
    assert not before.all()
    assert np.all(np.isfinite(release.log_densities(found)))
    np.testing.assert_array_equal(found["y"][before], drawn["y"][before])
    assert np.all(np.isfinite(UNITS.log_density({"rate": jnp.array(2.0)}, found)))


def test_parts_of_the_same_counts_start_where_all_of_them_are_possible():
    """Catches parts that are looked at one by one, exact counts that move, and gaps that are taken for values."""
    seen = np.arange(8) < 5
    told = np.arange(8) == 7
    parts = [
        (ROUNDED.values, ROUNDED.channel, ~told),
        (SUPPRESSED.values, SUPPRESSED.channel, seen),
        (COUNTS, dpjax.Exact(), told),
    ]
    release = dpjax.Microdata({"y": parts})
    parameters = {"rate": jnp.array(2.0)}
    records = release.hold(UNITS.sample_records(jax.random.key(3), parameters, 8))
    found = with_possible_counts(jax.random.key(4), UNITS, release, parameters, records)
    assert np.all(np.isfinite(release.log_densities(found)))
    assert int(found["y"][7]) == COUNTS[7]


def grid(log_channel: Callable[[np.ndarray], np.ndarray], counts: np.ndarray | None = None) -> tuple[float, float]:
    """The mean and deviation of the rate, with counts [c] summed out."""
    counts = np.arange(200) if counts is None else counts
    of_count = stats.poisson.logpmf(counts[:, None, None], GRID * POPULATION[:, None])  # [count, unit, rate]
    total = special.logsumexp(of_count + log_channel(counts[:, None])[..., None], axis=0).sum(axis=0)
    weight = special.softmax(total + np.log(GRID) - GRID)
    mean = np.sum(weight * GRID)
    return mean, np.sqrt(np.sum(weight * GRID**2) - mean**2)


def log_rounded(counts: np.ndarray) -> np.ndarray:
    distance = np.abs(counts - np.asarray(ROUNDED.values))
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(1 - distance / 5, 0))


def log_suppressed(counts: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.where(COUNTS < 10, counts < 10, counts == COUNTS) + 0.0)


def log_coded(counts: np.ndarray) -> np.ndarray:
    code = np.array([1, 0, 0, 0, 0, 0, 1, 0])
    of_code = np.where(counts < 4, CODES[np.minimum(counts, 3), code], 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.where(IS_SMALL, of_code, counts == COUNTS))


NOISY = released(KEPT)


def log_kept(counts: np.ndarray) -> np.ndarray:
    value, law = np.asarray(NOISY.values), stats.laplace(scale=3.0)
    noisy = law.cdf(value - counts + 0.5) - law.cdf(value - counts - 0.5)
    with np.errstate(divide="ignore"):
        return np.log(np.where(counts == 0, value == 0, noisy))


TWO_BASES = [mechanisms.RandomRounding(5), mechanisms.RandomRounding(3)]
IN_FIRST = np.arange(8) % 2 == 0
PARTS = [released(base).values for base in TWO_BASES]
BASES = dpjax.Microdata({"y": [(PARTS[0], TWO_BASES[0], IN_FIRST), (PARTS[1], TWO_BASES[1], ~IN_FIRST)]})


def log_bases(counts: np.ndarray) -> np.ndarray:
    base = np.where(IN_FIRST, 5, 3)
    distance = np.abs(counts - np.where(IN_FIRST, *PARTS))
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(1 - distance / base, 0))


POSTERIORS = {
    "rounded at random": (ROUNDED, log_rounded),
    "suppressed": (SUPPRESSED, log_suppressed),
    "kept zeros": (NOISY, log_kept),
    "rounded to one base or the other": (BASES, log_bases),
    "coded": (CODED, log_coded),
}


@pytest.mark.parametrize("case", POSTERIORS)
def test_imputed_counts_agree_with_a_sum_over_all(case: str):
    """Catches chains that find no start, and exact counts that no level of a channel lists, which undid every move."""
    release, log_channel = POSTERIORS[case]
    posterior = dpjax.sample(
        jax.random.key(5),
        UNITS,
        release,
        imputation=dpjax.imwg(),
        refresh=False if case != "coded" else None,
        num_warmup=500,
        num_samples=3_000,
        progress=False,
    )
    row, (mean, deviation) = posterior.summary()["rate"], grid(log_channel)
    assert np.sum(posterior.info["num_nonfinite"]) == 0
    assert abs(row["mean"] - mean) < 4.5 * row["mcse_mean"]
    assert row["sd"] == pytest.approx(deviation, rel=0.08)


def test_counts_walk_as_far_as_their_value_allows():
    """Catches steps as wide as the model's spread, hardly any of which lead to a count that is possible."""
    width = noise_width(BASES, "y", ())
    assert np.all((width >= 1) & (width <= 4))
