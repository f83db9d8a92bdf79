"""What a mechanism says of noise that is added to each coordinate, and of the tails of its values."""

from collections.abc import Callable
from typing import Any, NamedTuple

from dpjax.base import Array, Key

__all__ = ["AddedNoise", "Tails"]


def unknown() -> None:
    """What is not known."""


class Tails(NamedTuple):
    """The probabilities beyond a bound, so that values can be clamped or rounded there.

    Attributes
    ----------
    log_cdf
        ``noise -> [..., d]``: the log-probability of values at most this far from the statistic [..., d].
    log_survival
        ``noise -> [..., d]``: the log-probability of values at least this far from it.

    Examples
    --------
    >>> import dpjax, jax
    >>> round(float(dpjax.Laplace(2.0).tails.log_survival(jax.numpy.array(0.0))), 3)
    -0.693
    """

    log_cdf: Callable[[Array], Array]
    log_survival: Callable[[Array], Array]


class AddedNoise(NamedTuple):
    """Noise that is added to a statistic, independent between its coordinates and of the statistic.

    Attributes
    ----------
    log_density
        ``noise -> [..., d]``: the log-density of each coordinate's noise [..., d]. Each parameter is [] or [d]; columns
        [d, m] are asked for as in `dpjax.mechanisms.Mechanism.log_density_terms`.
    sample
        ``(key, shape, dtype) -> noise``: draws of the noise.
    scale
        ``() -> [] or [d]``: its scale; None if it is not known. The user is warned if that is too small for single
        precision.
    variance
        ``() -> [] or [d]``: its variance; None if it is not known.
    is_normal
        Whether the noise is N(0, scale²).
    is_scale_mixture
        Whether the noise is N(0, 2 scale² e), where e is standard Exponential.
    is_unimodal
        Whether its density never rises away from 0. Then sums far from a value are known to be unlikely.
    bends
        The lengths within which its log-density bends; None if they are not known.
    smoothed
        ``() -> mechanism``: one with real noise of the same variance, if the noise is whole.
    log_marginal_normal
        ``(value, mean, scale) -> [...]``: the log-density of the released value if the statistic is y ~ N(mean,
        scale²), elementwise.
    sample_latent_normal
        ``(key, value, mean, scale) -> y``: a draw of that statistic given the released value.

    Examples
    --------
    >>> import dpjax
    >>> float(dpjax.Gaussian(2.0).noise.variance())
    4.0
    """

    log_density: Callable[[Array], Array]
    sample: Callable[[Key, tuple[int, ...], Any], Array] | None = None
    scale: Callable[[], Any] = unknown
    variance: Callable[[], Any] = unknown
    is_normal: bool = False
    is_scale_mixture: bool = False
    is_unimodal: bool = False
    bends: tuple[Any, ...] | None = None
    smoothed: Callable[[], Any] | None = None
    log_marginal_normal: Callable[[Array, Array, Array], Array] | None = None
    sample_latent_normal: Callable[[Key, Array, Array, Array], Array] | None = None
