"""The Poisson binomial mechanism: its probabilities, its promise, its draws and releases of it."""

from math import inf

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import dpjax
from dpjax.mechanisms import PoissonBinomial
from tests.conftest import FLOAT32
from tests.mechanisms.losses import largest_loss

NUMBERS = np.linspace(-1.5, 3.5, 21)
"""Some of them outside of the bounds -1 and 3."""


@jax.jit
def log_densities(channel: PoissonBinomial, counts: jax.Array, numbers: jax.Array) -> jax.Array:
    """The log-probability [counts, numbers]."""
    density = jax.vmap(jax.vmap(channel.log_density, in_axes=(None, 0)), in_axes=(0, None))
    return density(counts, numbers)


@pytest.mark.parametrize(("num_trials", "theta"), [(1, 0.1), (8, 0.5), (300, 0.45)])
def test_probabilities_are_binomial_and_add_up(num_trials: int, theta: float) -> None:
    channel = PoissonBinomial(theta, num_trials, lower=-1, upper=3)
    counts = np.arange(-1, num_trials + 2)
    found = np.asarray(log_densities(channel, jnp.asarray(counts), jnp.asarray(NUMBERS)), float)
    kind = np.float32 if FLOAT32 else np.float64
    share = np.clip((NUMBERS.astype(kind).astype(float) + 1) / 4, 0, 1)
    expected = stats.binom.logpmf(counts[:, None], num_trials, 0.5 - theta + 2 * theta * share)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if FLOAT32 else 1e-12, atol=3e-5 if FLOAT32 else 1e-13)
    np.testing.assert_allclose(np.exp(found).sum(axis=0), 1, rtol=1e-4 if FLOAT32 else 1e-12)


@pytest.mark.parametrize(("num_trials", "epsilon"), [(1, 0.5), (6, 4.0), (30, 20.0)])
def test_the_largest_log_ratio_is_what_was_asked_for(num_trials: int, epsilon: float) -> None:
    channel = PoissonBinomial.from_epsilon(epsilon, num_trials, -1.0, 3.0)
    counts, rounding = jnp.arange(num_trials + 1), epsilon * (1e-5 if FLOAT32 else 1e-12)
    assert largest_loss(channel, NUMBERS, counts) == pytest.approx(epsilon, abs=rounding)
    assert channel.promise.local(1).epsilon == pytest.approx(epsilon, abs=rounding)
    assert channel.promise.local(3).epsilon == pytest.approx(3 * epsilon, abs=3 * rounding)
    # A θ that is one per cent larger breaks the promise.
    assert largest_loss(PoissonBinomial(1.01 * channel.theta, num_trials), NUMBERS, counts) > epsilon + 100 * rounding


@pytest.mark.x64
@pytest.mark.parametrize(("num_trials", "epsilon"), [(1, 0.5), (6, 4.0), (30, 20.0), (2, 30.0)])
def test_the_divergence_of_every_order_is_what_is_promised(num_trials: int, epsilon: float) -> None:
    """And not less: two per cent below, it is exceeded by orders near 1."""
    channel = PoissonBinomial.from_epsilon(epsilon, num_trials)
    numbers = np.linspace(0, 1, 9)
    logs = np.asarray(log_densities(channel, jnp.arange(num_trials + 1), jnp.asarray(numbers)))
    here, there = logs[:, :, None], logs[:, None, :]
    orders = np.append(1 + np.logspace(-4, 0, 30), [3.0, 10.0, 100.0])
    ratios = [
        np.max(special.logsumexp(order * here + (1 - order) * there, axis=0)) / ((order - 1) * order)
        for order in orders
    ]
    rho = channel.promise.local(1).rho
    assert rho < epsilon**2 / 2
    assert 0.98 * rho < max(ratios) <= rho * (1 + 1e-9)


