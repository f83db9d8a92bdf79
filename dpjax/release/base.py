"""What all kinds of release have in common, and a kind of one's own; most of dpjax asks for no more."""

from dataclasses import Field, replace
from typing import Any, ClassVar, NoReturn, Protocol, Self, TypeGuard, runtime_checkable

import jax
import jax.numpy as jnp

from dpjax._util.validation import fail
from dpjax.base import Array, Key, Records
from dpjax.release.printing import Described
from dpjax.release.unknown_count import number_in_words

__all__ = ["OwnRelease", "PrivateRelease", "is_release"]


@runtime_checkable
class PrivateRelease(Protocol):
    """What was published about n confidential records, and its distribution given them: a frozen pytree dataclass.

    Its kinds are `Release`, one value of a sum over the records; `LocalRelease`, one value for each record; and
    `Microdata`, several fields of each record. A kind of your own is a subclass of `OwnRelease`.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def n(self) -> int:
        """The public number of records."""

    @property
    def observed(self) -> Array:
        """The published numbers: [d], or [n, ...] with one row for each record."""

    @property
    def parts(self) -> tuple[Any, ...]:
        """What came through one mechanism each: sums, and fields of the records."""

    @property
    def fields(self) -> dict[str, Any]:
        """What was released of each record by itself, by the name of a field; empty if only a sum was."""

    @property
    def exact(self) -> dict[str, Any]:
        """Those of the fields that are known exactly, or in part; empty if none are."""

    @property
    def local(self) -> Any:
        """The release itself, if it is a `LocalRelease`; else None."""

    @property
    def microdata(self) -> Any:
        """The release as `Microdata`, if it is of fields; else None."""

    @property
    def summed(self) -> Any:
        """The sum over the records that was released, a `Release`; None if there is none."""

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the categories of the records' fields, as far as they were released with names."""

    @property
    def is_noisy_sum(self) -> bool:
        """Whether `observed` [d] less the summed statistic [d] of the confidential records is the mechanism's noise."""

    @property
    def is_estimated(self) -> bool:
        """Whether numbers of the noise are not known, but estimated with the parameters."""

    @property
    def weights(self) -> Any:
        """The survey weights [n] of the records, scaled to sum to n; None if there are none."""

    @property
    def is_of_records(self) -> bool:
        """Whether all that was released is of single records."""

    @property
    def remark(self) -> str:
        """What summaries say of draws that follow from it; empty for nothing."""

    def hold(self, records: Records) -> Records:
        """The records [n] with all that is known of them exactly in its place."""

    def contributions(self, records: Records) -> Array:
        """What each of m records adds to the released sum [d, m]; [0, m] if no sum was released."""

    def total_and_density(self, records: Records) -> tuple[Array, Array]:
        """The released sum's exact value [d], empty [0] if there is none, and the log-density [] of `observed`."""

    def log_likelihood(self, records: Records) -> Array:
        """The log-density [] of `observed` given the records."""

    def tempered(self, power: Array) -> Self:
        """The release with its density raised to a power []; what is exact stays so."""

    def tabulated(self) -> Self:
        """The release as kernels read it, with tables of what takes long to compute given the released value."""

    def sample(self, key: Key, records: Records) -> Self:
        """A release of other records [n] by the same mechanism: only `observed` is new."""

    def check_records(self, records: Records) -> None:
        """Raise unless the mechanism applies to such records, of any leading axis [m]."""

    def to_json(self, *, units: str | None = None, **metadata: Any) -> str:
        """The release as JSON text."""


