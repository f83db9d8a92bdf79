"""Noisy values clamped at a bound, as release tools publish counts that may not be negative."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, describe_array, fail, is_traced, name_of
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.added_noise import Tails
from dpjax.mechanisms.base import Mechanism, as_floating, as_leaf, convert_mechanisms
from dpjax.mechanisms.largest_density import bounded_as, finite, largest_density, overlaps
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.promises import Promise, ProtectedSums
from dpjax.numerics.next_floats import where_near

__all__ = ["PartitionSelection"]


@dataclass(frozen=True)
class Bounded(Mechanism):
    """What mechanisms share that release an additive mechanism's value within bounds.

    Attributes
    ----------
    mechanism
        The additive mechanism.
    lower
        The least value [] or [d], in its units; ``None`` if there is no such bound.
    upper
        The greatest, likewise.
    how
        How values came to lie within the bounds, in one word.
    bound_remedy
        What to do if no bound was given.
    value_remedy
        What to do if a value lies beyond them.
    wraps_rounded
        Whether the additive mechanism may be rounded itself.
    wraps_exact
        Whether it may be `dpjax.Exact`.
    """

    parameter_axes: ClassVar[dict[str, int] | None] = {}
    wraps_rounded: ClassVar[bool] = False
    wraps_exact: ClassVar[bool] = False
    how: ClassVar[str]
    bound_remedy: ClassVar[str]
    value_remedy: ClassVar[str]

    mechanism: Mechanism | Any
    lower: Array | float | None = None
    upper: Array | float | None = None

    def __post_init__(self) -> None:
        convert_mechanisms(self, "mechanism")
        check_tails(self.mechanism, wrapped=self.wraps_rounded, exact=self.wraps_exact)
        for name, bound in zip(("lower", "upper"), read_bounds(self.lower, self.upper, self.bound_remedy), strict=True):
            object.__setattr__(self, name, bound)

    @property
    def _inner_tails(self) -> Tails:
        """The tails of the mechanism."""
        assert self.mechanism.tails is not None
        return self.mechanism.tails

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless the value lies within the bounds."""
        if is_traced(self):
            return
        low = -np.inf if self.lower is None else self.lower
        high = np.inf if self.upper is None else self.upper
        expected = f"values from {low} to {high}, between which they are {self.how}"
        check_array(argument, value, lambda array: (array >= low) & (array <= high), expected, self.value_remedy)

    def _to_atoms(self, value: np.ndarray, error: np.ndarray) -> np.ndarray:
        """The value [d] moved to what the noise leads to, and to a bound, if that is within its error [d]."""
        moved = self.mechanism._to_atoms(value, error)
        for bound in (self.lower, self.upper):
            moved = moved if bound is None else where_near(moved, np.asarray(bound, float), error)
        return moved

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the statistic [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))


