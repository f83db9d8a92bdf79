"""Numbers published by agencies, in two tellings: a release of dpjax, and probabilities in NumPy that know none of it.

A 2 × 2 table of a Dirichlet prior, with noisy row totals beside it, is small enough to enumerate.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import dpjax
from dpjax import diagnostics, models, statistics
from tests.data_augmentation.counts import oracle

LogProbability = Callable[[np.ndarray, np.ndarray], np.ndarray]

ALPHA = np.array([0.8, 2.0, 1.0, 1.5])
ROWS, COLUMNS = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
N, SIZES = 22, range(10, 41)
PRIOR = models.UniformCount(10, 40)
NOISE, NOISY_ROWS = 2.0, np.array([12, 8])
MAX_Z, MAX_RATIO = 4.0, 1.05


class Published(NamedTuple):
    """Sums [d] of counts, as a matrix [d, c], and the log-probability [t, d] of their value [d] given sums [t, d]."""

    matrix: np.ndarray
    value: np.ndarray
    log_probability: LogProbability

    def log_likelihood(self, tables: np.ndarray) -> np.ndarray:
        """The log-probability [t] of the value given each table [t, c]."""
        return self.log_probability(self.value, tables @ self.matrix.T).sum(axis=1)


class Part(NamedTuple):
    """A mechanism and its law, and what it published of which groups of cells."""

    mechanism: Any
    law: LogProbability
    value: np.ndarray
    groups: np.ndarray = np.arange(4)

    def release(self, n: Any) -> dpjax.Release:
        """In dpjax."""
        return dpjax.Release(self.value, self.mechanism, statistics.grouped("cell", self.groups), n)

    def seen(self) -> Published:
        """In NumPy."""
        return Published((self.groups == np.arange(self.groups.max() + 1)[:, None]).astype(int), self.value, self.law)


def laplace(value: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Laplace noise, in logarithms."""
    return -np.abs(value - sums) / NOISE - np.log(2 * NOISE)


def random_rounding(base: int) -> LogProbability:
    """Down with probability 1 - r / b, up with r / b, in logarithms."""

    def log_probability(value: np.ndarray, sums: np.ndarray) -> np.ndarray:
        rest = sums % base
        down, up = value == sums - rest, value == sums - rest + base
        with np.errstate(divide="ignore"):
            return np.log(down * (1 - rest / base) + up * (rest / base))

    return log_probability


def exact(value: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """No noise at all."""
    return np.where(value == sums, 0.0, -np.inf)


def posterior_of(parts: list[Part], n: Any) -> oracle.Tables:
    """By enumeration."""
    seen: list[Any] = [part.seen() for part in parts]
    if isinstance(n, int):
        return oracle.enumerate_tables(n, ALPHA, seen)
    return oracle.enumerate_sizes(oracle.uniform_size(SIZES[0], SIZES[-1]), SIZES, ALPHA, seen)


def tally(state: Any) -> jax.Array:
    """The table [c] of a state, whichever form it is kept in."""
    records = state.latent.records
    if "counts" in records:
        return records["counts"][0]
    cell = jnp.ravel(records["cell"])
    present = jnp.arange(len(cell)) < jnp.ravel(records.get("num_records", len(cell)))
    return jnp.sum((cell[None] == jnp.arange(4)[:, None]) & present[None], axis=1)


def check_chains(parts: list[Part], n: Any = N, *, seed: int = 1, num_samples: int = 4_000, **choices: Any) -> None:
    """Raise unless the chains' counts and probabilities have the means and deviations that enumeration gives them."""
    releases = [part.release(n) for part in parts]
    release = releases[0] if len(releases) == 1 else dpjax.joint(*releases)
    options = {"num_warmup": 300, "num_samples": num_samples, "progress": False, "collect": tally} | choices
    found = dpjax.sample(jax.random.key(seed), models.categorical(ALPHA), release, **options)
    law = posterior_of(parts, n)
    check_moments(np.asarray(found.collected, float), *law.counts())
    check_moments(np.asarray(found.draws["probabilities"]), *law.shares(ALPHA))


def check_moments(draws: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> None:
    """Raise unless draws [chain, draw, c] have these means and standard deviations."""
    for place in range(len(mean)):
        drawn = draws[..., place]
        if deviation[place] < 1e-9:
            np.testing.assert_allclose(drawn, mean[place])
            continue
        assert abs(drawn.mean() - mean[place]) < MAX_Z * diagnostics.mcse_mean(drawn)
        assert 1 / MAX_RATIO < drawn.std() / deviation[place] < MAX_RATIO


def rounded_laplace(scale: float, step: float) -> LogProbability:
    """Laplace noise, then rounded, in logarithms."""

    def log_probability(value: np.ndarray, sums: np.ndarray) -> np.ndarray:
        low, high = value - step / 2 - sums, value + step / 2 - sums
        return np.log(stats.laplace.cdf(high, scale=scale) - stats.laplace.cdf(low, scale=scale))

    return log_probability


def truncated_lattice(scale: float, lower: int) -> LogProbability:
    """Discrete Laplace noise, drawn anew until the value is at least this, in logarithms."""
    law = stats.dlaplace(1 / scale)
    return lambda value, sums: law.logpmf(value - sums) - np.log(1 - law.cdf(lower - 1 - sums))


def cell_keys(table: np.ndarray) -> LogProbability:
    """By a table of probabilities, whose last row holds for larger counts by the difference; in logarithms."""

    def chance(value: int, count: int) -> float:
        row = min(count, len(table) - 1)
        place = value - count + row
        return table[row, place] if 0 <= place < table.shape[1] else 0.0

    def log_probability(value: np.ndarray, sums: np.ndarray) -> np.ndarray:
        value = np.broadcast_to(value, sums.shape)
        with np.errstate(divide="ignore"):
            return np.log(np.vectorize(chance)(value.astype(int), sums.astype(int)))

    return log_probability


def suppression(limit: int, least: int) -> LogProbability:
    """-1 in place of counts from `least` to `limit` - 1, in logarithms."""
    return lambda value, sums: np.where(value == np.where((sums >= least) & (sums < limit), -1, sums), 0.0, -np.inf)


def together(law: Any) -> LogProbability:
    """Noise on all sums together, of a frozen distribution of SciPy, in logarithms."""
    return lambda value, sums: np.reshape(law.logpdf(value - sums), (-1, 1))


def maximum_norm(scale: float) -> LogProbability:
    """Noise of density proportional to exp(-max |u| / scale), in logarithms."""
    return lambda value, sums: -np.max(np.abs(value - sums), axis=1, keepdims=True) / scale


def tulap(scale: float) -> LogProbability:
    """Discrete Laplace noise and a uniform number, in logarithms."""
    return lambda value, sums: stats.dlaplace(1 / scale).logpmf(np.rint(value - sums))


def staircase(epsilon: float, width: float, share: float) -> LogProbability:
    """Noise whose density falls in steps, in logarithms up to a constant."""

    def log_probability(value: np.ndarray, sums: np.ndarray) -> np.ndarray:
        steps, rest = np.divmod(np.abs(value - sums) / width, 1)
        return -epsilon * (steps + (rest >= share))

    return log_probability