class OwnRelease(Described):
    """What is so of a release that is no sum over the records: a kind of one's own has only to say the rest.

    A subclass is a frozen dataclass and a pytree, by `dpjax.mechanisms.frozen_pytree`. Its fields are `observed` [d],
    the numbers released, `n`, which is static, and whatever else it needs. It has ``log_likelihood(records) -> []``,
    the log-density of what was released; ``sample(key, records)``, a release of other records, where anything is
    predicted; and ``tempered(power)``, with that density raised to a power, for `dpjax.sample_smc`. `dpjax.imwg` then
    moves one record after the other, and computes the density of all of them each time.

    Examples
    --------
    >>> from dataclasses import dataclass, field
    >>> import dpjax, jax, jax.numpy as jnp
    >>> @dpjax.mechanisms.frozen_pytree
    ... @dataclass(frozen=True, eq=False, repr=False)
    ... class NoisyMaximum(dpjax.release.OwnRelease):
    ...     observed: jax.Array
    ...     n: int = field(metadata={"static": True})
    ...     def log_likelihood(self, records):
    ...         return jax.scipy.stats.norm.logpdf(self.observed[0], jnp.max(records["y"]))
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
    >>> release = NoisyMaximum(jnp.array([2.0]), n=3)
    >>> state = dpjax.impute(model, release, {"mean": 0.0}).init({"y": jnp.array([0.0, 2.0, 1.0])})
    >>> round(float(state.log_density), 3)
    -0.919
    """

    @property
    def parts(self) -> tuple[Any, ...]:
        """What came through one mechanism each: no part is known."""
        return ()

    @property
    def fields(self) -> dict[str, Any]:
        """What was released of each record by itself: nothing."""
        return {}

    @property
    def summed(self) -> None:
        """No sum was released."""
        return None

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the categories of the records' fields, as far as they were released with names: none."""
        return {}

    @property
    def is_noisy_sum(self) -> bool:
        """No sum was released."""
        return False

    def contributions(self, records: Records) -> Array:
        """No sum of m records is released: [0, m]."""
        return jnp.zeros((0, len(jax.tree.leaves(records)[0])))

    def total_and_density(self, records: Records) -> tuple[Array, Array]:
        """The sum [0] of `contributions`, and the log-density [] of what was released given the records."""
        return jnp.zeros(0), self.log_likelihood(records)

    def log_likelihood(self, records: Records) -> Array:
        """The log-density [] of what was released given the records, which every kind has."""
        del records
        return lacks(self, "a kind with a density", "Write log_likelihood(records) for it.")

    def sample(self, key: Key, records: Records) -> Self:
        """A release of other records [n], for a kind that has it."""
        del key, records
        return lacks(self, "a kind that can be simulated", "Write sample(key, records) for it.")

    def tempered(self, power: Array) -> Self:
        """The release with its density raised to a power [], for a kind that has it."""
        del power
        return lacks(self, "a kind that can be tempered", "Write tempered(power) for it.")

    def observing(self, observed: Array) -> Self:
        """As if other numbers had been released."""
        made: Any = replace(self, observed=observed)  # type: ignore[type-var]
        return made

    def check_records(self, records: Records) -> None:
        """Raise unless the log-density of such records is one number; its own errors come through."""
        density = jax.eval_shape(self.log_likelihood, records)
        if getattr(density, "shape", None) != ():
            given = f"a {type(self).__name__} whose log_likelihood returns {density}"
            fail("release", given, "one number", "Sum over the records.", error=TypeError)

    def __repr__(self) -> str:
        n: Any = self.n  # type: ignore[attr-defined]
        return f"{type(self).__name__} of {number_in_words(n)}"

    def to_json(self, *, units: str | None = None, **metadata: Any) -> str:
        """The release as JSON text, which only the kinds of dpjax have."""
        return lacks(self, "a kind with a JSON text", "Write to_json for it, or keep its numbers.")


def lacks(release: OwnRelease, expected: str, remedy: str) -> NoReturn:
    """Say what a kind has not, and what to write."""
    fail("release", f"a {type(release).__name__}", expected, remedy, error=TypeError)


def is_release(value: Any) -> TypeGuard[PrivateRelease]:
    """Whether a value is a release, and not merely the class of one."""
    return isinstance(value, PrivateRelease) and not isinstance(value, type)
