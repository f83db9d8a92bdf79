"""A table: the possible records that counts refer to, and its known totals, without parameters of the model."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from dpjax.base import Array, Key, Records
from dpjax.data_augmentation.counts.fibre import Fibre, find_fibre
from dpjax.data_augmentation.counts.sums import CellSums, contributions_of_cells
from dpjax.release import PrivateRelease
from dpjax.release.unknown_count import CountPrior, UnknownCount

__all__ = ["COUNTS", "CellLayout", "Frozen", "Structure", "Table", "TableSums", "lay_out", "table_of"]

SEED = 20_062
"""Seed of the weights of a sum that no move leaves as it is."""

COUNTS = "counts"
"""The field of the one record: how often each possible value occurs, whole numbers [c]."""


@dataclass(frozen=True, eq=False)
class Table:
    """The possible records and the released sums of their counts; hashed by identity, so that programs are reused.

    It has none of the model's constants, so that one program serves models that differ in these.

    Parameters
    ----------
    support
        Every possible record, leading axis [c].
    impossible
        Which of them no record is, whatever the parameters [c].
    conjugate
        The sums of counts, with their signs, that integrating the parameters out leaves; None if none are known.
    sums
        The contributions of each to all released sums.
    parts
        The contributions of each to the sums of each part of the release.
    known
        The sums among them that were released exactly, with their values.
    fibre
        The moves that keep these.
    n
        The number of records, or its prior.
    entangled
        Sums that every move changes, if a mechanism reads all its sums together: then no two moves are made at once.
    """

    support: Records
    impossible: np.ndarray
    conjugate: tuple[CellSums, np.ndarray] | None
    sums: CellSums
    parts: tuple[CellSums, ...]
    known: tuple[tuple[CellSums, np.ndarray], ...]
    fibre: Fibre
    n: int | UnknownCount
    entangled: tuple[CellSums, ...] = ()

    def draw_number(self, key: Key) -> int | Array:
        """The number of records [], or a draw from its prior."""
        return self.n.prior.sample(key) if isinstance(self.n, UnknownCount) else self.n

    @property
    def bounds(self) -> tuple[int, int | None]:
        """The least and the greatest possible number of records; None if there is no greatest."""
        return self.n.prior.bounds if isinstance(self.n, UnknownCount) else (self.n, self.n)

    @property
    def prior(self) -> CountPrior | None:
        """The prior of the number of records, None if that is known."""
        return self.n.prior if isinstance(self.n, UnknownCount) else None

    @property
    def noisy(self) -> tuple[CellSums, ...]:
        """The sums of the parts that are not known."""
        return tuple(part for part in self.parts if all(part is not sums for sums, _ in self.known))

    @property
    def num_cells(self) -> int:
        """The number c of possible records."""
        return len(self.sums.index)


@dataclass(frozen=True, eq=False)
class TableSums:
    """The released statistic of a table: its sums over cells."""

    is_of_whole_data: ClassVar[bool] = True
    """Whether one record is a whole data set, whose number of records is not the release's n of 1."""

    table: Table

    @property
    def dimension(self) -> int:
        """The number of sums."""
        return self.table.sums.size

    def __call__(self, record: Records) -> Array:
        """The sums [d] of one table."""
        return self.table.sums.total(record[COUNTS])


def table_of(release: PrivateRelease) -> Table:
    """The table of a release in count form."""
    statistic = release.summed.statistic
    assert isinstance(statistic, TableSums)
    return statistic.table


class CellLayout(NamedTuple):
    """The parts of a release.

    Attributes
    ----------
    sizes
        How many sums each has.
    known
        Their values if they are known; None of a part of which none is.
    limited
        Whether the published numbers exclude sums.
    kind
        The type of the values.
    together
        Whether some mechanism reads all its sums together.
    """

    sizes: tuple[int, ...]
    known: tuple[tuple[float | None, ...] | None, ...]
    limited: tuple[bool, ...]
    kind: Any
    together: bool = False


@dataclass(frozen=True)
class Frozen:
    """Arrays that are equal if their numbers are."""

    arrays: Any = field(compare=False)
    numbers: Any = field(init=False)

    def __post_init__(self) -> None:
        leaves, structure = jax.tree.flatten(self.arrays)
        contents = tuple((leaf.shape, str(leaf.dtype), leaf.tobytes()) for leaf in leaves)
        object.__setattr__(self, "numbers", (structure, contents))


class Structure(NamedTuple):
    """The arguments that determine a table."""

    support: Frozen
    impossible: Frozen
    conjugate: Frozen
    statistic: Any
    n: int | UnknownCount
    layout: CellLayout


def known_part(part: CellSums, values: tuple[float | None, ...], limited: bool) -> tuple[CellSums, np.ndarray]:
    """The sums of a part that are known, with their values: of an exact part the part itself."""
    places = np.array([place for place, value in enumerate(values) if value is not None], int)
    return part.rows(places) if limited else part, np.array([value for value in values if value is not None], float)


@lru_cache(maxsize=64)
def lay_out(structure: Structure) -> TableSums:
    """The sums of a table, the same object for equal arguments."""
    support, layout, n = structure.support.arrays, structure.layout, structure.n
    with jax.ensure_compile_time_eval():
        sums = contributions_of_cells(structure.statistic, support, sum(layout.sizes), layout.kind)
    ends = np.cumsum(layout.sizes).tolist()
    parts = tuple(sums.part(end - size, end) for size, end in zip(layout.sizes, ends, strict=True))
    described = zip(parts, layout.known, layout.limited, strict=True)
    known = tuple(known_part(part, values, limited) for part, values, limited in described if values is not None)
    limited = [part for part, is_limited in zip(parts, layout.limited, strict=True) if is_limited]
    fibre = find_fibre(len(sums.index), known, not isinstance(n, UnknownCount), limited)
    found = structure.conjugate.arrays
    conjugate = None if found is None else (CellSums(found[0], np.ones(found[0].shape), len(found[1])), found[1])
    entangled = (entangle(len(sums.index)),) if layout.together else ()
    return TableSums(Table(support, structure.impossible.arrays, conjugate, sums, parts, known, fibre, n, entangled))


def entangle(num_cells: int) -> CellSums:
    """One sum that every move of some cells against others changes: the cells have weights without simple relations."""
    weight = np.sqrt(np.arange(2.0, num_cells + 2)) + np.random.default_rng(SEED).uniform(size=num_cells)
    return CellSums(np.zeros((num_cells, 1), int), weight[:, None], 1)
