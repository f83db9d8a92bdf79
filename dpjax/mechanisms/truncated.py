"""Noisy values that were drawn anew until they lay within bounds."""

from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import jax
import jax.numpy as jnp

from dpjax._util.pytree import frozen_pytree
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.base import as_floating
from dpjax.mechanisms.censored import Bounded
from dpjax.mechanisms.largest_density import at_nearest, finite
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.promises import ProtectedSums, Unpromised
from dpjax.mechanisms.rounded import log_probability_between

MAX_REDRAWS = 100_000
"""How often noise is drawn anew: a sampler is to end, even if the statistic is far outside the bounds."""


@frozen_pytree
@dataclass(frozen=True)
class Truncated(Bounded):
    """Releases the value of an additive mechanism, with noise drawn anew until the value lies within bounds.

    The log-density is that of the noise less log P(lower <= statistic + noise <= upper), which depends on the
    statistic: sums near a bound are more likely than the noise alone says.

    Parameters
    ----------
    mechanism
        The additive mechanism whose noise was drawn anew.
    lower : [] or [d]
        The least value that could be published, in its units; ``None`` if there is no such bound, but give at least
        one.
    upper : [] or [d]
        The greatest, likewise.

    Raises
    ------
    TypeError
        If the mechanism is not additive.
    ValueError
        If no bound is given, or a lower bound is not below its upper bound.

    Notes
    -----
    Each coordinate is drawn anew by itself. Values that were clamped have `dpjax.mechanisms.Censored`. Drawing anew is
    no post-processing: what the noise alone would promise need not hold.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> positive = dpjax.mechanisms.Truncated(dpjax.Laplace(2.0), lower=0.0)
    >>> value, statistic = jnp.array([1.0]), jnp.array([0.0])
    >>> round(float(jnp.exp(positive.log_density(value, statistic))), 3)
    0.303
    """

    json_name: ClassVar[str | None] = "truncated"
    how: ClassVar[str] = "drawn"
    bound_remedy: ClassVar[str] = "Pass lower=0 for counts drawn anew until they are not negative."
    value_remedy: ClassVar[str] = (
        "Check the bounds; values that were clamped at them are those of dpjax.mechanisms.Censored."
    )

    def _words(self) -> str:
        """The noise, and the bounds."""
        bounds = {"at least": self.lower, "at most": self.upper}
        kept = " and ".join(f"{side} {amount(bound)}" for side, bound in bounds.items() if bound is not None)
        return f"{self.mechanism.promise.words()}, drawn anew until the value is {kept}"

    def _promise_of(self, sums: ProtectedSums) -> NoReturn:
        """None: how often noise is drawn anew depends on the sum."""
        del sums
        raise Unpromised("Noise that is drawn anew until the value fits depends on the sum in more than its place.")

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each coordinate of the value [..., d] given that of the statistic [..., d]."""
        value, statistic = as_floating(value), as_floating(statistic)
        terms = self.mechanism.log_density_terms(value, statistic) - self.log_share(statistic)
        return jnp.where(self._is_inside(value), terms, -jnp.inf)

    def log_share(self, statistic: Array) -> Array:
        """The log-probability that a value lies within the bounds at once, elementwise."""
        if self.upper is None:
            return self._inner_tails.log_survival(self._least(self.lower) - statistic)
        if self.lower is None:
            return self._inner_tails.log_cdf(self.upper - statistic)
        unit = int(self.mechanism.integer_noise)
        least = self._least(self.lower)
        width = jnp.asarray(self._greatest(self.upper) - least, statistic.dtype)
        return log_probability_between(self.mechanism, least - statistic, width, unit)

    @property
    def sums(self) -> PossibleSums:
        """Those of the noise, and sums beyond a bound, of which the value tells less."""
        noise = self.mechanism.noise
        return super().sums._replace(largest=None if noise is None or not noise.is_unimodal else self._largest)

    def _largest(self, value: Array, low: Array, high: Array) -> Array:
        """The largest density of the noise by the least probability of values within the bounds, which is at an end.

        Sums beyond a bound have another limit. The density of the noise rises from the value to that bound. So its
        integral between the two is at least their distance times the density at the value.
        """
        value, noise = as_floating(value), self.mechanism.noise
        assert noise is not None
        unit = int(self.mechanism.integer_noise)
        first, last, beyond = low, high, jnp.full_like(value - low, -jnp.inf)
        if self.lower is not None:
            least = self._least(self.lower)
            first = jnp.where(low < least, jnp.minimum(least, high), low)
            beyond = jnp.where(low < least, -jnp.log(value - least + unit), beyond)
        if self.upper is not None:
            greatest = self._greatest(self.upper)
            last = jnp.where(high > greatest, jnp.maximum(greatest, low), high)
            beyond = jnp.where(high > greatest, jnp.maximum(beyond, -jnp.log(greatest - value + unit)), beyond)
        # Without a bound on a side, nothing is lost there in the limit.
        first, last = (
            jnp.where(jnp.isfinite(first), first, finite(last)),
            jnp.where(jnp.isfinite(last), last, finite(first)),
        )
        share = jnp.minimum(self.log_share(first), self.log_share(last))
        inside = at_nearest(lambda nearest: noise.log_density(value - nearest), value, first, last) - share
        return jnp.where((low == high), inside, jnp.maximum(inside, beyond))

    def sample(self, key: Key, statistic: Array) -> Array:
        """A value [d] given the statistic [d]; at a bound if none lay within in 100,000 draws."""
        exact = as_floating(statistic)

        def redraw(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            number, value, pending = carry
            proposal = self.mechanism.sample(jax.random.fold_in(key, number), exact)
            return number + 1, jnp.where(pending, proposal, value), pending & ~self._is_inside(proposal)

        def wanted(carry: tuple[Array, Array, Array]) -> Array:
            return jnp.any(carry[2]) & (carry[0] < MAX_REDRAWS)

        start = (jnp.zeros((), int), exact, jnp.ones(exact.shape, bool))
        return jnp.clip(jax.lax.while_loop(wanted, redraw, start)[1], self.lower, self.upper)

    def _is_inside(self, value: Array) -> Array:
        """Whether values lie within the bounds."""
        inside = jnp.ones(value.shape, bool)
        if self.lower is not None:
            inside &= value >= self.lower
        return inside if self.upper is None else inside & (value <= self.upper)

    def _least(self, bound: Any) -> Any:
        """The least possible value: under integer noise the first whole number from the bound on."""
        return jnp.ceil(bound) if self.mechanism.integer_noise else bound

    def _greatest(self, bound: Any) -> Any:
        """The greatest, likewise."""
        return jnp.floor(bound) if self.mechanism.integer_noise else bound
