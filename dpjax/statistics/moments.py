"""Clamped sums, means and Gram matrices."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, fail, read_numbers
from dpjax.base import Array, Records
from dpjax.numerics.clamped import clamped_mean, gram_mean, scales_of
from dpjax.statistics.base import (
    Norm,
    RecordStatistic,
    as_floats,
    check_field_name,
    check_interval,
    clamped,
    number_type,
    read_field,
)
from dpjax.statistics.combinators import Scaled


@dataclass(frozen=True)
class Total(RecordStatistic):
    """The clamped value of one field; see `total`.

    Examples
    --------
    >>> import dpjax
    >>> statistic = dpjax.statistics.total("y", -1.0, 1.0)
    >>> statistic.sensitivity(1, "replace-one")
    2.0
    """

    json_name: ClassVar[str | None] = "total"

    field: str
    lower: tuple[float, ...] | None
    upper: tuple[float, ...] | None
    dimension: int | None

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """One real number, or several."""
        return {self.field: number_type() if self.dimension in (None, 1) else number_type(self.dimension)}

    @property
    def fixed_values(self) -> dict[str, Any]:
        """The centre of its bounds."""
        if self.lower is None or self.upper is None:
            return {}
        return {self.field: _centres(self.lower, self.upper)}

    def __call__(self, record: Records) -> Array:
        """The clamped field [d] of one record."""
        shapes = None if self.dimension is None else [(self.dimension,)] + [()] * (self.dimension == 1)
        value = jnp.reshape(read_field(record, self.field, shapes), (-1,))
        bounds = [None if bound is None else jnp.asarray(bound, value.dtype) for bound in (self.lower, self.upper)]
        return jnp.clip(value, *bounds)

    def words(self) -> str:
        """The field, and how it was clamped."""
        return f"the sum of `{self.field}`, {clamped(self.lower, self.upper)}"

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """The field, with the place of each of several columns."""
        number = self.dimension or 1
        return (self.field,) if number == 1 else tuple(f"{self.field}[{place}]" for place in range(number))

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `total` makes of them."""
        return total(**values)  # type: ignore[return-value]

    def normal_mean(self, columns: dict[str, slice], mean: Array, factor: Array) -> Array | None:
        """The means [d] of the clamped columns of a Normal field."""
        if self.field not in columns:
            return None
        place = columns[self.field]
        low, high = -jnp.inf if self.lower is None else self.lower, jnp.inf if self.upper is None else self.upper
        bounds = (jnp.broadcast_to(jnp.asarray(bound, mean.dtype), mean[place].shape) for bound in (low, high))
        return clamped_mean(mean[place], scales_of(factor)[place], *bounds)

    def diameter(self, norm: Norm) -> float:
        """The width of the box of clamped values; exact."""
        lower, upper = self._bounds()
        return _norm([high - low for low, high in zip(lower, upper, strict=True)], norm)

    def radius(self, norm: Norm) -> float:
        """The norm of the farthest corner of the box from 0; exact."""
        lower, upper = self._bounds()
        return _norm([max(abs(low), abs(high)) for low, high in zip(lower, upper, strict=True)], norm)

    def _bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        if self.lower is None or self.upper is None:
            given = f"lower={self.lower}, upper={self.upper}"
            fail("lower, upper", given, "two finite bounds", "An unclamped sum has no sensitivity: pass both bounds.")
        return self.lower, self.upper


