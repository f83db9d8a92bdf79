"""Results of fits, selections and reports that cannot be what they are said to be: the words of each refusal."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.adapters import dppack
from dpjax.mechanisms import IntervalQuantile, NoisyVariance, QuantileScores, Quotient

BOUNDS, FIELD = (0.0, 8.0), {"field": "age", "n": 30}
GOOD = {"eps": 1.0, **FIELD}
FITTED = {"model": "LogisticRegressionDP", "coeff": [1.0], "eps": 1.0, "gamma": 1.0, "perturbation.method": "objective"}

RESULTS_OF_DPPACK = [
    (lambda: dppack.read_mean(4.0, None, **GOOD), "bounds: given None"),
    (lambda: dppack.read_mean(np.nan, BOUNDS, **GOOD), "value: given nan"),
    (lambda: dppack.read_mean(4.0, BOUNDS, **GOOD | {"eps": 0.0}), "eps: given 0.0"),
    (lambda: dppack.read_mean(4.0, BOUNDS, **GOOD | {"n": 3.5}), "n: given 3.5"),
    (lambda: dppack.read_mean(4.0, BOUNDS, mechanism="laplace", **GOOD), "mechanism: given 'laplace'"),
    (lambda: dppack.read_mean(4.0, BOUNDS, mechanism="Gaussian", delta=0.1, **GOOD), "type_dp: given type.DP 'aDP'"),
    (lambda: dppack.read_mean(4.0, BOUNDS, delta=-0.1, **GOOD), "delta: given"),
    (lambda: dppack.read_var(-4.0, BOUNDS, **GOOD), "value: given"),
    (lambda: dppack.read_sd(-4.0, BOUNDS, **GOOD), "value: given -4.0"),
    (lambda: dppack.read_histogram([1, 2], **GOOD), "published: given list"),
    (lambda: dppack.read_histogram({"breaks": [0, 1], "counts": [0.5]}, **GOOD), "counts: given"),
    (lambda: dppack.read_histogram({"breaks": [0, 1], "counts": [1, 2]}, **GOOD), "counts: given shape [2]"),
    (lambda: dppack.read_histogram({"breaks": [1, 1], "counts": [1]}, **GOOD), "breaks: given"),
    (lambda: dppack.read_table([1, 2], ("a", "b"), eps=1.0, n=4), "published: given"),
    (lambda: dppack.read_table([1, 2], "a", eps=1.0, n=4, which_sensitivity="both"), "which_sensitivity: given 'both'"),
    (lambda: dppack.read_table([-1, 2], "a", eps=1.0, n=4), "value: given"),
    (lambda: dppack.read_quantile(9.0, 0.5, BOUNDS, num_bins=8, **GOOD), "value: given"),
    (lambda: dppack.read_model({"model": "LinearRegressionDP"}, [0], [1], n=9), "fitted: given LinearRegressionDP: it"),
    (lambda: dppack.read_model({"coeff": [1]}, [0], [1], n=9), "fitted: given a mapping without model"),
    (lambda: dppack.read_model({"model": "LogisticRegressionDP"}, [0], [1], n=9), "fitted: given no coeff, eps, gamma"),
    (
        lambda: dppack.read_model(FITTED | {"perturbation.method": "output"}, [0], [1], n=9),
        "fitted: given perturbation.method output",
    ),
    (lambda: dppack.read_model(FITTED | {"eps": -1.0}, [0], [1], n=9), "fitted.eps: given -1.0"),
    (lambda: dppack.read_model(FITTED | {"gamma": -1.0}, [0], [1], n=9), "fitted.gamma: given -1.0"),
    (lambda: dppack.read_model(FITTED, [0, 1], [1, 2], n=9), "lower_bounds, upper_bounds: given"),
    (lambda: dppack.read_model(FITTED, [1], [0], n=9), "lower_bounds, upper_bounds: given"),
]

LOGISTIC = statistics.Logistic()


def objective(
    loss: Any = LOGISTIC,
    coefficients: Any = (0.4, 1.1),
    noise: Any = None,
    regularization: Any = 0.5,
    n: Any = 5,
) -> dpjax.Release:
    noise = dpjax.Gaussian(0.9) if noise is None else noise
    return dpjax.releases.objective_perturbation(coefficients, loss, noise=noise, regularization=regularization, n=n)


OBJECTIVES = [
    ({"coefficients": [np.nan, 1.0]}, "coefficients: given float64[2] [nan, 1.0]; expected finite numbers"),
    ({"coefficients": [[1.0]]}, "coefficients: given"),
    ({"coefficients": "theta"}, "coefficients: given"),
    ({"loss": 3.0}, "loss: given 3.0; expected a hashable function"),
    ({"loss": statistics.Logistic}, "loss: given the class Logistic; expected an instance"),
    ({"noise": dpjax.Laplace(1.0)}, "noise: given Laplace; expected a VectorLaplace or a Gaussian"),
    ({"noise": 1.0}, "noise: given 1.0; expected a VectorLaplace or a Gaussian"),
    ({"noise": dpjax.Gaussian([1.0, 1.0, 1.0])}, "noise.scale: given shape [3]; expected shape [] or [2]"),
    ({"regularization": -1.0}, "regularization: given -1.0; expected finite numbers of at least 0"),
    ({"regularization": [1.0, 1.0, 1.0]}, "regularization: given shape [3]; expected shape [] or [2]"),
    ({"regularization": None}, "regularization: given"),
    ({"n": 2.5}, "n: given 2.5"),
]

NUMERATOR, DENOMINATOR = statistics.grouped("cell", [-1, -1, 0]), statistics.grouped("cell", [-1, 0, 0])


def quotient(value=(0.7,), numerator=NUMERATOR, denominator=DENOMINATOR, top=None, bottom=None, n=7):
    noises = {"numerator_noise": top or dpjax.Laplace(1.0), "denominator_noise": bottom or dpjax.Laplace(1.0)}
    return dpjax.releases.quotient(value, numerator, denominator, **noises, n=n)


QUOTIENTS = [
    (lambda: quotient(value=[np.nan]), "value: given"),
    (lambda: quotient(value=[[0.7]]), "value: given shape [1, 1]; expected a vector"),
    (lambda: quotient(value=[0.7, 0.2]), "numerator: given 1 coordinates; expected 2, one for each quotient"),
    (lambda: quotient(numerator=statistics.cells("cell", 3)), "numerator: given 3 coordinates; expected 1"),
    (lambda: quotient(denominator=statistics.cells("cell", 3)), "denominator: given 3 coordinates; expected 1"),
    (lambda: quotient(numerator=lambda record: record["y"]), "numerator: given"),
    (lambda: quotient(denominator="count"), "denominator: given"),
    (
        lambda: quotient(bottom=dpjax.Staircase(1.0, 1.0, 0.3)),
        "denominator: given Staircase; expected a dpjax.Gaussian",
    ),
    (lambda: quotient(top=dpjax.DiscreteLaplace(1.0)), "numerator: given DiscreteLaplace"),
    (lambda: quotient(top=dpjax.Exact()), "numerator: given Exact"),
    (
        lambda: quotient(top=dpjax.Laplace([1.0, 2.0])),
        "numerator_noise.scale: given shape [2]; expected shape [] or [1]",
    ),
    (lambda: quotient(n=0), "n: given 0"),
    (lambda: Quotient(dpjax.Laplace(1.0), dpjax.Laplace(1.0), 0), "size: given 0; expected a whole number >= 1"),
    (lambda: Quotient(dpjax.Laplace(1.0), dpjax.Laplace(1.0), privacy=1.0), "privacy: given 1.0"),
    (
        lambda: dpjax.Release([0.7], Quotient(dpjax.Laplace(1.0), dpjax.Laplace(1.0)), statistics.cells("cell", 3), 7),
        "statistic: given 3 coordinates; expected 2: 1 numerator, then as many denominators",
    ),
]

quantile, interval = dpjax.releases.quantile, dpjax.releases.interval_quantile
OPTIONS = {"candidates": [0.0, 1.0, 2.0], "field": "y", "epsilon": 1.0, "n": 30}
ENDS = {"lower": 0.0, "upper": 4.0, "num_bins": 8, "field": "y", "epsilon": 1.0, "n": 30}
CELLS = statistics.cells("cell", 3)
MIDDLE = IntervalQuantile(0.4, 0.0, 1.0, epsilon=1.5)


def identity(statistic: jax.Array) -> jax.Array:
    return statistic


def matrix(statistic: jax.Array) -> jax.Array:
    return statistic[None] * 1.0


SELECTIONS = [
    (lambda: quantile(0.5, 0.5, **OPTIONS), "value: given 0.5; expected one of the 3 candidates"),
    (lambda: quantile(np.nan, 0.5, **OPTIONS), "value: given nan; expected a finite number"),
    (lambda: quantile(1.0, 1.0, **OPTIONS), "probability: given 1.0; expected a number in (0, 1)"),
    (lambda: quantile(1.0, 0.5, **OPTIONS | {"candidates": [1.0]}), "candidates: given (1.0,); expected inc"),
    (lambda: quantile(1.0, 0.5, **OPTIONS | {"candidates": [1.0, 0.0]}), "candidates: given (1.0, 0.0); expected inc"),
    (lambda: quantile(1.0, 0.5, **OPTIONS | {"candidates": 1}), "candidates: given 1; expected a whole number >= 2"),
    (lambda: quantile(1.0, 0.5, **OPTIONS | {"epsilon": 0.0}), "epsilon: given 0.0; expected finite numbers above 0"),
    (lambda: quantile(1.0, 0.5, **OPTIONS, sensitivity=-1.0), "sensitivity: given -1.0; expected finite numbers"),
    (lambda: quantile(1.0, 0.5, **OPTIONS, noise="normal"), "noise: given 'normal'; expected one of"),
    (lambda: quantile(1.0, 0.5, **OPTIONS | {"field": 3}), "field: given 3; expected the name of a record field"),
    (lambda: quantile(1.0, 0.5, **OPTIONS | {"n": 0}), "n: given 0; expected a whole number >= 1"),
    (lambda: interval(5.0, 0.5, **ENDS), "value: given 5.0; expected a number from 0 to 4"),
    (lambda: interval(1.0, 0.5, **ENDS | {"upper": -1.0}), "upper: given -1.0; expected a number above lower"),
    (lambda: interval(1.0, 0.5, **ENDS | {"num_bins": 0}), "num_bins: given 0; expected a whole number >= 1"),
    (lambda: interval(1.0, 0.0, **ENDS), "probability: given 0.0; expected a number in (0, 1)"),
    (lambda: interval(1.0, 0.5, **ENDS | {"lower": np.inf}), "lower: given inf; expected a finite number"),
    (lambda: dpjax.Release([0.5], MIDDLE, statistics.cells("cell", 2), 9), "statistic: given 2 counts; expected at"),
    (lambda: dpjax.ExponentialMechanism([1.0], 1.0, 1.0), "utilities: given [1.0]; expected a hashable function"),
    (lambda: dpjax.ExponentialMechanism(QuantileScores, 1.0, 1.0), "utilities: given the class QuantileScores;"),
    (lambda: QuantileScores(0.5, 1), "num_candidates: given 1; expected a whole number >= 2"),
    (
        lambda: dpjax.Release([3], dpjax.PermuteAndFlip(identity, 1.0, 1.0), CELLS, 9),
        "value: given 3.0; expected a whole",
    ),
    (
        lambda: dpjax.Release([0.5], dpjax.PermuteAndFlip(identity, 1.0, 1.0), CELLS, 9),
        "value: given 0.5; expected the",
    ),
    (
        lambda: dpjax.Release([0, 1], dpjax.PermuteAndFlip(identity, 1.0, 1.0), CELLS, 9),
        "value: given shape [2]; expected",
    ),
    (
        lambda: dpjax.Release([0], dpjax.PermuteAndFlip(matrix, 1.0, 1.0), CELLS, 9),
        "utilities: given shape [1, 3]; exp",
    ),
    (
        lambda: dpjax.Release([0], dpjax.PermuteAndFlip(QuantileScores(0.5, 4), 1.0, 1.0), CELLS, 9),
        "statistic: given shape [3]; expected shape [9] or [4]",
    ),
    (lambda: statistics.around("y", [1.0, 1.0]), "points: given (1.0, 1.0); expected increasing numbers"),
]

LEVELS = np.array([[[True, False, True], [True, True, True]], [[True, True, False], [False, True, False]]])

POSSIBLE_LEVELS = [
    (LEVELS[0], "possible: given bool[2, 3]; expected flags [2, 2, 3], at least one True"),
    (LEVELS.astype(int), "possible: given int64[2, 2, 3]; expected flags [2, 2, 3]"),
    (LEVELS & False, "possible: given no level of feature 0 in class 0; expected flags"),
]

POSSIBLE_CELLS = [
    ({"possible": [True, False, True]}, "possible: given bool[3]; expected 4 flags, one for each cell"),
    ({"possible": [1, 0, 1, 1]}, "possible: given int64[4]; expected 4 flags"),
    ({"possible": [True, False, False, False]}, "possible: given 1 possible cells; expected 4 flags"),
    (
        {"possible": [True, False, True, True], "shape": (2, 2)},
        "shape: given (2, 2); expected None beside impossible cells",
    ),
]

SUMS = COUNTS = statistics.grouped("cell", [0, 0, 1, 1])


def moments(
    mean: Any = (0.65, 0.44), variance: Any = (0.1, 0.1), count: Any = (2.0, 5.0), sums: Any = SUMS, squares: Any = SUMS
) -> dpjax.Release:
    """What a fitted Gaussian naive Bayes model publishes."""
    noises = {
        "sum_noise": dpjax.Laplace(0.4),
        "square_noise": dpjax.Laplace(0.3),
        "count_noise": dpjax.DiscreteLaplace(0.8),
    }
    return dpjax.releases.moments(mean, variance, count, sums=sums, squares=squares, counts=COUNTS, **noises, n=6)


MOMENTS = [
    ({"mean": None}, "mean: given None; expected the published numbers. A variance alone has no density here"),
    ({"count": [0.0, 3.0]}, "count: given float"),
    ({"mean": [0.3]}, "mean: given shape [1]; expected shape [2], as count"),
    ({"variance": [0.1, np.inf]}, "variance: given"),
    ({"sums": statistics.cells("cell", 4)}, "sums: given 4 coordinates; expected 2, one for each group"),
    ({"squares": abs}, "squares: given"),
    ({"count": [2.5, 4.0]}, "value[4:6]: given"),
]

LOGS = np.log(np.full((3, 2), 0.5))
BITS = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1]])


def log_of(matrix: np.ndarray) -> np.ndarray:
    return np.log(matrix, out=np.full(matrix.shape, -np.inf), where=matrix > 0)


REPORTS = [
    (lambda: dpjax.LocalChannel(LOGS.T), "log_probabilities: given rows of probabilities that sum to float64[2] [1.5"),
    (lambda: dpjax.LocalChannel(LOGS[0]), "log_probabilities: given shape [2]; expected a matrix [c, m]"),
    (lambda: dpjax.LocalChannel(LOGS[:1]), "log_probabilities: given shape [1, 2]; expected a matrix [c, m]"),
    (lambda: dpjax.LocalChannel(LOGS * np.nan), "log_probabilities: given float64[3, 2] [nan"),
    (lambda: dpjax.LocalChannel("matrix"), "log_probabilities: given"),
    (lambda: dpjax.LocalChannel(log_of(np.eye(3)[:2])), "log_probabilities: given report 2 impossible in every"),
    (lambda: dpjax.LocalChannel(LOGS, 1), "complete: given 1; expected True or False"),
    (lambda: dpjax.LocalRelease([0, 2], dpjax.LocalChannel(LOGS)), "values: given int"),
    (lambda: dpjax.LocalRelease([0.0, 1.0], dpjax.LocalChannel(LOGS)), "values: given an array of float"),
    (
        lambda: dpjax.Release([1, 0, 1], dpjax.LocalChannel(LOGS), statistics.cells("cell", 3), 4),
        "mechanism: given LocalChannel;",
    ),
    (lambda: dpjax.releases.likelihoods(LOGS[0]), "log_likelihoods: given shape [2]; expected a matrix [n, c]"),
    (lambda: dpjax.releases.likelihoods([[-np.inf, -np.inf]]), "log_likelihoods: given [-inf, -inf] of person 0"),
    (lambda: dpjax.releases.likelihoods([[0.0, 1.0], [np.nan, 1.0]]), "log_likelihoods: given [nan, 1.0] of person 1"),
    (
        lambda: dpjax.releases.unary_encoding([[2, 0]], keep=0.7, flip=0.2),
        "bits: given int64[1, 2] [2, 0]; expected bits",
    ),
    (lambda: dpjax.releases.likelihoods(LOGS, people=[0, 2, 2]), "people: given no report of person 1"),
    (lambda: dpjax.releases.likelihoods(LOGS, people=[0, 1]), "people: given int64[2]; expected who made each of 3"),
    (lambda: dpjax.releases.likelihoods(LOGS, people=[0.0, 1.0, 1.0]), "people: given float64[3]"),
    (lambda: dpjax.releases.likelihoods(LOGS, largest_ratio=-1.0), "largest_ratio: given -1.0"),
    (lambda: dpjax.releases.subset_selection([[1, 0, 0], [1, 1, 0]], keep=0.8), "subsets: given subsets of [1, 2]"),
    (lambda: dpjax.releases.subset_selection([[1, 1]], keep=0.8), "subsets: given subsets of [2] of 2 categories"),
    (lambda: dpjax.releases.subset_selection([[2, 0]], keep=0.8), "subsets: given"),
    (lambda: dpjax.releases.subset_selection([1, 0], keep=0.8), "subsets: given"),
    (lambda: dpjax.releases.local_hashing([3], [[0, 1]], keep=0.6, num_values=3), "reports: given"),
    (lambda: dpjax.releases.local_hashing([1], [[0, 3]], keep=0.6, num_values=3), "hashes: given"),
    (lambda: dpjax.releases.local_hashing([1, 1], [[0, 1]], keep=0.6, num_values=3), "reports, hashes: given shapes"),
    (lambda: dpjax.releases.local_hashing([0], [[0, 0]], keep=0.6, num_values=1), "num_values: given 1"),
    (lambda: dpjax.releases.hadamard_response([4], keep=0.7, num_categories=3), "reports: given int64[1]"),
    (lambda: dpjax.releases.hadamard_response([0.5], keep=0.7, num_categories=3), "reports: given float64[1]"),
    (lambda: dpjax.releases.hadamard_response([0], keep=0.0, num_categories=3), "keep: given 0.0"),
    (lambda: dpjax.releases.unary_encoding(BITS, keep=1.0, flip=0.2), "keep: given 1.0; expected a number in (0, 1)"),
    (lambda: dpjax.releases.unary_encoding(BITS, keep=0.7, flip=0.0), "flip: given 0.0; expected a number in (0, 1)"),
]

POSITIVE = dpjax.Truncated(dpjax.Laplace(0.6), lower=0.0)


def variance(noise: Any = POSITIVE, value: Any = 0.4, degrees: Any = 5, n: Any = 6) -> dpjax.Release:
    return dpjax.releases.variance(value, noise, field="cell", lower=0.0, upper=2.0, n=n, degrees=degrees)


VARIANCES = [
    (lambda: variance(value=[0.3, 0.4]), "value: given 2 numbers; expected one variance"),
    (lambda: variance(value=-0.1), "value: given"),
    (lambda: variance(n=1, degrees=1), "n: given 1; expected a whole number >= 2"),
    (lambda: variance(n=dpjax.UnknownCount(dpjax.models.UniformCount(3, 4))), "n: given"),
    (lambda: variance(noise=0.5), "noise: given 0.5"),
    (lambda: variance(degrees=0), "degrees: given 0"),
    (lambda: statistics.powers("y", 1.0, 1.0), "upper: given"),
    (lambda: statistics.powers("y", None, 1.0), "lower: given None"),
    (
        lambda: dpjax.Release([0.4], NoisyVariance(POSITIVE, 6, 6), statistics.total("cell", 0, 2), 6),
        "statistic: given 1 coordinates; expected 2: distances and their squares",
    ),
    (
        lambda: dpjax.Release([0.4], NoisyVariance(POSITIVE, 6, 6), statistics.powers("cell", 0, 2), 7),
        "n: given 7; expected 6, as NoisyVariance has",
    ),
    (
        lambda: dpjax.joint(
            *[dpjax.Release([0.4], NoisyVariance(POSITIVE, 6, 6), statistics.powers("cell", 0, 2), 9)] * 2
        ),
        "n: given 9; expected 6, as NoisyVariance has",
    ),
]

CASES: list[tuple[Callable[[], object], str]] = [
    *RESULTS_OF_DPPACK,
    *[(partial(objective, **options), message) for options, message in OBJECTIVES],
    *QUOTIENTS,
    *SELECTIONS,
    *[
        (partial(models.naive_bayes, [1.5, 1.0], np.ones((2, 2, 3)), possible=possible), message)
        for possible, message in POSSIBLE_LEVELS
    ],
    *[(partial(models.categorical, [1.0, 2.0, 1.5, 0.8], **options), message) for options, message in POSSIBLE_CELLS],
    *[(partial(moments, **options), message) for options, message in MOMENTS],
    *REPORTS,
    *VARIANCES,
]


@pytest.mark.parametrize(("call", "message"), CASES, ids=[message for _, message in CASES])
def test_what_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        call()
