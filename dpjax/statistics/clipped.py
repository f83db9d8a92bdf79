"""Functions of a record, scaled down if they are longer than a bound."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, fail
from dpjax.base import Array, Records, Statistic
from dpjax.statistics.base import (
    Norm,
    RecordStatistic,
    as_length,
    check_function,
    dimension_of,
    field_types_of,
    level_names_of,
    scaled_down,
    words_of,
)

__all__ = ["Clipped", "clipped"]


@dataclass(frozen=True)
class Clipped(RecordStatistic):
    """A function of a record, scaled down to a bound; see `clipped`.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.clipped(lambda record: record["x"], bound=2.0, dimension=3).diameter(2)
    4.0
    """

    json_name: ClassVar[str | None] = "clipped"

    statistic: Statistic
    bound: float
    dimension: int | None

    def __call__(self, record: Records) -> Array:
        """The contribution [d] of one record, whose length is at most the bound."""
        # In the widest type, so that rounding leads no further beyond the bound than elsewhere.
        value = jnp.asarray(self.statistic(record), jnp.result_type(float))
        scaled, is_finite = scaled_down(value, self.bound)
        return jnp.where(is_finite, scaled, jnp.zeros_like(value))

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """Those of the statistic, if it says them."""
        return field_types_of(self.statistic)

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """Those of the statistic, if it says them."""
        return level_names_of(self.statistic)

    @property
    def fixed_values(self) -> dict[str, Any]:
        """Those of the statistic, if it says them."""
        return self.statistic.fixed_values if isinstance(self.statistic, RecordStatistic) else {}

    def words(self) -> str:
        """Those of the function, and the bound."""
        return f"{words_of(self.statistic)}, each scaled down to length {self.bound:.4g}"

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """The statistic that `clipped` makes of them."""
        return clipped(**values)  # type: ignore[return-value]

    def diameter(self, norm: Norm) -> float:
        """Twice the radius; exact if every direction is possible."""
        return 2 * self.radius(norm)

    def radius(self, norm: Norm) -> float:
        """The bound, and √d times as much in L1."""
        if norm == 2:
            return self.bound
        if self.dimension is None:
            fail("dimension", "None", "the length of the function's value", "Pass dimension= to clipped.")
        return sqrt(self.dimension) * self.bound


@names_arguments
def clipped(statistic: Statistic, bound: float, *, dimension: int | None = None) -> Clipped:
    """The sum over records of a function of your own, each record's vector scaled down to a Euclidean length.

    Parameters
    ----------
    statistic
        A function ``record -> [d]``. A record adds nothing if it, or the square of it over the bound, is not
        finite.
    bound
        The largest length that is left as it is, in the units of the function. The float type must hold its square.
    dimension
        The length d of its value, if it does not say so itself; needed to release it, and for L1 sensitivities.

    Raises
    ------
    TypeError, ValueError
        If the statistic is no function, the bound is out of range, or the dimension is another than the statistic's.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> score = dpjax.statistics.clipped(lambda record: record["y"] * record["x"], bound=1.0, dimension=2)
    >>> score({"x": jnp.array([3.0, 4.0]), "y": jnp.array(1.0)}).tolist()
    [0.6, 0.8]
    """
    check_function(statistic)
    remedy = "Pass the longest vector that is left as it is."
    size, known = as_length("bound", bound, remedy), dimension_of(statistic)
    if dimension is not None and check_count("dimension", dimension) != (known or dimension):
        fail("dimension", dimension, f"{known}, as the statistic has", "Leave it out.")
    return Clipped(statistic, size, dimension or known)
