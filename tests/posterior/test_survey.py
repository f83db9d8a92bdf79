"""Pseudo-posteriors of weighted regressions against closed forms, their sandwich, and averages over cells."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest

import dpjax
from dpjax.models import formula
from dpjax.posterior.sandwich import variance_of_sum
from tests.adapters.numpyro.conftest import _ranks_and_types_may_differ

__all__ = ["_ranks_and_types_may_differ"]

IS_SINGLE = jnp.zeros(()).dtype == np.float32
RNG = np.random.default_rng(3)
N, SIGMA, WIDE = 60, 1.5, 50.0
X = np.stack([np.ones(N), RNG.normal(size=N)], axis=1)
Y = X @ [1.0, 0.5] + RNG.normal(size=N) * (0.5 + np.abs(X[:, 1]))
WEIGHTS = RNG.gamma(2.0, 1.0, N)
WEIGHTS /= WEIGHTS.mean()
PRECISION = X.T @ (WEIGHTS[:, None] * X) / SIGMA**2 + np.eye(2) / WIDE**2
MEAN = np.linalg.solve(PRECISION, X.T @ (WEIGHTS * Y) / SIGMA**2)


def weighted_regression():
    coef = numpyro.sample("coef", dist.Normal(0.0, WIDE).expand([2]).to_event(1))
    with numpyro.plate("records", N):
        numpyro.sample("y", dist.Normal(jnp.asarray(X) @ coef, SIGMA))


@pytest.fixture(scope="module")
def posterior():
    release = dpjax.Microdata({"y": (Y, dpjax.Exact())}, weights=7.5 * WEIGHTS)
    model = dpjax.from_numpyro(weighted_regression, ["y"])
    return dpjax.sample(jax.random.key(1), model, release, num_warmup=300, num_samples=500, progress=False)


def sandwich_at(coef):
    """The covariance that `svyglm` has for Normal responses, with the prior in both of its parts."""
    scores = WEIGHTS[:, None] * X * ((Y - X @ coef) / SIGMA**2)[:, None]
    variance = N * np.cov(scores.T, ddof=1) + np.eye(2) / WIDE**2
    return np.linalg.inv(PRECISION) @ variance @ np.linalg.inv(PRECISION)


def test_weighted_regression_is_its_closed_form_and_says_what_it_is(posterior):
    """Notices weights that are not scaled to n, and draws that no text calls a pseudo-posterior."""
    sd = np.sqrt(np.diag(np.linalg.inv(PRECISION)))
    table = posterior.summary()
    for place in range(2):
        row = table[f"coef[{place}]"]
        assert abs(row["mean"] - MEAN[place]) < 4.5 * row["mcse_mean"]
        assert abs(row["sd"] - sd[place]) < 4.5 * row["mcse_sd"]
    assert "pseudo-posterior" in posterior.describe()
    assert "pseudo-posterior" in str(table)
    assert "too narrow: see posterior.sandwich()" in str(table)
    with pytest.raises(ValueError, match="posterior: given imputed data sets, of records with survey weights"):
        posterior.completed(jax.random.key(2), 3)
    with pytest.raises(ValueError, match="posterior: given a check of predictions, of records with survey weights"):
        posterior.check(jax.random.key(2), np.max)


def test_sandwich_maps_draws_by_the_two_cholesky_factors(posterior):
    """Notices H and J exchanged, weights counted once or thrice in J, and a map that moves the mean."""
    corrected = posterior.sandwich()
    before, after = (one.draws["coef"].reshape(-1, 2).astype(float) for one in (posterior, corrected))
    centre = before.mean(axis=0)
    narrow, wide = np.linalg.cholesky(np.linalg.inv(PRECISION)), np.linalg.cholesky(sandwich_at(centre))
    expected = centre + (before - centre) @ np.linalg.inv(narrow).T @ wide.T
    np.testing.assert_allclose(after, expected, atol=2e-4 if IS_SINGLE else 1e-9)
    np.testing.assert_allclose(after.std(axis=0), np.sqrt(np.diag(sandwich_at(MEAN))), rtol=0.1)
    assert "corrected by a sandwich, by 60 records" in str(corrected.summary())
    with pytest.raises(ValueError, match="posterior: given one that is corrected already"):
        corrected.sandwich()


def test_variance_of_clusters_in_strata_is_that_of_their_sums():
    """Notices clusters of one name in two strata that are joined, and a wrong factor of a stratum's size."""
    scores = RNG.normal(size=(8, 2))
    strata, clusters = list("aaaabbbb"), [1, 1, 2, 2, 1, 2, 3, 3]
    found, words = variance_of_sum(scores, strata, clusters)
    expected = np.zeros((2, 2))
    for sums in (
        np.stack([scores[:2].sum(0), scores[2:4].sum(0)]),
        np.stack([scores[4], scores[5], scores[6:].sum(0)]),
    ):
        centred, size = sums - sums.mean(axis=0), len(sums)
        expected += size / (size - 1) * centred.T @ centred
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert words == "5 clusters in 2 strata"
    with pytest.raises(ValueError, match="strata: given a stratum of one cluster"):
        variance_of_sum(scores, strata, [1, 1, 1, 1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match=r"clusters: given shape \[3\]"):
        variance_of_sum(scores, None, [1, 2, 3])


PEOPLE = {
    "age": ["old", "young", "old", "young", "mid", "mid"],
    "state": ["A", "A", "B", "B", "C", "A"],
    "size": [3.0, 1.0, 2.0, 5.0, 4.0, 2.0],
}
CELLS = {"age": ["young", "old", "old"], "state": ["B", "A", "B"], "size": [1.0, 2.0, 4.0], "people": [10, 0, 30]}


@pytest.fixture(scope="module")
def polled():
    model = formula("y ~ age + log(size) + (1 | state)", PEOPLE, family="bernoulli")
    release = dpjax.LocalRelease([0, 1, 1, 0, 1, 1], dpjax.RandomizedResponse(0.9, 2), "y")
    return dpjax.sample(jax.random.key(2), model, release, num_warmup=20, num_samples=5, num_chains=2, progress=False)


@pytest.mark.parametrize("names", [["a", None, "b"], [1.0, np.nan, 2.0], pd.array(["a", None, "b"], "string")])
def test_a_record_without_a_cluster_is_refused(names):
    """NaN was a cluster of its own, and None a TypeError of NumPy."""
    for strata, clusters in ((names, None), (None, names)):
        with pytest.raises(ValueError, match=r"(strata|clusters): given no name in place 1; expected a name in each"):
            variance_of_sum(np.eye(3), strata, clusters)


def test_averages_over_cells_are_weighted_predictions_of_each_draw(polled):
    """Notices levels that cells code in another order, and groups that are matched by place in place of name."""
    draws = {name: leaf.reshape(10, *leaf.shape[2:]).astype(float) for name, leaf in polled.draws.items()}
    young, old, effects = draws["age"][:, 1], draws["age"][:, 0], draws["1|state"]
    log_size = np.log(CELLS["size"])[:, None] * draws["log(size)"]
    predictor = draws["Intercept"] + np.stack([young + effects[:, 1], old + effects[:, 0], old + effects[:, 1]])
    means = 1 / (1 + np.exp(-(predictor + log_size)))
    found = polled.poststratify(CELLS, "people")
    close = {"rtol": 1e-4 if IS_SINGLE else 1e-10}
    np.testing.assert_allclose(found.draws.reshape(-1), 0.25 * means[0] + 0.75 * means[2], **close)
    groups = polled.poststratify(CELLS, [10, 20, 30], by="age")
    np.testing.assert_allclose(groups.draws[..., 0].reshape(-1), 0.4 * means[1] + 0.6 * means[2], **close)
    np.testing.assert_allclose(groups.draws[..., 1].reshape(-1), means[0], **close)
    assert groups.summary().rows == ("average[old]", "average[young]")
    assert found.summary().rows == ("average",)


def test_cells_that_the_model_does_not_know_are_refused(polled):
    """Notices a level of cells that takes another one's coefficient, and counts that are none."""
    assert polled.model.entry_labels({})["age"] == (("old", "young"),)
    refused = [
        (CELLS | {"age": ["young", "old", "older"]}, "people", "cells: given 'older' in the column 'age'"),
        (CELLS | {"state": ["B", "A", "D"]}, "people", "cells: given 'D' in the column 'state'"),
        (CELLS, "persons", "counts: given the column 'persons', which cells does not have"),
        (CELLS, [1.0, -1.0, 1.0], "counts: given .*-1"),
        (CELLS, [0, 0, 0], "counts: given no people"),
        (CELLS, 3, r"counts, by: given shapes \[\] and \[\]"),
        ({"age": CELLS["age"]}, [1, 1, 1], "cells: given the columns age, without 'size'"),
        (CELLS | {"size": [1.0, np.nan, 2.0]}, "people", "cells: given 1 missing .*leave these cells out"),
    ]
    for cells, counts, message in refused:
        with pytest.raises(ValueError, match=message):
            polled.poststratify(cells, counts)
    with pytest.raises(ValueError, match="counts: given no people in the group 'A'"):
        polled.poststratify(CELLS, "people", by="state")
    for names in (["a", None, "b"], [1.0, np.nan, 2.0]):
        with pytest.raises(ValueError, match="by: given no name in place 1"):
            polled.poststratify(CELLS, [1, 1, 1], by=names)
