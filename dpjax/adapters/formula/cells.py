"""The terms of a formula in the cells of a population, which have the levels and groups of the records."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail
from dpjax.adapters.formula.program import Common, DesignMatrix, Group
from dpjax.adapters.formula.reading import CommonTerm, GroupTerm, read_formula, read_frame
from dpjax.base import Array

__all__ = ["average_over_cells", "design_of_cells"]

OF_COLUMNS = re.compile(r"\b(scale|center|standardize|bs|cc|cr|tp|poly|C|S|T|B|binary)\(")
"""Functions of formulae that read the whole column, so that they are others of the cells than of the records."""


def average_over_cells(
    design: DesignMatrix, text: str, cells: Any, shares: np.ndarray, draws: Mapping[str, Any]
) -> np.ndarray:
    """Averages [draw, group] of expected responses, by the shares [group, cell] of cells, at draws [draw, ...]."""
    there, weights = design_of_cells(design, text, cells), jnp.asarray(shares, float)
    every = jnp.arange(there.size)

    def at(parameters: Mapping[str, Array]) -> Array:
        return jnp.sum(weights * there.family.mean(there.predict(parameters, every))[None], axis=1)

    return np.asarray(jax.jit(lambda draws: jax.lax.map(at, draws))(dict(draws)))


def design_of_cells(design: DesignMatrix, text: str, cells: Any) -> DesignMatrix:
    """The design with the columns of cells in place of those of records, or an error if a cell has what no record has.

    Columns that are no numbers get the levels of the records, so that they are coded in the same way.
    """
    if found := OF_COLUMNS.search(text):
        given = f"the formula {text!r}, whose {found[1]} reads the whole column of the records"
        remedy = "Put the transformed column into data and cells, by the same numbers in both."
        fail("model", given, "functions of single numbers", remedy)
    frame = read_frame(cells, "cells")
    for name, levels in design.levels:
        if name not in frame.columns:
            continue
        values = frame[name].astype(str)
        if new := sorted(set(values) - set(levels)):
            given = f"{new[0]!r} in the column {name!r}, which no record has"
            remedy = "Merge it with another level in data and cells, or leave these cells out."
            fail("cells", given, f"levels of the records, {', '.join(levels)}", remedy)
        frame = frame.assign(**{name: values.astype("category").cat.set_categories(list(levels), ordered=True)})
    terms = read_formula(f"{design.response} ~ {text.partition('~')[2]}", frame, "cells", keep_levels=True)
    return replace(
        design,
        common=tuple(common_of(own, term) for own, term in zip(design.common, terms.common, strict=True)),
        groups=tuple(group_of(own, term) for own, term in zip(design.groups, terms.groups, strict=True)),
        offset=None if terms.offset is None else jnp.asarray(terms.offset, float),
        trials=None,
        size=len(frame),
    )


def common_of(own: Common, term: CommonTerm) -> Common:
    """A term of all records with the columns of the cells."""
    assert (own.name, own.labels) == (term.name, term.labels), "levels are those of the records"
    return replace(own, columns=jnp.asarray(term.columns, float))


def group_of(own: Group, term: GroupTerm) -> Group:
    """A term of groups with the columns of the cells, or an error if a group has no record."""
    if new := [name for name in term.groups if name not in own.groups]:
        given, remedy = f"the group {new[0]!r} of {own.name!r}", "Leave its cells out: nothing is known of its effect."
        fail("cells", given, "groups of the records", remedy)
    places = np.array([own.groups.index(name) for name in term.groups])
    columns = None if term.columns is None else jnp.asarray(term.columns, float)
    return replace(own, columns=columns, index=jnp.asarray(places[term.group]))
