"""Utilities by which a mechanism chooses among candidates: functions of the summed statistic."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from dpjax._util.json_names import JsonNamed
from dpjax._util.validation import check_count, check_share, fail
from dpjax.base import Array
from dpjax.mechanisms.privacy import Neighbours
from dpjax.mechanisms.promises import Unpromised

__all__ = ["QuantileScores", "Utilities"]


class Utilities(JsonNamed, ABC):
    """Utilities ``statistic [d] -> [k]`` of k candidates that know how far one record moves them.

    A subclass is a frozen dataclass of plain numbers, so that programs compiled for it are found again; ``json_name``
    is its name in JSON text. A function of the user's own is as good for inference, but nothing is said of its privacy.

    Examples
    --------
    >>> from dpjax.mechanisms.utilities import Utilities
    >>> import dpjax
    >>> isinstance(dpjax.mechanisms.QuantileScores(0.5, num_candidates=3), Utilities)
    True
    """

    by_json_name: ClassVar[dict[str, type[Any]]] = {}

    @abstractmethod
    def __call__(self, statistic: Array) -> Array:
        """The utility of each candidate [k]."""

    def sensitivity(self, neighbours: Neighbours) -> float:
        """How far the utility of any candidate moves between neighbouring data sets.

        Raises
        ------
        Unpromised
            If it is not known.
        """
        del neighbours
        raise Unpromised(f"How far one record can move {type(self).__name__} is not known.")


@dataclass(frozen=True)
class QuantileScores(Utilities):
    """The scores −|(1 − α) #(x < c) − α #(x > c)| of k candidates c for the α-quantile.

    Parameters
    ----------
    probability
        The α of the quantile, in (0, 1).
    num_candidates
        The number k of candidates. The statistic is [2k + 1], the counts around them
        (`dpjax.statistics.around`), or [k], the counts of k ordered categories that are the candidates themselves.

    Raises
    ------
    TypeError, ValueError
        If the probability is not in (0, 1), or there are fewer than two candidates.

    Notes
    -----
    The convention of OpenDP. One record more or less moves a score by max(α, 1 − α) at most; one replaced, by 1.

    Examples
    --------
    >>> from dpjax.mechanisms.utilities import QuantileScores
    >>> import jax.numpy as jnp
    >>> QuantileScores(0.5, num_candidates=3)(jnp.array([4.0, 2.0, 1.0])).tolist()
    [-1.5, -1.5, -3.0]
    """

    json_name: ClassVar[str | None] = "quantile_scores"

    probability: float
    num_candidates: int

    def __post_init__(self) -> None:
        check_share("probability", self.probability, "Pass the α of the quantile: 0.5 for a median.")
        object.__setattr__(self, "probability", float(self.probability))
        check_count("num_candidates", self.num_candidates, "Pass the number of candidates.", least=2)

    def __call__(self, statistic: Array) -> Array:
        """The score of each candidate [k], given the counts [2k + 1] around or [k] at them."""
        k = self.num_candidates
        if statistic.shape not in ((2 * k + 1,), (k,)):
            remedy = "Use dpjax.statistics.around(field, candidates), or cells(field, k) where they are all categories."
            fail("statistic", f"shape {list(statistic.shape)}", f"shape [{2 * k + 1}] or [{k}]", remedy)
        below, above = counts_beside(statistic, k)
        return -jnp.abs((1 - self.probability) * below - self.probability * above)

    def sensitivity(self, neighbours: Neighbours) -> float:
        """How far one record moves any score; exact."""
        return 1.0 if neighbours == "replace-one" else max(self.probability, 1 - self.probability)


def counts_beside(statistic: Array, k: int) -> tuple[Array, Array]:
    """How many records are below and above each of k candidates, both [k]."""
    through, total = jnp.cumsum(statistic), jnp.sum(statistic)
    if statistic.size == k:
        return through - statistic, total - through
    return through[:-1:2], total - through[1::2]


def num_candidates(utilities: Any, dimension: int) -> int:
    """The number k of candidates, or an error unless utilities of a statistic [d] are a vector of at least two."""
    like = jax.ShapeDtypeStruct((dimension,), jnp.result_type(float))
    found = jax.eval_shape(utilities, like)
    shape = getattr(found, "shape", None)
    if shape is None or len(shape) != 1 or shape[0] < 2:
        given = "no array" if shape is None else f"shape {list(shape)}"
        fail("utilities", given, "one utility for each of k ≥ 2 candidates, shape [k]", "Return one vector [k].")
    return int(shape[0])
