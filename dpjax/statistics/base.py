"""What the shipped statistics share: sensitivities from the set of values a record can give, and checked fields."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.jit import jit_unoptimized
from dpjax._util.json_names import JsonNamed
from dpjax._util.spelling import names_methods
from dpjax._util.validation import check_array, check_count, check_number, fail, name_of, read_numbers
from dpjax._util.words import amount
from dpjax.base import Array, Records, Statistic
from dpjax.mechanisms.privacy import Neighbours, check_neighbours

Norm = Literal[1, 2]


def dimension_of(statistic: Any) -> int | None:
    """The length d of a statistic's value, None if it is not known before a record is."""
    return getattr(statistic, "dimension", None)


def is_sparse(statistic: Any) -> bool:
    """Whether a statistic, or a user's function with such an attribute, has a method `sparse`."""
    return statistic.is_sparse if isinstance(statistic, RecordStatistic) else hasattr(statistic, "sparse")


def is_whole(statistic: Any) -> bool:
    """Whether a statistic is known to consist of whole numbers."""
    return isinstance(statistic, RecordStatistic) and statistic.is_whole


def level_names_of(statistic: Any) -> dict[str, tuple[str, ...]]:
    """The names of the categories by field, as far as a statistic knows them."""
    return statistic.level_names if isinstance(statistic, RecordStatistic) else {}


def field_types_of(statistic: Any) -> dict[str, np.dtype]:
    """The types of fields by name, as far as a statistic says them; none of a user's function."""
    return statistic.field_types if isinstance(statistic, RecordStatistic) else {}


def fixed_values_of(statistic: "RecordStatistic") -> dict[str, Any]:
    """What stands for an entry of each field that is none, as far as a statistic says it."""
    return {name: value for leaf in reversed(statistic.leaves) for name, value in leaf.fixed_values.items()}


def coordinate_names_of(statistic: Any, size: int) -> tuple[str, ...]:
    """The names of the coordinates [d] of a statistic, by default their places."""
    names = statistic.coordinate_names if isinstance(statistic, RecordStatistic) else None
    return names if names is not None and len(names) == size else tuple(map(str, range(size)))


def normal_mean(statistic: Any, columns: dict[str, slice], mean: Array, factor: Array) -> Array | None:
    """The `RecordStatistic.normal_mean` of a statistic; None of a user's function."""
    return statistic.normal_mean(columns, mean, factor) if isinstance(statistic, RecordStatistic) else None


def normal_moments(
    statistic: Any, columns: dict[str, slice], mean: Array, factor: Array
) -> tuple[Array, Array | None] | None:
    """The `RecordStatistic.normal_moments` of a statistic; None of a user's function."""
    return statistic.normal_moments(columns, mean, factor) if isinstance(statistic, RecordStatistic) else None


def words_of(statistic: Any) -> str:
    """What was summed, in words."""
    return statistic.words() if isinstance(statistic, RecordStatistic) else f"the sum of {name_of(statistic)}"


class TakenAtValue(ABC):
    """A statistic that depends on the released value, such as the gradient of a loss at published coefficients.

    The value is data of a release, its statistic is not: releases that differ in their value alone share programs.
    """

    @abstractmethod
    def at(self, value: Array) -> Statistic:
        """The statistic ``record -> [d]`` if this value was released."""


def statistic_at(statistic: Statistic, value: Array) -> Statistic:
    """The function of one record that is summed if this value was released."""
    return statistic.at(value) if isinstance(statistic, TakenAtValue) else statistic


