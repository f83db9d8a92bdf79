"""A release of one value: a statistic summed over records, seen through a mechanism."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from math import prod
from operator import add
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.spelling import NamesArguments, names_methods
from dpjax._util.validation import Obstacle, check_free, fail, is_refusal
from dpjax.base import Array, Key, Records, Statistic
from dpjax.mechanisms.base import Mechanism, at_coordinates, convert_mechanisms, parts_of
from dpjax.mechanisms.composite import Padded, merge_parts, temper_mechanism
from dpjax.numerics import all_finite, sum_rows
from dpjax.numerics.sums import are_summed_at_once, sum_records, zero_if_finite
from dpjax.release import json
from dpjax.release.base import PrivateRelease
from dpjax.release.checks import (
    PrecisionWarning,
    as_vector,
    check_contribution,
    check_mechanism,
    check_number,
    check_sampler,
    check_statistic,
    check_summed,
    check_value,
    fail_on_record,
    one_record,
    warn_where_coarse,
)
from dpjax.release.printing import Described, release_in_lines
from dpjax.release.tables import read_table
from dpjax.release.unknown_count import (
    UnknownCount,
    expected_number,
    obstacle_of_number,
    read_number,
)
from dpjax.statistics.base import dimension_of, level_names_of, statistic_at, words_of
from dpjax.statistics.combinators import Stacked
from dpjax.statistics.losses import FittedDerivatives
from dpjax.statistics.tables import Cells


@names_methods
@frozen_pytree
@dataclass(frozen=True, eq=False, repr=False)
class Release(Described, NamesArguments):
    """One released value, whose distribution given the records depends on their summed statistic alone.

    Parameters
    ----------
    value : [d]
        What was released: the noisy sum over records of the statistic. A number becomes [1]. For
        `dpjax.statistics.cells` also the table: an array with an axis for each field, or a DataFrame or a Series of
        pandas, whose index and columns are named like the fields. For a statistic whose numbers have names, such as
        `dpjax.statistics.group_totals`, also a dict or a Series, which is matched by name. For a mechanism that
        releases draws of its own, such as `dpjax.mechanisms.SmoothedHistogram`, the numbers that it drew given the sum.
    mechanism
        The noise: one of dpjax's mechanisms, or any object with ``log_density(value, statistic) -> []`` and
        ``sample(key, statistic) -> [d]``. What else it may have is in `dpjax.mechanisms.base`.
    statistic
        The function ``record -> [d]`` of one record; one of `dpjax.statistics` or any of your own. Programs are
        compiled for it, so build it once: a lambda written anew is a new statistic. None for a table of pandas: its
        statistic is then `dpjax.statistics.cells` of the variables and levels that it names.
    n
        The public number of records, or an `UnknownCount` if there is none. It has no default.

    Raises
    ------
    TypeError, ValueError
        If the value is not finite, or its shape fits neither mechanism nor statistic. If a table has other names than
        its statistic. If a discrete mechanism is given values that are not whole, or n is not a positive whole number.
        If the mechanism, such as `dpjax.mechanisms.ReportSums`, is that of another number of records.

    Warns
    -----
    PrecisionWarning
        If float32 cannot hold the counts, or rounds sums coarsely against the noise.

    Notes
    -----
    A pytree: value and mechanism are data, statistic and n are static. A batch of releases is made by `vmap`.

    Examples
    --------
    >>> import dpjax
    >>> statistic = dpjax.statistics.total("y", -10.0, 10.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), statistic, n=10)
    >>> release.value.shape, release.n
    ((1,), 10)
    >>> table = dpjax.statistics.cells(["sex", "admitted"], levels=[["female", "male"], ["no", "yes"]])
    >>> dpjax.Release([[58, 21], [12, 64]], dpjax.DiscreteGaussian(10.0), table, n=150).value.tolist()
    [58.0, 21.0, 12.0, 64.0]
    """

    value: Array
    mechanism: Mechanism | Any
    statistic: Statistic = field(default=None, metadata={"static": True})  # type: ignore[assignment]
    n: int | Any = field(default=None, metadata={"static": True})

    def __post_init__(self) -> None:
        remedy = "Pass the released numbers, one for each coordinate of the statistic; a table by numpy.ravel(table)."
        numbers, statistic = read_table(self.value, self.statistic)
        object.__setattr__(self, "statistic", statistic)
        value = as_vector("value", numbers, remedy, statistic.num_categories if isinstance(statistic, Cells) else ())
        check_mechanism("mechanism", self.mechanism, value.shape)
        convert_mechanisms(self, "mechanism")
        total = check_statistic(self.statistic, self.mechanism, value)
        check_summed(self.mechanism, value, total)
        n = read_number(self.n)
        check_number(n, self.mechanism, statistic)
        check_value("value", value, self.mechanism)
        warn_where_coarse(value, self.mechanism, expected_number(n), self.statistic)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "n", n)

    @property
    def observed(self) -> Array:
        """The released value [d]."""
        return self.value

    @property
    def parts(self) -> "tuple[Release, ...]":
        """What came through one mechanism each: the releases that were joined, or the sum alone.

        A joint release is taken apart if it is known which numbers are of which statistic.
        """
        mechanisms = self.mechanism.parts or ()
        statistics = self.statistic.statistics if isinstance(self.statistic, Stacked) else ()
        sizes, dimensions = [size for _, size in mechanisms], [dimension_of(one) for one in statistics]
        if not mechanisms or len(sizes) != len(dimensions):
            return (self,)
        unknown = [size for size, own in zip(sizes, dimensions, strict=True) if own is None]
        known = all(own in (None, size) for size, own in zip(sizes, dimensions, strict=True))
        # All together are as many numbers as the mechanisms have, and each statistic has one at least.
        if not known or (len(unknown) > 1 and max(unknown) > 1):
            return (self,)
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        whole = zip(mechanisms, statistics, starts, strict=True)
        return tuple(self._part(part, size, one, start) for (part, size), one, start in whole)

    def _part(self, mechanism: Mechanism | Any, size: int, statistic: Statistic, start: int) -> "Release":
        """The release of one of the statistics, whose value begins so far into that of all."""
        if isinstance(mechanism, Padded):
            mechanism, size = mechanism.drawn, mechanism.drawn._drawn_size
        with warnings.catch_warnings():
            # The user was warned where the release was made.
            warnings.simplefilter("ignore", PrecisionWarning)
            return Release(self.value[start : start + size], mechanism, placed(statistic, -start), self.n)

    @property
    def fields(self) -> dict[str, Any]:
        """What was released of each record by itself: nothing."""
        return {}

    @property
    def summed(self) -> "Release":
        """The sum that was released: this one."""
        return self

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the categories of the records' fields, as far as they were released with names."""
        return level_names_of(self.statistic)

    @property
    def is_noisy_sum(self) -> bool:
        """Whether the value is the summed statistic plus noise, rather than draws that the mechanism made given it."""
        return self.mechanism._drawn_size is None

    @property
    def noisy_sum(self) -> Array:
        """The noisy sum [d]: the value, or zeros if that is none.

        Samplers carry the *residual* [d], noisy sum − summed statistic. It is the noise that the present records imply,
        whose density is the likelihood. For draws given a histogram it is minus the histogram.
        """
        return self.value if self.is_noisy_sum else jnp.zeros(dimension_of(self.statistic), self.value.dtype)

    def with_mechanism(self, mechanism: Mechanism) -> "Release":
        """The same value as if another mechanism had released it."""
        return replace(self, mechanism=mechanism)

    def tempered(self, power: Array) -> "Release":
        """The release with its density raised to a power []; known totals stay so."""
        return self.with_mechanism(temper_mechanism(self.mechanism, power))

    def observing(self, observed: Array) -> "Release":
        """As if another value had been released."""
        return replace(self, value=observed)

    def tabulated(self) -> "Release":
        """The release as kernels read it, with tables of what takes long to compute given the value."""
        mechanism = self.mechanism._tabulated(self.value)
        return self if mechanism is self.mechanism else self.with_mechanism(mechanism)

    def contributions(self, records: Records) -> Array:
        """The statistic [d, m] of each of m records: with one row per coordinate XLA vectorises over records."""
        return jax.vmap(self.contribution, out_axes=1)(records)

    def contribution(self, record: Records) -> Array:
        """The statistic [d] of one record in the type of the value; counts may come as integers."""
        return statistic_at(self.statistic, self.value)(record).astype(self.value.dtype)

    def total(self, records: Records) -> Array:
        """The statistic [d] summed over records."""
        return sum_records(self.contributions, records)

    def total_and_density(self, records: Records) -> tuple[Array, Array]:
        """The summed statistic [d] of the records, and the log-density [] of the value given it."""
        total = self.total(records)
        return total, self.log_density(total)

    def log_density(self, statistic: Array) -> Array:
        """The log-density [] of the value given the summed statistic [d]."""
        return self.mechanism.log_density(self.value, statistic)

    def log_likelihood(self, records: Records) -> Array:
        """The log-density [] of the value given the records."""
        return self.log_density(self.total(records))

    def log_density_at(self, residual: Array) -> Array:
        """The log-density [] of the value if the residual, noisy sum − summed statistic, is the one given [d]."""
        return reduce(add, (log_density_at(*part, residual[where]) for part, where in self._parts(residual)))

    def log_densities_at(self, residuals: Array) -> Array:
        """The log-density [m] at each column of residuals [d, m]."""
        return reduce(add, (log_densities_at(*part, residuals[where]) for part, where in self._parts(residuals)))

    def sample(self, key: Key, records: Records) -> "Release":
        """A release of other records [n] by the same mechanism: only the value is new."""
        check_sampler("mechanism", self.mechanism)
        for name, leaf in records.items():
            if not isinstance(self.n, UnknownCount) and len(leaf) != self.n:
                fail(f"records[{name!r}]", f"{len(leaf)} records", f"n = {self.n}", "Release as many as before.")
        return self.observing(self.mechanism.sample(key, self.total(records)))

    def check_records(self, records: Records) -> None:
        """Raise unless the statistic of such records is a vector as long as the value, of a type that its type holds.

        Parameters
        ----------
        records
            Arrays or `jax.ShapeDtypeStruct` of any leading axis [m].

        Raises
        ------
        TypeError, ValueError
            If a field is missing or has another shape, or the statistic returns something else.
        """
        record = one_record(records)
        try:
            result = jax.eval_shape(statistic_at(self.statistic, self.value), record)
        except Exception as error:
            if is_refusal(error):
                raise
            fail_on_record(self.statistic, record, error)
        noisy_sum = jax.eval_shape(lambda: self.noisy_sum)
        check_contribution(result, noisy_sum)

    def _parts(self, residual: Array) -> Iterator[tuple[tuple[Mechanism, Array, Array], slice]]:
        """Mechanism, value and noisy sum of each part of the release, and its coordinates of the residual [d, ...]."""
        if not self.is_noisy_sum:
            yield (self.mechanism, self.value, self.noisy_sum), slice(None)
            return
        for mechanism, where in parts_of(self.mechanism, len(residual)):
            yield (mechanism, self.value[where], self.value[where]), where

    def __repr__(self) -> str:
        return release_in_lines("Release", words_of(self.statistic), self.mechanism, self.value, self.n)

    def to_json(self, *, units: str | None = None, **metadata: Any) -> str:
        """The release as JSON text; `from_json` reads it back. A function is recorded by name only.

        Parameters
        ----------
        units
            The units of the value, in words.
        **metadata
            Whatever else should be written, such as source or date; kept, but not read back.
        """
        content = {
            "value": json.encode_numbers("value", self.value, max_ndim=1),
            "n": json.encode_number(self.n),
            "mechanism": json.encode_mechanism(self.mechanism),
            "statistic": json.encode_statistic(self.statistic),
        }
        return json.write("release", content, units, metadata)

    @classmethod
    def from_json(cls, text: str, *, statistic: Statistic | None = None) -> "Release":
        """The release written by `to_json`.

        Parameters
        ----------
        text
            JSON text in the schema of `dpjax.release.json`.
        statistic
            The function ``record -> [d]``, if it is not one of `dpjax.statistics`.

        Raises
        ------
        TypeError, ValueError
            If the text is of another schema or version, or holds something unknown.
        """
        content = json.read(text, "release")
        return cls(
            json.decode_numbers("value", content["value"]),
            json.decode_mechanism(content["mechanism"]),
            json.choose_statistic(content["statistic"], statistic),
            json.decode_number(content["n"]),
        )


