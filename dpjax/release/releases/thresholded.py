"""Tables of which only the cells above a threshold were published."""

from collections.abc import Hashable, Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_count, check_flag, check_number, describe, fail
from dpjax.mechanisms import Censored, PartitionSelection
from dpjax.mechanisms.base import Mechanism, as_mechanism
from dpjax.release import Release
from dpjax.release.checks import check_mechanism
from dpjax.statistics import cells

MAX_KEYS = 100_000
"""The largest table: its cells are numbered one by one, and unpublished ones take their place too."""


@names_arguments
def thresholded(
    keys: Iterable[Hashable],
    values: Any,
    all_keys: Iterable[Hashable] | int,
    mechanism: Mechanism | Any,
    threshold: float,
    *,
    n: Any,
    field: str = "cell",
    only_present: bool = False,
) -> Release:
    """The release of noisy counts by key, of which those of at least a threshold were published, with their keys.

    That a key was not published tells that its noisy count lies below the threshold; nothing is left out.

    Parameters
    ----------
    keys
        The published keys: any distinct values, such as names of pages.
    values : [k]
        Their published noisy counts, all at least the threshold.
    all_keys
        All keys that could have been published, at most 100,000: key j is category j of the record field. Or their
        number. Published keys that are whole numbers are then the categories themselves, from 0 on. Other keys are
        names: ``keys[j]`` is category j, and those that were not published follow. Descriptions and summaries show the
        names.
    mechanism
        The noise, with one scale or one for each of all keys, in their order.
    threshold
        The least noisy count that was published.
    n
        The public number of records, as in `dpjax.Release`.
    field
        The integer record field [] that holds the key's category.
    only_present
        How keys that no record has were treated. False: every key's count was given noise, as of a list of pages that
        was fixed beforehand. True: only keys found in the records were considered, as in SQL's ``GROUP BY``; such a
        key is never published, and a published key has at least one record (`dpjax.mechanisms.PartitionSelection`).

    Returns
    -------
    Release
        Of `dpjax.statistics.cells`. Keys that were not published have for a value the largest below the threshold that
        the mechanism can release. That is a multiple of the step of `mechanisms.Rounded`, a whole number under integer
        noise, else the next floating-point number.

    Raises
    ------
    TypeError, ValueError
        If keys are repeated, not among all keys or not as many as values; whole numbers are not below the number of all
        keys, or beside names; values lie below the threshold; the noise has
        no known tails; or `dpjax.Release` refuses its part.

    Examples
    --------
    >>> import dpjax
    >>> noise = dpjax.DiscreteLaplace(2.0)
    >>> release = dpjax.releases.thresholded(["b"], [25], ["a", "b", "c"], noise, threshold=20, n=60)
    >>> release.value.tolist()
    [19.0, 25.0, 19.0]
    """
    check_flag("only_present", only_present, "Say whether keys that no record has were left out from the start.")
    places, size, names = place_keys(keys, all_keys)
    check_number("threshold", threshold)
    check_array("threshold", threshold, np.isfinite, "a finite number", "Pass the least value that was published.")
    check_mechanism("mechanism", mechanism, (size,))
    mechanism = as_mechanism(mechanism)
    lower = mechanism._largest_below(float(threshold))
    value = np.full(size, lower)
    value[places] = check_values(values, len(places), float(threshold))
    censored = Censored(mechanism, lower=jnp.asarray(lower))
    chosen = PartitionSelection(censored) if only_present else censored
    return Release(jnp.asarray(value), chosen, cells(field, size, names), n)


def place_keys(
    keys: Iterable[Hashable], all_keys: Iterable[Hashable] | int
) -> tuple[list[int], int, tuple[str, ...] | None]:
    """The categories of the published keys, the number of all, and their names; None where keys are codes."""
    published = as_categories("keys", keys)
    if isinstance(all_keys, (int, np.integer)):
        size = check_size(check_count("all_keys", all_keys))
        if len(published) > size:
            fail("all_keys", size, f"at least the {len(published)} published", "Count the published keys too.")
        if are_codes(published, size):
            return [int(key) for key in published], size, None  # type: ignore[call-overload]
        others = [f"unpublished {place}" for place in range(len(published), size)]
        return list(published.values()), size, names_of([*published, *others])
    categories = as_categories("all_keys", all_keys)
    missing = next((key for key in published if key not in categories), None)
    if missing is not None:
        fail("keys", repr(missing), "keys among all_keys", "List every key that could have been published.")
    return [categories[key] for key in published], check_size(len(categories)), names_of(list(categories))


def are_codes(keys: Iterable[Hashable], size: int) -> bool:
    """Whether keys are categories 0, ..., size - 1, or an error if some are whole numbers and not all are categories.

    Without any key they are.
    """
    whole = [isinstance(key, (int, np.integer)) and not isinstance(key, bool) for key in keys]
    inside = [of_key and 0 <= key < size for of_key, key in zip(whole, keys, strict=True)]  # type: ignore[operator]
    if any(whole) and not all(inside):
        given = f"{next(key for key, one in zip(keys, inside, strict=True) if not one)!r} beside all_keys = {size}"
        remedy = "List all keys as all_keys, or pass names as texts."
        fail("keys", given, f"whole numbers from 0 to {size - 1}, or names", remedy)
    return all(whole)


def names_of(keys: list[Hashable]) -> tuple[str, ...]:
    """The texts of keys, which differ as the keys do."""
    names = tuple(",".join(map(str, key)) if isinstance(key, tuple) else str(key) for key in keys)
    return names if len(set(names)) == len(names) else tuple(f"{key!r} ({place})" for place, key in enumerate(keys))


def as_categories(argument: str, keys: Iterable[Hashable]) -> dict[Hashable, int]:
    """The place of each key, or an error unless they are distinct."""
    remedy = "Pass names, numbers or tuples of them, each once."
    if isinstance(keys, (str, bytes)) or getattr(keys, "ndim", 1) != 1 or not isinstance(keys, Iterable):
        fail(argument, describe(keys), "a sequence of keys", remedy, error=TypeError)
    listed = list(keys)
    if not all(isinstance(key, Hashable) for key in listed):
        fail(argument, "keys that cannot be hashed", "keys that can be hashed", remedy, error=TypeError)
    places = {key: place for place, key in reversed(list(enumerate(listed)))}
    if len(places) < len(listed):
        repeated = next(key for place, key in enumerate(listed) if places[key] != place)
        fail(argument, f"{repeated!r} more than once", "keys that differ", remedy)
    return {key: place for place, key in enumerate(listed)}


def check_size(size: int) -> int:
    """The number of keys, or an error unless they make a table that is not too large."""
    if not 2 <= size <= MAX_KEYS:
        remedy = "Group keys that are hardly ever published into one."
        fail("all_keys", f"{size} keys", f"2 to {MAX_KEYS:,} keys", remedy)
    return size


def check_values(values: Any, size: int, threshold: float) -> np.ndarray:
    """The published values [k], or an error unless there is one for each key, none below the threshold."""
    remedy = "Pass the published values with the threshold by which they were selected."
    check_array("values", values, lambda array: array >= threshold, f"numbers of at least {threshold:g}", remedy)
    array = np.asarray(values, float)
    if array.shape != (size,):
        fail("values", f"shape {list(array.shape)}", f"shape [{size}], one for each key", remedy)
    return array
