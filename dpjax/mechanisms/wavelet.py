"""The Haar wavelet channel: noisy wavelet coefficients of one value in the unit interval."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_count, check_number, check_positive_number, fail
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.additive import Laplace, checked_scale
from dpjax.mechanisms.base import Mechanism, as_floating, noise_and_value
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, pure, smallest

__all__ = ["HaarWavelet", "haar_scale", "haar_sensitivity"]


def haar_sensitivity(resolution: int) -> float:
    """The L1 sensitivity of all Haar coefficients of levels 0, ..., J of one value in [0, 1].

    Two values in different halves differ in one coefficient of level 0 and two of every finer one:
    2 Σ_j 2^(j/2) = 2 (2^((J+1)/2) - 1) / (√2 - 1).

    Parameters
    ----------
    resolution
        The highest level J.

    Raises
    ------
    TypeError, ValueError
        If the resolution is not a whole number of at least 0.

    Examples
    --------
    >>> from dpjax.mechanisms.wavelet import haar_sensitivity
    >>> haar_sensitivity(3)
    14.49
    """
    level = check_count("resolution", resolution, "Pass the finest level J.", least=0)
    return 2 * (2 ** ((level + 1) / 2) - 1) / (sqrt(2) - 1)


def haar_scale(epsilon: float, resolution: int, calibration: Literal["tight", "paper"] = "tight") -> float:
    """The scale of the Laplace noise that makes the Haar channel ε-locally private.

    Parameters
    ----------
    epsilon
        The budget of one record.
    resolution
        The finest level J.
    calibration
        ``"tight"`` is sensitivity / ε. ``"paper"`` is 12 √2 / (√2 - 1) 2^(J/2) / ε of Butucea, Dubois, Kroll and
        Saumard (2020, equation 3.1). That is twelve times as much noise as is needed for this basis at J = 1, eight
        times at J = 3, and towards six times at larger ones.

    Raises
    ------
    ValueError
        If ε is not finite and positive, or the calibration is not one of the two.

    Examples
    --------
    >>> from dpjax.mechanisms.wavelet import haar_scale
    >>> haar_scale(epsilon=2.0, resolution=3)
    7.24
    """
    check_positive_number("epsilon", epsilon)
    tight = haar_sensitivity(resolution) / epsilon
    if calibration == "tight":
        return float(tight)
    if calibration != "paper":
        fail("calibration", repr(calibration), "'tight' or 'paper'", "Name one of the two.")
    return float(12 * sqrt(2) / (sqrt(2) - 1) * 2 ** (resolution / 2) / epsilon)


@frozen_pytree
@dataclass(frozen=True)
class HaarWavelet(Mechanism):
    """Releases the Haar coefficients of a value in [0, 1], each with Laplace noise of the same scale.

    The coefficients are ψ_jk(y) for levels j = 0, ..., J and 0 <= k < 2^j, level by level: 2^(J+1) - 1 numbers. The
    father coefficient is constant and not released. Values outside the interval have the coefficients of its ends.

    Parameters
    ----------
    scale : []
        The scale of the noise; `haar_scale` computes one.
    resolution
        The finest level J.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If the scale is not finite and positive, or the resolution is not a whole number of at least 0.

    Notes
    -----
    Equation 3 of Beraha, Favaro and Rao (2025), whose k runs to 2^j - 1.

    Examples
    --------
    >>> import dpjax
    >>> channel = dpjax.mechanisms.HaarWavelet(dpjax.mechanisms.haar_scale(epsilon=2.0, resolution=3), resolution=3)
    """

    json_name: ClassVar[str | None] = "haar_wavelet"

    scale: Array | float
    resolution: int = field(metadata={"static": True})
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        check_number("scale", self.scale)
        object.__setattr__(self, "scale", checked_scale(self.scale, "haar_scale(epsilon, resolution) computes one."))
        check_count("resolution", self.resolution, "Pass the finest level J.", least=0)

    def _words(self) -> str:
        """The noise of the coefficients, and how many levels these have."""
        return f"Laplace of scale {amount(self.scale)} on Haar coefficients to level {self.resolution}"

    def _local_promise(self, num_coordinates: int) -> Promise:
        """ε = Δ₁ / b of all coefficients."""
        del num_coordinates
        return pure(haar_sensitivity(self.resolution) / smallest(self.scale))

    def _noise_and_sum(self, value: np.ndarray, n: int, radius: float | None) -> tuple[float, float]:
        """The scale, and the largest value."""
        del n, radius
        return noise_and_value(self.scale, value)

    @property
    def num_coefficients(self) -> int:
        """How many numbers are released for one value."""
        return 2 ** (self.resolution + 1) - 1

    def coefficients(self, statistic: Array) -> Array:
        """The coefficients [2^(J+1) - 1] of a value []."""
        value = as_floating(statistic)
        last = 2 ** (self.resolution + 1) - 1
        leaf = jnp.clip(jnp.floor(value * (last + 1)), 0, last).astype(int)
        return jnp.concatenate([self._level(level, leaf, value.dtype) for level in range(self.resolution + 1)])

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the released coefficients [2^(J+1) - 1] given the value []."""
        return Laplace(self.scale).log_density(value, self.coefficients(statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """Released coefficients [2^(J+1) - 1] of the value []."""
        return Laplace(self.scale).sample(key, self.coefficients(statistic))

    def _level(self, level: int, leaf: Array, dtype: Any) -> Array:
        """ψ_jk [2^j] for all k, at the interval of width 2^-(J+1) with this number []."""
        shift = self.resolution - level
        half = leaf >> shift
        sign = 1 - 2 * (half & 1)
        inside = jnp.arange(2**level) == half >> 1
        return jnp.where(inside, sign, 0).astype(dtype) * 2 ** (level / 2)
