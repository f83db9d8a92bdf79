"""An unknown number of records: the density between whole numbers, posteriors against sums over n, and refusals."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import dpjax
from dpjax import models, statistics
from dpjax.clt.density import CltProblem, build_problem, simulate_variance
from dpjax.clt.inputs import check_problem
from dpjax.clt.moments import Source
from dpjax.clt.number import find_neighbours, with_place
from dpjax.models.data_sets import NUMBER

SD, PRIOR_SD = 2.0, 10.0
MODEL = models.normal(models.NormalPrior(0.0, PRIOR_SD), SD**2)
BOTH = statistics.stacked(statistics.count(), statistics.total("y"))
FEW = {"num_warmup": 300, "num_samples": 500, "progress": False}


def with_one(parameters: dict, statistic: Any) -> tuple:
    """The moments of a record's one and of its value."""
    return jnp.stack([jnp.ones_like(parameters["mean"]), parameters["mean"]]), jnp.diag(jnp.array([0.0, SD**2]))


KNOWN = MODEL._replace(statistic_moments=with_one)


def release_of(prior: Any, mechanism: Any, value: tuple = (5_013.0, 6_500.0)) -> dpjax.Release:
    return dpjax.Release(list(value), mechanism, BOTH, dpjax.UnknownCount(prior))


def problem_of(release: dpjax.Release) -> CltProblem:
    simulated = simulate_variance(jax.random.key(0), release)
    return build_problem(KNOWN, release, Source((True, True), None), None, simulated)


def by_scipy(numbers: np.ndarray, mean: float, value: tuple, scales: tuple) -> np.ndarray:
    """The log-density of count and total for each number, with Normal noise of these scales."""
    count = stats.norm.logpdf(value[0], numbers, scales[0])
    return count + stats.norm.logpdf(value[1], numbers * mean, np.sqrt(numbers * SD**2 + scales[1] ** 2))


@pytest.mark.x64
@pytest.mark.parametrize(
    ("count_prior", "law"),
    [
        (models.UniformCount(4_950, 5_020), stats.randint(4_950, 5_021)),
        (models.PoissonCount(4_990.0), stats.poisson(4_990.0)),
        (models.NegativeBinomialCount(4_990.0, 8.0), stats.nbinom(8.0, 8.0 / 4_998.0)),
    ],
)
def test_between_whole_numbers_the_density_is_that_of_both_in_proportion(count_prior, law):
    """At whole numbers it is prior times likelihood: so its integral over the place is their sum."""
    value, scales, mean = (5_013.0, 6_500.0), (20.0, 60.0), 1.29
    problem = problem_of(release_of(count_prior, dpjax.Gaussian(list(scales)), value))
    places = np.array([4_999.0, 4_999.3, 5_000.0, 5_020.0, 5_020.5])
    model = with_place(KNOWN, problem.release)

    def log_posterior(place: jax.Array) -> jax.Array:
        parameters = {"mean": jnp.asarray(mean), NUMBER: place}
        return model.log_prior(parameters) + problem.log_likelihood(parameters, jnp.zeros(0), jnp.zeros(0))

    found = jax.vmap(log_posterior)(jnp.asarray(places))
    numbers = np.arange(4_998, 5_022)
    with np.errstate(divide="ignore"):
        density = np.exp(law.logpmf(numbers) + by_scipy(numbers, mean, value, scales))
    expected, beside = (np.log(np.interp(places + shift, numbers, density)) for shift in (0, -1))
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-9)
    assert np.max(np.abs(found - found[0] - beside + beside[0])) > 1e-3  # one record more is told apart


@pytest.mark.x64
def test_latent_variances_are_those_of_the_noise_whatever_the_number():
    """Laplace noise given the scores of its variances, against SciPy."""
    release = release_of(models.UniformCount(4_000, 6_000), dpjax.Laplace([10.0, 40.0]))
    problem, scores = problem_of(release), jnp.array([0.4, -0.7])
    scales = tuple(np.sqrt(np.asarray(problem.noise.variance_at(scores))))
    numbers = np.array([4_900.0, 5_000.0, 5_100.0])
    found = jax.vmap(lambda place: problem.log_likelihood({"mean": 1.3, NUMBER: place}, scores, jnp.zeros(0)))(
        jnp.asarray(numbers)
    )
    expected = by_scipy(numbers, 1.3, (5_013.0, 6_500.0), scales)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-9)


