"""Tempering: its marginal likelihood and posterior against enumeration and quadrature, and modes apart."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import dpjax
from dpjax import models, statistics
from dpjax.smc import SMCSample, sampler
from dpjax.smc.result import summarize_islands
from dpjax.smc.sample import run

SMALL = {"num_particles": 100, "num_islands": 16, "num_sweeps": 2}


MAX_ERRORS = 5.0
"""Standard errors are estimated from 16 islands: beyond 5 of them lies 1.6e-4 of Student's law."""


def errors_off(figure: float, exact: float, error: float) -> float:
    """How many standard errors a figure is from the truth."""
    assert error > 0
    return abs(figure - exact) / error


def total(record: dict) -> jax.Array:
    return record["y"][None]


def squares(record: dict) -> jax.Array:
    return record["y"][None] ** 2


N, NOISE = 20, 5.0


NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 2.0), variance=1.0)


@pytest.fixture(scope="module")
def normal() -> SMCSample:
    return dpjax.sample_smc(jax.random.key(1), NORMAL, dpjax.Release([13.0], dpjax.Gaussian(NOISE), total, N), **SMALL)


@pytest.mark.keys
def test_normal_mean_in_closed_form(normal: SMCSample) -> None:
    """Given the mean the released sum is N(n mean, n + noise²)."""
    variance = N + NOISE**2
    exact = stats.norm.logpdf(13.0, 0.0, np.sqrt(N**2 * 2.0**2 + variance))
    error = normal.log_marginal_likelihood_error
    assert error < 0.1
    assert errors_off(normal.log_marginal_likelihood, exact, error) < MAX_ERRORS
    precision = 1 / 2.0**2 + N**2 / variance
    row = normal.summary()["mean"]
    posterior = stats.norm(N * 13.0 / variance / precision, precision**-0.5)
    assert errors_off(row["mean"], posterior.mean(), row["se_mean"]) < MAX_ERRORS
    assert errors_off(row["sd"], posterior.std(), row["se_sd"]) < MAX_ERRORS
    row = normal.summary(quantiles=(0.1, 0.5, 0.75))["mean"]
    for level in (0.1, 0.5, 0.75):
        name = f"{100 * level:g}%"
        assert errors_off(row[name], posterior.ppf(level), row[f"se_{name}"]) < MAX_ERRORS
    # Another posterior, half a standard deviation away, would be noticed.
    assert errors_off(row["mean"], posterior.mean() + 0.5 * posterior.std(), row["se_mean"]) > MAX_ERRORS


@pytest.mark.x32
def test_a_forgotten_weight_is_noticed(normal: SMCSample) -> None:
    """Without the weight of the second step the marginal likelihood is off."""
    kept = np.delete(normal.log_increments, 1, axis=1)
    wrong = special.logsumexp(np.nansum(kept, axis=1)) - np.log(len(kept))
    assert errors_off(wrong, normal.log_marginal_likelihood, normal.log_marginal_likelihood_error) > MAX_ERRORS


def test_the_trace_of_an_island(normal: SMCSample) -> None:
    steps = np.isfinite(normal.temperatures)
    assert np.all(np.diff(normal.temperatures, axis=1)[steps[:, 1:]] > 0)
    assert np.all(np.nanmax(normal.temperatures, axis=1) == 1)
    assert np.all(normal.effective_sample_sizes[steps] >= 70.0 - 1e-3)
    for figure in (normal.effective_sample_sizes, normal.log_increments, normal.acceptance_rates):
        np.testing.assert_array_equal(np.isfinite(figure), steps)
    log_likelihoods = np.nansum(normal.log_increments, axis=1)
    np.testing.assert_allclose(np.exp(normal.log_weights), special.softmax(log_likelihoods), rtol=1e-5)
    assert np.exp(normal.log_weights).sum() == pytest.approx(1.0)


def test_resampling_has_the_law_of_all_islands(normal: SMCSample) -> None:
    draws = normal.resample(jax.random.key(2), 4_000)["mean"]
    row = normal.summary()["mean"]
    assert draws.shape == (4_000,)
    assert abs(draws.mean() - row["mean"]) < 5 * row["sd"] / np.sqrt(4_000)


CELLS, CONCENTRATION, RELEASED = 5, np.array([1.0, 2.0, 1.5]), np.array([4.0, -1.0, 1.0])


CATEGORICAL = models.categorical(CONCENTRATION)


TABLE = dpjax.Release(RELEASED, dpjax.DiscreteLaplace(1.0), statistics.cells("cell", 3), CELLS)


