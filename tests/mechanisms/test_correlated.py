"""Chains given correlated noise, combinations of sums and noise in steps: enumeration, joint distribution."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models, releases, statistics
from dpjax.mechanisms import KNormLinf, MultivariateGaussian, Staircase, Tulap, frozen_pytree
from tests.mechanisms.published import (
    NOISY_ROWS,
    PRIOR,
    ROWS,
    Part,
    check_chains,
    laplace,
    maximum_norm,
    staircase,
    together,
    tulap,
)
from tests.tools import perfect_start

COVARIANCE = np.array([[4.0, 2.0, 1.0, 0.0], [2.0, 3.0, -1.0, 0.5], [1.0, -1.0, 5.0, 1.0], [0.0, 0.5, 1.0, 2.0]])
VALUE = np.array([6.3, 9.1, -0.4, 7.2])
NOISY = Part(dpjax.Laplace(2.0), laplace, NOISY_ROWS, ROWS)
CORRELATED = Part(MultivariateGaussian(COVARIANCE), together(stats.multivariate_normal(np.zeros(4), COVARIANCE)), VALUE)
MAXIMUM = Part(KNormLinf(1.5), maximum_norm(1.5), VALUE)
TULAP = Part(Tulap(1.5), tulap(1.5), VALUE)
STAIRCASE = Part(Staircase(0.8, 1.5, 0.35), staircase(0.8, 1.5, 0.35), VALUE)
COUNTED = {"correlated": CORRELATED, "Tulap": TULAP, "staircase": STAIRCASE}
TABLE = statistics.cells("cell", 4)


@pytest.mark.x32
@pytest.mark.parametrize(
    "name", ["correlated", *(pytest.param(n, marks=pytest.mark.slow) for n in ("Tulap", "staircase"))]
)
def test_counts_agree_with_enumeration(name: str) -> None:
    check_chains([COUNTED[name], NOISY], imputation=dpjax.counts())


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTED)
def test_counts_of_unknown_number_agree(name: str) -> None:
    check_chains([COUNTED[name], NOISY], dpjax.UnknownCount(PRIOR), imputation=dpjax.counts())


@pytest.mark.x32
@pytest.mark.parametrize(
    "part", [pytest.param(CORRELATED, marks=pytest.mark.slow), MAXIMUM], ids=["correlated", "maximum norm"]
)
def test_records_agree_with_enumeration(part: Part) -> None:
    check_chains([part], imputation=dpjax.imwg(), num_samples=8_000)


@pytest.mark.slow
def test_records_of_unknown_number_agree() -> None:
    check_chains([MAXIMUM, NOISY], dpjax.UnknownCount(PRIOR), imputation=dpjax.imwg(), num_samples=8_000)


def log_likelihoods(release: dpjax.Release, tables: np.ndarray) -> np.ndarray:
    """The log-density [t] of a release at tables [t, 4]."""
    cells = [np.repeat(np.arange(4), table) for table in tables]
    return np.array([float(release.log_likelihood({"cell": jnp.asarray(cell)})) for cell in cells])


TABLES = np.array([[5, 3, 1, 2], [2, 6, 0, 3], [0, 1, 9, 1]])
CONTRASTS = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.5, 0.5, -1.0]])
TREE = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 1, 0]], float)


def test_noise_after_combination() -> None:
    value = np.array([10.0, 7.5, 3.0, 4.0, 2.0])
    release = releases.linear(value, dpjax.Laplace(1.5), TABLE, TREE, 11, noise="after")
    expected = stats.laplace.logpdf(value - TABLES @ TREE.T, scale=1.5).sum(axis=1)
    np.testing.assert_allclose(log_likelihoods(release, TABLES), expected, rtol=1e-5)


@pytest.mark.parametrize("noise", [dpjax.Gaussian([1.0, 2.0, 0.5, 1.5]), MultivariateGaussian(COVARIANCE)], ids=repr)
def test_fewer_combinations_of_noisy_sums(noise: dpjax.Mechanism) -> None:
    covariance = COVARIANCE if isinstance(noise, MultivariateGaussian) else np.diag([1.0, 4.0, 0.25, 2.25])
    release = releases.linear([2.0, -1.0], noise, TABLE, CONTRASTS, 11)
    law = stats.multivariate_normal(np.zeros(2), CONTRASTS @ covariance @ CONTRASTS.T)
    np.testing.assert_allclose(
        log_likelihoods(release, TABLES), law.logpdf([2.0, -1.0] - TABLES @ CONTRASTS.T), rtol=1e-5
    )


def test_enough_combinations_give_the_noisy_sums() -> None:
    tree, noisy = np.vstack([TREE, [0, 1, 0, 0]]), np.array([4.0, 3.0, -1.0, 5.0])
    release = releases.linear(tree @ noisy, dpjax.DiscreteLaplace(1.5), TABLE, tree, 11)
    np.testing.assert_allclose(release.value, noisy)
    np.testing.assert_allclose(release.value, np.round(release.value))


def test_sensitivities() -> None:
    tree = statistics.linear(TABLE, TREE)
    columns = np.vstack([TREE.T, np.zeros(5)])
    for norm in (1, 2):
        apart = [np.linalg.norm(one - other, norm) for one in columns for other in columns]
        assert tree.diameter(norm) == pytest.approx(max(apart))
        assert tree.radius(norm) == pytest.approx(max(np.linalg.norm(columns, norm, axis=1)))
    total = statistics.linear(statistics.total("y", [0, 0], [1, 2]), [[1.0, 2.0]])
    assert total.radius(1) >= 5 - 1e-9
    words = dpjax.describe(releases.linear(np.ones(5), dpjax.Laplace(3.0), TABLE, TREE, 11, noise="after"))
    assert "The sum of" not in words
    assert "5 linear combinations of" in words
    assert "ε = 1.333" in words


def test_combinations_of_your_own_function() -> None:
    own = statistics.linear(lambda record: jnp.stack([record["y"]]), [[2.0]])
    assert "a function of your own is not known" in dpjax.describe(dpjax.Release([1.0], dpjax.Laplace(1.0), own, 3))


@frozen_pytree
@dataclass(frozen=True)
class Uncorrelated(MultivariateGaussian):
    """A mutation: only the variances enter the density."""

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return jnp.sum(jax.scipy.stats.norm.logpdf(value, statistic, jnp.sqrt(jnp.diagonal(self.covariance))))


NORMAL = models.normal(models.NormalPrior(0.5, 1.0), variance=1.0)


def both(record: dict) -> jax.Array:
    """A number twice: noise of opposite signs then cancels in the sum of the two."""
    return jnp.stack([record["y"], record["y"]])


def p_value(mechanism: dpjax.Mechanism, law: Any = None) -> float:
    """That perfectly started chains of a Normal mean keep the prior, and the sum of the two noises its law."""
    template = dpjax.Release([0.0, 0.0], mechanism, both, 6)
    ends = perfect_start.run(jax.random.key(3), NORMAL, template, dpjax.imwg(), num_sweeps=6)
    found = perfect_start.parameter_p_value(ends, {"mean": lambda mean: (mean, stats.norm(0.5, 1.0))})
    return found if law is None else min(found, perfect_start.noise_p_value(ends.noise.sum(axis=1, keepdims=True), law))


@pytest.mark.x32
def test_perfect_start() -> None:
    covariance, law = [[20.0, -19.0], [-19.0, 20.0]], stats.norm(0.0, np.sqrt(2.0))
    assert p_value(MultivariateGaussian(covariance), law) > perfect_start.REJECT
    assert p_value(Uncorrelated(covariance), law) < perfect_start.REJECT
    assert p_value(KNormLinf(3.0)) > perfect_start.REJECT
    assert p_value(dpjax.Independent((Staircase(0.5), Tulap(2.0)), (1, 1))) > perfect_start.REJECT


BAD = {
    "numbers that do not fit the matrix": (
        lambda: releases.linear([1.0], dpjax.Gaussian(1.0), TABLE, TREE, 9),
        "value",
    ),
    "a matrix of another width": (
        lambda: releases.linear([1.0], dpjax.Gaussian(1.0), TABLE, [[1.0, 2.0]], 9),
        "matrix",
    ),
    "a vector": (lambda: statistics.linear(TABLE, [1.0, 2.0, 3.0, 4.0]), "matrix"),
    "a missing entry": (lambda: statistics.linear(TABLE, [[1.0, np.nan, 3.0, 4.0]]), "matrix"),
    "no function": (lambda: statistics.linear(3.0, [[1.0]]), "statistic"),
    "noise in between": (
        lambda: releases.linear([1.0, 2.0], dpjax.Gaussian(1.0), TABLE, CONTRASTS, 9, noise="between"),
        "noise",
    ),
    "few combinations of Laplace noise": (
        lambda: releases.linear([1.0, 2.0], dpjax.Laplace(1.0), TABLE, CONTRASTS, 9),
        "mechanism",
    ),
    "rows that follow from each other": (
        lambda: releases.linear([1.0, 2.0], dpjax.Gaussian(1.0), TABLE, [CONTRASTS[0], 2 * CONTRASTS[0]], 9),
        "matrix",
    ),
    "numbers that contradict each other": (
        lambda: releases.linear(np.arange(5.0), dpjax.Gaussian(1.0), statistics.cells("cell", 3), TREE[:, :3], 9),
        "value",
    ),
    "a covariance of another size": (
        lambda: releases.linear([1.0, 2.0], MultivariateGaussian(np.eye(3)), TABLE, CONTRASTS, 9),
        "mechanism",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name: str) -> None:
    call, argument = BAD[name]
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given .*; expected .*\. "):
        call()