@pytest.mark.x64
def test_latent_noise_integrates_to_its_own_density_whatever_the_number():
    """Noise that is neither Normal nor Laplace: an integral over its score, against a convolution."""
    mechanism, value = dpjax.Censored(dpjax.Laplace(60.0), upper=9_000.0), 6_500.0
    release = dpjax.Release(
        [value], mechanism, statistics.total("y"), dpjax.UnknownCount(models.UniformCount(1, 9_000))
    )
    simulated = jnp.array([2 * 60.0**2])
    moments = lambda parameters, statistic: (parameters["mean"][None], jnp.full((1, 1), SD**2))  # noqa: E731
    model = MODEL._replace(statistic_moments=moments)
    problem = build_problem(model, release, Source((True, True), None), None, simulated)
    scores, numbers = jnp.linspace(-9.0, 9.0, 40_001), np.array([4_950.0, 5_000.0, 5_050.0])

    def integral(place: jax.Array) -> jax.Array:
        parameters = {"mean": jnp.array(1.3), NUMBER: place}
        terms = jax.vmap(lambda score: problem.log_likelihood(parameters, jnp.zeros(0), score[None]))(scores)
        return jax.nn.logsumexp(terms - scores**2 / 2)

    found = jax.jit(jax.vmap(integral))(jnp.asarray(numbers))
    sums = np.linspace(5_000.0, 8_000.0, 60_001)[None]
    spread = np.sqrt(numbers * SD**2)[:, None]
    terms = stats.norm.logpdf(sums, 1.3 * numbers[:, None], spread) + stats.laplace.logpdf(value, sums, 60.0)
    expected = logsumexp(terms, axis=1)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=2e-5)


def test_a_number_is_drawn_in_proportion_to_either_density():
    release = release_of(models.UniformCount(4_000, 6_000), dpjax.Gaussian([20.0, 60.0]))
    neighbours = find_neighbours(release, {NUMBER: jnp.array(5_000.25)})
    densities = jnp.array([0.0, 1.0])
    uniforms = (jnp.arange(4_000, dtype=float) + 0.5) / 4_000
    drawn = jax.vmap(lambda uniform: neighbours.choose(uniform, densities))(uniforms)
    upper = 0.25 * np.e / (0.75 + 0.25 * np.e)
    assert set(np.unique(drawn)) == {5_000, 5_001}
    assert np.mean(drawn == 5_001) == pytest.approx(upper, abs=1e-3)


@pytest.mark.x64
@pytest.mark.parametrize("prior", [models.UniformCount(0, 7), models.PoissonCount(6.0)])
def test_places_have_coordinates(prior):
    """To the real numbers and back, with the slope of that map; and none is below the least or above the greatest."""
    release = release_of(prior, dpjax.Gaussian(1.0))
    model = with_place(MODEL, release)
    free = jnp.linspace(-3.0, 2.0, 9)
    place = jax.vmap(lambda one: model.constrain({"mean": 0.0, NUMBER: one})[NUMBER])(free)
    back = jax.vmap(lambda one: model.unconstrain({"mean": 0.0, NUMBER: one})[NUMBER])(place)
    slope = jax.vmap(jax.grad(lambda one: model.constrain({"mean": 0.0, NUMBER: one})[NUMBER]))(free)
    known = jax.vmap(lambda one: model.log_jacobian({"mean": 0.0, NUMBER: one}))(free)
    np.testing.assert_allclose(back, free, atol=1e-4)
    np.testing.assert_allclose(known, jnp.log(slope), atol=1e-4)
    drawn = jax.vmap(model.sample_prior)(jax.random.split(jax.random.key(0), 1_000))[NUMBER]
    assert np.min(drawn) > 0
    assert np.max(place) < 8 or prior.bounds[1] is None


def oracle(numbers: np.ndarray, log_prior: np.ndarray, value: tuple, scales: tuple) -> tuple:
    """Mean and sd of the number, and mean and sd of the records' mean, by a sum over all numbers."""
    variance = numbers * SD**2 + scales[1] ** 2
    total = np.sqrt(variance + numbers**2 * PRIOR_SD**2)
    terms = log_prior + stats.norm.logpdf(value[0], numbers, scales[0]) + stats.norm.logpdf(value[1], 0, total)
    weights = np.exp(terms - logsumexp(terms))
    precision = 1 / PRIOR_SD**2 + numbers**2 / variance
    means = value[1] * numbers / variance / precision
    number, mean = weights @ numbers, weights @ means
    square = weights @ (1 / precision + means**2)
    return number, np.sqrt(weights @ (numbers - number) ** 2), mean, np.sqrt(square - mean**2)