def enumerate_tables() -> tuple[np.ndarray, np.ndarray]:
    """Every table of five records [table, 3], and the log-probability of it with the release [table]."""
    tables = np.array([table for table in product(range(CELLS + 1), repeat=3) if sum(table) == CELLS])
    log_table = stats.dirichlet_multinomial.logpmf(tables, CONCENTRATION, CELLS)
    noise = RELEASED - tables
    log_noise = np.log(np.tanh(0.5)) - np.abs(noise)
    return tables, log_table + log_noise.sum(axis=1)


@pytest.mark.x32
def test_contingency_table_by_enumeration() -> None:
    tables, log_joint = enumerate_tables()
    result = dpjax.sample_smc(jax.random.key(3), CATEGORICAL, TABLE, imputation=dpjax.soma(), interweave=False, **SMALL)
    exact, error = special.logsumexp(log_joint), result.log_marginal_likelihood_error
    assert error < 0.1
    assert errors_off(result.log_marginal_likelihood, exact, error) < MAX_ERRORS
    weights = special.softmax(log_joint)
    means = weights @ (CONCENTRATION + tables) / (CONCENTRATION.sum() + CELLS)
    summary = result.summary()
    for index, mean in enumerate(means):
        row = summary[f"probabilities[{index}]"]
        assert errors_off(row["mean"], mean, row["se_mean"]) < MAX_ERRORS


ROUNDED = dpjax.Release([6.0, 9.0, 6.0], dpjax.RandomRounding(base=3), statistics.cells("cell", 3), 20)


KEYS = 12


def log_rounded() -> float:
    """The log-probability of the rounded table by enumeration: a rest of 1 is rounded down with probability 2/3."""
    tables = np.array([table for table in product(range(21), repeat=3) if sum(table) == 20])
    away = np.abs(tables - np.asarray(ROUNDED.value))
    chance = np.select([away == 0, away == 1, away == 2], [1, 2 / 3, 1 / 3], 0.0).prod(axis=1)
    log_table = stats.dirichlet_multinomial.logpmf(tables, CONCENTRATION, 20)
    return float(special.logsumexp(log_table, b=chance))


@pytest.fixture(scope="module")
def rounded() -> list[SMCSample]:
    """By many keys, of a table that excludes all but one in thirty."""
    sizes = {"num_particles": 50, "num_islands": 8, "num_sweeps": 1}
    return [
        dpjax.sample_smc(jax.random.key(key), CATEGORICAL, ROUNDED, interweave=False, imputation=dpjax.imwg(), **sizes)
        for key in range(KEYS)
    ]


def scatter(results: list[SMCSample], exact: float) -> tuple[float, float]:
    """p-values that errors have the size that is stated, and that they are centred."""
    off = np.array([result.log_marginal_likelihood - exact for result in results])
    stated = np.array([result.log_marginal_likelihood_error for result in results])
    centre = stats.norm.sf(abs(off.sum()) / np.sqrt(np.sum(stated**2)))
    # Each stated variance has 7 degrees of freedom.
    return float(stats.f.sf(np.mean(off**2) / np.mean(stated**2), len(off), 7 * len(off))), float(2 * centre)


@pytest.mark.x32
def test_errors_under_a_hard_support_are_those_stated(rounded: list[SMCSample]) -> None:
    exact = log_rounded()
    assert min(scatter(rounded, exact)) > 1e-3
    # With particles from single draws, one in thirty of which is possible, errors were above 0.2.
    assert max(result.log_marginal_likelihood_error for result in rounded) < 0.15
    # Nearly all of the 50 particles of each first step are possible.
    assert all(np.all(result.effective_sample_sizes[:, 0] > 0.7 * 40) for result in rounded)


def test_a_forgotten_probability_of_the_support_is_noticed(rounded: list[SMCSample]) -> None:
    """As if the particles of the first step had come from the prior."""
    shift = np.log(np.mean(np.exp(rounded[0].log_increments[:, 0])))
    assert min(scatter(rounded, log_rounded() + 0.2 * abs(shift))) < 1e-6


def test_the_prior_probability_of_the_support() -> None:
    """Of draws until as many are possible as there are particles, and of those given up: unbiased."""
    rng, size, chance = np.random.default_rng(8), 20, 0.3
    for rounds, tolerance in ((1_000, 0.0), (3, 1 / size)):
        took = rng.geometric(chance, size=(20_000, size))
        possible, draws = took <= rounds, np.minimum(took, rounds).sum(axis=1)
        searches = sampler.PowerSearch(None, jnp.asarray(possible), jnp.asarray(draws), jnp.array(0))
        axes = sampler.PowerSearch(None, 0, 0, None)
        found = np.exp(jax.vmap(sampler.log_excess, in_axes=(axes,))(searches)) * possible.mean(axis=1)
        error = found.std() / np.sqrt(len(found))
        assert abs(found.mean() - chance) < 4 * error + tolerance * chance


