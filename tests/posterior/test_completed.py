"""Completed and synthetic data sets against exact laws, and the rules that combine analyses of them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import dpjax
from dpjax import models, statistics
from dpjax.posterior import DataSets, combine, further

N, PRIOR_SD, NOISE = 6, 2.0, 1.5
MODEL = models.normal(mean_prior=models.NormalPrior(0.0, PRIOR_SD), variance=1.0)
RELEASE = dpjax.Release([9.0], dpjax.Gaussian(NOISE), lambda record: record["y"][None], N)
TABLE = models.categorical([1.0, 2.0, 0.5])
COUNTED = dpjax.Release([3.0, 1.0, 2.0], dpjax.Laplace(1.0), statistics.cells("cell", 3), 5)
MAX_Z = 4.0


def run(model: dpjax.Model, release: dpjax.Release, **options) -> dpjax.Posterior:
    budget = {"num_warmup": 500, "num_samples": 1_000, "progress": False}
    return dpjax.sample(jax.random.key(1), model, release, **budget, **options)


@pytest.fixture(scope="module")
def posterior() -> dpjax.Posterior:
    return run(MODEL, RELEASE)


@pytest.mark.x32
def test_records_have_their_normal_distribution_given_the_release(posterior: dpjax.Posterior) -> None:
    """Records and noisy sum are jointly Normal."""
    num = 400
    covariance = np.eye(N) + PRIOR_SD**2
    gain = covariance.sum(axis=0) / (covariance.sum() + NOISE**2)
    mean, within = gain * 9.0, covariance - np.outer(gain, covariance.sum(axis=0))
    data = posterior.completed(jax.random.key(2), num)
    assert len(data) == num
    assert data[3]["y"].shape == (N,)
    drawn = np.stack([one["y"] for one in data]).astype(float)
    for what, exact_mean, variance in (
        (drawn.sum(axis=1), mean.sum(), within.sum()),
        (drawn[:, 0], mean[0], within[0, 0]),
        (drawn[:, 1] - drawn[:, 2], 0.0, 2.0),
    ):
        assert abs(what.mean() - exact_mean) < MAX_Z * np.sqrt(variance / num)
        assert abs(what.var() / variance - 1) < MAX_Z * np.sqrt(2 / num)
    residual = data.parameters["mean"] - drawn.mean(axis=1) * N / (N + PRIOR_SD**-2)
    assert abs(residual.mean()) < MAX_Z * np.sqrt(1 / (N + PRIOR_SD**-2) / num)
    np.testing.assert_array_equal(drawn, [one["y"] for one in posterior.completed(jax.random.key(2), num)])


@pytest.mark.x32
def test_data_sets_are_as_far_apart_as_slow_records_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little noise on the sum: the mean is drawn anew in each sweep, while contrasts of records move in small steps."""
    release = dpjax.Release([9.0], dpjax.Gaussian(0.3), lambda record: record["y"][None], N)
    slow = dpjax.sample(
        jax.random.key(1),
        MODEL,
        release,
        num_chains=4,
        num_warmup=200,
        num_samples=250,
        interweave=True,
        refresh=False,
        progress=False,
    )
    data = slow.completed(jax.random.key(2), 160)
    contrasts = np.array([one["y"][0] - one["y"][1] for one in data]).reshape(40, 4)
    assert np.corrcoef(contrasts[:-1].ravel(), contrasts[1:].ravel())[0, 1] < 0.4
    monkeypatch.setattr(further, "MOST_STEPS", 5)
    with pytest.warns(UserWarning, match="data sets that are 5 steps apart resemble each other") as caught:
        slow.completed(jax.random.key(3), 2)
    assert caught[0].filename == __file__


@pytest.mark.x32
def test_counts_have_their_enumerated_distribution() -> None:
    counts = np.array([c for c in itertools.product(range(6), repeat=3) if sum(c) == 5])
    law = stats.dirichlet_multinomial([1.0, 2.0, 0.5], 5).logpmf(counts)
    law = law - np.abs(np.array([3.0, 1.0, 2.0]) - counts).sum(axis=1)
    law = np.exp(law - law.max())
    law /= law.sum()
    num = 600
    data = run(TABLE, COUNTED).completed(jax.random.key(3), num)
    assert data.counts is not None
    seen = np.array([np.all(data.counts == one, axis=1).sum() for one in counts])
    common = law * num > 5
    pearson = np.sum((seen - law * num)[common] ** 2 / (law * num)[common])
    assert stats.chi2(common.sum()).sf(pearson) > 1e-4
    np.testing.assert_array_equal(np.bincount(data[7]["cell"], minlength=3), data.counts[7])
    frame = data.frame(7)
    assert (list(frame), len(frame)) == (["cell"], 5)


def dice(n: int) -> None:
    """Records whose only field has the name that counts of all records have."""
    share = numpyro.sample("share", dist.Beta(2.0, 2.0))
    with numpyro.plate("records", n):
        numpyro.sample("counts", dist.Binomial(3, share))


