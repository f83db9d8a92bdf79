"""Records follow the law that the density states, for parameters far from each other and for wrong ones not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests.models.cases import CASES, COVARIANCE, COVARIATES

NUM_RECORDS = 20_000
REJECT = 1e-4

REGRESSION = {"coef": [0.5, -1.0, 2.0], "variance": 0.7}
NAIVE_BAYES = {
    "class_probabilities": [0.2, 0.5, 0.3],
    "feature_probabilities": [[[0.1, 0.9], [0.4, 0.6], [0.8, 0.2]], [[0.5, 0.5], [0.05, 0.95], [0.3, 0.7]]],
}
PARAMETERS = {
    "normal, variance": {"mean": -1.0, "variance": 4.0},
    "regression, variance": REGRESSION,
    "categorical": {"probabilities": [0.1, 0.25, 0.05, 0.6]},
    "naive Bayes": NAIVE_BAYES,
    "dirichlet": {"shape": [0.4, 1.0, 5.0]},
    "exponential": {"rate": 3.0},
    "beta": {"a": 0.3, "b": 2.5},
}
WRONG = {
    "normal, variance": {"mean": -1.0, "variance": 5.0},
    "regression, variance": REGRESSION | {"coef": [0.5, -1.0, 2.2]},
    "categorical": {"probabilities": [0.1, 0.2, 0.05, 0.65]},
    "naive Bayes": NAIVE_BAYES | {"class_probabilities": [0.25, 0.45, 0.3]},
    "dirichlet": {"shape": [0.4, 1.3, 5.0]},
    "exponential": {"rate": 3.5},
    "beta": {"a": 0.35, "b": 2.5},
}


def sample(name: str, parameters: dict) -> dict:
    arrays = jax.tree.map(lambda value: jnp.asarray(value, float), parameters, is_leaf=lambda v: isinstance(v, list))
    draw = jax.jit(lambda key, point: CASES[name].sample_records(key, point, NUM_RECORDS))
    return jax.tree.map(lambda field: np.asarray(field, np.float64), draw(jax.random.key(21), arrays))


def independent_p_value(columns: list[np.ndarray], laws: list) -> float:
    """The smallest p-value of columns that should follow these laws, corrected for their number, and independently."""
    p_values = [stats.kstest(column, law).pvalue for column, law in zip(columns, laws, strict=True)]
    correlations = np.corrcoef(columns)[np.triu_indices(len(columns), 1)] if len(columns) > 1 else np.zeros(1)
    p_values += list(2 * stats.norm.sf(np.abs(correlations) * np.sqrt(NUM_RECORDS)))
    return min(p_values) * len(p_values)


def regression_p_value(parameters: dict, records: dict) -> float:
    """Each field given those before it, by the textbook's conditional Normal laws."""
    (first, second), y = records["x"].T, records["y"]
    mean, (top, bottom) = np.asarray(COVARIATES["covariate_mean"]), COVARIANCE
    slope = bottom[0] / top[0]
    coef = parameters["coef"]
    columns = [
        (first - mean[0]) / np.sqrt(top[0]),
        (second - mean[1] - slope * (first - mean[0])) / np.sqrt(bottom[1] - slope * top[1]),
        (y - coef[0] - coef[1] * first - coef[2] * second) / np.sqrt(parameters["variance"]),
    ]
    return independent_p_value(columns, [stats.norm.cdf] * 3)


def chi_square(index: np.ndarray, probabilities: np.ndarray) -> float:
    counts = np.bincount(index, minlength=probabilities.size)
    return stats.chisquare(counts, probabilities.ravel() * NUM_RECORDS).pvalue


def naive_bayes_p_value(parameters: dict, records: dict) -> float:
    classes, (first, second) = np.asarray(parameters["class_probabilities"]), parameters["feature_probabilities"]
    table = np.einsum("i,ij,ik->ijk", classes, first, second)
    fields = records["class"].astype(int), *records["features"].astype(int).T
    return chi_square(np.ravel_multi_index(fields, table.shape), table)


def dirichlet_p_value(parameters: dict, records: dict) -> float:
    shape, shares = parameters["shape"], records["share"]
    columns = [shares[:, 0], shares[:, 1] / (shares[:, 1] + shares[:, 2])]
    return independent_p_value(columns, [stats.beta(shape[0], sum(shape[1:])).cdf, stats.beta(*shape[1:]).cdf])


P_VALUES = {
    "normal, variance": lambda p, r: stats.kstest(r["y"], stats.norm(p["mean"], p["variance"] ** 0.5).cdf).pvalue,
    "regression, variance": regression_p_value,
    "categorical": lambda p, r: chi_square(r["cell"].astype(int), np.asarray(p["probabilities"])),
    "naive Bayes": naive_bayes_p_value,
    "dirichlet": dirichlet_p_value,
    "exponential": lambda p, r: stats.kstest(r["y"], stats.expon(scale=1 / p["rate"]).cdf).pvalue,
    "beta": lambda p, r: stats.kstest(r["y"], stats.beta(p["a"], p["b"]).cdf).pvalue,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_records_follow_their_law(name: str) -> None:
    records = sample(name, PARAMETERS[name])
    assert P_VALUES[name](PARAMETERS[name], records) > REJECT
    assert P_VALUES[name](WRONG[name], records) < REJECT


def test_shares_and_proportions_stay_inside_their_range() -> None:
    shares = sample("dirichlet", {"shape": [0.01, 0.01, 0.01]})["share"]
    assert shares.min() > 0
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-5)
    proportions = sample("beta", {"a": 0.01, "b": 0.01})["y"]
    assert proportions.min() > 0
    assert proportions.max() < 1