@names_methods
class RecordStatistic(JsonNamed, ABC):
    """A statistic ``record -> [d]`` that knows the set of values it can take.

    Statistics are compared and hashed by value, so that equal ones find the same compiled program: a subclass is a
    frozen dataclass. It has an attribute ``dimension``: the length d of its value, None if that depends on the
    record. ``json_name`` is its name in JSON text, if it is to have one; its own subclasses do not inherit it.

    Examples
    --------
    >>> import dpjax
    >>> statistic = dpjax.statistics.cells("cell", num_categories=3)
    >>> isinstance(statistic, dpjax.statistics.RecordStatistic), statistic.radius(1), statistic.diameter(1)
    (True, 1.0, 2.0)
    """

    by_json_name: ClassVar[dict[str, type[Any]]] = {}
    counts_each_once: ClassVar[bool] = False
    """Whether it is 1 at exactly one coordinate and 0 elsewhere, whatever the record."""

    @property
    def is_whole(self) -> bool:
        """Whether it is known to consist of whole numbers, whatever the record: integer noise protects no others."""
        return False

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the categories by field, where they have names."""
        return {}

    @property
    def coordinate_names(self) -> tuple[str, ...] | None:
        """The names of its coordinates [d], where they have names."""
        return None

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """The type of each field that it reads, with the shape of an entry; empty if it does not say so."""
        return {}

    @property
    def fixed_values(self) -> dict[str, Any]:
        """What stands for an entry that is no number, by field: 0 of those that it leaves out, and no category."""
        return {}

    @abstractmethod
    def __call__(self, record: Records) -> Array:
        """The contribution [d] of one record."""

    def words(self) -> str:
        """What was summed, in words."""
        return f"the sum of {name_of(self)}"

    def sparse(self, records: Records) -> tuple[Array, Array]:
        """The nonzero coordinates of what each of m records contributes: their places and values, both [m, k].

        For statistics such as tables, of whose many coordinates one record moves few. A place of -1 is padding,
        whatever its value.
        """
        raise NotImplementedError(f"{name_of(self)} has no sparse")

    @property
    def is_sparse(self) -> bool:
        """Whether there is `sparse`."""
        return type(self).sparse is not RecordStatistic.sparse

    @abstractmethod
    def diameter(self, norm: Norm) -> float:
        """The largest distance, in the L1 or L2 norm, between the contributions of two records."""

    @abstractmethod
    def radius(self, norm: Norm) -> float:
        """The largest L1 or L2 norm of the contribution of one record."""

    def sensitivity(self, norm: Norm, neighbours: Neighbours) -> float:
        """How far the sum over records moves between neighbouring data sets.

        Parameters
        ----------
        norm
            1 (Laplace noise) or 2 (Gaussian noise).
        neighbours
            ``"replace-one"``: n is public and one record differs, which gives `diameter`.
            ``"add-or-remove"``: one record more or less, which gives `radius`.

        Raises
        ------
        ValueError
            If the contributions are unbounded, or the norm or relation is unknown.
        """
        if norm not in (1, 2):
            fail("norm", repr(norm), "1 or 2", "Pass 1 for Laplace and 2 for Gaussian noise.")
        check_neighbours(neighbours)
        return self.diameter(norm) if neighbours == "replace-one" else self.radius(norm)

    def normal_mean(self, columns: dict[str, slice], mean: Array, factor: Array) -> Array | None:
        """The mean [d] of what one record adds, where its fields are jointly Normal; None where it is not known.

        Parameters
        ----------
        columns
            The columns of each field.
        mean
            The mean [k] of the columns.
        factor
            The lower Cholesky factor [k, k] of their covariance.
        """
        del columns, mean, factor
        return None

    def normal_moments(
        self, columns: dict[str, slice], mean: Array, factor: Array
    ) -> tuple[Array, Array | None] | None:
        """The `normal_mean` and the covariance [d, d]; None in the place of what is not known."""
        found = self.normal_mean(columns, mean, factor)
        return None if found is None else (found, None)

    def covers(self, contributions: np.ndarray, tolerance: float) -> np.ndarray:
        """Whether the sensitivities are about such contributions [m, d] of records: by default, within the radius.

        A statistic whose records have to be of some kind, such as shares that sum to 1, looks for that here.

        Parameters
        ----------
        contributions : [m, d]
            What each of m records adds.
        tolerance
            The relative rounding error that is allowed.
        """
        return np.asarray(np.linalg.norm(contributions, axis=1) <= self.radius(2) * (1 + tolerance))

    @property
    def leaves(self) -> "tuple[RecordStatistic, ...]":
        """The statistics that a device computes, of which `assemble` makes this one on the host: by default itself."""
        return (self,)

    def assemble(self, parts: Iterator[np.ndarray]) -> np.ndarray:
        """The contributions [m, d] of m records in double precision, from those of the `leaves`, in their order."""
        return next(parts)

    def assemble_listed(self, parts: Iterator[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        """The same from places and values [m, k], as `sparse` gives them."""
        return next(parts)

    def rounding(self) -> float:
        """How far contributions may be from the true ones because of rounding, relative to the radius in either norm.

        Lengths of vectors [d] are off by d units in the last place at most; tables compute none.
        """
        terms = 1 if self.is_sparse else dimension_of(self) or 1
        return rounding_of(self, terms, float(jnp.finfo(jnp.result_type(float)).eps))


class OneCell(RecordStatistic):
    """A statistic that is 1 at one coordinate and 0 elsewhere, or 0 everywhere."""

    @property
    def is_whole(self) -> bool:
        """Counts are."""
        return True

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The number of cells."""

    @abstractmethod
    def cell(self, record: Records) -> Array:
        """The number [] of the record's cell; -1 if it has none."""

    def __call__(self, record: Records) -> Array:
        """1 in the record's cell and 0 elsewhere [d]; 0 everywhere if it has none."""
        return as_counts(self.cell(record) == jnp.arange(self.dimension))

    def sparse(self, records: Records) -> tuple[Array, Array]:
        """The one cell of each record, and 1: both [m, 1]."""
        cells = jit_unoptimized(jax.vmap(lambda record: self.cell(record)[None]))(records)
        return cells, jnp.ones(cells.shape)

    def diameter(self, norm: Norm) -> float:
        """Two cells differ by 1 each; exact."""
        return 2 ** (1 / norm)

    def radius(self, norm: Norm) -> float:
        """One cell differs by 1, in either norm; exact."""
        del norm
        return 1.0