def test_a_field_of_any_name_is_a_field() -> None:
    with jax.numpy_dtype_promotion("standard"):  # as NumPyro has it
        model = dpjax.from_numpyro(dice, ["counts"], n=4)
        release = dpjax.Release([5.0], dpjax.Gaussian(1.0), statistics.total("counts"), 4)
        few = {"num_chains": 2, "num_warmup": 20, "num_samples": 20, "progress": False}
        plain = {"imputation": dpjax.imwg(), "interweave": False, "refresh": False}
        posterior = dpjax.sample(jax.random.key(1), model, release, **plain, **few)
        data = posterior.completed(jax.random.key(2), 3)
    assert data.counts is None
    assert all(one["counts"].shape == (4,) and set(one["counts"]) <= {0, 1, 2, 3} for one in data)


@pytest.mark.x32
def test_records_in_an_unknown_number_are_as_many_as_drawn() -> None:
    number = dpjax.UnknownCount(models.UniformCount(2, 6))
    release = dpjax.Release([4.0], dpjax.Gaussian(NOISE), lambda record: record["y"][None], number)
    unknown = run(MODEL, release)
    data = unknown.completed(jax.random.key(6), 400)
    drawn = unknown.draws["num_records"]
    error = np.sqrt(drawn.var() * (1 / 400 + 1 / 400))
    assert abs(data.num_records.mean() - drawn.mean()) < MAX_Z * error
    assert all(one["y"].shape == (length,) for one, length in zip(data, data.num_records, strict=True))
    with pytest.raises(ValueError, match="unknown"):
        unknown.synthetic(jax.random.key(7), 3)


def test_synthetic_records_are_new_ones(posterior: dpjax.Posterior) -> None:
    data = posterior.synthetic(jax.random.key(4), 2_000, n=3)
    drawn = np.stack([one["y"] for one in data]).astype(float)
    assert drawn.shape == (2_000, 3)
    np.testing.assert_array_equal(
        data.parameters["mean"], posterior.draws["mean"].ravel()[posterior.choose_draws(2_000)]
    )
    errors = (drawn - data.parameters["mean"][:, None]).ravel()
    assert stats.kstest(errors, "norm").pvalue > 1e-4


@pytest.mark.x32
@pytest.mark.parametrize("kind", ["completed", "synthetic"])
def test_combined_variances_are_those_of_the_posterior(posterior: dpjax.Posterior, kind: str) -> None:
    """With a flat prior and a known variance the sample mean's rule gives the posterior of the mean."""
    precision = 1 / PRIOR_SD**2 + N**2 / (N + NOISE**2)
    data = getattr(posterior, kind)(jax.random.key(5), 1_500)
    means = [one["y"].mean() for one in data]
    if kind == "completed":
        # The analysis that knows the prior, so that both are the same.
        shrunk = N / (N + PRIOR_SD**-2)
        both = data.combine(np.multiply(shrunk, means), np.full(1_500, shrunk / N))
    else:
        both = data.combine(means, np.full(1_500, 1 / N))
    exact_mean = 9.0 * N / (N + NOISE**2) / precision
    assert abs(both.estimate[0] - exact_mean) < MAX_Z * np.sqrt((1 / precision + 1 / N) / 1_500)
    error = np.sqrt(2 / 1_500) * (1 / precision + 1 / N)
    assert abs(both.covariance[0, 0] - 1 / precision) < MAX_Z * error
    low, high = both.confidence_interval(0.9)
    np.testing.assert_allclose(high - low, 2 * stats.norm.ppf(0.95) * both.standard_errors, rtol=0.05)


def test_rules_by_hand() -> None:
    estimates, covariances = np.array([[1.0, 0.0], [3.0, 1.0], [2.0, 5.0]]), np.array([np.diag([0.5, 2.0])] * 3)
    between = np.cov(estimates.T) * 4 / 3
    both = combine(estimates, covariances, kind="completed")
    np.testing.assert_allclose(both.covariance, between + np.diag([0.5, 2.0]))
    np.testing.assert_allclose(both.degrees_of_freedom, 2 * (1 + np.array([0.5, 2.0]) / np.diag(between)) ** 2)
    new = combine(estimates, covariances, kind="synthetic")
    np.testing.assert_allclose(new.covariance, between - np.diag([0.5, 2.0]))
    np.testing.assert_allclose(combine(estimates, [[0.5, 2.0]] * 3, kind="synthetic").covariance, new.covariance)
    with pytest.warns(UserWarning, match=r"estimands \[0, 1\]"):
        wide = combine(estimates, 100 * covariances, kind="synthetic")
    np.testing.assert_allclose(wide.covariance, np.diag([50.0, 200.0]))