@pytest.mark.slow
def test_sweeps_at_the_wrong_power_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps of the posterior at every step make the particles fit too early, and the likelihood too large."""
    _, log_joint = enumerate_tables()
    monkeypatch.setattr(dpjax.Release, "tempered", lambda release, power: release)
    run.clear_cache()
    try:
        wrong = dpjax.sample_smc(
            jax.random.key(3), CATEGORICAL, TABLE, imputation=dpjax.soma(), interweave=False, **SMALL
        )
    finally:
        run.clear_cache()
    exact = special.logsumexp(log_joint)
    assert errors_off(wrong.log_marginal_likelihood, exact, wrong.log_marginal_likelihood_error) > MAX_ERRORS


@pytest.mark.slow
def test_two_modes_by_quadrature() -> None:
    """Σ y² tells |mean| alone: the sign is left to the prior, N(0.5, 2²), which puts 0.62 on the right."""
    model = models.normal(mean_prior=models.NormalPrior(0.5, 2.0), variance=1.0)
    release = dpjax.Release([100.0], dpjax.Gaussian(10.0), squares, N)
    grid = np.linspace(-5.0, 5.0, 801)
    truth = np.linspace(1e-6, 200.0, 1_001)
    chi_square = stats.ncx2.pdf(truth, N, N * grid[:, None] ** 2)
    likelihood = np.trapezoid(chi_square * stats.norm.pdf(100.0, truth, 10.0), truth, axis=1)
    density = stats.norm.pdf(grid, 0.5, 2.0) * likelihood
    right = np.trapezoid(density * (grid > 0), grid) / np.trapezoid(density, grid)
    assert density[len(grid) // 2] < 1e-3 * density.max()
    # Without interweaving no sweep crosses between the modes.
    result = dpjax.sample_smc(jax.random.key(4), model, release, interweave=False, **SMALL)
    share = summarize_islands(result.draws["mean"] > 0, np.exp(result.log_weights))
    assert share["se_mean"] < 0.05
    assert errors_off(share["mean"], right, share["se_mean"]) < MAX_ERRORS
    assert errors_off(1 - share["mean"], right, share["se_mean"]) > MAX_ERRORS
    exact = np.log(np.trapezoid(density, grid))
    assert errors_off(result.log_marginal_likelihood, exact, result.log_marginal_likelihood_error) < MAX_ERRORS


@pytest.mark.slow
def test_a_local_release_of_two_records() -> None:
    """With a uniform prior on (p, 1 - p) and values 0, 0 kept with 0.8: p has density ∝ (0.2 + 0.6 p)², mean 0.6226."""
    release = dpjax.LocalRelease(np.array([0, 0]), dpjax.RandomizedResponse(0.8, 2))
    result = dpjax.sample_smc(jax.random.key(5), models.categorical(np.ones(2)), release, interweave=False, **SMALL)
    grid = (np.arange(100_000) + 0.5) / 100_000
    density = (0.2 + 0.6 * grid) ** 2
    row = result.summary()["probabilities[0]"]
    assert errors_off(row["mean"], np.average(grid, weights=density), row["se_mean"]) < MAX_ERRORS
    error = result.log_marginal_likelihood_error
    assert errors_off(result.log_marginal_likelihood, np.log(density.mean()), error) < MAX_ERRORS


RELEASE = dpjax.Release([13.0], dpjax.Gaussian(NOISE), total, N)


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        ({"key": 3}, TypeError, "key: given 3; expected one typed key"),
        ({"num_particles": 1}, ValueError, "num_particles: given 1; expected a whole number >= 2"),
        ({"num_islands": 1}, ValueError, "num_islands: given 1; .* Errors come from the variation"),
        ({"num_sweeps": 0}, ValueError, "num_sweeps: given 0"),
        ({"target_ess": 1.0}, ValueError, "target_ess: given 1.0; expected a number between 0 and 1"),
        ({"target_ess": "half"}, TypeError, "target_ess: given 'half'"),
        ({"imputation": dpjax.soma("auto")}, ValueError, "imputation: given SOMA.*'auto'.*; expected fixed numbers"),
        ({"model": RELEASE, "release": NORMAL}, TypeError, r"release: given \w+.*Pass \(model, release\)"),
    ],
)
def test_bad_input(choices: dict, error: type, message: str) -> None:
    arguments = {"key": jax.random.key(0), "model": NORMAL, "release": RELEASE} | choices
    with pytest.raises(error, match=message):
        dpjax.sample_smc(**arguments)