def rounding_of(statistic: RecordStatistic, terms: int, unit: float) -> float:
    """That of sums of so many terms, with this unit in the last place; 0 of whole numbers that floats hold."""
    return 0.0 if statistic.is_whole and statistic.radius(1) <= 2 / unit else (terms + 16) * unit


def read_field(record: Records, name: str, shapes: Sequence[tuple[int, ...]] | None = None) -> Array:
    """One record's field as floats, with its shape checked while the program is traced."""
    value = _get_field(record, name)
    if shapes is not None and jnp.shape(value) not in shapes:
        expected = " or ".join(str(list(shape)) for shape in shapes)
        fail(f"record[{name!r}]", f"shape {list(jnp.shape(value))}", f"shape {expected} in each record", _REMEDY)
    return jnp.asarray(value, jnp.result_type(float))


def read_categories(record: Records, name: str, shape: tuple[int, ...] = ()) -> Array:
    """One record's field of categories counted from 0, as integers."""
    value = _get_field(record, name)
    if jnp.result_type(value).kind not in "biu":
        given = f"{jnp.result_type(value)} values"
        fail(f"record[{name!r}]", given, "integers 0, 1, ...", "Code the categories as integers.", error=TypeError)
    if jnp.shape(value) != shape:
        fail(f"record[{name!r}]", f"shape {list(jnp.shape(value))}", f"shape {list(shape)} in each record", _REMEDY)
    return jnp.asarray(value, jnp.result_type(int))


def number_type(*shape: int) -> np.dtype:
    """The type of a field of real numbers, with the shape of an entry."""
    return np.dtype((float, shape))


def category_type(*shape: int) -> np.dtype:
    """The type of a field of categories counted from 0, with the shape of an entry."""
    return np.dtype((int, shape))


def as_counts(indicator: Array) -> Array:
    """Flags as numbers that can be summed."""
    return indicator.astype(jnp.result_type(float))


def clamped(lower: Any, upper: Any) -> str:
    """How a field was clamped, in words."""
    if lower is None and upper is None:
        return "not clamped"
    sides = ("−∞" if lower is None else amount(lower), "∞" if upper is None else amount(upper))
    return f"clamped to {sides[0]} to {sides[1]}"


