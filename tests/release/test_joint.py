"""Joint releases: the law of several releases of the same records, in every sampler, and what cannot be joined."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import coupling, diagnostics, models, statistics
from dpjax.models.integer_noise import check_integer_noise
from tests.extension.two_cells import CELLS, MAX_ERRORS, MODEL, N, agrees, enumerate_records

NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
TOTAL = statistics.total("y")
SUMS = dpjax.joint(dpjax.Release(6.0, dpjax.Gaussian(2.0), TOTAL, 5), dpjax.Release(2.0, dpjax.Gaussian(3.0), TOTAL, 5))
COUNTS = dpjax.joint(
    dpjax.Release([5.0, -1.0], dpjax.DiscreteLaplace(1.5), CELLS, N),
    dpjax.Release([3.3], dpjax.Laplace(2.0), statistics.grouped("cell", [0, -1]), N),
    dpjax.Release([2.0, 0.0], dpjax.Censored(dpjax.Laplace(1.0), lower=0.0), CELLS, N),
)
OPTIONS = {"num_warmup": 100, "num_samples": 500, "progress": False}


def closed_form():
    """The law of the mean: the two noisy sums are Normal given it, with the sum of the records in common."""
    covariance = 5 * np.ones((2, 2)) + np.diag([4.0, 9.0])
    gain = np.linalg.solve(covariance, np.full(2, 5.0))
    variance = 1 / (1 + np.full(2, 5.0) @ gain)
    return variance * gain @ np.asarray(SUMS.value), np.sqrt(variance)


def log_marginal():
    covariance = 30 * np.ones((2, 2)) + np.diag([4.0, 9.0])
    return stats.multivariate_normal(np.zeros(2), covariance).logpdf(np.asarray(SUMS.value))


@pytest.mark.x32
@pytest.mark.parametrize("imputation", [dpjax.soma(), dpjax.pcn(2, 0.5)], ids=repr)
def test_two_noisy_sums_against_the_closed_form(imputation):
    posterior = dpjax.sample(jax.random.key(1), NORMAL, SUMS, imputation=imputation, **OPTIONS)
    draws, (mean, deviation) = posterior.draws["mean"], closed_form()
    assert abs(draws.mean() - mean) < MAX_ERRORS * diagnostics.mcse_mean(draws)
    squares = (draws - mean) ** 2
    assert abs(squares.mean() - deviation**2) < MAX_ERRORS * diagnostics.mcse_mean(squares)


@pytest.mark.x32
def test_evidence_of_two_noisy_sums():
    found = dpjax.importance_sample(jax.random.key(2), NORMAL, SUMS, 20_000)
    assert abs(found.log_marginal_likelihood - log_marginal()) < MAX_ERRORS * found.log_marginal_likelihood_error
    options = {"num_particles": 50, "num_islands": 16, "num_sweeps": 1}
    found = dpjax.sample_smc(jax.random.key(3), NORMAL, SUMS, **options)
    assert abs(found.log_marginal_likelihood - log_marginal()) < MAX_ERRORS * found.log_marginal_likelihood_error


@pytest.fixture(scope="module")
def posterior():
    return dpjax.sample(jax.random.key(4), MODEL, COUNTS, imputation=dpjax.imwg(), **OPTIONS)


@pytest.mark.x32
def test_integer_and_real_noise_against_enumeration(posterior):
    assert agrees(posterior)


@pytest.mark.slow
def test_integer_and_real_noise_against_enumeration_by_windows():
    assert agrees(dpjax.sample(jax.random.key(4), MODEL, COUNTS, imputation=dpjax.soma(3), **OPTIONS))


@pytest.mark.slow
def test_tempered_run_of_integer_and_real_noise():
    options = {"num_particles": 50, "num_islands": 16, "num_sweeps": 1}
    found = dpjax.sample_smc(jax.random.key(5), MODEL, COUNTS, **options)
    error = abs(found.log_marginal_likelihood - enumerate_records(COUNTS)[0])
    assert error < MAX_ERRORS * found.log_marginal_likelihood_error


@pytest.mark.slow
def test_coupled_chains_meet():
    kernel = coupling.coupled_gibbs(MODEL, COUNTS, dpjax.soma())
    assert coupling.meeting_times(jax.random.key(6), kernel, num_pairs=20, max_steps=200).met.all()


@pytest.mark.slow
def test_calibration():
    options = {"num_replicates": 100, "num_samples": 19, "thin": 4, "num_warmup": 152}
    assert dpjax.sbc(jax.random.key(7), NORMAL, SUMS, **options).p_values()["mean"] > 1e-4


def test_prediction(posterior):
    values = posterior.predict(jax.random.key(9), num_samples=50).values
    assert values.shape == (50, 5)
    assert np.all(values[:, :2] == np.round(values[:, :2]))
    assert np.all(values[:, 3:] >= 0)
    assert np.any(values[:, 2] != np.round(values[:, 2]))


def test_the_log_density_is_the_sum():
    records = {"cell": jnp.array([0, 1, 1, 0, 0, 1])}
    first = dpjax.Release([5.0, -1.0], dpjax.DiscreteLaplace(1.5), CELLS, N)
    second = dpjax.Release([3.0, 1.0], dpjax.Gaussian(jnp.array([1.0, 2.0])), CELLS, N)
    both = dpjax.joint(first, second)
    expected = first.log_likelihood(records) + second.log_likelihood(records)
    np.testing.assert_allclose(both.log_likelihood(records), expected, rtol=1e-6)
    assert both.mechanism.noise is not None
    assert both.statistic.dimension == len(both.value) == 4


def test_joint_releases_are_taken_apart():
    flat = dpjax.joint(*[dpjax.Release(6.0, dpjax.Gaussian(2.0), TOTAL, 5)] * 3)
    nested = dpjax.joint(flat, dpjax.joint(flat, SUMS))
    assert nested.statistic.statistics == (TOTAL,) * 8
    assert nested.mechanism.sizes == (1,) * 8
    stack = dpjax.Release([1.0, 2.0], dpjax.Laplace(1.0), statistics.stacked(TOTAL, TOTAL), 5)
    assert len(dpjax.joint(stack, SUMS).statistic.statistics) == 3


def test_json():
    again = dpjax.from_json(COUNTS.to_json(units="persons"))
    assert jax.tree.structure(again) == jax.tree.structure(COUNTS)
    for leaf, copy in zip(jax.tree.leaves(COUNTS), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(leaf, copy)
    assert type(again.mechanism) is type(COUNTS.mechanism)
    assert dpjax.from_json(SUMS.to_json()).statistic == SUMS.statistic
    with pytest.raises(TypeError, match=r"^lengths: given a value; expected one of Independent's arguments: .*sizes"):
        dpjax.from_json(SUMS.to_json().replace('"sizes"', '"lengths"'))


def positive(record):
    return (record["y"][None] > 0).astype(float)


def rounded(record):
    return record["y"][None] * jnp.array([0.5])


REAL = dpjax.Release([6.0], dpjax.Laplace(2.0), TOTAL, 5)
WHOLE = dpjax.Release([2], dpjax.DiscreteLaplace(1.0), positive, 5)


def test_integer_noise_needs_whole_sums_of_its_own_coordinates_alone():
    check_integer_noise(NORMAL, dpjax.joint(REAL, WHOLE))
    check_integer_noise(NORMAL, dpjax.joint(WHOLE, REAL))
    by_hand = dpjax.Independent([dpjax.Laplace(1.0), dpjax.DiscreteLaplace(1.0)], [1, 2])
    stack = statistics.stacked(TOTAL, statistics.stacked(positive, positive))
    check_integer_noise(NORMAL, dpjax.Release([1.0, 2.0, 3.0], by_hand, stack, 5))
    refused = dpjax.joint(REAL, WHOLE, dpjax.Release([2], dpjax.DiscreteLaplace(1.0), rounded, 5))
    with pytest.raises(ValueError, match=r"^mechanism: given DiscreteLaplace, whose noise is whole, on a statistic"):
        check_integer_noise(NORMAL, refused)
    exchanged = dpjax.Release([1.0, 2.0, 3.0], by_hand, statistics.stacked(positive, TOTAL, TOTAL), 5)
    with pytest.raises(ValueError, match=r"^mechanism: given DiscreteLaplace, whose noise is whole, on a statistic"):
        check_integer_noise(NORMAL, exchanged)


def test_coarse_sums_are_warned_of_by_part():
    if jax.config.jax_enable_x64:
        pytest.skip("double precision is fine enough")
    noisy = dpjax.Release([1e6], dpjax.Laplace(100.0), TOTAL, 5)
    dpjax.joint(REAL, noisy)
    mechanism = dpjax.Independent([dpjax.Laplace(0.1), dpjax.Laplace(100.0)], [1, 1])
    dpjax.Release([1.0, 1e6], mechanism, statistics.stacked(TOTAL, TOTAL), 5)
    with pytest.warns(dpjax.release.PrecisionWarning, match=r"noise of scale 0\.1 on numbers up to 1e\+06"):
        dpjax.Release([1e6, 1.0], mechanism, statistics.stacked(TOTAL, TOTAL), 5)


HISTOGRAM = statistics.histogram("y", [0.0, 0.5, 1.0])


@pytest.mark.parametrize(
    ("releases", "argument"),
    [
        ((), "releases"),
        ((REAL,), "releases"),
        (([REAL, WHOLE],), "releases"),
        ((REAL, [WHOLE]), r"releases\[1\]"),
        ((REAL, dpjax.LocalRelease([1.0] * 6, dpjax.Laplace(1.0), "y")), r"releases\[1\]"),
        ((dpjax.LocalRelease([1.0] * 5, dpjax.Laplace(1.0), "y"),) * 2, r"releases\[1\]"),
        ((dpjax.Release([0.5] * 3, dpjax.SmoothedHistogram(0.5, 3), HISTOGRAM, 5), REAL), r"releases\[0\]"),
        ((REAL, dpjax.Release([6.0], dpjax.Laplace(2.0), TOTAL, 6)), r"releases\[1\]"),
        ((REAL, None), r"releases\[1\]"),
    ],
)
def test_what_cannot_be_joined_is_named(releases, argument):
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given .*; expected .*\. .+\.$"):
        dpjax.joint(*releases)


def test_a_joint_release_can_be_taken_apart():
    """Finds parts with the values or the statistic of another, or a value that is filled up with zeros."""
    median = dpjax.releases.median(0.4, candidates=[0.2, 0.4, 0.6], field="y", epsilon=1.0, n=5)
    table = dpjax.Release([1.0, 2.0, 2.0], dpjax.Exact(), statistics.cells("cell", 3), 5)
    alone = (dpjax.Release([6.0], dpjax.Laplace(2.0), TOTAL, 5), table)
    together = dpjax.joint(*alone, median)
    assert [part.to_json() for part in together.parts] == [one.to_json() for one in (*alone, median)]
    assert alone[0].parts == (alone[0],)
    assert dpjax.joint(*together.parts).to_json() == together.to_json()
    pairs = dpjax.joint(*(dpjax.Release([6.0, 1.0], dpjax.Laplace(2.0), statistics.total(name), 5) for name in "yz"))
    assert pairs.parts == (pairs,), "of two fields of any size, each may have one number or three"
