"""Quotients of noisy real sums by a noisy whole count that was kept secret, as means and variances by query engines."""

from dataclasses import dataclass, field
from math import ceil
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_count, describe, fail, is_traced, name_of
from dpjax._util.words import quantity
from dpjax.base import Array, Key
from dpjax.mechanisms.additive import Gaussian, Laplace
from dpjax.mechanisms.base import Mechanism, as_floating, noise_and_value
from dpjax.mechanisms.censored import Censored
from dpjax.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums, smallest
from dpjax.mechanisms.quotient import GAUSSIAN_REACH, LAPLACE_REACH, MOST_REACH, check_noise
from dpjax.numerics.quotients import by_geometric_sums, kink, log_sum_over_whole

__all__ = ["CountQuotient"]

REAL, WHOLE = (Gaussian, Laplace), (DiscreteGaussian, DiscreteLaplace)
PURE = (Laplace, DiscreteLaplace)
"""Noise that promises ε of the L1 sensitivity, the others ρ of the L2 sensitivity."""


@frozen_pytree
@dataclass(frozen=True)
class CountQuotient(Mechanism):
    """Releases (A + u) / (B + v) for one or several noisy real sums A + u over the same noisy whole count B + v.

    The statistic is k numerators for each of several sums, then the k counts. The value is the k quotients of each sum.
    No noisy sum and no noisy count is published. All noise is independent.

    Parameters
    ----------
    numerators
        The noise of each sum: a `dpjax.Gaussian` or a `dpjax.Laplace`, with a scale [] or [k].
    denominator
        The noise of the counts: a `dpjax.DiscreteLaplace` or a `dpjax.DiscreteGaussian`. If noisy counts were clamped
        before the division, that noise in `dpjax.mechanisms.Censored` with ``lower=1``; or ``lower=0``, if a quotient
        by 0 was not published.
    size
        The number k of counts.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If noise is of another kind, has another number of scales, or on the counts a scale that is too large.

    Notes
    -----
    The density is the sum over whole m of P(v = m − B) and, for each sum, |m| f(r m − A). One Laplace sum over discrete
    Laplace noise has a closed form. Else it is added up about the modes at positive and at negative m, as far as the
    noise of the count reaches. What is cut off is below exp(−40) of the largest density that the noise can have.

    Examples
    --------
    >>> from dpjax.mechanisms import CountQuotient
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> mechanism = CountQuotient((dpjax.Laplace(4.0),), dpjax.DiscreteLaplace(1.0))
    >>> round(float(mechanism.log_density(jnp.array([2.1]), jnp.array([80.0, 40.0]))), 3)
    0.67
    """

    json_name: ClassVar[str | None] = "count_quotient"

    numerators: tuple[Any, ...]
    denominator: Any
    size: int = field(default=1, metadata={"static": True})
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)
    reach: int = field(init=False, default=0, repr=False, metadata={"static": True})

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        size = check_count("size", self.size, "Pass the number of counts.")
        if not (isinstance(self.numerators, (list, tuple)) and self.numerators):
            remedy = "Pass the noise of each sum that was divided."
            fail("numerators", describe(self.numerators), "a tuple of mechanisms", remedy, error=TypeError)
        object.__setattr__(self, "numerators", tuple(self.numerators))
        for noise in self.numerators:
            check_noise("numerator", noise, size, REAL)
        check_clamp(self.denominator)
        check_noise("denominator", self._count_noise, size, WHOLE)
        if is_traced(self._count_noise):
            remedy = "How far the noise reaches follows from its scale: build it outside jit and vmap."
            fail("denominator", "a traced scale", "numbers", remedy, error=TypeError)
        width = LAPLACE_REACH if isinstance(self._count_noise, DiscreteLaplace) else GAUSSIAN_REACH
        reach = ceil(width * float(np.max(np.asarray(self._count_noise.scale)))) + 1
        if reach > MOST_REACH:
            remedy = "If the noisy count was published, release it and the noisy sums."
            fail("denominator", f"noise that reaches {reach}", f"at most {MOST_REACH}", remedy)
        object.__setattr__(self, "reach", reach)

    @property
    def value_size(self) -> int:
        """The number of quotients."""
        return len(self.numerators) * self.size

    @property
    def sums(self) -> PossibleSums:
        """The counts are whole."""
        return PossibleSums(whole=lambda size: (slice(self.value_size, size),))

    @property
    def _count_noise(self) -> Any:
        """The noise of the counts, before they were clamped."""
        return self.denominator.mechanism if isinstance(self.denominator, Censored) else self.denominator

    def _json_fields(self) -> dict[str, Any]:
        """What the JSON text holds beside the name: the reach follows from it."""
        return {name: value for name, value in super()._json_fields().items() if name != "reach"}

    def _check_drawn(self, argument: str, value: Array, dimension: int) -> None:
        """Raise unless the statistic has k numerators of each sum, and k counts."""
        del argument, value
        if dimension != self.value_size + self.size:
            expected = f"{self.value_size + self.size}: {quantity(self.value_size, 'numerator')}, then the counts"
            fail("statistic", f"{dimension} coordinates", expected, "Use dpjax.releases.quotient.")

    def _words(self) -> str:
        """The noise of the sums and of the counts."""
        above = ", ".join(noise.promise.words() for noise in self.numerators)
        below = f"on its count {self.denominator.promise.words()}"
        return f"on the numerator of each quotient {above}, {below}; neither the noisy sums nor counts were published"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """That of the noisy sums: each family of noise at its least scale, as if it alone had the sums."""
        noises = [*self.numerators, self._count_noise]
        scales = {kind: [smallest(each.scale) for each in noises if isinstance(each, PURE) == kind] for kind in (0, 1)}
        found = [(Gaussian, Laplace)[kind](min(own)).promise.of_sums(sums) for kind, own in scales.items() if own]
        return found[0] if len(found) == 1 else Promise(None, sum(each.rho for each in found))

    def _noise_and_sum(self, value: np.ndarray, n: int, radius: float | None) -> tuple[float, float]:
        """Those of the sum that is rounded most coarsely, if counts are at most the number of records."""
        del radius
        quotients = value.reshape(len(self.numerators), self.size)
        pairs = [noise_and_value(each.scale, own * n) for each, own in zip(self.numerators, quotients, strict=True)]
        pairs.append(noise_and_value(self._count_noise.scale, np.array(n)))
        return min(pairs, key=lambda pair: pair[0] / max(pair[1], 1.0))

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the quotients given the sums and the counts."""
        quotients = as_floating(value).reshape(-1, self.size).T
        sums = as_floating(statistic).reshape(-1, self.size).T
        noises = jax.tree.map(lambda leaf: jnp.broadcast_to(as_floating(leaf), self.size), self._noises)
        return jnp.sum(jax.vmap(self._of_one)(quotients, sums, noises))

    @property
    def _noises(self) -> tuple[Any, ...]:
        """The noise of all sums, and that of the counts at last."""
        return (*self.numerators, self.denominator)

    def _of_one(self, quotients: Array, sums: Array, noises: tuple[Any, ...]) -> Array:
        """The log-density [] of the quotients [j] by one count, given the sums [j + 1] with the count at last."""
        *above, below = noises

        def log_terms(count: Array) -> Array:
            found = below.log_density_terms(count, sums[-1])
            for place, noise in enumerate(above):
                found += noise.log_noise(quotients[place] * count - sums[place])
            return found

        clamped = isinstance(below, Censored)
        noise = below.mechanism if clamped else below
        if len(above) > 1 or not (isinstance(above[0], Laplace) and isinstance(noise, DiscreteLaplace)):
            return log_sum_over_whole(log_terms, self.reach, len(above), sums.dtype, clamped)
        scale = jnp.asarray(noise.scale)
        kinks = kink(sums[0], quotients[0], sums[1], scale), sums[1]
        slopes = jnp.abs(quotients[0]) / above[0].scale, 1 / scale
        found = by_geometric_sums(log_terms, kinks, slopes, sized=True, after=1 if clamped else None)
        return jnp.logaddexp(found, log_terms(jnp.ones_like(sums[1]))) if clamped else found

    def sample(self, key: Key, statistic: Array) -> Array:
        """The quotients of the sums by the counts, with draws of their noise."""
        sums = as_floating(statistic).reshape(-1, self.size)
        keys = jax.random.split(key, len(self._noises))
        *above, below = (noise.sample(one, own) for one, noise, own in zip(keys, self._noises, sums, strict=True))
        return jnp.concatenate([drawn / below for drawn in above])


def check_clamp(denominator: Any) -> None:
    """Raise if a noisy count was clamped elsewhere than at 0 or 1 below."""
    if isinstance(denominator, Censored):
        lower = None if denominator.lower is None else np.asarray(denominator.lower)
        if denominator.upper is not None or lower is None or not np.all((lower == 0) | (lower == 1)):
            remedy = "Engines divide by max(1, count), or by no count below 1."
            fail("denominator", describe(denominator), "clamped below at 0 or 1, and not above", remedy)
    elif isinstance(denominator, type) or not isinstance(denominator, Mechanism):
        remedy = "Pass such as dpjax.DiscreteLaplace(scale)."
        fail("denominator", name_of(denominator), "noise on a count", remedy, error=TypeError)
