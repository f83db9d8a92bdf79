"""Counts that are withheld below a limit, beside what else was done to them: against sums over all values."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import dpjax
from dpjax import mechanisms, releases

NAN = float("nan")
KEYS = mechanisms.CellKeys([[1.0, 0, 0, 0, 0], [0.4, 0.2, 0.4, 0, 0], [0, 0.3, 0.4, 0.3, 0], [0, 0, 0.25, 0.5, 0.25]])
INNER = {
    "rounded at random": (mechanisms.RandomRounding(3), np.arange(0, 60, 3), -1.0),
    "cell keys": (KEYS, np.arange(40), -1.0),
    "whole noise": (dpjax.DiscreteLaplace(1.5), np.arange(-40, 70), -0.5),
    "zeros kept": (mechanisms.KeptZeros(dpjax.DiscreteLaplace(1.5)), np.arange(-40, 70), -0.5),
}
TAKEN = [(name, by, least) for name in INNER for by in ("value", "count") for least in (0, 1)]
TAKEN = [case for case in TAKEN if case[1] == "count" or INNER[case[0]][0].noise is None]


def terms(mechanism: dpjax.mechanisms.Mechanism, values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The probability [value, count] of each value given each count."""
    columns = jnp.asarray(values, float)[:, None], jnp.asarray(counts, float)[None]
    return np.exp(np.asarray(mechanism.log_density_terms(*columns), float))


@pytest.mark.parametrize(("name", "by", "least"), TAKEN)
def test_what_is_withheld_has_the_probability_of_all_that_it_can_be(name, by, least):
    """Finds a limit that is off by one, and a code that stands for the wrong numbers: whatever is compared with it."""
    inner, values, code = INNER[name]
    rule = mechanisms.Suppressed(inner, limit=5, least=least, by=by, code=code)
    counts = np.arange(30)
    plain, found = terms(inner, values, counts), terms(rule, np.append(values, code), counts)
    small = (values >= least) & (values < 5)
    if by == "value":
        expected = np.vstack([np.where(small[:, None], 0, plain), plain[small].sum(axis=0)])
    else:
        is_small = (counts >= least) & (counts < 5)
        expected = np.vstack([np.where(is_small[None], 0, plain), is_small.astype(float)])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=0), 1, atol=1e-5)
    drawn = rule.sample(jax.random.key(1), jnp.repeat(jnp.arange(8.0), 500))
    shares = np.mean(np.asarray(drawn).reshape(8, 500) == code, axis=1)
    assert np.all(np.abs(shares - expected[-1, :8]) < 5 * np.sqrt(0.25 / 500))


def weeks(n, y=None):
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    with numpyro.plate("weeks", n):
        numpyro.sample("y", dist.Poisson(rate), obs=y)


@pytest.fixture(scope="module")
def model() -> dpjax.Model:
    return dpjax.from_numpyro(weeks, "y")


@pytest.mark.parametrize(
    ("name", "by", "least"), [("rounded at random", "value", 0), ("cell keys", "value", 1), ("whole noise", "count", 0)]
)
def test_units_are_summed_over_all_counts(model, name, by, least):
    """Finds bounds of the counts behind a code that leave some out: the likelihood against a sum over all numbers."""
    inner, _, code = INNER[name]
    values = [6.0, NAN, 12.0]
    release = releases.suppressed_units(values, 5, least=least, mechanism=inner, by=by)
    counts = np.arange(60)
    shown = np.where(np.isnan(values), code, values)
    weights = terms(release.channel, shown, counts) * stats.poisson.pmf(counts, 4.5)[None]
    found = dpjax.marginal_likelihood(model, release)({"rate": jnp.asarray(4.5)})
    np.testing.assert_allclose(found, np.log(weights.sum(axis=1)).sum(), rtol=2e-5)


def test_tables_and_files_take_such_rules():
    """Finds a rule that no table takes, or that a file or a description loses."""
    cells = dpjax.statistics.cells("cell", 3)
    table = releases.suppressed([9.0, NAN, 12.0], cells, 6, n=24, mechanism=mechanisms.RandomRounding(3))
    assert table.value.tolist() == [9.0, -1.0, 12.0]
    assert dpjax.Release.from_json(table.to_json()).mechanism == table.mechanism
    assert "numbers from 0 to 5 are withheld" in dpjax.describe(table)
    law = np.exp(float(table.log_density(jnp.asarray([9.0, 4.0, 11.0]))))
    np.testing.assert_allclose(law, 1 * (2 / 3) * (2 / 3), rtol=1e-5)


REFUSED = {
    "noise compared with the limit": (
        lambda: mechanisms.Suppressed(dpjax.DiscreteLaplace(1.0), 5),
        "mechanism: given Dis",
    ),
    "exact counts": (lambda: mechanisms.Suppressed(dpjax.Exact(), 5), "mechanism: given Exact"),
    "a code that noise can give": (
        lambda: mechanisms.Suppressed(dpjax.DiscreteLaplace(1.0), 5, by="count"),
        "code: given -1, which the mechanism can give",
    ),
    "a value that is withheld": (
        lambda: releases.suppressed_units([3.0, 9.0], 5, mechanism=mechanisms.RandomRounding(3)),
        "values: given 3; expected numbers of at least 5",
    ),
    "no multiple": (
        lambda: releases.suppressed_units([7.0, NAN], 5, mechanism=mechanisms.RandomRounding(3)),
        "values: given 7",
    ),
    "another word": (lambda: mechanisms.Suppressed(mechanisms.RandomRounding(3), 5, by="sum"), "by: given 'sum'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_rules_without_a_meaning_are_refused(case):
    """Finds rules whose numbers could mean two things."""
    call, words = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=words):
        call()