def merge_noise(release: Release) -> Release:
    """The release with neighbouring parts of one family of noise as one, as samplers take it."""
    mechanism = merge_parts(release.mechanism)
    if mechanism is release.mechanism:
        return release
    with warnings.catch_warnings():
        # The user was warned where the release was made.
        warnings.simplefilter("ignore", PrecisionWarning)
        return release.with_mechanism(mechanism)


def one_sum_of(release: PrivateRelease) -> Release | None:
    """The sum that was released, if nothing was beside it."""
    return None if release.fields else release.summed


def noisy_sum_of(release: PrivateRelease) -> Release | None:
    """The release, if its value is a sum over the records plus noise; else None."""
    return release.summed if release.is_noisy_sum else None


def finite_total(release: Release, records: Records) -> tuple[Array, Array]:
    """The summed statistic [d] of the records, and whether all their numbers are finite [].

    The statistic need not show it: a histogram leaves out NaN.
    """
    dtype, numbers = release.value.dtype, sum(prod(leaf.shape[1:]) for leaf in jax.tree.leaves(records))
    if not are_summed_at_once(release.noisy_sum.size + numbers):
        return release.total(records), all_finite(records)
    sums = sum_records(lambda records: (*release.contributions(records), zero_if_finite(records, dtype)), records)
    return sums[:-1], jnp.isfinite(sums[-1])


