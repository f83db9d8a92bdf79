"""The categories that census files count, and the queries that are sums of them."""

from typing import Any, NamedTuple

import numpy as np

from dpjax.validation import fail

__all__ = ["PL94_PERSON", "PL94_UNIT", "Histogram", "choose_attributes", "codes_of", "coding_of", "fits", "groups_of"]


class Histogram(NamedTuple):
    """The categories of which every query is a sum.

    Attributes
    ----------
    sizes
        The number of categories of each attribute; the last attribute is the fastest.
    codings
        Coarser codings of an attribute by name: the attribute, and the group of each of its categories, -1 for none.

    Examples
    --------
    >>> from dpjax.adapters import census
    >>> census.PL94_PERSON.sizes
    {'hhgq': 8, 'votingage': 2, 'hispanic': 2, 'cenrace': 63}
    >>> Histogram({"age": 4, "sex": 2}, {"minors": ("age", (0, -1, -1, -1))}).codings["minors"]
    ('age', (0, -1, -1, -1))
    """

    sizes: dict[str, int]
    codings: dict[str, tuple[str, tuple[int, ...]]]


PL94_PERSON = Histogram(
    {"hhgq": 8, "votingage": 2, "hispanic": 2, "cenrace": 63},
    {
        "hhinstlevels": ("hhgq", (0, 1, 1, 1, 1, 2, 2, 2)),
        "gqNursingTotal": ("hhgq", (-1, -1, -1, 0, -1, -1, -1, -1)),
        "nonvoting": ("votingage", (0, -1)),
    },
)
"""Persons of the redistricting files: household or kind of group quarters, voting age, Hispanic origin, and race."""

PL94_UNIT = Histogram({"h1": 2}, {})
"""Housing units of the redistricting files: vacant or occupied."""


def choose_attributes(histogram: Histogram, attributes: Any) -> dict[str, int]:
    """The sizes of the attributes that are wanted, or an error unless the histogram has them; all for None."""
    if attributes is None:
        return histogram.sizes
    wanted = {attributes} if isinstance(attributes, str) else set(attributes)
    if not wanted or not wanted <= set(histogram.sizes):
        fail("attributes", sorted(wanted), f"some of {list(histogram.sizes)}", "Name attributes of the histogram.")
    return {name: size for name, size in histogram.sizes.items() if name in wanted}


def coding_of(row: dict[str, Any], histogram: Histogram) -> tuple[str, ...]:
    """How a row's query codes each attribute: ``"*"`` where it sums over it.

    Raises
    ------
    ValueError
        If the histogram does not have such a coding.
    """
    named = coding_in_name(row["query_name"], histogram)
    levels = {name: row.get(name) or named.get(name) for name in histogram.sizes}
    for name, level in levels.items():
        known = ["*", "detailed", name, *(coding for coding, (owner, _) in histogram.codings.items() if owner == name)]
        if level not in known:
            given = f"query {row['query_name']!r}, which codes {name} as {level!r}"
            fail("histogram", given, f"one of {known}", "Give the histogram this coding.")
    return tuple(str(level) for level in levels.values())


def coding_in_name(query: str, histogram: Histogram) -> dict[str, str]:
    """How a query codes each attribute by its name, such as ``hispanic * cenrace_dpq``, ``total_con`` or ``detailed``.

    Nothing where the name says nothing.
    """
    name = query.removesuffix("_dpq").removesuffix("_con")
    if name in ("total", "detailed"):
        return dict.fromkeys(histogram.sizes, {"total": "*"}.get(name, name))
    owners = {name: name for name in histogram.sizes} | {name: owner for name, (owner, _) in histogram.codings.items()}
    words = [word.strip() for word in name.split("*")]
    if not set(words) <= set(owners):
        return {}
    return dict.fromkeys(histogram.sizes, "*") | {owners[word]: word for word in words}


def codes_of(attribute: str, level: str, histogram: Histogram) -> np.ndarray:
    """The group [size] of each category of an attribute, -1 for none; one group where the query sums over it."""
    size = histogram.sizes[attribute]
    if level == "*":
        return np.zeros(size, int)
    return np.arange(size) if level in (attribute, "detailed") else np.asarray(histogram.codings[level][1])


def fits(coding: tuple[str, ...], histogram: Histogram, kept: dict[str, int]) -> bool:
    """Whether a query is a sum of cells of the kept attributes: it sums over all others."""
    return all(level == "*" or name in kept for name, level in zip(histogram.sizes, coding, strict=True))


def groups_of(coding: tuple[str, ...], histogram: Histogram, kept: dict[str, int]) -> np.ndarray:
    """The coordinate [c] of a query to which each cell of the kept attributes adds, -1 for none."""
    groups = np.zeros((), int)
    for name, level in zip(histogram.sizes, coding, strict=True):
        if name in kept:
            codes = codes_of(name, level, histogram)
            outside = (groups[..., None] < 0) | (codes < 0)
            groups = np.where(outside, -1, groups[..., None] * (codes.max() + 1) + codes)
    return groups.reshape(-1)
