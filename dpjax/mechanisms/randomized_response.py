"""Randomized response: a categorical value released through a channel of known probabilities."""

from dataclasses import dataclass, field
from math import inf, log
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_count, describe_array, fail
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_leaf
from dpjax.mechanisms.local_channel import as_integers, check_codes, largest_log_ratio
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, pure

ROW_SUM_TOLERANCE = 1e-5


@frozen_pytree
@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Releases each categorical coordinate through the same channel, independently of the others.

    Give either `keep` and `num_categories`, or `matrix`.

    Parameters
    ----------
    keep : [] or [n]
        P(released = true), in (0, 1]; the other categories share 1 - keep equally. Or one for each record.
    num_categories
        The number k >= 2 of categories, coded 0, ..., k - 1; taken from the matrix if one is given.
    matrix : [k, k] or [n, k, k]
        Row j holds P(released | true = j). Or one matrix for each record.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    ValueError
        If not exactly one of `keep` and `matrix` is given, or one is not made of probabilities.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> answer = dpjax.RandomizedResponse(keep=0.75, num_categories=2)
    >>> round(float(jnp.exp(answer.log_density(jnp.array(1), jnp.array(1)))), 3)
    0.75
    """

    json_name: ClassVar[str | None] = "randomized_response"
    parameter_axes: ClassVar[dict[str, int] | None] = {"matrix": 2}

    keep: Array | float | None = None
    num_categories: int | None = field(default=None, metadata={"static": True})
    matrix: Array | None = None
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        if (self.keep is None) == (self.matrix is None):
            given = "both" if self.matrix is not None else "neither"
            fail("keep, matrix", given, "exactly one of them", "Pass keep and num_categories, or the matrix alone.")
        if self.matrix is None:
            check_array("keep", self.keep, _is_probability, "a probability in (0, 1]", "Pass P(released = true).")
            object.__setattr__(self, "keep", as_leaf(self.keep))
            check_count("num_categories", self.num_categories, "Pass the number of categories.", least=2)
        else:
            if hasattr(self.matrix, "to_numpy"):  # of pandas
                object.__setattr__(self, "matrix", self.matrix.to_numpy())
            _check_matrix(self.matrix, self.num_categories)
            self._take_matrix()

    def _take_matrix(self) -> None:
        """Store the matrix as an array and its size as the number of categories; placeholders stay as they are."""
        if isinstance(self.matrix, (list, tuple, np.ndarray, jax.Array)):
            matrix = jnp.asarray(self.matrix)
            object.__setattr__(self, "matrix", matrix)
            object.__setattr__(self, "num_categories", matrix.shape[-1])

    @property
    def sums(self) -> PossibleSums:
        """A record has one of as many categories as are released."""
        return PossibleSums(categories=self.num_categories)

    @property
    def _size(self) -> int:
        """The number of categories, known once the channel is in use."""
        assert self.num_categories is not None
        return self.num_categories

    def _words(self) -> str:
        """The number of categories, and how often the true one is released."""
        if self.matrix is not None:
            return f"randomized response by a matrix of {self.num_categories} categories"
        kept = f"the true one of {self.num_categories} categories with probability {amount(self.keep)}"
        return f"randomized response, {kept}"

    def _local_promise(self, num_coordinates: int) -> Promise:
        """ε-DP of each answer, by the largest log ratio of the probabilities of one answer given two values."""
        return pure(_keep_epsilon(self) if self.matrix is None else _matrix_epsilon(self.matrix), num_coordinates)

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless the released codes are integers in 0, ..., k - 1."""
        check_codes(argument, value, self._size, "Code the released categories 0, ..., k - 1 as integers.")

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability of each coordinate of the value [...] given that of the statistic [...], both integers.

        A code outside 0, ..., k - 1 has probability zero.
        """
        value, statistic = as_integers("value", value), as_integers("statistic", statistic)
        possible = (value >= 0) & (value < self._size) & (statistic >= 0) & (statistic < self._size)
        return jnp.where(possible, self._log_channel(value, statistic), -jnp.inf)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the released codes ([] or [K]) given the true codes of the same shape."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """Released codes given the true codes, of the same shape and integer dtype."""
        statistic = as_integers("statistic", statistic)
        if self.keep is None:
            log_rows = jnp.log(jnp.asarray(self.matrix))[statistic]
            return jax.random.categorical(key, log_rows).astype(statistic.dtype)
        key_keep, key_other = jax.random.split(key)
        kept = jax.random.bernoulli(key_keep, self.keep, statistic.shape)
        other = jax.random.randint(key_other, statistic.shape, 0, self._size - 1, statistic.dtype)
        return jnp.where(kept, statistic, other + (other >= statistic).astype(statistic.dtype))

    def _log_channel(self, value: Array, statistic: Array) -> Array:
        """log P(value | statistic), elementwise, for codes in range."""
        if self.keep is None:
            return jnp.log(jnp.asarray(self.matrix))[statistic, value]
        keep = jnp.asarray(self.keep)
        return jnp.where(value == statistic, jnp.log(keep), jnp.log1p(-keep) - log(self._size - 1))


def _matrix_epsilon(matrix: Array) -> float:
    """The largest log ratio within a column; ∞ if an answer is possible for some values only."""
    rows = np.asarray(matrix, float)
    return largest_log_ratio(np.log(rows, out=np.full_like(rows, -inf), where=rows > 0))


def _keep_epsilon(channel: RandomizedResponse) -> float:
    """The largest log ratio of keeping a category to giving another; ∞ if none is given."""
    kept = np.atleast_1d(np.asarray(channel.keep, float))
    other = (1 - kept) / ((channel.num_categories or 2) - 1)
    return float(np.max(np.abs(np.log(kept) - np.log(other, out=np.full_like(other, -inf), where=other > 0))))


def _is_probability(array: np.ndarray) -> np.ndarray:
    return (array > 0) & (array <= 1)


def _check_matrix(matrix: Array, num_categories: int | None) -> None:
    """Raise unless a concrete matrix is square (leading batch axes aside) with rows that are probabilities."""
    remedy = "Row j holds P(released | true = j); transpose the matrix if its columns sum to 1."
    check_array("matrix", matrix, lambda array: array >= 0, "finite numbers of at least 0", remedy)
    if not isinstance(matrix, (list, tuple, np.ndarray, jax.Array)) or isinstance(matrix, jax.core.Tracer):
        return
    array = np.asarray(matrix)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or num_categories not in (None, array.shape[-1]):
        size = "k" if num_categories is None else num_categories
        fail("matrix", f"shape {list(array.shape)}", f"shape [{size}, {size}]", remedy)
    sums = array.sum(axis=-1)
    if np.any(np.abs(sums - 1) > ROW_SUM_TOLERANCE):
        fail("matrix", f"rows that sum to {describe_array(sums)}", "rows that sum to 1", remedy)
