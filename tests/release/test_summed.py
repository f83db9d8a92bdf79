"""A release's sums and densities against numpy and scipy, for shipped and user-written mechanisms."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import statistics
from dpjax.mechanisms import Censored, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from dpjax.numerics.sums import MAX_ROWS
from dpjax.release import Release

pytestmark = pytest.mark.x64

N = 30
GENERATOR = np.random.default_rng(8)
RECORDS = {"y": jnp.asarray(GENERATOR.normal(size=N)), "cell": jnp.asarray(GENERATOR.integers(0, 3, N))}
SCALES = jnp.array([0.5, 2.0, 3.0])


@dataclass(frozen=True)
class Cauchy:
    """A user's mechanism: only the two methods, and no pytree."""

    width: float

    def log_density(self, value, statistic):
        return jnp.sum(jax.scipy.stats.cauchy.logpdf(value, statistic, self.width))

    def sample(self, key, statistic):
        return statistic + self.width * jax.random.cauchy(key, statistic.shape)


class Unregistered(Laplace):
    """A user's variation of a shipped mechanism."""


def powers(record):
    return record["y"] ** jnp.arange(1.0, 4.0)


counts = statistics.cells("cell", 3)
MECHANISMS = {
    "laplace": (Laplace(1.3), powers),
    "laplace by coordinate": (Laplace(SCALES), powers),
    "gaussian": (Gaussian(SCALES), powers),
    "discrete laplace": (DiscreteLaplace(SCALES), counts),
    "discrete gaussian": (DiscreteGaussian(2.5), counts),
    "censored": (Censored(Laplace(SCALES), lower=jnp.array([-5.0, 0.0, 5.0])), powers),
    "user": (Cauchy(0.7), powers),
    "subclass": (Unregistered(0.7), powers),
}


@pytest.fixture(params=MECHANISMS)
def release(request):
    mechanism, statistic = MECHANISMS[request.param]
    return Release([7, 12, 5], mechanism, statistic, N)


def test_contributions_and_total(release):
    columns = np.asarray(release.contributions(RECORDS))
    y, cell = np.asarray(RECORDS["y"]), np.asarray(RECORDS["cell"])
    expected = np.eye(3)[:, cell] if release.statistic == counts else np.stack([y, y**2, y**3])
    np.testing.assert_allclose(columns, expected, atol=1e-12)
    np.testing.assert_allclose(release.total(RECORDS), expected.sum(axis=1), atol=1e-12)


def test_every_form_of_the_density_agrees(release):
    total = jnp.round(release.total(RECORDS))
    residuals = jnp.round(10 * jnp.asarray(GENERATOR.normal(size=(3, 8))))
    one_by_one = [release.mechanism.log_density(release.value, release.value - column) for column in residuals.T]
    np.testing.assert_allclose(release.log_densities_at(residuals), one_by_one, rtol=0, atol=1e-12)
    np.testing.assert_allclose([release.log_density_at(r) for r in residuals.T], one_by_one, rtol=0, atol=1e-12)
    assert np.all(np.isfinite(one_by_one))
    direct = release.mechanism.log_density(release.value, total)
    np.testing.assert_allclose(release.log_density(total), direct, atol=1e-12)
    np.testing.assert_allclose(release.log_density_at(release.value - total), direct, atol=1e-12)


def test_log_likelihood_is_that_of_the_sum():
    release = Release([7, 12, 5], Laplace(SCALES), powers, N)
    expected = stats.laplace.logpdf(release.value, release.total(RECORDS), np.asarray(SCALES)).sum()
    np.testing.assert_allclose(release.log_likelihood(RECORDS), expected, atol=1e-10)


def test_columns_of_every_shape():
    for d, m in [(1, 4), (3, 1), (1, 1), (2, 2), (MAX_ROWS + 1, 2)]:
        release = Release(jnp.zeros(d), Laplace(jnp.arange(1.0, d + 1)), lambda record: record["z"], N)
        residuals = jnp.asarray(GENERATOR.normal(size=(d, m)))
        expected = stats.laplace.logpdf(residuals, scale=np.arange(1.0, d + 1)[:, None]).sum(axis=0)
        np.testing.assert_allclose(release.log_densities_at(residuals), expected, atol=1e-12)


def test_a_number_becomes_a_vector_and_integers_become_floats():
    release = Release(3, Laplace(1), statistics.total("y", 0, 1), np.int64(5))
    assert (release.value.shape, release.value.dtype) == ((1,), jnp.result_type(float))
    assert type(release.n) is int


def test_negative_counts_are_legal():
    release = Release([-4, 0, 9], DiscreteLaplace(2.0), counts, N)
    assert np.isfinite(release.log_density(jnp.array([0.0, 0.0, 9.0])))


def test_sample_is_another_release_of_the_same_kind(release):
    again = release.sample(jax.random.key(4), RECORDS)
    assert (again.mechanism, again.statistic, again.n) == (release.mechanism, release.statistic, release.n)
    assert np.isfinite(again.log_likelihood(RECORDS))
    direct = release.mechanism.sample(jax.random.key(4), release.total(RECORDS))
    np.testing.assert_array_equal(again.value, direct)


def test_the_noise_of_samples_follows_its_law():
    release = Release(jnp.zeros(3), Laplace(SCALES), powers, N)
    draw = jax.jit(jax.vmap(lambda key: release.sample(key, RECORDS).value))
    noise = np.asarray(draw(jax.random.split(jax.random.key(11), 2_000))) - np.asarray(release.total(RECORDS))
    for coordinate, scale in zip(noise.T, SCALES, strict=True):
        assert stats.kstest(coordinate, stats.laplace(scale=scale).cdf).pvalue > 1e-4
        assert stats.kstest(coordinate, stats.laplace(scale=1.4 * scale).cdf).pvalue < 1e-4


def test_check_records_accepts_arrays_and_shapes(release):
    release.check_records(RECORDS)
    release.check_records(jax.eval_shape(lambda: RECORDS))


@pytest.mark.parametrize("type_of_counts", [int, "int8", "uint32", bool, "float32"])
def test_counts_of_any_type_are_summed_exactly(type_of_counts):
    def indicator(record):
        return (record["y"] > jnp.array([-1.0, 0.0, 1.0])).astype(type_of_counts)

    def as_float(record):
        return indicator(record).astype(float)

    records = {"y": jax.random.normal(jax.random.key(0), (300,))}
    exact = [Release(jnp.array([250, 150, 40]), DiscreteLaplace(2), counts, 300) for counts in (indicator, as_float)]
    for release in exact:
        release.check_records(records)
    np.testing.assert_array_equal(*[release.total(records) for release in exact])
    assert exact[0].total(records)[1] == int(jnp.sum(records["y"] > 0))
    assert exact[0].log_likelihood(records) == exact[1].log_likelihood(records)


@pytest.mark.x64
def test_whole_numbers_that_doubles_do_not_hold_are_refused():
    with pytest.raises(ValueError, match=r"value: given .*; expected whole numbers up to 2\^53"):
        Release([2**60 + 1, 3], Laplace(1.0), lambda record: record["y"], 10)
    assert Release([2**60, 3], Laplace(1.0), lambda record: record["y"], 10).value[0] == 2**60