def as_sum(
    release: PrivateRelease,
    remedy: str = "Pass a dpjax.Release.",
    asker: str | None = None,
) -> Release:
    """The release, or an error unless it is one value of a sum over a known number of records.

    Parameters
    ----------
    asker
        The imputation that needs a sum; by default the release itself is at fault.
    """
    check_free(obstacle_to_one_sum(release, remedy, asker))
    return release.summed


def obstacle_to_one_sum(release: PrivateRelease, remedy: str, asker: str | None = None) -> Obstacle | None:
    """Why a release is not one value of a sum over a known number of records."""
    if one_sum_of(release) is None:
        given = f"a {type(release).__name__}" if asker is None else f"{asker} with a {type(release).__name__}"
        argument = "release" if asker is None else "imputation"
        return Obstacle(argument, given, "a release of one summed value", remedy, TypeError)
    return obstacle_of_number(release)


def log_density_at(mechanism: Mechanism, value: Array, noisy_sum: Array, residual: Array) -> Array:
    """The log-density [] of the value given the statistic, noisy sum − residual [d]."""
    if mechanism.noise is not None:
        return jnp.sum(mechanism.noise.log_density(residual))
    return mechanism.log_density(value, noisy_sum - residual)


def log_densities_at(mechanism: Mechanism, value: Array, noisy_sum: Array, residuals: Array) -> Array:
    """The log-density [m] of the value given noisy sum − residual, for each column of residuals [d, m]."""
    if mechanism._is_opaque or not mechanism._is_elementwise:
        return jax.vmap(partial(log_density_at, mechanism, value, noisy_sum), in_axes=1)(residuals)
    # Parameters [d] become [d, 1], so that the columns need neither a loop nor a transposition.
    columns = at_coordinates(mechanism, slice(None))
    if columns.noise is not None:
        terms = columns.noise.log_density(residuals)
    else:
        terms = columns.log_density_terms(value[:, None], value[:, None] - residuals)
    return sum_rows(lambda row: terms[row], len(residuals))


def placed(statistic: Statistic, start: int) -> Statistic:
    """The statistic of a release whose value begins so far further into that of several."""
    if not isinstance(statistic, FittedDerivatives):
        return statistic
    return replace(statistic, start=statistic.start + start)
