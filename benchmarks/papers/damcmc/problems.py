"""The two problems of the paper: a naive-Bayes log-linear model, and a linear regression, of 100 records each."""

import json
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from problems import regression

INPUTS = json.loads(Path(__file__).with_name("inputs.json").read_text())
"""The true parameters, and the sums of one confidential data set, from the authors' published files."""

N = 100


class Problem(NamedTuple):
    """A model and what is released of it.

    statistic, sensitivity
        What is summed over records, and what the authors divide by ε for the scale of the Laplace noise.
    truth
        The true parameters.
    reported, names
        The parameter whose entries are shown, and their names.
    confidential
        The sums of the authors' confidential data set.
    non_private
        The posterior means given these sums.
    epsilons
        The privacy budgets.
    samplers
        By which it is sampled; see `benchmarks.papers.damcmc.study.SAMPLERS`.
    """

    model: dpjax.Model
    statistic: dpjax.statistics.RecordStatistic
    sensitivity: float
    truth: dict[str, jax.Array]
    reported: str
    names: tuple[str, ...]
    confidential: np.ndarray
    non_private: np.ndarray
    epsilons: tuple[float, ...]
    samplers: tuple[str, ...]

    def release(self, value: np.ndarray, epsilon: float) -> dpjax.Release:
        """What is published of the data set with these noisy sums."""
        return dpjax.Release(value, dpjax.Laplace(self.sensitivity / epsilon), self.statistic, N)


def log_linear() -> Problem:
    """Section 4: five classes, five features of three levels, and Dirichlet(2) priors; 2K is the sensitivity."""
    classes, features, levels = 5, 5, 3
    counts = np.asarray(INPUTS["class_counts"])
    return Problem(
        dpjax.models.naive_bayes(np.full(classes, 2.0), np.full((features, classes, levels), 2.0)),
        dpjax.statistics.class_features(classes, features, levels),
        2.0 * features,
        {name: jnp.asarray(INPUTS[name]) for name in ("class_probabilities", "feature_probabilities")},
        "class_probabilities",
        ("p1", "p2", "p3", "p4", "p5"),
        np.ravel(INPUTS["class_feature_counts"]).astype(float),
        (counts + 2.0) / (N + 2.0 * classes),
        (0.1, 0.3, 1.0, 3.0, 10.0),
        ("paper's",),
    )


def linear_regression() -> Problem:
    """Section 5: two covariates of known law, variance 2, and Normal(0, 2²) coefficients; 13, as in the authors' code.

    The means without noise are those given the clamped sums.
    """
    sums = np.asarray(INPUTS["gram"])
    return Problem(
        regression.make_model(),
        regression.STATISTIC,
        regression.SENSITIVITY,
        {"coef": jnp.asarray(INPUTS["coef"])},
        "coef",
        ("β0", "β1", "β2"),
        sums,
        posterior_mean(sums),
        (0.1, 1.0, 3.0, 10.0, 30.0),
        ("paper's", "default"),
    )


def posterior_mean(sums: np.ndarray) -> np.ndarray:
    """The mean of the coefficients given the sums of records, whose x and y are a tenth of themselves in them."""
    xy = sums[:3] * np.array([10.0, 100.0, 100.0])
    x1, x11, x2, x12, x22 = sums[4:] * np.array([10.0, 100.0, 10.0, 100.0, 100.0])
    gram = np.array([[N, x1, x2], [x1, x11, x12], [x2, x12, x22]])
    variance, tau = regression.INPUTS["sigma2"], regression.INPUTS["tau"]
    return np.linalg.solve(gram / variance + np.eye(3) / tau**2, xy / variance)


PROBLEMS = {"log-linear": log_linear, "regression": linear_regression}
