"""Likelihoods of small releases by enumeration, quadrature and plain simulation, in NumPy alone."""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize, special, stats

Likelihood = Callable[[np.ndarray], float]


class Truth(NamedTuple):
    """The maximum [k], the inverse of the information there [k, k], and the log-likelihood."""

    maximum: np.ndarray
    covariance: np.ndarray
    log_likelihood: float


def find_maximum(likelihood: Likelihood, start: np.ndarray, step: float = 0.05) -> Truth:
    """The maximum, with the information by second differences."""
    options = {"xatol": 1e-5, "fatol": 1e-9, "maxiter": 2_000}
    found = optimize.minimize(lambda point: -likelihood(point), start, method="Nelder-Mead", options=options)
    at, size = found.x, len(start)
    moves = step * np.eye(size)

    def second(a: np.ndarray, b: np.ndarray) -> float:
        corners = [sign * other * likelihood(at + sign * a + other * b) for sign, other in product((1, -1), repeat=2)]
        return sum(corners) / (4 * step**2)

    information = -np.array([[second(a, b) for b in moves] for a in moves])
    return Truth(at, np.linalg.inv(information), -found.fun)


def sums_of_squares(record: dict) -> jax.Array:
    return jnp.stack([record["y"], record["y"] ** 2])


def normal_likelihood(value: np.ndarray, scale: np.ndarray, n: int, nodes: int = 250) -> Likelihood:
    """That of (mean, log variance) from noisy sums of Normal records and their squares, by their independent laws."""
    shares = (np.arange(nodes) + 0.5) / nodes

    def likelihood(point: np.ndarray) -> float:
        variance = np.exp(point[1])
        means = stats.norm.ppf(shares, point[0], np.sqrt(variance / n))[:, None]
        squares = variance * stats.chi2.ppf(shares, n - 1)[None] + n * means**2
        distance = np.abs(value[0] - n * means) / scale[0] + np.abs(value[1] - squares) / scale[1]
        return float(special.logsumexp(-distance) - 2 * np.log(nodes) - np.log(4 * np.prod(scale)))

    return likelihood


def table_likelihood(value: np.ndarray, scale: float, n: int) -> Likelihood:
    """That of log-ratios of probabilities from a table with two-sided geometric noise, by all tables of n records."""
    tables = np.array([table for table in product(range(n + 1), repeat=len(value)) if sum(table) == n])
    log_noise = np.sum(np.log(np.tanh(0.5 / scale)) - np.abs(value - tables) / scale, axis=1)
    coefficient = special.gammaln(n + 1) - np.sum(special.gammaln(tables + 1), axis=1)

    def likelihood(ratios: np.ndarray) -> float:
        log_probability = special.log_softmax(np.append(ratios, 0.0))
        return float(special.logsumexp(log_noise + coefficient + tables @ log_probability))

    return likelihood


def responses(record: dict) -> jax.Array:
    return jnp.stack([record["y"], record["x"][0] * record["y"]])


def regression_likelihood(value: np.ndarray, scale: float, n: int, draws: int = 200_000) -> Likelihood:
    """That of intercept and slope from noisy sums of y and x y, by the same draws of covariates and errors for all."""
    rng, sums = np.random.default_rng(5), []
    for _ in range(10):
        x, e = rng.standard_normal((2, draws // 10, n))
        sums.append(np.stack([x.sum(1), (x**2).sum(1), e.sum(1), (x * e).sum(1)]))
    x, squares, errors, products = np.concatenate(sums, axis=1)

    def likelihood(coef: np.ndarray) -> float:
        first, second = coef[0] * n + coef[1] * x + errors, coef[0] * x + coef[1] * squares + products
        distance = (np.abs(value[0] - first) + np.abs(value[1] - second)) / scale
        return float(special.logsumexp(-distance) - np.log(len(x)) - 2 * np.log(2 * scale))

    return likelihood
