"""What the two kinds of release have in common; most of dpjax asks for no more."""

from dataclasses import Field
from typing import Any, ClassVar, Protocol, Self, TypeGuard, runtime_checkable

from dpjax.base import Array, Key, Records

__all__ = ["PrivateRelease", "is_release"]


@runtime_checkable
class PrivateRelease(Protocol):
    """What was published about n confidential records, and its distribution given them: a frozen pytree dataclass.

    Its kinds are `Release`, one value of a sum over the records; `LocalRelease`, one value for each record; and
    `Microdata`, several fields of each record.
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
    def summed(self) -> Any:
        """The sum over the records that was released, a `Release`; None if there is none."""

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the categories of the records' fields, as far as they were released with names."""

    @property
    def is_noisy_sum(self) -> bool:
        """Whether `observed` [d] less the summed statistic [d] of the confidential records is the mechanism's noise."""

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

    def sample(self, key: Key, records: Records) -> Self:
        """A release of other records [n] by the same mechanism: only `observed` is new."""

    def check_records(self, records: Records) -> None:
        """Raise unless the mechanism applies to such records, of any leading axis [m]."""

    def to_json(self, *, units: str | None = None, **metadata: Any) -> str:
        """The release as JSON text."""


def is_release(value: Any) -> TypeGuard[PrivateRelease]:
    """Whether a value is a release, and not merely the class of one."""
    return isinstance(value, PrivateRelease) and not isinstance(value, type)
