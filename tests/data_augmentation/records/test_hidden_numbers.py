"""Counts without a largest value, hidden beside exact fields: against a sum over all counts on a grid."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import dpjax
from dpjax.data_augmentation.records.hidden_numbers import away_from_zero

SEEN = np.array([3, -1, 0, 5, 2, 9])
Y = np.array([1.0, 0.2, -0.5, 2.0, 0.3, 3.0])
SCALE, MISSING = 1.5, np.arange(6) == 4
COUNTS = np.arange(60)


def visits(n):
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("people", n):
        count = numpyro.sample("visits", dist.Poisson(rate))
        numpyro.sample("y", dist.Normal(slope * count.astype(float), 1.0))


def grid(known: np.ndarray) -> np.ndarray:
    """Means and deviations of rate and slope, with hidden counts summed out; those that are known are as seen."""
    rate, slope = np.linspace(0.02, 9.0, 220), np.linspace(-1.5, 3.0, 181)
    of_noise = stats.dlaplace.logpmf(SEEN[:, None] - COUNTS, 1 / SCALE)
    of_noise = np.where(MISSING[:, None], 0.0, of_noise)
    with np.errstate(divide="ignore"):
        of_noise = np.where(known[:, None], np.log(SEEN[:, None] == COUNTS), of_noise)
    of_count = stats.poisson.logpmf(COUNTS, rate[:, None])  # [rate, count]
    total = stats.gamma.logpdf(rate, 2.0)[:, None] + stats.norm.logpdf(slope)
    for noise, y in zip(of_noise, Y, strict=True):
        of_y = stats.norm.logpdf(y, slope[:, None] * COUNTS)  # [slope, count]
        total = total + special.logsumexp(of_count[:, None] + of_y[None] + noise, axis=2)
    weight = special.softmax(total)
    found = []
    for values, law in ((rate, weight.sum(1)), (slope, weight.sum(0))):
        mean = np.sum(law * values)
        found.append((mean, np.sqrt(np.sum(law * values**2) - mean**2)))
    return np.array(found)


def check(release: Any, known: np.ndarray) -> None:
    """Compare means with the grid, within standard errors, and deviations within a tenth."""
    model = dpjax.from_numpyro(visits, ["visits", "y"])
    summary = dpjax.sample(jax.random.key(1), model, release, num_samples=6_000, progress=False).summary()
    expected = grid(known)
    for name, (mean, deviation) in zip(("rate", "slope"), expected, strict=True):
        assert abs(summary[name]["mean"] - mean) < 4.5 * summary[name]["mcse_mean"], name
        assert abs(summary[name]["sd"] / deviation - 1) < 0.12, name


def released(scale: float = SCALE) -> dpjax.Microdata:
    """Noisy counts, one of which is missing, and exact outcomes."""
    return dpjax.Microdata(
        {"visits": (SEEN, dpjax.DiscreteLaplace(scale)), "y": (Y, dpjax.Exact())}, missing={"visits": MISSING}
    )


@pytest.mark.keys
def test_noisy_counts_agree_with_a_sum_over_all():
    check(released(), np.zeros(6, bool))


@pytest.mark.x64
def test_counts_that_some_people_told_agree():
    """Catches a walk that moves exact counts, too."""
    known = np.array([True, False, False, True, False, False])
    parts = [(SEEN, dpjax.Exact(), known), (SEEN, dpjax.DiscreteLaplace(SCALE), ~known)]
    release = dpjax.Microdata({"visits": parts, "y": (Y, dpjax.Exact())}, missing={"visits": MISSING})
    check(release, known)


@pytest.mark.x64
def test_another_scale_is_noticed():
    """The planted fault."""
    with pytest.raises(AssertionError):
        check(released(3 * SCALE), np.zeros(6, bool))


def test_steps_are_whole_symmetric_and_never_zero():
    steps = np.asarray(away_from_zero(jnp.array([-2.0, -1.5, -0.1, 0.1, 1.5, 2.0])))
    assert steps.tolist() == [-2.0, -2.0, -1.0, 1.0, 2.0, 2.0]
