"""The deconvoluting kernel density estimate of Stefanski and Carroll (1990), with a bootstrap bandwidth.

The kernel has the Fourier transform (1 - t²)³ on [-1, 1], so that the estimate exists for any noise. The bandwidth
is that of Delaigle and Gijbels (2004): it minimises the integrated squared error expected of bootstrap samples, which
has a closed form, from a pilot estimate whose bandwidth takes the records for Normal.
"""

from collections.abc import Callable

import numpy as np

__all__ = ["choose_bandwidth", "estimate_density", "gaussian_noise", "laplace_noise", "no_noise"]

Noise = Callable[[np.ndarray], np.ndarray]
"""The characteristic function of the noise, real and positive."""

FREQUENCIES = 4_000
BANDWIDTHS = 120
NARROWEST, WIDEST = 0.01, 2.0
"""Bandwidths tried, in standard deviations of the released values."""

SMALLEST_SHARE = 0.01
"""The records' variance is taken to be at least this share of that of the released values."""


def laplace_noise(scale: float) -> Noise:
    """The characteristic function of Laplace noise."""
    return lambda frequency: 1 / (1 + (scale * frequency) ** 2)


def gaussian_noise(scale: float) -> Noise:
    """The characteristic function of Gaussian noise; what underflows is far beyond any useful frequency."""
    return lambda frequency: np.exp(-np.minimum((scale * frequency) ** 2 / 2, 300.0))


def no_noise(frequency: np.ndarray) -> np.ndarray:
    """The characteristic function of zero."""
    return np.ones_like(frequency)


def estimate_density(values: np.ndarray, grid: np.ndarray, noise: Noise, bandwidth: float) -> np.ndarray:
    """The estimate of the records' density at the grid [points]; it may be negative."""
    frequency = np.linspace(0, 1 / bandwidth, FREQUENCIES // 2)
    weight = transform(bandwidth * frequency) / noise(frequency)
    waves = np.exp(-1j * np.outer(grid, frequency))
    return np.trapezoid((waves * (weight * characteristic(values, frequency))).real, frequency, axis=1) / np.pi


def choose_bandwidth(values: np.ndarray, noise: Noise, noise_variance: float) -> float:
    """The bootstrap bandwidth."""
    spread, n = float(np.std(values)), len(values)
    frequency = np.linspace(0, 1 / (NARROWEST * spread), FREQUENCIES)
    of_noise = noise(frequency)
    candidates = spread * np.geomspace(NARROWEST, WIDEST, BANDWIDTHS)

    def best(power: np.ndarray) -> float:
        errors = [expected_error(h, frequency, power, of_noise, n) for h in candidates]
        return float(candidates[np.argmin(errors)])

    variance = max(spread**2 - noise_variance, SMALLEST_SHARE * spread**2)
    pilot = best(np.exp(-variance * frequency**2))
    return best(np.abs(characteristic(values, frequency) * transform(pilot * frequency) / of_noise) ** 2)


def expected_error(bandwidth: float, frequency: np.ndarray, power: np.ndarray, of_noise: np.ndarray, n: int) -> float:
    """The mean integrated squared error where the records have this power spectrum, up to a constant."""
    kernel = transform(bandwidth * frequency)
    inside = kernel > 0
    kernel, power, of_noise = kernel[inside], power[inside], of_noise[inside]
    variance = kernel**2 / (n * of_noise**2)
    bias = power * ((1 - 1 / n) * kernel**2 - 2 * kernel)
    return float(np.trapezoid(variance + bias, frequency[inside]))


def transform(frequency: np.ndarray) -> np.ndarray:
    """The Fourier transform of the kernel."""
    return np.maximum(1 - frequency**2, 0) ** 3


def characteristic(values: np.ndarray, frequency: np.ndarray) -> np.ndarray:
    """The empirical characteristic function of the values."""
    return np.mean(np.exp(1j * np.outer(frequency, values)), axis=1)
