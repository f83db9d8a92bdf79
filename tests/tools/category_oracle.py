"""Posteriors of category probabilities by enumeration over counts, in NumPy alone."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

import dpjax
from dpjax import diagnostics

PRIOR = np.array([1.0, 2.0, 1.5])
MODEL = dpjax.models.categorical(concentration=PRIOR)
MAX_ERRORS, MAX_SPREAD = 4.0, 0.05


class Moments(NamedTuple):
    """Posterior means and standard deviations [c] of the probabilities."""

    mean: np.ndarray
    sd: np.ndarray


def tables(numbers: Iterable[int], size: int) -> np.ndarray:
    """All tables [t, c] of so many records."""
    numbers = tuple(numbers)
    every = np.array(list(product(range(max(numbers) + 1), repeat=size)))
    return every[np.isin(every.sum(axis=1), numbers)]


def moments(
    log_likelihood: Callable[[np.ndarray], float], numbers: Iterable[int], prior: np.ndarray = PRIOR
) -> Moments:
    """Of Dirichlet probabilities given a value of this log-density given a table; all numbers equally likely."""
    every = tables(numbers, len(prior))
    sizes, total = every.sum(axis=1), prior.sum()
    log_prior = gammaln(sizes + 1) - gammaln(every + 1).sum(axis=1) + gammaln(total) - gammaln(total + sizes)
    log_prior += (gammaln(prior + every) - gammaln(prior)).sum(axis=1)
    log_weight = log_prior + np.array([log_likelihood(table) for table in every])
    weight = np.exp(log_weight - logsumexp(log_weight))
    shape, size = prior + every, (total + sizes)[:, None]
    first, second = shape / size, shape * (shape + 1) / (size * (size + 1))
    mean = weight @ first
    return Moments(mean, np.sqrt(weight @ second - mean**2))


def check(draws: np.ndarray, exact: Moments) -> None:
    """Raise unless means are exact within four standard errors, and standard deviations within 5 %."""
    for place in range(draws.shape[-1]):
        column = draws[..., place]
        errors = abs(column.mean() - exact.mean[place]) / diagnostics.mcse_mean(column)
        assert errors < MAX_ERRORS, (place, errors)
        assert abs(column.std() / exact.sd[place] - 1) < MAX_SPREAD, (place, column.std(), exact.sd[place])
