"""Convergence diagnostics of Markov chain draws (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021).

Every function takes draws [chain, draw, ...], at least four per chain, and returns one float64 number for each trailing
entry [...]. It is NaN where a draw is not finite and, except for standard errors, where all draws are equal. Arithmetic
is numpy's, whatever JAX's configuration.

ArviZ's functions give the same numbers, but take seconds to import. BlackJAX's 1.7 are compiled for each shape, compute
in JAX's precision, and differ by up to 16 % for tied draws and 3 % for alternating ones.
"""

from functools import partial

import numpy as np
import scipy

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_share, fail, read_numbers

__all__ = [
    "ess_bulk",
    "ess_mean",
    "ess_quantile",
    "ess_tail",
    "mcse_mean",
    "mcse_quantile",
    "mcse_sd",
    "split_r_hat",
]

TAIL_PROBABILITIES = (0.05, 0.95)

CENTRAL_LEVELS = (0.1586553, 0.8413447)
"""Normal probabilities one standard deviation below and above the mean."""


@names_arguments
def split_r_hat(draws: np.ndarray) -> np.ndarray:
    """Rank-normalised split R-hat: the larger of the values for location and for scale (section 4.1).

    It is close to 1 if the halves of all chains agree; values above 1.01 show disagreement. For chains that never move
    it is infinite if they differ, and NaN if all draws are equal.

    Parameters
    ----------
    draws
        Draws [chain, draw, ...].

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> float(dpjax.diagnostics.split_r_hat(np.random.default_rng(1).normal(size=(4, 500))))
    1.00
    """
    halves = split_chains(check_draws(draws))
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    # The folded value is NaN if all draws are equally far from their median.
    return np.fmax(r_hat(rank_normalize(halves)), r_hat(rank_normalize(folded)))


@names_arguments
def ess_bulk(draws: np.ndarray) -> np.ndarray:
    """The effective sample size of rank-normalised draws, for the bulk of the distribution (section 4.3).

    Parameters
    ----------
    draws
        Draws [chain, draw, ...].

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> bool(dpjax.diagnostics.ess_bulk(np.random.default_rng(1).normal(size=(4, 500))) > 1_500)
    True
    """
    return nan_if_constant(draws, effective_sample_size(rank_normalize(split_chains(check_draws(draws)))))


@names_arguments
def ess_tail(draws: np.ndarray) -> np.ndarray:
    """The smaller effective sample size of the 5 % and 95 % quantiles (section 4.3).

    Parameters
    ----------
    draws
        Draws [chain, draw, ...].

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> bool(dpjax.diagnostics.ess_tail(np.random.default_rng(1).normal(size=(4, 500))) > 1_000)
    True
    """
    return np.minimum(*(ess_quantile(draws, probability) for probability in TAIL_PROBABILITIES))


@names_arguments
def ess_mean(draws: np.ndarray) -> np.ndarray:
    """The effective sample size of the mean of the draws.

    Parameters
    ----------
    draws
        Draws [chain, draw, ...].

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> bool(dpjax.diagnostics.ess_mean(np.random.default_rng(1).normal(size=(4, 500))) > 1_500)
    True
    """
    return nan_if_constant(draws, size_for_mean(draws))


@names_arguments
def ess_quantile(draws: np.ndarray, probability: float) -> np.ndarray:
    """The effective sample size of a quantile: that of the indicator of draws below it.

    Parameters
    ----------
    draws
        Draws [chain, draw, ...].
    probability
        The probability of the quantile.

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> bool(dpjax.diagnostics.ess_quantile(np.random.default_rng(1).normal(size=(4, 500)), 0.9) > 1_500)
    True
    """
    draws = check_draws(draws)
    check_share("probability", probability, "Pass the probability of the quantile.")
    below = draws <= np.quantile(draws, probability, axis=(0, 1))
    size = effective_sample_size(split_chains(below.astype(float)))
    return nan_if_constant(draws, np.where(all_finite(draws), size, np.nan))


@names_arguments
def mcse_mean(draws: np.ndarray) -> np.ndarray:
    """The Monte Carlo standard error of the mean.

    Parameters
    ----------
    draws
        Draws [chain, draw, ...].

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> bool(0.015 < dpjax.diagnostics.mcse_mean(np.random.default_rng(1).normal(size=(4, 500))) < 0.03)
    True
    """
    return np.std(check_draws(draws), axis=(0, 1), ddof=1) / np.sqrt(size_for_mean(draws))


@names_arguments
def mcse_sd(draws: np.ndarray) -> np.ndarray:
    """The Monte Carlo standard error of the standard deviation, from that of the variance by the delta method.

    Parameters
    ----------
    draws
        Draws [chain, draw, ...].

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> bool(0.01 < dpjax.diagnostics.mcse_sd(np.random.default_rng(1).normal(size=(4, 500))) < 0.02)
    True
    """
    draws = check_draws(draws)
    squares = (draws - np.mean(draws, axis=(0, 1))) ** 2
    variance = np.mean(squares, axis=(0, 1))
    variance_of_variance = np.var(squares, axis=(0, 1)) / size_for_mean(squares)
    return np.sqrt(safe_divide(variance_of_variance, 4 * variance))


