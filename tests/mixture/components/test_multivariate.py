"""Kernels of vectors: closed forms against SciPy, one dimension against the univariate kernel, and refusals."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import mixture
from dpjax.mixture.components.multivariate import factorize_above_one
from tests.conftest import FLOAT32
from tests.tools.perfect_start import REJECT

MEAN = np.array([0.5, -1.0, 2.0])
SCALE = np.array([[2.0, 0.6, -0.3], [0.6, 1.5, 0.4], [-0.3, 0.4, 1.0]])
BASE = mixture.NormalInverseWishart(MEAN, 0.5, 5.5, SCALE)
NOISE = np.array([0.7, 1.1, 0.4])
RECORDS = np.array([[0.1, -2.0, 3.0], [1.4, 0.3, 1.1], [2.0, -1.2, 0.6], [-0.7, 0.2, 2.2]])
THETA = {
    "mean": RECORDS[1],
    "cholesky": np.linalg.cholesky(np.array([[1.2, 0.5, 0], [0.5, 2.0, -0.8], [0, -0.8, 0.6]])),
}
CLOSE = {"rtol": 2e-4, "atol": 2e-4} if FLOAT32 else {"rtol": 1e-10, "atol": 1e-10}


def covariance(theta: dict[str, Any]) -> np.ndarray:
    return np.asarray(theta["cholesky"] @ theta["cholesky"].swapaxes(-1, -2), float)


@jax.jit
def statistics(component: Any, records: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Those of two clusters: of no record and of all of them."""
    totals = jnp.sum(jax.vmap(component.features)(records), axis=0)
    return jnp.array([0.0, float(len(records))]), jnp.stack([0 * totals, totals])


def log_prior(theta: dict[str, Any], mean: Any, precision: float, degrees: float, scale: Any) -> float:
    """The density of the mean and the covariance by SciPy."""
    cov = covariance(theta)
    of_mean = stats.multivariate_normal.logpdf(theta["mean"], mean, cov / precision)
    return stats.invwishart.logpdf(cov, degrees, scale) + of_mean


@jax.jit
def closed_forms(records: jax.Array) -> dict[str, Any]:
    counts, totals = statistics(BASE, records)
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf, records.dtype), THETA)
    tractable = mixture.find_tractable(dpjax.Gaussian(jnp.asarray(NOISE, records.dtype)), BASE)
    return {
        "posterior": BASE.posterior(counts, totals),
        "evidence": BASE.log_evidence(counts, totals),
        "density": jax.vmap(BASE.log_density, in_axes=(0, None))(records, one),
        "marginal": jax.vmap(tractable.log_marginal, in_axes=(0, None))(records, one),
    }


def test_closed_forms_are_those_of_scipy() -> None:
    """Bayes' theorem at any parameters: prior times likelihood is posterior times evidence."""
    found = closed_forms(jnp.asarray(RECORDS, float))
    law = stats.multivariate_normal(THETA["mean"], covariance(THETA))
    np.testing.assert_allclose(found["density"], law.logpdf(RECORDS), **CLOSE)
    behind = stats.multivariate_normal(THETA["mean"], covariance(THETA) + np.diag(NOISE**2))
    np.testing.assert_allclose(found["marginal"], behind.logpdf(RECORDS), **CLOSE)
    mean, precision, degrees, root = (np.asarray(leaf, float) for leaf in found["posterior"])
    np.testing.assert_allclose(root[0] @ root[0].T, SCALE, **CLOSE)
    posterior = log_prior(THETA, mean[1], precision[1], degrees[1], root[1] @ root[1].T)
    evidence = log_prior(THETA, MEAN, 0.5, 5.5, SCALE) + law.logpdf(RECORDS).sum() - posterior
    np.testing.assert_allclose(found["evidence"], [0, evidence], **CLOSE)


@jax.jit
def both_kernels(values: jax.Array, theta: dict[str, jax.Array]) -> tuple[Any, Any]:
    """What the kernels of vectors of one coordinate and of numbers make of the same values."""
    number = mixture.NormalInverseGamma(0.5, 0.3, 1.7, 0.8)
    vector = mixture.NormalInverseWishart([0.5], 0.3, 3.4, [[1.6]])
    of_number, of_vector = statistics(number, values), statistics(vector, values[:, None])
    mean, precision, degrees, root = vector.posterior(*of_vector)
    posterior = (mean[:, 0], precision, degrees / 2, jnp.square(root[:, 0, 0]) / 2)
    one = {"mean": theta["mean"][None], "cholesky": jnp.sqrt(theta["variance"])[None, None]}
    channel = dpjax.Gaussian(0.6)
    marginals = [mixture.find_tractable(channel, component).log_marginal for component in (number, vector)]
    first = (number.posterior(*of_number), number.log_evidence(*of_number))
    second = (posterior, vector.log_evidence(*of_vector))
    densities = (number.log_density(values[0], theta), marginals[0](values[0], theta))
    others = (vector.log_density(values[:1], one), marginals[1](values[:1], one))
    return (*first, *densities), (*second, *others)


