"""A field of the records that was released in parts: exactly of some people, through channels of others, or twice."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import describe, fail, is_traced, name_of
from dpjax.base import Array
from dpjax.mechanisms.base import as_mechanism, is_mechanism

__all__ = ["check_withheld", "part_name", "split_parts"]


def part_name(name: str, place: int) -> str:
    """What the parts of a field are called: the first one like the field."""
    return f"{name} ({place + 1})" if place else name


def split_parts(fields: dict[str, Any], masks: dict[str, Array]) -> tuple[dict[str, Any], dict[str, Array]]:
    """The fields with each part under a name of its own, and which values of each are missing.

    An exact part comes first: its values are those of the field.
    """
    split: dict[str, Any] = {}
    missing = dict(masks)
    for name, given in fields.items():
        if not is_in_parts(given):
            split[name] = given
            continue
        parts = [read_part(name, place, part) for place, part in enumerate(given)]
        exact = [channel_is_exact(channel) for _, channel, _, _ in parts]
        if sum(exact) > 1:
            given_parts = f"{sum(exact)} parts that are exact"
            fail(f"fields[{name!r}]", given_parts, "at most one", "Put exact values into one array, with one mask.")
        for place, index in enumerate(np.argsort(np.logical_not(exact), kind="stable").tolist()):
            values, channel, absent, levels = parts[index]
            key = part_name(name, place)
            split[key] = FieldPart(name, values, channel, levels)
            missing[key] = absent | masks[name] if name in masks else absent
    return split, missing


def check_withheld(fields: dict[str, Any], missing: dict[str, Array]) -> None:
    """Raise if one part of a field is of withheld values alone, and no noisy value of another is below the limit.

    The value then decides who is in which part, and each part says too little: that a value was rounded, say, but not
    that it was large enough to be published.
    """
    if is_traced((fields, missing)):
        return
    seen = {key: ~np.asarray(missing.get(key, np.zeros(part.n, bool))) for key, part in fields.items()}
    for key, part in fields.items():
        if not part.channel.sums.reveals or part.values.ndim > 1 or not seen[key].any():
            continue
        least, most = (np.asarray(end)[seen[key]] for end in part.possible_ends())
        others = {
            other: np.asarray(one.values)[seen[other]]
            for other, one in fields.items()
            if one.field == part.field and other != key and one.values.ndim == 1 and not one.channel.sums.known
        }
        for other, values in others.items():
            apart = values.size and not np.any(seen[key] & seen[other])
            if apart and np.all(least < most) and np.min(values) > np.max(most):
                limit = np.max(most) + 1
                given = (
                    f"one part of values below {limit:g} that were withheld, and one of values of at least {limit:g}"
                )
                remedy = (
                    "Pass one channel that has the noise and withholds: dpjax.releases.thresholded_units for noise "
                    "that is added, else a mechanism of your own."
                )
                fail(f"fields[{part.field!r}]", given, "parts of people, whatever their values are", remedy)


class FieldPart(tuple[Any, Any, Any]):
    """The values, the channel and the names of the categories of a part, with the name of its field."""

    field: str

    def __new__(cls, field: str, values: Any, channel: Any, levels: Any) -> "FieldPart":
        """The three."""
        made = super().__new__(cls, (values, channel, levels))
        made.field = field
        return made


def is_in_parts(given: Any) -> bool:
    """Whether a field is given as a list of parts, rather than as one pair of values and channel."""
    return isinstance(given, list) and bool(given) and all(isinstance(part, tuple) for part in given)


def read_part(name: str, place: int, part: tuple[Any, ...]) -> tuple[Any, Any, Array, Any]:
    """The values and the channel of a part, of whom it was not released, and the names of its categories."""
    argument = f"fields[{name!r}][{place}]"
    remedy = "Pass (values, channel, mask), the mask with True for each person of whom the value was released."
    if len(part) not in (2, 3, 4) or not is_mechanism(part[1]):
        fail(
            argument,
            f"a tuple of {[name_of(one) for one in part]}",
            "values, channel and mask",
            remedy,
            error=TypeError,
        )
    values, channel = part[:2]
    n = len(values) if hasattr(values, "__len__") else 0
    if len(part) == 2:
        return values, channel, jnp.zeros(n, bool), None
    mask, levels = (*part[2:], None)[:2]
    if not is_traced(mask) and (np.ndim(mask) != 1 or np.asarray(mask).dtype != bool or len(mask) != n):
        fail(f"mask of {argument}", describe(mask), f"an array of booleans [{n}]", remedy, error=TypeError)
    return values, channel, ~jnp.asarray(mask), levels


def channel_is_exact(channel: Any) -> bool:
    """Whether a channel releases the field itself."""
    return bool(as_mechanism(channel).sums.known)