@names_arguments
def mcse_quantile(draws: np.ndarray, probability: float) -> np.ndarray:
    """The Monte Carlo standard error of a quantile: half the width of its central 68 % interval (appendix).

    Parameters
    ----------
    draws
        Draws [chain, draw, ...].
    probability
        The probability of the quantile.

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> bool(0.02 < dpjax.diagnostics.mcse_quantile(np.random.default_rng(1).normal(size=(4, 500)), 0.5) < 0.04)
    True
    """
    draws = check_draws(draws)
    ess = ess_quantile(draws, probability)
    ordered = np.sort(draws.reshape(-1, *draws.shape[2:]), axis=0)
    size = len(ordered)
    counts = ess * probability, ess * (1 - probability)
    bounds = [scipy.stats.beta.ppf(level, counts[0] + 1, counts[1] + 1) * size - 1 for level in CENTRAL_LEVELS]
    low = np.floor(np.fmax(bounds[0], 0)).astype(int)
    high = np.ceil(np.fmin(bounds[1], size - 1)).astype(int)
    width = np.take_along_axis(ordered, high[None], axis=0)[0] - np.take_along_axis(ordered, low[None], axis=0)[0]
    return np.where(all_finite(draws), width / 2, np.nan)


def size_for_mean(draws: np.ndarray) -> np.ndarray:
    """The effective sample size of the mean; the number of draws if all are equal, so that the error is zero."""
    return effective_sample_size(split_chains(check_draws(draws)))


def nan_if_constant(draws: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """The estimate, NaN if all draws are equal: constants and chains that cannot move look alike."""
    return np.where(np.ptp(check_draws(draws), axis=(0, 1)) == 0, np.nan, estimate)


def effective_sample_size(chains: np.ndarray) -> np.ndarray:
    """The number of independent draws with the same variance of the mean, by Geyer's initial monotone sequence.

    Sums of adjacent autocorrelations are added while they are positive, each capped by those before it (section 3.2).
    """
    num_chains, num_draws = chains.shape[:2]
    correlations = autocorrelations(chains)
    last = max((num_draws - 3) // 2, 0)
    even = correlations[0 : 2 * last + 1 : 2]
    pairs = even + correlations[1 : 2 * last + 2 : 2]
    negative = pairs <= 0
    stop = np.where(np.any(negative, axis=0), np.argmax(negative, axis=0), last)
    before = np.arange(last + 1).reshape(-1, *(1,) * stop.ndim) < stop
    total = np.sum(np.where(before, np.minimum.accumulate(pairs, axis=0), 0.0), axis=0)
    even_at_stop = np.take_along_axis(even, stop[None], axis=0)[0]
    time = -1 + 2 * total + np.maximum(even_at_stop, 0.0)
    size = num_chains * num_draws
    constant = np.ptp(chains, axis=(0, 1)) < np.finfo(float).resolution
    # The bound keeps the sizes of antithetic chains finite.
    return np.where(constant, float(size), size / np.maximum(time, 1 / np.log10(size)))


def autocorrelations(chains: np.ndarray) -> np.ndarray:
    """The autocorrelation at every lag [draw, ...], of all chains together (equation 10)."""
    num_chains, num_draws = chains.shape[:2]
    means = np.mean(chains, axis=1, keepdims=True)
    length = scipy.fft.next_fast_len(2 * num_draws, real=True)
    spectrum = np.abs(scipy.fft.rfft(chains - means, n=length, axis=1)) ** 2
    covariances = np.mean(scipy.fft.irfft(spectrum, n=length, axis=1)[:, :num_draws], axis=0) / num_draws
    within = covariances[0] * num_draws / (num_draws - 1)
    between = np.var(means[:, 0], axis=0, ddof=1) if num_chains > 1 else 0.0
    result = 1 - safe_divide(within - covariances, covariances[0] + between)
    result[0] = 1.0
    return result


def r_hat(chains: np.ndarray) -> np.ndarray:
    """The square root of the pooled over the within-chain variance (equation 4)."""
    num_draws = chains.shape[1]
    within = np.mean(np.var(chains, axis=1, ddof=1), axis=0)
    between = np.var(np.mean(chains, axis=1), axis=0, ddof=1)
    ratio = np.sqrt((num_draws - 1) / num_draws + safe_divide(between, within))
    return np.where((within == 0) & (between > 0), np.inf, ratio)


def rank_normalize(draws: np.ndarray) -> np.ndarray:
    """The normal scores of the draws' ranks among all chains (equation 14); NaN if a draw is not finite."""
    size = draws.shape[0] * draws.shape[1]
    ranks = average_ranks(draws.reshape(size, *draws.shape[2:]).T).T.reshape(draws.shape)
    return np.where(all_finite(draws), scipy.special.ndtri((ranks - 3 / 8) / (size + 1 / 4)), np.nan)


@partial(np.vectorize, otypes=[float], signature="(n)->(n)")
def average_ranks(values: np.ndarray) -> np.ndarray:
    """The ranks [n] from 1 on, and their average if values are equal: scipy.stats takes half a second to import."""
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right") + 1) / 2


def split_chains(draws: np.ndarray) -> np.ndarray:
    """The first and last halves of each chain as separate chains; an odd middle draw is left out."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def all_finite(draws: np.ndarray) -> np.ndarray:
    """Which trailing entries have only finite draws."""
    return np.all(np.isfinite(draws), axis=(0, 1))


def safe_divide(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """The ratio, NaN if the denominator is zero."""
    return numerator / np.where(denominator == 0, np.nan, denominator)


def check_draws(draws: np.ndarray) -> np.ndarray:
    """The draws as a float64 array [chain, draw, ...], NaN in every entry if a draw is not finite."""
    expected = "[chain, draw, ...] with at least 4 draws"
    draws = read_numbers("draws", draws, expected, "Pass the draws of one parameter.").astype(float)
    if draws.ndim < 2 or draws.shape[1] < 4:
        fail("draws", f"shape {list(draws.shape)}", expected, "Draw more.")
    return np.where(all_finite(draws), draws, np.nan)