@dataclass(frozen=True)
class Gram(RecordStatistic):
    """The moments of one rescaled record; see `gram`.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.gram(lower=[-1.0], upper=[1.0], response=(-1.0, 1.0)).dimension
    5
    """

    json_name: ClassVar[str | None] = "gram"

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    response: tuple[float, ...] | None

    @property
    def dimension(self) -> int:
        """d = m (m + 3) / 2 for m variables, the response among them."""
        return self._num_variables * (self._num_variables + 3) // 2

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """The covariates, and the response if there is one."""
        return {"x": number_type(len(self.lower))} | ({} if self.response is None else {"y": number_type()})

    @property
    def fixed_values(self) -> dict[str, Any]:
        """The centres of the bounds."""
        response = {} if self.response is None else {"y": self.response[0] / 2 + self.response[1] / 2}
        return {"x": _centres(self.lower, self.upper), **response}

    def __call__(self, record: Records) -> Array:
        """The products [d] of one record's rescaled fields."""
        # Scalars, not matrices: over many records each product is then one elementwise loop.
        covariates = read_field(record, "x", [(len(self.lower),)])
        x = [
            _rescale(jax.lax.index_in_dim(covariates, j, keepdims=False), lower, upper)
            for j, (lower, upper) in enumerate(zip(self.lower, self.upper, strict=True))
        ]
        triangle = [entry for j, x_j in enumerate(x) for entry in (x_j, *(x_k * x_j for x_k in x[: j + 1]))]
        if self.response is None:
            return jnp.stack(triangle)
        y = _rescale(read_field(record, "y", [()]), *self.response)
        return jnp.stack([y, *(x_j * y for x_j in x), y * y, *triangle])

    def words(self) -> str:
        """The products, and how their fields were clamped."""
        fields = "(1, x, y)" if self.response is not None else "(1, x)"
        response = "" if self.response is None else f", y {clamped(*self.response)}"
        scale = "each as (value − centre of its bounds) / half their width"
        return f"the sums of the products of {fields}, x {clamped(self.lower, self.upper)}{response}, {scale}"

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `gram` makes of them."""
        return gram(**values)  # type: ignore[return-value]

    def normal_mean(self, columns: dict[str, slice], mean: Array, factor: Array) -> Array | None:
        """The means [d] of the products of Normal fields."""
        if not {"x", "y"} <= set(columns):
            return None
        bounds = [*zip(self.lower, self.upper, strict=True), self.response or (-1.0, 1.0)]
        lower, upper = jnp.asarray(bounds, mean.dtype).T
        return gram_mean(mean, factor, lower, upper, self.response is not None)

    def diameter(self, norm: Norm) -> float:
        """The largest distance between two records' products; exact.

        Notes
        -----
        For variables v, w in [-1, 1]^m write u = |v - w| and s = |v + w|, so that u + s <= 2 and
        |v_i v_j - w_i w_j| <= (u_i s_j + s_i u_j) / 2, with equality if v = 1. So v = 1 is a best first
        record. In L1 the best second record has every coordinate -1 / (m + 1). In L2 the objective is convex in each
        coordinate wherever a large value is possible, and a corner with half of its coordinates -1 is best.
        """
        m = self._num_variables
        if norm == 1:
            return m * (m + 2) ** 2 / (2 * (m + 1))
        negative = (m + 1) // 2
        return 2 * sqrt(negative * (m + 1 - negative))

    def radius(self, norm: Norm) -> float:
        """The norm at a corner, where every product has size 1; exact."""
        return _norm([1.0] * self.dimension, norm)

    def unscale(self, value: ArrayLike, n: float) -> np.ndarray:
        """The sums of products in the fields' own units, as the matrix Σ (1, x, y) (1, x, y)ᵀ.

        With c and h the centre and half the width of a field's bounds, the released sums are those of (v − c) / h.

        Parameters
        ----------
        value
            The released sums [d].
        n
            The number of records, which the sums leave out.

        Raises
        ------
        TypeError, ValueError
            If the value is not d finite numbers.

        Examples
        --------
        >>> import dpjax
        >>> import jax.numpy as jnp
        >>> statistic = dpjax.statistics.gram(lower=[0.0], upper=[10.0])
        >>> released = sum(statistic({"x": jnp.array([age])}) for age in (2.0, 4.0))
        >>> print(statistic.unscale(released, n=2))
        [[ 2.  6.]
         [ 6. 20.]]
        """
        sums = read_numbers("value", value, f"{self.dimension} finite numbers", "Pass the released value.")
        if sums.shape != (self.dimension,) or not np.all(np.isfinite(sums)):
            fail(
                "value", f"an array of shape {list(sums.shape)}", f"{self.dimension} finite numbers", "Pass the value."
            )
        num_covariates, first = len(self.lower), 0 if self.response is None else len(self.lower) + 2
        scaled = np.zeros((self._num_variables + 1,) * 2)
        scaled[0, 0] = n
        rows, columns = np.tril_indices(num_covariates + 1)
        scaled[rows[1:], columns[1:]] = sums[first:]
        if self.response is not None:
            scaled[-1] = [*sums[: num_covariates + 1], sums[num_covariates + 1]]
        scaled = np.tril(scaled) + np.tril(scaled, -1).T
        bounds = np.array([*zip(self.lower, self.upper, strict=True), *([self.response] if self.response else [])])
        back = np.diag([1.0, *np.diff(bounds, axis=1)[:, 0] / 2])
        back[1:, 0] = bounds.mean(axis=1)
        return back @ scaled @ back.T

    @property
    def _num_variables(self) -> int:
        return len(self.lower) + (self.response is not None)


@dataclass(frozen=True)
class Count(RecordStatistic):
    """One for each record; see `count`.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.count().dimension
    1
    """

    json_name: ClassVar[str | None] = "count"

    @property
    def dimension(self) -> int:
        """One number."""
        return 1

    @property
    def is_whole(self) -> bool:
        """A count is."""
        return True

    def __call__(self, record: Records) -> Array:
        """One [1], whatever the record."""
        del record
        return jnp.ones(1)

    def words(self) -> str:
        """What is counted."""
        return "the number of records"

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """What is counted."""
        return ("records",)

    def diameter(self, norm: Norm) -> float:
        """Nothing changes if a record is replaced."""
        del norm
        return 0.0

    def radius(self, norm: Norm) -> float:
        """A record that is added or removed counts one."""
        del norm
        return 1.0


@names_arguments
def count() -> Count:
    """The number of records: for a noisy count beside other sums, if the number is unknown.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.count()({"y": 3.0}).tolist()
    [1.0]
    """
    return Count()


@names_arguments
def total(
    field: str,
    lower: float | Sequence[float] | None = None,
    upper: float | Sequence[float] | None = None,
    *,
    dimension: int | None = None,
) -> Total:
    """The sum over records of one field, each coordinate clamped to its bounds.

    Parameters
    ----------
    field
        The record field, [] or [d].
    lower : [] or [d]
        The lower bound in the field's units; None leaves that side unclamped, and then there is no sensitivity.
    upper : [] or [d]
        The upper bound, likewise.
    dimension
        The length d of the field, if the bounds are numbers that hold for every coordinate. Without it a
        field with numbers for bounds has d = 1, and an unclamped field any length.

    Raises
    ------
    ValueError
        If bounds are not finite, out of order or of different lengths.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.total("y", 0.0, 5.0)({"y": 7.0}).tolist()
    [5.0]
    """
    low = None if lower is None else as_floats("lower", lower)
    high = None if upper is None else as_floats("upper", upper)
    lengths = {len(bound) for bound in (low, high) if bound is not None}
    if dimension is None and lengths:
        dimension = max(lengths)
    if dimension is not None:
        low, high = _repeat(low, check_count("dimension", dimension)), _repeat(high, dimension)
    if low is not None and high is not None:
        check_interval(low, high)
    return Total(check_field_name(field), low, high, dimension)


@names_arguments
def mean(
    field: str,
    n: int,
    lower: float | Sequence[float] | None = None,
    upper: float | Sequence[float] | None = None,
    *,
    dimension: int | None = None,
) -> Scaled:
    """The mean over n records of one clamped field: `total` divided by the public n.

    Parameters
    ----------
    field
        As in `total`.
    n
        The public number of records.
    lower : [] or [d]
        As in `total`.
    upper : [] or [d]
        As in `total`.
    dimension
        As in `total`.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.mean("y", n=10, lower=0.0, upper=5.0)({"y": 7.0}).tolist()
    [0.5]
    """
    return Scaled(total(field, lower, upper, dimension=dimension), 1 / check_count("n", n))


@names_arguments
def gram(lower: Sequence[float], upper: Sequence[float], response: tuple[float, float] | None = None) -> Gram:
    """The entries of X'y, y'y and X'X of clamped and rescaled regression data, without the known n.

    Each variable is clamped to its bounds and mapped linearly to [-1, 1]; X has a leading column of ones. The order
    is X'y (y, x1 y, ..., xp y), then y², then the lower triangle of X'X by rows: x1, x1², x2, x1 x2, x2², ...

    Parameters
    ----------
    lower : [p]
        The lower bounds of the record field ``x`` [p].
    upper : [p]
        The upper bounds.
    response
        The bounds of the record field ``y`` []; without them only the triangle of X'X.

    Raises
    ------
    ValueError
        If bounds are not finite, out of order or of different lengths.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> dpjax.statistics.gram([0.0], [2.0], response=(0.0, 4.0)).dimension
    5
    """
    low, high = as_floats("lower", lower), as_floats("upper", upper)
    check_interval(low, high)
    if response is None:
        return Gram(low, high, None)
    bounds = as_floats("response", response)
    if len(bounds) != 2 or bounds[0] >= bounds[1]:
        fail("response", response, "a lower bound and a larger upper bound", "Pass response=(lower, upper).")
    return Gram(low, high, bounds)


def _rescale(value: Array, lower: float, upper: float) -> Array:
    """A clamped value mapped linearly to [-1, 1], whatever the rounding of bounds that are far from 0."""
    middle, half = lower / 2 + upper / 2, upper / 2 - lower / 2
    return jnp.clip((jnp.clip(value, lower, upper) - middle) / half, -1.0, 1.0)


def _repeat(bound: tuple[float, ...] | None, dimension: int) -> tuple[float, ...] | None:
    """One bound for each coordinate."""
    if bound is None or len(bound) == dimension:
        return bound
    if len(bound) > 1:
        remedy = "Give one bound, or one for each coordinate."
        fail("dimension", dimension, f"the number of bounds, {len(bound)}", remedy)
    return bound * dimension


def _centres(lower: Sequence[float], upper: Sequence[float]) -> list[float]:
    """The centres of intervals."""
    return [low / 2 + high / 2 for low, high in zip(lower, upper, strict=True)]


def _norm(lengths: list[float], norm: Norm) -> float:
    return sum(lengths) if norm == 1 else hypot(*lengths)
