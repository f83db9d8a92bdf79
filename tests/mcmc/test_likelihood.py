"""`sample` by a likelihood of the parameters: the Normal sum with all that runs have, and functions of a user's own."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats

import dpjax
from dpjax import models, statistics

KEY = jax.random.key(1)
MODEL = models.normal(models.NormalPrior(0.0, 10.0), variance=4.0)
TOTAL = statistics.total("y")
RELEASE = dpjax.Release([130.0], dpjax.Laplace(20.0), TOTAL, 100)
FEW = {"num_chains": 2, "num_warmup": 100, "num_samples": 200, "progress": False}


def parameters_of(state):
    """The parameters of a state."""
    return state.parameters


def test_the_normal_sum_is_continued_stopped_and_started_as_any_run(tmp_path):
    """Checkpoints, `thin`, `initial` and `until` reach it; latent noise shows in no draw, nor in what is collected."""
    run = {"checkpoint": tmp_path / "run.npz", "thin": 2, **FEW}
    whole = dpjax.sample_clt(KEY, MODEL, RELEASE, **run)
    again = dpjax.sample(KEY, MODEL, RELEASE, likelihood=dpjax.normal_sum(), **run)
    np.testing.assert_array_equal(whole.draws["mean"], again.draws["mean"])
    assert list(whole.draws) == ["mean"]
    run = {"checkpoint": tmp_path / "other.npz", "collect": parameters_of, **FEW}
    once, twice = (dpjax.sample(KEY, MODEL, RELEASE, likelihood=dpjax.normal_sum(), **run) for _ in range(2))
    for posterior in (once, twice):
        assert list(posterior.collected) == ["mean"]
        np.testing.assert_array_equal(posterior.collected["mean"], once.draws["mean"])
    with pytest.raises(ValueError, match="checkpoint"):
        dpjax.sample_clt(KEY, MODEL, RELEASE, num_points=64, checkpoint=tmp_path / "run.npz", thin=2, **FEW)
    started = dpjax.sample_clt(KEY, MODEL, RELEASE, initial={"mean": jnp.ones(2)}, until=dpjax.until(ess=10), **FEW)
    assert "ess" in started.ended or started.draws["mean"].shape[1] == 200


def far_below(parameters):
    """The log-density of a mean about -3."""
    return -jnp.square(parameters["mean"] + 3) * 8


def test_a_users_own_function_tells_runs_apart(tmp_path):
    """Another function with the same checkpoint, or beside the first in one posterior, is refused by name."""
    run = {**FEW, "num_warmup": 10, "num_samples": 20, "thin": 3}
    first = dpjax.sample(
        KEY, MODEL, RELEASE, likelihood=lambda own: -(own["mean"] ** 2), checkpoint=tmp_path / "a", **run
    )
    with pytest.raises(ValueError, match="code of likelihood"):
        dpjax.sample(KEY, MODEL, RELEASE, likelihood=far_below, checkpoint=tmp_path / "a", **run)
    other = dpjax.sample(jax.random.key(2), MODEL, RELEASE, likelihood=far_below, **run)
    with pytest.raises(ValueError, match="code of likelihood"):
        dpjax.Posterior.concat([first, other])
    assert "Normal" not in other.describe()
    assert np.issubdtype(other.info["num_divergent"].dtype, np.integer)


def test_divergences_of_thinned_draws_are_counted():
    """Each step that diverges counts, of the three between draws; a share of them had the name of a number."""

    def cliff(parameters):
        return jnp.where(parameters["mean"] > 0, 0.0, -1e9)

    run = {**FEW, "num_warmup": 10, "num_samples": 50}
    posterior = dpjax.sample(KEY, MODEL, RELEASE, likelihood=cliff, thin=3, **run)
    counts = posterior.info["num_divergent"]
    assert counts.max() > 1
    assert np.issubdtype(counts.dtype, np.integer)


def test_a_normal_sum_of_an_unknown_number_is_continued(tmp_path):
    """Nothing of the records is drawn for the checkpoint, of which an unknown number has none to draw."""
    number = dpjax.UnknownCount(models.PoissonCount(2_000.0))
    release = dpjax.Release([130.0], dpjax.Laplace(20.0), TOTAL, number)
    run = {**FEW, "num_warmup": 10, "num_samples": 20, "checkpoint": tmp_path / "run.npz"}
    whole, again = (dpjax.sample(KEY, MODEL, release, **run) for _ in range(2))
    np.testing.assert_array_equal(whole.draws["num_records"], again.draws["num_records"])


@pytest.mark.x32
def test_a_likelihood_of_a_users_own_is_sampled():
    """Two group means behind a censored total, which no release has: against a grid by SciPy."""

    def pair(n=2, y=None):
        with numpyro.plate("groups", 2):
            numpyro.sample("mean", dist.Normal(0.0, 2.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y)

    def at_least_three(parameters):
        return jax.scipy.stats.norm.logsf(3.0, jnp.sum(parameters["mean"]), 0.5)

    model = dpjax.from_numpyro(pair, records="y", n=2)
    release = dpjax.Release([3.0], dpjax.Gaussian(0.5), TOTAL, 2)
    posterior = dpjax.sample(KEY, model, release, likelihood=at_least_three, progress=False, num_samples=500)
    grid = np.linspace(-12, 12, 4_001)
    weights = stats.norm.pdf(grid, 0, np.sqrt(8)) * stats.norm.sf(3.0, grid, 0.5)
    weights /= weights.sum()
    mean = weights @ grid
    total = posterior.draws["mean"].sum(axis=-1).astype(float)
    assert abs(total.mean() - mean) < 4 * dpjax.diagnostics.mcse_mean(total)
    sd = np.sqrt(weights @ (grid - mean) ** 2)
    assert abs(total.std() - sd) < 4 * dpjax.diagnostics.mcse_sd(total)
    assert posterior.plan is None
    assert not posterior.approximate


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"likelihood": 3.0}, "likelihood: given"),
        ({"likelihood": lambda parameters: parameters["rate"]}, "likelihood: given a function that failed"),
        ({"likelihood": lambda parameters: jnp.ones(2)}, r"likelihood: given a function that returns .*\[2\]"),
        ({"likelihood": dpjax.normal_sum(), "imputation": dpjax.imwg()}, "likelihood: given one beside an imputation"),
        ({"likelihood": dpjax.normal_sum}, "likelihood: given"),
        ({"likelihood": lambda parameters: 0}, r"likelihood: given a function that returns int"),
    ],
)
def test_what_is_no_likelihood_is_refused_by_name(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        dpjax.sample(KEY, MODEL, RELEASE, **options)


def test_a_model_without_parameters_has_no_likelihood():
    release = dpjax.Release([3.0], dpjax.Gaussian(1.0), TOTAL, 2)
    with pytest.raises(ValueError, match="likelihood: given one of a model without parameters"):
        dpjax.sample(KEY, models.exponential(2.0), release, likelihood=lambda parameters: jnp.zeros(()))


LOCAL = dpjax.LocalRelease([1.0, 9.0, 3.0], dpjax.Gaussian(1.0), "y")


@pytest.mark.parametrize(
    "call",
    [
        lambda choice: dpjax.gibbs(MODEL, RELEASE, imputation=choice),
        lambda choice: dpjax.sampler_tests.sbc(KEY, MODEL, RELEASE, imputation=choice),
        lambda choice: dpjax.sample_batch(KEY, MODEL, [RELEASE, RELEASE], imputation=choice),
        lambda choice: dpjax.maximum_likelihood(KEY, MODEL, RELEASE, imputation=choice),
        lambda choice: dpjax.maximum_likelihood(KEY, MODEL, LOCAL, imputation=choice),
    ],
)
def test_a_normal_sum_draws_no_records(call):
    """Where records are imputed, or summed out exactly, the choice was an AttributeError or changed nothing."""
    with pytest.raises(ValueError, match="imputation: given"):
        call(dpjax.normal_sum())


@pytest.mark.parametrize(
    ("model", "release"),
    [
        (MODEL, dpjax.LocalRelease([1.0, 9.0], dpjax.Gaussian(1.0), "y")),
        (MODEL, dpjax.LocalRelease([1.0, 9.0, -3.0], dpjax.Gaussian(1.0), "y")),
        (models.normal(models.NormalPrior(0.0, 10.0), variance=9.0), LOCAL),
    ],
)
def test_the_marginal_likelihood_of_another_release_is_refused(model, release):
    """Of another number, of another value, and of another model: draws would be of the posterior given that."""
    with pytest.raises(ValueError, match="likelihood: given one of"):
        dpjax.sample(KEY, MODEL, LOCAL, likelihood=dpjax.marginal_likelihood(model, release))


def counts(offset):
    """A model of counts with a known offset."""

    def model(offset=offset, y=None):
        rate = numpyro.sample("rate", dist.Gamma(2.0, 0.1))
        with numpyro.plate("weeks", 3):
            numpyro.sample("y", dist.Poisson(rate * offset), obs=y)

    return dpjax.from_numpyro(model, records="y", offset=offset)


@pytest.mark.parametrize(
    ("values", "offset", "noise"), [((12, 19, 15), 1.0, 2.0), ((12, 19, 16), 2.0, 2.0), ((12, 19, 16), 1.0, 3.0)]
)
def test_windows_of_another_release_are_refused(values, offset, noise):
    """Of another value, covariate or noise. Windows fitted to other parameters of the same release are taken."""
    ones = np.ones(3)
    model, release = counts(ones), dpjax.LocalRelease([12, 19, 16], dpjax.DiscreteLaplace(2.0), "y")
    other = dpjax.LocalRelease(values, dpjax.DiscreteLaplace(noise), "y")
    made = dpjax.marginal_likelihood(counts(offset * ones), other)
    with pytest.raises(ValueError, match="likelihood: given one of another"):
        made.check_is_of(model, release)
    for rate in (3.0, 60.0):
        dpjax.marginal_likelihood(model, release, {"rate": jnp.full(4, rate)}).check_is_of(model, release)


def test_the_likelihood_of_known_noise_is_refused_beside_noise_that_is_not():
    """It has no rows to compare: this was an AttributeError."""
    noise = dpjax.Gaussian(dpjax.unknown("tau", dist.HalfNormal(1.0)))
    release = dpjax.LocalRelease(np.asarray(LOCAL.values), noise, "y")
    with pytest.raises(ValueError, match="likelihood: given one of known noise"):
        dpjax.marginal_likelihood(MODEL, LOCAL).check_is_of(MODEL, release)


@pytest.mark.parametrize("name", ["latent_noise", "latent_variances"])
def test_parameters_with_the_names_of_latent_noise_are_refused(name):
    """They would be taken for it; elsewhere they are parameters as any."""

    def total(n, y=None):
        mean = numpyro.sample(name, dist.Normal(0.0, 5.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(mean, 2.0), obs=y)

    with pytest.raises(ValueError, match=f"model: given names .*{name}"):
        dpjax.sample_clt(KEY, dpjax.from_numpyro(total, records="y", n=100), RELEASE)


def test_a_users_own_function_says_nothing_of_an_unknown_number():
    """New releases need one, and so do new records unless the user says how many."""
    release = dpjax.Release([130.0], dpjax.Gaussian(20.0), TOTAL, dpjax.UnknownCount(models.PoissonCount(2_000.0)))
    posterior = dpjax.sample(KEY, MODEL, release, likelihood=far_below, **FEW)
    with pytest.raises(ValueError, match="posterior: given one by a likelihood"):
        posterior.predict(KEY)
    with pytest.raises(ValueError, match="n: given None"):
        posterior.synthetic(KEY, 2)


def test_many_records_of_an_unknown_number_are_summed_by_default_and_few_are_imputed():
    few, many = (
        dpjax.Release(
            [130.0],
            dpjax.Gaussian(20.0),
            TOTAL,
            dpjax.UnknownCount(models.PoissonCount(number)),
        )
        for number in (20.0, 2_000.0)
    )
    run = {"num_chains": 1, "num_warmup": 0, "num_samples": 2, "progress": False}
    assert dpjax.sample(KEY, MODEL, many, **run).approximate
    assert dpjax.sample(KEY, MODEL, many, initial={"mean": jnp.zeros(1)}, **run).approximate
    assert not dpjax.sample(KEY, MODEL, few, **run).approximate
    assert not dpjax.sample(KEY, MODEL, many, imputation=dpjax.imwg(), **run).approximate


@pytest.mark.x32
@pytest.mark.parametrize("mechanism", [dpjax.Gaussian(20.0), dpjax.Laplace(20.0)])
def test_evidence_by_the_normal_sum_is_that_of_an_integral(mechanism):
    """The constants of the density count: of its own, and of latent noise."""
    islands = dpjax.sample_smc(
        KEY, MODEL, dpjax.Release([130.0], mechanism, TOTAL, 100), likelihood=dpjax.normal_sum(), progress=False
    )
    sums = np.linspace(-20_000, 20_000, 400_001)
    spread = np.sqrt(100**2 * 10.0**2 + 4 * 100)
    noise = stats.norm(130, 20) if isinstance(mechanism, dpjax.Gaussian) else stats.laplace(130, 20)
    expected = np.log(np.sum(stats.norm.pdf(sums, 0, spread) * noise.pdf(sums)) * (sums[1] - sums[0]))
    error = islands.log_marginal_likelihood_error
    assert error < 0.1
    assert abs(islands.log_marginal_likelihood - expected) < 4 * error + 0.01
    assert list(islands.draws) == ["mean"]


def test_evidence_with_an_unknown_number_is_a_sum_over_all_numbers():
    """Count and total of some 200 records, with a number drawn for each particle."""
    number = dpjax.UnknownCount(models.UniformCount(180, 230))
    statistic = statistics.stacked(statistics.count(), TOTAL)
    release = dpjax.Release([205.0, 130.0], dpjax.Gaussian([4.0, 20.0]), statistic, number)
    islands = dpjax.sample_smc(KEY, MODEL, release, likelihood=dpjax.normal_sum(), progress=False)
    numbers = np.arange(180, 231)
    total = stats.norm.logpdf(130.0, 0, np.sqrt(100.0 * numbers**2 + 4.0 * numbers + 400.0))
    log_terms = stats.norm.logpdf(205.0, numbers, 4.0) + total - np.log(len(numbers))
    expected = np.logaddexp.reduce(log_terms)
    assert abs(islands.log_marginal_likelihood - expected) < 4 * islands.log_marginal_likelihood_error + 0.01
    drawn = islands.draws["num_records"]
    assert np.issubdtype(drawn.dtype, np.integer)
    mean = np.exp(log_terms - expected) @ numbers
    assert abs(np.mean(drawn) - mean) < 1.0


def test_weights_by_the_normal_sum_are_those_of_a_sum_over_all_numbers():
    """Draws from the prior have a number drawn for each, and the evidence is that of all numbers."""
    number = dpjax.UnknownCount(models.UniformCount(180, 230))
    statistic = statistics.stacked(statistics.count(), TOTAL)
    release = dpjax.Release([205.0, 130.0], dpjax.Gaussian([8.0, 400.0]), statistic, number)
    weighted = dpjax.importance_sample(KEY, MODEL, release, 20_000, likelihood=dpjax.normal_sum(), progress=False)
    numbers = np.arange(180, 231)
    total = stats.norm.logpdf(130.0, 0, np.sqrt(100.0 * numbers**2 + 4.0 * numbers + 400.0**2))
    expected = np.logaddexp.reduce(stats.norm.logpdf(205.0, numbers, 8.0) + total - np.log(len(numbers)))
    assert abs(weighted.log_marginal_likelihood - expected) < 4 * weighted.log_marginal_likelihood_error
    assert sorted(weighted.draws) == ["mean", "num_records"]


@pytest.mark.parametrize(
    "sample",
    [
        lambda *given, **by: dpjax.sample_smc(*given, num_particles=50, num_islands=2, num_sweeps=1, **by),
        lambda *given, **by: dpjax.importance_sample(*given, 100, **by),
    ],
)
def test_a_sum_of_few_skewed_records_is_warned_of_by_weights_too(sample):
    """The draws of `sample` alone were looked at."""
    model = models.exponential(models.GammaPrior(2.0, 1.0))
    release = dpjax.Release([3.0], dpjax.Gaussian(0.2), statistics.total("y"), 3)
    with pytest.warns(UserWarning, match="skew"):
        sample(KEY, model, release, likelihood=dpjax.normal_sum(), progress=False)


@pytest.mark.x64
def test_chains_start_where_a_precise_count_is_far_from_the_prior():
    """The slope of a density interpolated between whole numbers says nothing of how far away the count is."""
    number, statistic = (
        dpjax.UnknownCount(models.UniformCount(1_000, 2**31 - 10)),
        statistics.stacked(statistics.count(), statistics.total("y", -10.0, 10.0)),
    )
    release = dpjax.Release([1e8, 1.2e8], dpjax.Laplace([3.0, 20.0]), statistic, number)
    likelihood = dpjax.normal_sum().sum_out(MODEL, release)
    starts = likelihood.find_starts(KEY, likelihood.extend(MODEL), 2)
    np.testing.assert_allclose(starts.parameters["num_records"], 1e8, atol=100)


@pytest.mark.x32
@pytest.mark.filterwarnings("ignore:The release has counts")
def test_an_unknown_number_beyond_the_precision_of_real_numbers_is_refused():
    """In float32 there is none between 10⁸ and the next number, and chains were hundreds of deviations off."""
    release = dpjax.Release([1.2e8], dpjax.Gaussian(8.0), TOTAL, dpjax.UnknownCount(models.PoissonCount(1e8)))
    likelihood = dpjax.normal_sum().sum_out(MODEL, release)
    draws = {"mean": jnp.full((2, 50), 1.2), "num_records": jnp.full((2, 50), 10**8)}
    if jax.config.jax_enable_x64:
        assert "skewness" in likelihood.examine(KEY, draws)
    else:
        with pytest.raises(ValueError, match="release: given an unknown number"):
            likelihood.examine(KEY, draws)