@pytest.mark.x64
def test_people_are_promised_the_largest_of_each_number() -> None:
    """The person of the largest ρ is not the one of the largest ε: log 19 by randomized response, 4 by trials."""
    by_trials, by_noise = PoissonBinomial.from_epsilon(4.0, 8), dpjax.RandomizedResponse(keep=0.95, num_categories=2)
    release = dpjax.Microdata({"a": [([3, 0], by_trials, [True, False]), ([0, 1], by_noise, [False, True])]})
    text = str(dpjax.describe(release))
    assert by_trials.promise.local(1).rho < 0.9 * np.log(19)
    assert f"ε = 4, and so ρ = {0.9 * np.log(19):.4g}" in text


@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 60.0, 1e4])
@pytest.mark.parametrize("num_trials", [1, 3, 1_000])
def test_rounding_never_breaks_the_promise(num_trials: int, epsilon: float) -> None:
    """A θ that is rounded to 1/2 would promise nothing."""
    assert 0 < PoissonBinomial.from_epsilon(epsilon, num_trials).promise.local(1).epsilon <= epsilon


def test_nothing_is_promised_where_a_count_can_exclude_a_number() -> None:
    channel = PoissonBinomial(0.5, 4)
    assert channel.promise.local(1).epsilon == inf
    np.testing.assert_array_equal(
        log_densities(channel, jnp.array([0, 1, 4]), jnp.array([0.0, 1.0])), [[0, -inf], [-inf, -inf], [-inf, 0]]
    )


def test_slopes_are_numbers_where_a_probability_is_zero() -> None:
    slope = jax.grad(lambda number, count: PoissonBinomial(0.5, 4).log_density(count, number))
    found = jax.jit(jax.vmap(slope))(jnp.array([0.25, 0.5, 2.0, 0.0]), jnp.array([0, 0, 4, 0]))
    np.testing.assert_allclose(found[:3], [-16 / 3, -8, 0], rtol=1e-5)
    assert np.isfinite(found[3])


@pytest.mark.keys
def test_draws_have_the_probabilities() -> None:
    channel, number = PoissonBinomial(0.3, 12, upper=2.0), jnp.array(1.7)
    keys = jax.random.split(jax.random.key(1), 5_000)
    drawn = np.asarray(jax.jit(jax.vmap(channel.sample, in_axes=(0, None)))(keys, number))
    assert drawn.dtype.kind == "i"
    assert 0 <= drawn.min() <= drawn.max() <= 12
    p_values = []
    for theta in (0.3, 0.27):
        probabilities = stats.binom.pmf(np.arange(13), 12, 0.5 - theta + 2 * theta * 0.85)
        likely = 5_000 * probabilities > 5
        seen = np.bincount(drawn, minlength=13)
        observed, expected = (np.append(one[likely], one[~likely].sum()) for one in (seen, 5_000 * probabilities))
        p_values.append(stats.chisquare(observed, expected).pvalue)
    assert p_values[0] > 1e-4 > p_values[1]


def test_a_release_has_parameters_of_each_record() -> None:
    thetas, counts, numbers = [0.1, 0.3, 0.5], np.array([2, 0, 4]), np.array([0.2, 0.9, 0.4])
    release = dpjax.LocalRelease(counts, PoissonBinomial(thetas, 4), "y")
    expected = stats.binom.logpmf(counts, 4, 0.5 + np.array(thetas) * (2 * numbers - 1))
    np.testing.assert_allclose(release.log_densities({"y": jnp.asarray(numbers)}), expected, rtol=1e-5)
    drawn = release.sample(jax.random.key(1), {"y": jnp.asarray(numbers)})
    assert drawn.values.shape == (3,)
    assert jnp.issubdtype(drawn.values.dtype, jnp.integer)


def test_a_release_says_how_it_was_made() -> None:
    release = dpjax.LocalRelease([3, 8, 5], PoissonBinomial.from_epsilon(4.0, 8, 0, 10), "y")
    text = str(dpjax.describe(release))
    assert "binomial count of 8 trials, whose probability goes from 0.3775 at 0 to 0.6225 at 10." in text
    assert "ε = 4, and so ρ = 0.9797" in text
    assert "ε =" not in str(dpjax.describe(dpjax.LocalRelease([1, 0], PoissonBinomial(0.5, 1), "y")))
