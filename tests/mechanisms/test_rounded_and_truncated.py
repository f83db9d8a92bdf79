"""Rounded values, and values drawn anew until they fit: total mass one, SciPy's probabilities, samplers, refusals."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

import dpjax
from dpjax import statistics
from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Rounded, Truncated

SCALE = 2.5
LAWS = {
    Laplace: stats.laplace(scale=SCALE),
    Gaussian: stats.norm(scale=SCALE),
    DiscreteLaplace: stats.dlaplace(1 / SCALE),
}
DISCRETE = (DiscreteLaplace, DiscreteGaussian)
NUM_DRAWS, GATE = 20_000, 1e-4
WHOLE = np.arange(-100, 101)


def terms(mechanism, value, statistic):
    value = jnp.asarray(value, float)
    found = jax.jit(mechanism.log_density_terms)(value, jnp.full(value.shape, statistic, float))
    return np.asarray(found, np.float64)


def whole_noise(mechanism):
    """The probabilities of whole noise from -100 to 100, by their formulas."""
    weight = np.exp(-np.abs(WHOLE) / SCALE if mechanism is DiscreteLaplace else -0.5 * (WHOLE / SCALE) ** 2)
    return weight / weight.sum()


@pytest.mark.parametrize("step", [2.0, 5.0])
@pytest.mark.parametrize("statistic", [-7, 0, 13])
@pytest.mark.parametrize("mechanism", DISCRETE)
def test_whole_noise_is_rounded_half_to_even(mechanism, statistic, step):
    value = step * np.arange(-60, 61)
    expected = np.zeros(value.shape)
    np.add.at(expected, np.round((statistic + WHOLE) / step).astype(int) + 60, whole_noise(mechanism))
    found = np.exp(terms(Rounded(mechanism(SCALE), step), value, statistic))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-12)


@pytest.mark.parametrize("mechanism", [Laplace, Gaussian])
def test_rounded_real_noise_can_be_clamped(mechanism):
    """At multiples of the step; drawing it anew is not known, nor clamping rounded whole noise."""
    clamped = dpjax.Censored(Rounded(mechanism(SCALE), 2.0), lower=-4.0, upper=6.0)
    found = np.exp(terms(clamped, np.arange(-4.0, 7.0, 2.0), 0.7))
    edges = LAWS[mechanism].cdf(np.r_[-np.inf, np.arange(-3.0, 6.0, 2.0), np.inf] - 0.7)
    np.testing.assert_allclose(found, np.diff(edges), rtol=2e-5)
    for refused in (lambda: Truncated(Rounded(mechanism(SCALE), 2.0), lower=0.0), lambda: Rounded(clamped, 2.0)):
        with pytest.raises(TypeError, match=r"^mechanism: given "):
            refused()
    with pytest.raises(TypeError, match=r"^mechanism: given Rounded; expected an additive mechanism"):
        dpjax.Censored(Rounded(DiscreteLaplace(SCALE), 2.0), lower=0.0)


@pytest.mark.parametrize("step", [0.25, 10.0])
@pytest.mark.parametrize("mechanism", [Laplace, Gaussian])
def test_real_noise_is_rounded(mechanism, step):
    law, statistic, reach = LAWS[mechanism], 3.7, int(60 / step)
    value = step * np.arange(-reach, reach + 1)
    found = terms(Rounded(mechanism(SCALE), step), value, statistic)
    assert abs(np.exp(found).sum() - 1) < 1e-5
    low, high = np.abs(value - statistic) - step / 2, np.abs(value - statistic) + step / 2
    expected = special.logsumexp([law.logsf(low), law.logsf(high)], axis=0, b=[[1.0], [-1.0]])
    tails = np.abs(value - statistic) > 4 * SCALE
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=2e-5 * SCALE / step + 2e-5)
    assert np.all(np.isfinite(found[tails]))


@pytest.mark.x64
@pytest.mark.parametrize("mechanism", [Laplace, Gaussian, *DISCRETE])
def test_tails_are_exact(mechanism):
    """The ratio of neighbours far out, where both distribution functions have rounded to 0 or 1."""
    value = np.array([-320.0, -310.0, 310.0, 320.0])
    found = terms(Rounded(mechanism(SCALE), 10.0), value, 0.0)
    np.testing.assert_allclose(found[:2], found[:1:-1], rtol=1e-12)
    if mechanism is Laplace:
        expected = np.log(np.sinh(5 / SCALE)) - 310 / SCALE
        np.testing.assert_allclose(found[2], expected, rtol=1e-12)
    if mechanism is Gaussian:
        low, high = special.log_ndtr(-305 / SCALE), special.log_ndtr(-315 / SCALE)
        np.testing.assert_allclose(found[2], low + np.log1p(-np.exp(high - low)), rtol=1e-10)


@pytest.mark.parametrize("statistic", [-6, 0, 4, 11])
@pytest.mark.parametrize("bounds", [(0.0, None), (None, 8.0), (0.0, 8.0)])
@pytest.mark.parametrize("mechanism", [Laplace, Gaussian, *DISCRETE])
def test_truncated_mass_is_one(mechanism, bounds, statistic):
    low, high = bounds
    truncated = Truncated(mechanism(SCALE), low, high)
    ends = (-80.0 if low is None else low, 90.0 if high is None else high)
    if mechanism in DISCRETE:
        value = np.arange(ends[0], ends[1] + 1)
        total = np.exp(terms(truncated, value, statistic)).sum()
    else:
        knots = np.unique(np.clip([ends[0], statistic, ends[1]], *ends))
        parts = [np.linspace(a, b, 4001) for a, b in pairwise(knots)]
        total = sum(integrate.simpson(np.exp(terms(truncated, part, statistic)), x=part) for part in parts)
    assert abs(total - 1) < 1e-5
    assert np.all(terms(truncated, [-81.0 if low is not None else 91.0], statistic) == -np.inf)


@pytest.mark.x32
@pytest.mark.parametrize("mechanism", [Laplace, Gaussian, *DISCRETE])
def test_samplers_agree_with_densities(mechanism):
    statistic = jnp.full(NUM_DRAWS, 3.0)
    rounded = Rounded(mechanism(SCALE), 2.0)
    drawn = np.asarray(jax.jit(rounded.sample)(jax.random.key(1), statistic))
    value = 2.0 * np.arange(-4, 8)
    observed = [np.sum(drawn == one) for one in value]
    assert p_value(observed, np.exp(terms(rounded, value, 3.0))) > GATE
    truncated = Truncated(mechanism(SCALE), lower=1.0, upper=6.0)
    drawn = np.asarray(jax.jit(truncated.sample)(jax.random.key(2), statistic))
    assert drawn.min() >= 1
    assert drawn.max() <= 6
    if mechanism in DISCRETE:
        value = np.arange(1.0, 7.0)
        assert p_value([np.sum(drawn == one) for one in value], np.exp(terms(truncated, value, 3.0))) > GATE
    else:
        law = LAWS[mechanism]
        ends = law.cdf(np.array([1.0, 6.0]) - 3)
        assert stats.kstest(drawn, lambda value: (law.cdf(value - 3) - ends[0]) / np.diff(ends)).pvalue > GATE


def p_value(observed, expected):
    """By χ², with what is left in one class."""
    observed, expected = np.append(observed, NUM_DRAWS - np.sum(observed)), NUM_DRAWS * np.append(expected, 0.0)
    expected[-1] = NUM_DRAWS - expected.sum()
    common = expected > 5
    statistic = np.sum((observed[common] - expected[common]) ** 2 / expected[common])
    return stats.chi2.sf(statistic, common.sum() - 1)


def test_parameters_of_each_coordinate():
    value, statistic = jnp.array([4.0, 10.0]), jnp.array([3.0, 18.0])
    both = Rounded(Laplace([1.0, 4.0]), [2.0, 5.0])
    one_by_one = [Rounded(Laplace(b), step) for b, step in [(1.0, 2.0), (4.0, 5.0)]]
    expected = sum(one.log_density(value[k : k + 1], statistic[k : k + 1]) for k, one in enumerate(one_by_one))
    release = dpjax.Release(value, both, statistics.total("y", dimension=2), 3)
    np.testing.assert_allclose(release.log_densities_at((value - statistic)[:, None]), [expected], rtol=1e-6)


@pytest.mark.parametrize("mechanism", [Rounded(Laplace(2.0), [1.0, 2.0]), Truncated(DiscreteLaplace(2.0), upper=9.0)])
def test_it_is_written_and_described(mechanism):
    release = dpjax.Release([3.0, 4.0], mechanism, statistics.cells("cell", 2), 9)
    again = dpjax.from_json(release.to_json())
    assert jax.tree.structure(again) == jax.tree.structure(release)
    words = dpjax.describe(release)
    assert ("ε = 1" in words and "rounded to multiples of 1, 2" in words) or (
        "drawn anew until the value is at most 9" in words and words.count("no promise is known") == 2
    )


def published(mechanism, value):
    return dpjax.Release(value, mechanism, statistics.cells("cell", 2), 9)


BAD = {
    "no step": (lambda: Rounded(Laplace(1.0), None), "step"),
    "a step of 0": (lambda: Rounded(Laplace(1.0), 0.0), "step"),
    "a negative step": (lambda: Rounded(Laplace(1.0), -5.0), "step"),
    "an infinite step": (lambda: Rounded(Laplace(1.0), np.inf), "step"),
    "a text as step": (lambda: Rounded(Laplace(1.0), "5"), "step"),
    "no steps": (lambda: Rounded(Laplace(1.0), []), "step"),
    "a fractional step of whole noise": (lambda: Rounded(DiscreteLaplace(1.0), 2.5), "step"),
    "rounding a class": (lambda: Rounded(Laplace, 5.0), "mechanism"),
    "rounding what is clamped": (lambda: Rounded(dpjax.Censored(Laplace(1.0), lower=0.0), 5.0), "mechanism"),
    "values between multiples": (lambda: published(Rounded(Laplace(1.0), 5.0), [5.0, 12.0]), "value"),
    "steps of another shape": (lambda: published(Rounded(Laplace(1.0), [5.0] * 3), [5.0, 10.0]), "mechanism.step"),
    "truncating a number": (lambda: Truncated(2.0, lower=0.0), "mechanism"),
    "truncating without bounds": (lambda: Truncated(Laplace(1.0)), "lower, upper"),
    "bounds exchanged": (lambda: Truncated(Laplace(1.0), 3.0, 1.0), "lower, upper"),
    "a missing bound": (lambda: Truncated(Laplace(1.0), lower=np.nan), "lower"),
    "values beyond a bound": (lambda: published(Truncated(Laplace(1.0), lower=0.0), [-1.0, 3.0]), "value"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    call, argument = BAD[name]
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given .*; expected .*\. "):
        call()
