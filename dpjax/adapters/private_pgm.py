"""Noisy tables of private-pgm, the library behind MST and AIM; that library itself is not imported."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_positive_number, describe, fail, read_numbers
from dpjax.domain import Domain
from dpjax.mechanisms.additive import Additive
from dpjax.models.columns import read_domain
from dpjax.release import Release, joint
from dpjax.statistics import cells

__all__ = ["read_linear_measurements"]

ATTRIBUTES = ("noisy_measurement", "clique", "stddev", "query")
OFF = 0.05
"""By how much the standard deviation of discrete noise may differ from what its scale says."""


@names_arguments
def read_linear_measurements(
    measurements: Sequence[Any], domain: Any, n: Any, mechanism: Callable[[float], Additive]
) -> Release:
    """One release of all tables that ``LinearMeasurement`` objects of private-pgm hold, for `dpjax.models.log_linear`.

    Parameters
    ----------
    measurements
        The objects, read by their attributes ``noisy_measurement``, ``clique``, ``stddev`` and ``query``. Each query is
        the default one, which is the whole table.
    domain
        The columns by name, each with its number of levels or the names of these. Or a domain of private-pgm, read by
        its attributes ``attributes`` (``attrs`` in old versions) and ``shape``.
    n
        The number of people, or its prior.
    mechanism
        The noise of a standard deviation, which the objects do not say: such as `dpjax.Gaussian`, as MST and AIM have
        it, `dpjax.DiscreteGaussian`, or ``lambda stddev: dpjax.Laplace(stddev / 2**0.5)``.

    Raises
    ------
    TypeError, ValueError
        If an object lacks an attribute, or its query is another one. If a table is of columns that the domain lacks, of
        none, or of another size. If the noise has another standard deviation.

    Notes
    -----
    Written by the source of the library, in which a table has its columns in the order of the clique. Give ``stddev``
    to `LinearMeasurement`: by default it is 1, whatever the noise was. Tables that were chosen by the data, as by AIM,
    are read as if they had been fixed before.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import dpjax
    >>> from dpjax.adapters.private_pgm import read_linear_measurements
    >>> def datavector(table): ...
    >>> found = {"noisy_measurement": [7.2, 1.4, -0.3, 3.9], "clique": ("sex", "job"), "stddev": 2.0}
    >>> measurement = SimpleNamespace(**found, query=datavector)
    >>> release = read_linear_measurements([measurement], {"sex": 2, "job": 2}, 12, dpjax.Gaussian)
    >>> release.mechanism
    Gaussian(scale=2.0, privacy=None)
    """
    columns = read_columns(domain)
    remedy = "Pass the list that was given to its estimators."
    if isinstance(measurements, (str, bytes)) or not isinstance(measurements, Sequence):
        fail("measurements", describe(measurements), "a list of LinearMeasurement objects", remedy, error=TypeError)
    if not measurements:
        fail("measurements", "an empty list", "one LinearMeasurement or more", remedy)
    if not callable(mechanism):
        remedy = "Pass such as dpjax.Gaussian."
        fail("mechanism", describe(mechanism), "a function of a standard deviation", remedy, error=TypeError)
    parts = [read_one(f"measurements[{place}]", one, columns, n, mechanism) for place, one in enumerate(measurements)]
    return parts[0] if len(parts) == 1 else joint(*parts)


def read_one(
    argument: str, measurement: Any, columns: Domain, n: Any, mechanism: Callable[[float], Additive]
) -> Release:
    """The release of one table."""
    if missing := [name for name in ATTRIBUTES if not hasattr(measurement, name)]:
        remedy = "Pass LinearMeasurement objects."
        fail(argument, f"{describe(measurement)} without {missing}", "its attributes", remedy, error=TypeError)
    if (query := getattr(measurement.query, "__name__", describe(measurement.query))) != "datavector":
        remedy = "State other sums yourself: a Release of dpjax.releases.linear or of a statistic of your own."
        fail(f"{argument}.query", query, "the default, Factor.datavector", remedy)
    clique = (measurement.clique,) if isinstance(measurement.clique, str) else tuple(measurement.clique)
    if not clique or not set(clique) <= set(columns.fields) or len(set(clique)) != len(clique):
        remedy = "A total of all people is no table: give it as the prior of n."
        fail(
            f"{argument}.clique", list(clique), f"one or more of the columns {list(columns.fields)}, each once", remedy
        )
    sizes = [columns.sizes[columns.fields.index(name)] for name in clique]
    names = [columns.level_names[name] for name in clique] if columns.level_names else None
    remedy = "Check the domain."
    noisy: Any = read_numbers(f"{argument}.noisy_measurement", measurement.noisy_measurement, "numbers", remedy).ravel()
    if noisy.size != np.prod(sizes):
        expected = f"{np.prod(sizes)}, one for each combination of {list(clique)}"
        fail(f"{argument}.noisy_measurement", f"{noisy.size} numbers", expected, remedy)
    scale = float(measurement.stddev)
    check_positive_number(f"{argument}.stddev", scale, "Pass the standard deviation of the noise.")
    noise = mechanism(scale)
    found = np.sqrt(float(np.max(noise.noise.variance()))) if isinstance(noise, Additive) else None
    if found is None or abs(found / scale - 1) > OFF:
        given = describe(noise) if found is None else f"noise of standard deviation {found:.3g} for {scale:.3g}"
        remedy = "For Laplace noise pass lambda stddev: dpjax.Laplace(stddev / 2**0.5)."
        fail("mechanism", given, "additive noise of the standard deviation that it is given", remedy)
    return Release(noisy, noise, cells(clique, sizes, names), n)


def read_columns(domain: Any) -> Domain:
    """The columns of a domain of dpjax, of a mapping, or of private-pgm."""
    attributes = getattr(domain, "attributes", getattr(domain, "attrs", None))
    if isinstance(domain, (Mapping, Domain)) or attributes is None or not hasattr(domain, "shape"):
        return read_domain(domain)
    return read_domain(dict(zip(attributes, map(int, domain.shape), strict=True)))