def agree(draws: np.ndarray, mean: float, sd: float) -> None:
    """Mean and standard deviation of draws [chain, draw], to Monte Carlo error."""
    draws = draws.astype(float)
    assert abs(np.mean(draws) - mean) < 4 * dpjax.diagnostics.mcse_mean(draws)
    assert abs(np.std(draws) - sd) < 4 * dpjax.diagnostics.mcse_sd(draws) + 0.01 * sd


CASES = {
    "a noisy count": (models.UniformCount(4_000, 6_000), stats.randint(4_000, 6_001), (30.0, 100.0)),
    "a bound that cuts off": (models.UniformCount(4_000, 5_040), stats.randint(4_000, 5_041), (30.0, 100.0)),
    "hardly any noise": (models.PoissonCount(4_900.0), stats.poisson(4_900.0), (0.4, 100.0)),
    "a vague count": (models.NegativeBinomialCount(4_800.0, 400.0), stats.nbinom(400, 400 / 5_200), (300.0, 100.0)),
}


@pytest.mark.parametrize("name", ["a noisy count", *(pytest.param(n, marks=pytest.mark.slow) for n in list(CASES)[1:])])
def test_posteriors_are_those_of_a_sum_over_all_numbers(name):
    prior, law, scales = CASES[name]
    value, numbers = (5_013.0, 6_500.0), np.arange(1, 12_000)
    posterior = dpjax.sample_clt(
        jax.random.key(3), MODEL, release_of(prior, dpjax.Gaussian(list(scales)), value), **FEW
    )
    number, number_sd, mean, mean_sd = oracle(numbers, law.logpmf(numbers), value, scales)
    agree(posterior.draws[NUMBER], number, number_sd)
    agree(posterior.draws["mean"], mean, mean_sd)
    assert np.issubdtype(posterior.draws[NUMBER].dtype, np.integer)


def test_predictions_have_the_numbers_of_the_draws():
    value, scales = (5_013.0, 6_500.0), (30.0, 100.0)
    release = release_of(models.UniformCount(4_000, 6_000), dpjax.Gaussian(list(scales)), value)
    posterior = dpjax.sample_clt(jax.random.key(3), MODEL, release, **FEW)
    predicted = posterior.predict(jax.random.key(4)).values
    error = np.std(predicted, axis=0) / np.sqrt(200)
    assert np.all(np.abs(np.mean(predicted, axis=0) - value) < 4 * error)
    assert np.std(predicted[:, 0]) == pytest.approx(np.sqrt(2) * 30.0, rel=0.15)
    assert "num_records" in posterior.describe()


def test_where_a_number_is_needed_it_is_asked_for():
    release = release_of(models.UniformCount(90, 110), dpjax.Gaussian(1.0), (100.0, 130.0))
    with pytest.raises(ValueError, match=r"release.n: given .*; expected a known number of records here"):
        check_problem(MODEL, release)


@pytest.mark.slow
def test_clamped_records_agree_with_imputed_ones():
    """Means within a tenth of a standard deviation, and these within 5 %, beyond three errors of the chains."""
    statistic = statistics.stacked(statistics.count(), statistics.total("y", -1.0, 3.0))
    model = models.normal(models.NormalPrior(0.0, 3.0), SD**2)
    n = dpjax.UnknownCount(models.UniformCount(1_500, 2_500))
    release = dpjax.Release([2_013.0, 2_400.0], dpjax.Laplace([20.0, 30.0]), statistic, n)
    options: dict[str, Any] = {"num_warmup": 300, "num_samples": 3_000, "progress": False}
    exact = dpjax.sample(jax.random.key(5), model, release, **options).draws
    draws = dpjax.sample_clt(jax.random.key(6), model, release, num_samples=2_000, progress=False).draws
    for name in ("mean", NUMBER):
        one, other = exact[name].astype(float), draws[name].astype(float)
        sd = np.std(one)
        error = np.hypot(dpjax.diagnostics.mcse_mean(one), dpjax.diagnostics.mcse_mean(other)) / sd
        assert error < 0.06
        assert abs(np.mean(other) - np.mean(one)) / sd < 0.1 + 3 * error
        error = np.hypot(dpjax.diagnostics.mcse_sd(one), dpjax.diagnostics.mcse_sd(other)) / sd
        assert abs(np.std(other) / sd - 1) < 0.05 + 3 * error