@frozen_pytree
@dataclass(frozen=True)
class Censored(Bounded):
    """Releases min(max(w, lower), upper), where w is the value of an additive mechanism.

    The distribution has an atom at each bound: everything that fell beyond it. Its log-density is with respect to
    the mechanism's own measure between the bounds and to unit masses on them.

    Parameters
    ----------
    mechanism
        The additive mechanism whose value was clamped; or `dpjax.mechanisms.Rounded` noise, clamped at multiples of its
        step, which is odd under integer noise. `dpjax.Exact` is for records without noise, as below a limit of
        detection.
    lower : [] or [d]
        The least value that was published, in its units; ``None`` if there is no such bound, but give at least
        one. A value beyond a bound counts as one at the bound; a `Release` refuses it.
    upper : [] or [d]
        The greatest, likewise.

    Raises
    ------
    TypeError
        If the mechanism is not additive.
    ValueError
        If no bound is given, a lower bound is not below its upper bound, or the mechanism cannot release it.

    Notes
    -----
    Clamping costs no privacy: what the inner mechanism promises still holds.

    Examples
    --------
    >>> import dpjax
    >>> never_negative = dpjax.mechanisms.Censored(dpjax.Laplace(3.0), lower=0.0)
    >>> top_coded = dpjax.mechanisms.Censored(dpjax.Exact(), upper=3500.0)
    """

    json_name: ClassVar[str | None] = "censored"
    wraps_rounded: ClassVar[bool] = True
    wraps_exact: ClassVar[bool] = True
    how: ClassVar[str] = "clamped"
    bound_remedy: ClassVar[str] = "Pass lower=0 for counts clamped at zero."
    value_remedy: ClassVar[str] = (
        "Values that were clamped lie within their bounds: check both, or leave out a bound that was not used."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # A bound is itself published, and the tails of rounded noise are those at its multiples.
        for name, bound in {"lower": self.lower, "upper": self.upper}.items():
            if bound is not None and not is_traced(bound):
                self._check_bound(name, bound)

    def _withheld(self, value: np.ndarray) -> np.ndarray:
        """Those at a bound."""
        low, high = (-np.inf if self.lower is None else self.lower), (np.inf if self.upper is None else self.upper)
        return (np.asarray(value) <= np.asarray(low)) | (np.asarray(value) >= np.asarray(high))

    def _check_bound(self, name: str, bound: Any) -> None:
        """Raise unless the mechanism can release a bound."""
        if self.mechanism.integer_noise:
            remedy = "Whole numbers are clamped at whole numbers: round a lower bound up, and an upper one down."
            check_array(name, bound, lambda array: array == np.round(array), "whole numbers", remedy)
        self.mechanism.check_value(name, bound)

    def _words(self) -> str:
        """The noise, and the bounds."""
        bounds = {"below": self.lower, "above": self.upper}
        clamped = " and ".join(f"{side} at {amount(bound)}" for side, bound in bounds.items() if bound is not None)
        noise = "none, but" if self.mechanism.sums.known else f"{self.mechanism.promise.words()}, then"
        return f"{noise} clamped {clamped}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """That of the noise: clamping what is noisy already costs nothing."""
        return self.mechanism.promise.of_sums(sums)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each coordinate of the value [..., d] given that of the statistic [..., d]."""
        value, statistic = as_floating(value), as_floating(statistic)
        terms = self.mechanism.log_density_terms(value, statistic)
        if self.lower is not None:
            terms = jnp.where(value <= self.lower, self._inner_tails.log_cdf(self.lower - statistic), terms)
        if self.upper is not None:
            terms = jnp.where(value >= self.upper, self._inner_tails.log_survival(self.upper - statistic), terms)
        return terms

    @property
    def sums(self) -> PossibleSums:
        """Those of the noise, and at a bound all beyond it."""
        found = bounded_as(self.mechanism, super().sums, self._largest)
        inside = self.mechanism.sums
        if not (inside.known or inside.within):
            return found
        return found._replace(known=False, tells=inside.known, reveals=inside.known, within=True, bounds=self._ends)

    def _ends(self, value: Array) -> tuple[Array, Array]:
        """Between which numbers the sum [d] was: beyond a bound, or as the value says."""
        value, bounds = as_floating(value), self.mechanism.sums.bounds
        least, most = (value, value) if bounds is None else bounds(value)
        if self.lower is not None:
            least = jnp.where(value <= self.lower, -jnp.inf, least)
        if self.upper is not None:
            most = jnp.where(value >= self.upper, jnp.inf, most)
        return least, most

    def _largest(self, value: Array, low: Array, high: Array) -> Array:
        """That of the noise; what was clamped is the more likely the further the sum is beyond the bound."""
        value = as_floating(value)
        inside: Any = largest_density(self.mechanism)
        found = inside(value, low, high)
        if self.lower is not None:
            clamped = self._inner_tails.log_cdf(self.lower - finite(low))
            found = jnp.where(value <= self.lower, jnp.where(low > -jnp.inf, clamped, 0.0), found)
        if self.upper is not None:
            clamped = self._inner_tails.log_survival(self.upper - finite(high))
            found = jnp.where(value >= self.upper, jnp.where(high < jnp.inf, clamped, 0.0), found)
        return found

    def sample(self, key: Key, statistic: Array) -> Array:
        """A clamped value [d] given the statistic [d]."""
        return jnp.clip(self.mechanism.sample(key, statistic), self.lower, self.upper)


def has_tails(mechanism: Any) -> bool:
    """Whether values can be drawn coordinate by coordinate, and the probability beyond a bound is known."""
    return mechanism.tails is not None and mechanism._is_elementwise and mechanism._can_sample


def check_tails(mechanism: Any, wrapped: bool = False, exact: bool = False) -> None:
    """Raise unless a mechanism adds noise of known tails; one that wraps another, or adds none, if that is said."""
    is_more = (mechanism.inner is not None and not wrapped) or (mechanism.sums.known and not exact)
    if not has_tails(mechanism) or is_more:
        remedy = "Pass a mechanism such as Laplace(scale), or one that gives log_density_terms, tails and sample."
        fail("mechanism", name_of(mechanism), "an additive mechanism", remedy, error=TypeError)


def is_held(bound: np.ndarray) -> bool:
    """Whether there are numbers, of JAX's default float type."""
    return bool(bound.size) and bool(np.all(np.abs(bound) <= float(jnp.finfo(jnp.result_type(float)).max)))


def read_bounds(lower: Any, upper: Any, remedy: str) -> tuple[Any, Any]:
    """The bounds, sequences made floating arrays, or an error unless there is one, and both are finite and in order."""
    if lower is None and upper is None:
        fail("lower, upper", "neither", "at least one bound", remedy)
    for name, bound in {"lower": lower, "upper": upper}.items():
        if bound is not None:
            check_array(name, bound, is_held, "finite numbers", "Leave out a bound that does not bind.")
    _check_order(lower, upper)
    return as_leaf(lower), as_leaf(upper)


def _check_order(lower: object, upper: object) -> None:
    """Raise unless concrete bounds are in order."""
    if lower is None or upper is None or is_traced(lower, upper):
        return
    if not np.all(np.asarray(lower, float) < np.asarray(upper, float)):
        given = f"lower {describe_array(np.asarray(lower))} and upper {describe_array(np.asarray(upper))}"
        fail("lower, upper", given, "lower < upper in every coordinate", "Exchange the bounds or drop one.")


@frozen_pytree
@dataclass(frozen=True)
class PartitionSelection(Mechanism):
    """Releases a clamped noisy count if the count is above 0; if it is 0, the lower bound with certainty.

    So a value above the bound says that the count is not 0, while one at the bound says that it is 0 or that its noisy
    value fell below.

    Parameters
    ----------
    mechanism
        `dpjax.mechanisms.Censored` with a lower bound, at which it puts the counts that are not published.

    Raises
    ------
    TypeError, ValueError
        If the mechanism is another, or has no lower bound.

    Notes
    -----
    The distribution if keys are found in the records and kept if their noisy count reaches a threshold, provided that
    the count compared is the one published. See Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo and Gipson (2020,
    Differentially private SQL with bounded user contribution). The noise that keeps most keys is near a truncated
    geometric distribution: Desfontaines, Voss, Gipson and Mandayam (2022, Differentially private partition selection).

    Examples
    --------
    >>> import dpjax
    >>> rule = dpjax.mechanisms.PartitionSelection(dpjax.mechanisms.Censored(dpjax.Laplace(2.0), lower=20.0))
    """

    json_name: ClassVar[str | None] = "partition_selection"

    mechanism: Censored

    def __post_init__(self) -> None:
        remedy = "Pass Censored(noise, lower=...) with the value at which unpublished counts are put."
        if not isinstance(self.mechanism, Censored):
            fail("mechanism", name_of(self.mechanism), "a Censored mechanism", remedy, error=TypeError)
        if self.mechanism.lower is None:
            fail("mechanism", "one without a lower bound", "a Censored mechanism with one", remedy)
        if self.mechanism.sums.within:
            fail("mechanism", "one without noise", "a Censored mechanism with noise", remedy)

    def _words(self) -> str:
        """The noise, and that it is of positive sums only."""
        return f"{self.mechanism.promise.words()}, of sums above 0 only"

    def _withheld(self, value: np.ndarray) -> np.ndarray:
        """Those at the bound."""
        return self.mechanism._withheld(value)

    @property
    def lower(self) -> Array | float:
        """The value [] or [d] of counts that are not published."""
        assert self.mechanism.lower is not None
        return self.mechanism.lower

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each coordinate of the value [..., d] given the counts [..., d]."""
        value, statistic = as_floating(value), as_floating(statistic)
        present = self.mechanism.log_density_terms(value, statistic)
        absent = jnp.where(value <= self.lower, jnp.zeros_like(present), -jnp.inf)
        return jnp.where(statistic > 0, present, absent)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the counts [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    @property
    def sums(self) -> PossibleSums:
        """Those of the clamped noise, and 0 at the lower bound."""
        return bounded_as(self.mechanism, super().sums, self._largest)

    def _largest(self, value: Array, low: Array, high: Array) -> Array:
        """That of the clamped noise; at the lower bound 0 is certain."""
        value = as_floating(value)
        present: Any = largest_density(self.mechanism)
        others = jnp.where(high > 0, present(value, jnp.maximum(low, 1.0), jnp.maximum(high, 1.0)), -jnp.inf)
        return jnp.where((value <= self.lower) & overlaps(low, high, -jnp.inf, 0.0), jnp.maximum(others, 0.0), others)

    def sample(self, key: Key, statistic: Array) -> Array:
        """A released value [d] given the counts [d]."""
        return jnp.where(statistic > 0, self.mechanism.sample(key, statistic), self.lower)