def check_interval(lower: tuple[float, ...], upper: tuple[float, ...]) -> None:
    """Raise unless the bounds pair up and every lower one is below its upper one."""
    if len(lower) != len(upper):
        fail("upper", f"{len(upper)} bounds", f"{len(lower)}, as in lower", "Give one pair of bounds per coordinate.")
    if any(low >= high for low, high in zip(lower, upper, strict=True)):
        fail("upper", upper, f"numbers above lower = {lower}", "Swap the bounds or widen the interval.")


def as_floats(argument: str, values: float | Sequence[float]) -> tuple[float, ...]:
    """Finite numbers as a tuple, so that a statistic can be hashed; one number becomes a tuple of one."""
    check_array(argument, values, lambda array: array.ndim <= 1 and array.size > 0, "finite numbers", "Pass numbers.")
    if any(isinstance(one, (bool, np.bool_)) for one in np.atleast_1d(np.asarray(values, object))):
        fail(argument, repr(values), "finite numbers", "Pass numbers, no truth values.", error=TypeError)
    try:
        return tuple(np.atleast_1d(np.asarray(values, float)).tolist())
    except (TypeError, ValueError):
        fail(argument, repr(values), "finite numbers", "Pass a number or a sequence of numbers.", error=TypeError)


def as_increasing(argument: str, values: Sequence[float], remedy: str, least: int) -> tuple[float, ...]:
    """Finite numbers as a tuple, each larger than the one before and at least so many, or an error."""
    numbers = as_floats(argument, values)
    if len(numbers) < least or any(left >= right for left, right in pairwise(numbers)):
        fail(argument, numbers, f"increasing numbers, at least {least}", remedy)
    return numbers


def as_number(argument: str, value: float, accept: Callable[[np.ndarray], Any], expected: str, remedy: str) -> float:
    """One finite number that is accepted, or an error."""
    check_number(argument, value)
    check_array(argument, value, accept, expected, remedy)
    try:
        return float(value)
    except (TypeError, ValueError):
        fail(argument, repr(value), expected, remedy, error=TypeError)


def as_length(argument: str, value: float, remedy: str) -> float:
    """A bound of lengths, above 0, whose square is neither 0 nor infinite in the float type; or an error."""
    expected = "a number above 0 whose square the float type holds"
    numbers = jnp.finfo(jnp.result_type(float))

    def holds(length: np.ndarray) -> Any:
        return (length >= float(numbers.tiny) ** 0.5) & (length <= float(numbers.max) ** 0.5)

    return as_number(argument, value, holds, expected, remedy)


def scaled_down(vector: Array, bound: float) -> tuple[Array, Array]:
    """A vector [d], scaled down to a length if it is longer; and whether its length [] is finite."""
    # Divided before they are squared: the square of a small bound may be 0.
    square = jnp.sum(jnp.square(vector / bound))
    # Equal to 1 within the bound, with a gradient also at 0.
    return vector / jnp.sqrt(jnp.maximum(square, 1.0)), jnp.isfinite(square)


def check_field_name(name: Any, argument: str = "field") -> str:
    """The name of a record field, or an error."""
    if not isinstance(name, str):
        fail(
            argument, repr(name), "the name of a record field", "Pass a string, as the model names it.", error=TypeError
        )
    return name


def check_function(statistic: Any, argument: str = "statistic") -> None:
    """Raise unless a statistic can be called."""
    if isinstance(statistic, type) or not callable(statistic):
        remedy = "Pass one of dpjax.statistics or a function record -> [d]."
        fail(argument, repr(statistic), "a function of one record", remedy, error=TypeError)


def as_sizes(argument: str, values: int | Sequence[int] | None) -> tuple[int, ...]:
    """Whole numbers of at least 1 as a tuple; one number becomes a tuple of one."""
    listed = np.atleast_1d(read_numbers(argument, values, "whole numbers", "Pass one, or a list of them.")).tolist()
    return tuple(check_count(argument, value) for value in listed)


def _get_field(record: Records, name: str) -> Array:
    if name not in record:
        remedy = f"Call it so in the model; for private.release pass columns={{{name!r}: its column, ...}}."
        fail(f"record[{name!r}]", f"a record with fields {sorted(record)}", f"a field {name!r}", remedy)
    return record[name]


_REMEDY = "Give records the fields that the statistic reads. A column x becomes one of shape [1] by x[:, None]."
