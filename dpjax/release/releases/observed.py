"""A released sum beside records of other people that are known."""

from typing import Any

import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import fail, name_of, read_numbers
from dpjax.mechanisms.additive import Exact
from dpjax.release.microdata import Microdata
from dpjax.release.summed import Release, as_sum

__all__ = ["with_observed"]


@names_arguments
def with_observed(release: Release, records: dict[str, Any]) -> Microdata:
    """A released sum beside known records of other people, who have the same distribution given the parameters.

    The posterior is ∝ p(parameters) f(records | parameters) p(release | parameters), as of the release alone with the
    posterior of the known records as its prior.

    Parameters
    ----------
    release
        The sum over n people, of whom nothing else is known.
    records
        The known records of m other people: fields [m, ...], NaN where a value is missing at random. Fields of the
        model that are not among them are unknown.

    Returns
    -------
    Microdata
        The release of n + m people, of whom the last m are known.

    Raises
    ------
    TypeError, ValueError
        If the release is no sum over a known number of records, or the records are no dict of numbers.

    Examples
    --------
    >>> import dpjax
    >>> total = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> both = dpjax.releases.with_observed(total, {"y": [1.2, 0.7, 1.9]})
    >>> both.n, both.num_others
    (13, 3)
    """
    remedy = "Pass a dict with the values of each field, [m, ...]."
    if not isinstance(release, Release):
        fail("release", name_of(release), "a dpjax.Release", "Join others by dpjax.joint.", error=TypeError)
    n = as_sum(release).n
    if not (isinstance(records, dict) and records):
        fail("records", name_of(records), "a dict of fields, at least one", remedy, error=TypeError)
    known = {name: read_field(f"records[{name!r}]", leaf, remedy) for name, leaf in records.items()}
    num_others = len(next(iter(known.values())))
    fields = {name: (np.concatenate([np.repeat(leaf[:1], n, axis=0), leaf]), Exact()) for name, leaf in known.items()}
    absent = {name: np.isnan(leaf.astype(float)).reshape(len(leaf), -1).all(axis=1) for name, leaf in known.items()}
    gaps = {name: np.concatenate([np.ones(n, bool), mask]) for name, mask in absent.items()}
    return Microdata(fields, gaps, release, num_others)


def read_field(argument: str, values: Any, remedy: str) -> np.ndarray:
    """The values [m, ...] of a field, m at least 1."""
    array = read_numbers(argument, values, "numbers, one row for each record", remedy)
    if array.ndim == 0 or not array.size:
        fail(argument, f"shape {list(array.shape)}", "numbers, one row for each record", remedy)
    return array