@pytest.mark.parametrize("centre", [0.0, pytest.param(1e4, marks=pytest.mark.x64)])
def test_one_coordinate_is_the_univariate_kernel(centre: float) -> None:
    values = jnp.asarray(centre + np.array([0.3, -1.1, 2.0, 0.4]), float)
    theta = {"mean": jnp.asarray(centre, float), "variance": jnp.asarray(1.3, float)}
    number, vector = both_kernels(values, theta)
    # Far from the prior mean both sum squares of the distance, in other units.
    close = CLOSE if centre == 0 else {"rtol": 1e-8, "atol": 1e-10}
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, **close), number, vector)


@jax.jit
def replicate(believed: Any) -> dict[str, jax.Array]:
    """Parameters after an update of prior draws given records drawn from them; half the slots are empty."""
    prior_key, record_key, update_key = jax.random.split(jax.random.key(4), 3)
    theta = BASE.sample_prior(prior_key, 4_000)
    many = {name: jnp.repeat(leaf, 6, axis=0) for name, leaf in theta.items()}
    totals = jax.vmap(BASE.features)(BASE.sample(record_key, many)).reshape(4_000, 6, -1).sum(axis=1)
    filled = jnp.arange(4_000) % 2 == 0
    return believed.update(update_key, theta, jnp.where(filled, 6.0, 0.0), jnp.where(filled[:, None], totals, 0))


def smallest_p_value(theta: dict[str, Any]) -> float:
    """Of projections on a direction: t for the mean, inverse gamma for the covariance, gamma for its inverse."""
    direction, cov = np.array([1.0, -2.0, 0.5]), covariance(theta)
    spread, degrees = direction @ SCALE @ direction, 5.5 - 2
    laws = [
        (np.asarray(theta["mean"]) @ direction, stats.t(degrees, MEAN @ direction, np.sqrt(spread / degrees / 0.5))),
        (direction @ cov @ direction, stats.invgamma(degrees / 2, scale=spread / 2)),
        (
            direction @ np.linalg.inv(cov) @ direction,
            stats.chi2(5.5, scale=direction @ np.linalg.inv(SCALE) @ direction),
        ),
    ]
    return min(stats.kstest(drawn[half::2], law.cdf).pvalue for drawn, law in laws for half in (0, 1))


@pytest.mark.keys
def test_an_update_keeps_the_base_measure() -> None:
    assert smallest_p_value(replicate(BASE)) > REJECT
    assert smallest_p_value(replicate(mixture.NormalInverseWishart(MEAN, 0.5, 6.5, SCALE))) < REJECT


def test_rounding_never_makes_a_scale_indefinite() -> None:
    broken = jnp.array([[[1.0, 3.0], [3.0, 1.0]], [[4.0, 2.0], [2.0, 5.0]]])
    factors = np.asarray(jax.jit(factorize_above_one)(broken))
    assert np.all(np.isfinite(factors))
    np.testing.assert_allclose(factors[1], np.linalg.cholesky(broken[1]), rtol=1e-6)
    records = 1e9 + jnp.asarray(RECORDS, float)
    assert np.all(np.isfinite(closed_forms(records)["evidence"]))


REFUSED = [
    ({"mean": 0.0}, "mean"),
    ({"mean": [0.0, np.nan, 0.0]}, "mean"),
    ({"scale": np.eye(2)}, "scale"),
    ({"scale": -np.eye(3)}, "scale"),
    ({"scale": SCALE + np.triu(np.ones((3, 3)), 1)}, "scale"),
    ({"degrees": 2.0}, "degrees"),
    ({"precision": 0.0}, "precision"),
]


@pytest.mark.parametrize(("change", "argument"), REFUSED)
def test_unusable_base_measures_are_refused(change: dict[str, Any], argument: str) -> None:
    given = {"mean": MEAN, "precision": 0.5, "degrees": 5.5, "scale": SCALE}
    with pytest.raises(ValueError, match=rf"^{argument}: given"):
        mixture.NormalInverseWishart(**(given | change))


def test_records_of_another_length_are_refused() -> None:
    for channel in (None, dpjax.Gaussian(1.0)):
        with pytest.raises(ValueError, match=r"^(values|record\['record'\]): given"):
            mixture.sample(jax.random.key(0), np.zeros((5, 2)), channel, component=BASE, concentration=1.0)
