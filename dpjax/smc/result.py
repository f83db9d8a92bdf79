"""The result of tempered sequential Monte Carlo, with standard errors from the variation between islands."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import numpy as np

from dpjax._util.spelling import names_methods
from dpjax._util.validation import check_count, check_key
from dpjax.base import Key
from dpjax.diagnostics.frames import Labels
from dpjax.diagnostics.summary import QUANTILES, Summary, check_quantiles, quantile_name, tabulate
from dpjax.importance import quantile_function


@names_methods
@dataclass(frozen=True, eq=False)
class SMCSample:
    """Draws from p(parameters | release) by independent islands of particles.

    Parameters
    ----------
    draws
        Parameters, derived and reported quantities [island, particle, ...], of equal weight within an island.
    log_weights
        The islands' normalised log-weights [island]; weights are proportional to their estimates of p(release value).
    log_marginal_likelihood
        log p(release value).
    log_marginal_likelihood_error
        Its standard error, from the variation between islands, by the delta method. With M islands, the difference from
        the truth in these units has Student's distribution of M − 1 degrees of freedom. So 8 islands are off by more
        than 2.4 of them once in twenty times.
    temperatures
        The power of the release's density after each step [island, step], which is the inverse temperature. NaN if
        an island took fewer steps, as in the next three.
    effective_sample_sizes
        The effective sample size of each step before resampling [island, step].
    log_increments
        The logarithm of the mean weight of each step [island, step], of the first with the prior probability that the
        density is positive.
    acceptance_rates
        The fraction of imputation proposals accepted in each step [island, step].
    num_nonfinite
        The number of weights, proposals and moves [island, step] rejected because of a non-finite density, parameter or
        record.
    labels
        The names of the entries of the draws, where levels have names.

    Examples
    --------
    >>> import dpjax
    >>> import jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> sample = dpjax.sample_smc(jax.random.key(1), model, release, num_particles=50, num_islands=4, progress=False)
    >>> sample.draws["mean"].shape, sample.log_weights.shape
    ((4, 50), (4,))
    """

    draws: dict[str, np.ndarray]
    log_weights: np.ndarray
    log_marginal_likelihood: float
    log_marginal_likelihood_error: float
    temperatures: np.ndarray
    effective_sample_sizes: np.ndarray
    log_increments: np.ndarray
    acceptance_rates: np.ndarray
    num_nonfinite: np.ndarray
    labels: Labels = field(default_factory=dict, kw_only=True)

    def summary(self, *, quantiles: Sequence[float] = QUANTILES) -> Summary:
        """Mean, sd and quantiles of every parameter, and their standard errors (``se_...``) between islands.

        Parameters
        ----------
        quantiles
            The probabilities of the quantiles, such as ``(0.05, 0.5, 0.95)`` for intervals of 90 %.
        """
        weights = np.exp(self.log_weights)
        figures = {name: summarize_islands(draws, weights, quantiles) for name, draws in self.draws.items()}
        return tabulate(figures, labels=self.labels)

    def resample(self, key: Key, num_samples: int) -> dict[str, np.ndarray]:
        """Draws [num_samples, ...] of equal weight from all islands, taken with replacement."""
        check_key("key", key)
        check_count("num_samples", num_samples)
        island_key, particle_key = jax.random.split(key)
        islands = jax.random.categorical(island_key, self.log_weights, shape=(num_samples,))
        num_particles = next((draws.shape[1] for draws in self.draws.values()), 1)
        chosen = np.asarray(islands), np.asarray(jax.random.randint(particle_key, (num_samples,), 0, num_particles))
        return {name: draws[chosen] for name, draws in self.draws.items()}


def relative_error(weights: np.ndarray) -> float:
    """The relative standard error of the islands' mean, given their normalised weights [island]."""
    return float(np.sqrt(np.sum((weights - 1 / len(weights)) ** 2) * correction(weights)))


def correction(weights: np.ndarray) -> float:
    """M / (M − 1) for M islands, as their variance is taken about their own mean."""
    return len(weights) / (len(weights) - 1)


def summarize_islands(
    draws: np.ndarray, weights: np.ndarray, quantiles: Sequence[float] = QUANTILES
) -> dict[str, np.ndarray]:
    """Summary statistics of one parameter's draws [island, particle, ...] and their standard errors, each [...].

    Each is a ratio of sums over islands; errors are by the delta method, with islands as independent units.
    """
    draws = np.asarray(draws, float)

    def average(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means = np.mean(values, axis=1)
        mean = np.tensordot(weights, means, 1)
        return mean, np.sqrt(np.tensordot(weights**2, (means - mean) ** 2, 1) * correction(weights))

    mean, mean_error = average(draws)
    variance, variance_error = average((draws - mean) ** 2)
    sd = np.sqrt(variance)
    sd_error = variance_error / (2 * np.where(sd > 0, sd, np.nan))
    figures = {"mean": mean, "sd": sd, "se_mean": mean_error, "se_sd": sd_error}
    num_islands, num_particles = draws.shape[:2]
    each = np.repeat(weights / num_particles, num_particles)
    at = quantile_function(draws.reshape(num_islands * num_particles, *draws.shape[2:]), each)
    for level in check_quantiles(quantiles):
        quantile = at(np.full(draws.shape[2:], level))
        _, share_error = average(draws <= quantile)
        name, half_width = quantile_name(level), (at(level + share_error) - at(level - share_error)) / 2
        figures[name], figures[f"se_{name}"] = quantile, half_width
    return figures
