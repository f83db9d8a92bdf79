"""Records of several columns of finitely many levels, one integer field for each."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_count, describe, fail
from dpjax.base import Array, Model, Records
from dpjax.domain import LARGEST_DOMAIN, Domain
from dpjax.models.table_effects import Columns, tables_of
from dpjax.release import PrivateRelease
from dpjax.statistics.base import check_field_name
from dpjax.statistics.labels import read_levels

__all__ = ["OfColumns", "read_domain", "read_tables"]


class OfColumns(Model, abstract=True):
    """A model of columns that have names and finitely many levels; a subclass has the field ``cells``."""

    cells: Domain

    def levels(self, records: Records) -> Array:
        """The levels [K, n] of the columns."""
        return jnp.stack([records[field] for field in self.cells.fields])

    def are_levels(self, levels: Array) -> Array:
        """Whether each record [n] has levels [K, n] that its columns have."""
        return jnp.all((levels >= 0) & (levels < np.asarray(self.cells.sizes)[:, None]), axis=0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.cells.fields

    def unreleased(self, release: PrivateRelease) -> tuple[str, ...]:
        """The columns that no released table has, so that their effects are those of the prior."""
        tables = None if release.summed is None else tables_of(release.summed.statistic, self.cells)
        if tables is None:
            return ()
        seen = {self.cells.fields[column] for table in tables for column in table} | set(release.fields)
        return tuple(name for name in self.cells.fields if name not in seen)

    @property
    def support(self) -> Domain | None:
        """Every possible record, unless there are too many."""
        return self.cells if self.cells.num_cells <= LARGEST_DOMAIN else None

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the levels by field."""
        return self.cells.level_names

    def named_levels(self, level_names: Mapping[str, tuple[str, ...]]) -> list[tuple[str, ...]]:
        """The names of the levels of each column, or their numbers."""
        pairs = zip(self.cells.fields, self.cells.sizes, strict=True)
        return [level_names.get(field, tuple(map(str, range(size)))) for field, size in pairs]


def read_domain(domain: Any) -> Domain:
    """The columns, or an error unless each has a name and two or more levels."""
    expected, remedy = "columns by name, each with its levels", "Pass such as {'sex': ['female', 'male'], 'age': 5}."
    if isinstance(domain, Domain):
        if domain.possible is not None or domain.numbers is not None or domain.lists is not None:
            fail("domain", "one whose combinations of levels are not all possible, or have numbers", expected, remedy)
        domain = dict(zip(domain.fields, domain.levels or domain.sizes, strict=True))
    if not isinstance(domain, Mapping):
        fail("domain", describe(domain), expected, remedy, error=TypeError)
    if not domain:
        fail("domain", "no columns", expected, remedy)
    fields, names, sizes = [], [], []
    for field, levels in domain.items():
        fields.append(check_field_name(field, "domain"))
        if isinstance(levels, (str, bytes)) or not isinstance(levels, (Sequence, int, np.integer)):
            fail(f"domain[{field!r}]", describe(levels), "a number of levels, or their names", remedy, error=TypeError)
        if isinstance(levels, Sequence):
            names.append(tuple(map(str, levels)))
        sizes.append(len(levels) if isinstance(levels, Sequence) else levels)
        check_count(f"domain[{field!r}]", sizes[-1], "A column has at least two levels.", least=2)
    # Columns without names get the numbers of their levels, if others have names.
    listed = [of if isinstance(of, Sequence) else tuple(map(str, range(of))) for of in domain.values()]
    return Domain(tuple(fields), tuple(map(int, sizes)), read_levels(listed) if names else None)


def read_tables(tables: Any, domain: Domain) -> tuple[Columns, ...]:
    """The columns of each table by their places, increasing; or an error unless they are columns of the domain."""
    expected = f"lists of some of the columns {list(domain.fields)}"
    remedy = "Pass such as [('sex', 'income'), ('age', 'income')]."
    if isinstance(tables, (str, bytes)) or not isinstance(tables, Sequence):
        fail("tables", describe(tables), expected, remedy, error=TypeError)
    if not tables:
        fail("tables", "no tables", expected, remedy)
    found = []
    for place, table in enumerate(tables):
        names = (table,) if isinstance(table, str) else table
        if not isinstance(names, Sequence):
            fail(f"tables[{place}]", describe(table), expected, remedy, error=TypeError)
        if unknown := [name for name in names if name not in domain.fields]:
            fail(f"tables[{place}]", f"the columns {unknown}", expected, remedy)
        if not names or len(set(names)) != len(names):
            fail(f"tables[{place}]", f"the columns {list(names)}", "one column or more, each once", remedy)
        found.append(tuple(sorted(map(domain.fields.index, names))))
    return tuple(found)
