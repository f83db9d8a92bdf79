"""Column sums of randomized bits: how many of n persons reported each category."""

from dataclasses import dataclass, field
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_count, fail, is_traced
from dpjax._util.words import amount, quantity
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, Sums, Unpromised, pure
from dpjax.numerics.binomial_sums import log_binomial_sum
from dpjax.numerics.counts import draw_binomial

__all__ = ["ReportSums"]


@frozen_pytree
@dataclass(frozen=True)
class ReportSums(Mechanism):
    """Releases of each count c of n persons Binomial(c, keep) + Binomial(n - c, flip), each column by itself.

    The sums of the bits that n persons reported, as of RAPPOR and other unary encodings. Each bit is 1 with probability
    `keep` where the person counts, and with probability `flip` where not.

    Parameters
    ----------
    keep : [] or [d]
        The probability of a 1 of a person who counts.
    flip : [] or [d]
        The probability of a 1 of any other person.
    n
        The number of persons who reported, as that of the release.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If a probability is not strictly between 0 and 1, both are the same, or n is no whole number of at least 1.

    Notes
    -----
    The log-probability is an exact convolution at any n. The columns are independent given the counts, as the bits of a
    person are given what is true of the person.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> sums = ReportSums(keep=0.75, flip=0.25, n=12)
    >>> round(float(jnp.exp(sums.log_density(jnp.array([9.0]), jnp.array([12.0])))), 4)
    0.2581
    """

    json_name: ClassVar[str | None] = "report_sums"
    integer_noise: ClassVar[bool] = True

    keep: Array | float
    flip: Array | float
    n: int = field(metadata={"static": True})
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        remedy = "Pass the probability of a 1."
        for name in ("keep", "flip"):
            check_array(name, getattr(self, name), lambda array: (array > 0) & (array < 1), "numbers in (0, 1)", remedy)
            object.__setattr__(self, name, as_floating(getattr(self, name)))
        if not is_traced(self.keep, self.flip) and np.any(np.asarray(self.keep) == np.asarray(self.flip)):
            fail("flip", f"{amount(self.flip)}, as keep", "another probability than keep", "Such bits tell nothing.")
        object.__setattr__(self, "n", check_count("n", self.n, "Pass the number of persons who reported."))

    def words(self) -> str:
        """Both probabilities."""
        kept = f"each of {quantity(self.n, 'person')} reported a bit, 1 with probability {amount(self.keep)}"
        return f"{kept} where they count and {amount(self.flip)} where not"

    def promise(self, sums: Sums) -> Promise:
        """That of the bits: of two columns that one person moves between, or of all that they can move."""
        if sums.neighbours != "replace-one":
            raise Unpromised("The number of reports is public.")
        keep, flip = np.asarray(self.keep, float), np.asarray(self.flip, float)
        ones, zeros = np.abs(np.log(keep / flip)), np.abs(np.log((1 - keep) / (1 - flip)))
        if sums.num_bins is not None:
            return pure(float(np.max(ones) + np.max(zeros)))
        return pure(float(np.max(np.maximum(ones, zeros))) * sums.sensitivity(1))

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless each sum is at most n."""
        remedy = "Pass how many persons reported a 1 in each column."
        check_array(argument, value, lambda array: (array >= 0) & (array <= self.n), f"counts up to {self.n}", remedy)

    def near_sums(self, value: Array) -> Array:
        """The unbiased estimates of the counts [d], within 0 and n."""
        return jnp.clip((value - self.n * self.flip) / (self.keep - self.flip), 0, self.n)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability of each sum [..., d] given its count [..., d]."""
        value, count = as_floating(value), as_floating(statistic)
        possible = (count >= 0) & (count <= self.n)
        inside = jnp.where(possible, count, 0)
        keep, flip = (jnp.asarray(one, value.dtype) for one in (self.keep, self.flip))
        total, first, p, q = jnp.broadcast_arrays(value, inside, keep, flip)
        return jnp.where(possible, log_binomial_sum(total, first, self.n - first, p, q, self.n), -jnp.inf)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the sums [d] given the counts [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """The sums [d] of the bits given the counts [d]."""
        counts = as_floating(statistic)
        whole = jnp.clip(jnp.round(counts), 0, self.n).astype(int)
        key_kept, key_flipped = jax.random.split(key)
        kept = draw_binomial(key_kept, whole, jnp.broadcast_to(self.keep, whole.shape))
        flipped = draw_binomial(key_flipped, self.n - whole, jnp.broadcast_to(self.flip, whole.shape))
        return (kept + flipped).astype(counts.dtype)
