"""What a mechanism says of the sums under a released value, beyond their densities."""

from collections.abc import Callable
from typing import NamedTuple

from dpjax.base import Array

__all__ = ["PossibleSums", "all_whole", "none_whole"]


def all_whole(size: int) -> tuple[slice, ...]:
    """All coordinates of a statistic of this size."""
    return (slice(0, size),)


def none_whole(size: int) -> tuple[slice, ...]:
    """No coordinate."""
    del size
    return ()


def same(value: Array) -> Array:
    """The value itself."""
    return value


class PossibleSums(NamedTuple):
    """Which sums are possible, near or known given a value, beside what their densities say.

    By default all are possible, and none is known.

    Attributes
    ----------
    bounds
        ``value -> (least, greatest)``: the least and the greatest sum [d] that can have given each coordinate of the
        value [d], exchanged if none can. Chains start between them. None if no sum is excluded.
    largest
        ``(value, low, high) -> [d]``: the largest log-density of each coordinate of the value [d], whatever its sum
        from `low` to `high` [d], or a bound of it from above. Ends may be infinite, and so may the bound. If both
        are one sum it is the log-density, or not much more. All arrays may be columns, as in
        `dpjax.mechanisms.Mechanism.log_density_terms`. Hidden counts are summed over where it is not negligible. None
        if it follows from `bounds`, or from noise that says ``is_unimodal`` or is whole; else such counts are imputed.
    near
        ``value -> sums``: sums [d] that may have led to a value [d] like this one, near which chains of counts start.
    known
        Whether the value is the sum itself: then only records with that very sum are possible.
    reveals
        Whether some values tell the sum: those whose bounds are one number.
    tells
        Whether some values tell a sum other than 0, so that single records could hardly move.
    within
        Whether the value says that the sum lies between its bounds, and nothing else, whatever real number that is.
    period
        After how much sums are as good as before; None where they are not.
    depth
        ``() -> float``: the largest log ratio of the densities of two values, where sums have a period.
    whole
        ``size -> slices``: the coordinates of a statistic of this size that must be whole numbers.
    categories
        How many categories 0, ..., c - 1 a single record may have, all others being impossible; None if any may be.
    num_records
        The number of records that the distribution is of, which must be the release's; None if it is of any. Where each
        record is a unit of several persons, it is their number [] or [n], which must be the model's.
    report_probabilities
        The probabilities of a 1 from a person who counts, and from any other. They are for a value that is how many of
        `num_records` persons reported a 1, each one bit independently; else None.
    log_density_by_bin
        ``(value, counts, n) -> [m]``: what each bin adds to the log-density of values [k] in [0, 1], given its count
        [m] of n records. For a value whose log-density, given the counts of equal bins, is a sum over the bins.

    Examples
    --------
    >>> import dpjax, jax
    >>> dpjax.mechanisms.RandomRounding(3).sums.bounds(jax.numpy.array([6.0]))[0].tolist()
    [4.0]
    """

    bounds: Callable[[Array], tuple[Array, Array]] | None = None
    largest: Callable[[Array, Array, Array], Array] | None = None
    near: Callable[[Array], Array] = same
    known: bool = False
    reveals: bool = False
    tells: bool = False
    within: bool = False
    period: int | float | None = None
    depth: Callable[[], float] = float
    whole: Callable[[int], tuple[slice, ...]] = none_whole
    categories: int | None = None
    num_records: Array | int | None = None
    report_probabilities: tuple[Array | float, Array | float] | None = None
    log_density_by_bin: Callable[[Array, Array, Array], Array] | None = None