def test_a_failing_estimand_leaves_the_others_alone() -> None:
    """The other tests have estimands that are all fine, or all without a positive variance."""
    estimates = np.array([[1.0, 0.0, 0.1], [3.0, 9.0, 0.2], [2.0, 20.0, 0.1]])
    within = np.array([[0.5, 0.1, 0.2], [0.1, 1.0, 0.3], [0.2, 0.3, 0.4]])
    with pytest.warns(UserWarning, match=r"not positive for the estimands \[2\]"):
        both = combine(estimates, [within] * 3, kind="synthetic")
    between = np.cov(estimates.T) * 4 / 3
    np.testing.assert_allclose(both.covariance[:2, :2], (between - within)[:2, :2])
    np.testing.assert_allclose(both.covariance[2], [0, 0, 0.4])
    np.testing.assert_allclose(both.degrees_of_freedom[1:], [2 * (1 - 1 / between[1, 1]) ** 2, 2.0])


def test_covariances_of_synthetic_data_have_no_negative_eigenvalue() -> None:
    """Three data sets tell of two directions alone: each variance is positive, and that of a contrast is not."""
    estimates = np.array([[1.0, 0.0, 1.0], [3.0, 9.0, 12.0], [2.0, 20.0, 22.0]])
    with pytest.warns(UserWarning, match="correlations between estimands are shrunk"):
        both = combine(estimates, [np.diag([0.1, 1.0, 1.0])] * 3, kind="synthetic")
    np.testing.assert_allclose(np.diagonal(both.covariance), np.diag(np.cov(estimates.T)) * 4 / 3 - [0.1, 1.0, 1.0])
    assert np.linalg.eigvalsh(both.covariance)[0] > -1e-9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0], "completed"), "m at least 2"),
        (([1.0, np.nan], [1.0, 1.0], "completed"), "estimates"),
        (([1.0, 2.0], [1.0], "completed"), "covariances"),
        (([1.0, 2.0], [1.0, -1.0], "completed"), "covariances"),
        (([1.0, 2.0], [1.0, 1.0], "imputed"), "kind"),
        ((["a", "b"], [1.0, 1.0], "completed"), "estimates"),
    ],
)
def test_bad_analyses_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        combine(*arguments[:2], kind=arguments[2])


@pytest.mark.parametrize(("num", "n"), [(0, None), (1.5, None), (10**9, None), (2, 0)])
def test_bad_numbers_are_refused(posterior: dpjax.Posterior, num: float, n: int | None) -> None:
    with pytest.raises((TypeError, ValueError), match=r"num|n:"):
        posterior.synthetic(jax.random.key(1), num, n)


def test_approximate_posteriors_have_no_records_to_complete() -> None:
    approximate = dpjax.sample_clt(
        jax.random.key(1), MODEL, RELEASE, num_warmup=100, num_samples=100, num_chains=2, progress=False
    )
    with pytest.raises(ValueError, match="without imputed records"):
        approximate.completed(jax.random.key(2), 3)
    assert len(approximate.synthetic(jax.random.key(2), 3)) == 3


def test_padding_is_left_out() -> None:
    rows = {"y": np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]])}
    data = DataSets("completed", {}, rows, None, np.array([2, 1]))
    assert [one["y"].tolist() for one in data] == [[1.0, 2.0], [3.0]]


REGRESSION = models.linear_regression(
    covariate_mean=[0.0],
    covariate_cov=[[1.0]],
    noise_variance=models.NormalInverseGammaPrior(jnp.zeros(2), 0.05, 3.0, 2.0),
)


def fit(data: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Least squares of a data set: the coefficients [2] and their covariance [2, 2]."""
    design = np.column_stack([np.ones(len(data["y"])), data["x"]])
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ design.T @ data["y"]
    return coefficients, inverse * np.sum((data["y"] - design @ coefficients) ** 2) / (len(data["y"]) - 2)


@pytest.mark.slow
def test_intervals_of_a_regression_cover_what_they_promise() -> None:
    """Rubin's intervals at 90 % over 400 releases."""
    n, num = 100, 400
    statistic = statistics.gram(lower=-4.0, upper=4.0, response=(-12.0, 12.0))
    parameters, releases = [], []
    for key in jax.random.split(jax.random.key(9), num):
        parameter_key, record_key, release_key = jax.random.split(key, 3)
        parameters.append(REGRESSION.sample_prior(parameter_key))
        records = REGRESSION.sample_records(record_key, parameters[-1], n)
        releases.append(dpjax.Release(np.zeros(5), dpjax.Gaussian(6.0), statistic, n).sample(release_key, records))
    batch = dpjax.sample_batch(
        jax.random.key(10), REGRESSION, releases, num_warmup=500, num_samples=500, progress=False
    )
    covered = []
    for place, (posterior, truth) in enumerate(zip(batch, parameters, strict=True)):
        data = posterior.completed(jax.random.fold_in(jax.random.key(11), place), 30)
        low, high = data.combine(*map(np.array, zip(*map(fit, data), strict=True))).confidence_interval(0.9)
        covered.append((low < truth["coef"]) & (truth["coef"] < high))
    rate = np.mean(covered, axis=0)
    assert np.all(np.abs(rate - 0.9) < 0.02 + 2 * np.sqrt(0.09 / num))
