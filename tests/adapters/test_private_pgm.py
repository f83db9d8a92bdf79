"""Noisy tables of private-pgm, read by attributes alone, from objects that have those of its classes."""

from types import SimpleNamespace

import numpy as np
import pytest

import dpjax
from dpjax.adapters.private_pgm import read_linear_measurements

SIZES = {"sex": 2, "age": 3, "job": 2}
DOMAIN = SimpleNamespace(attributes=("sex", "age", "job"), shape=(2, 3, 2))


class Factor:
    """As that library names it: the default query is a method of the table."""

    def datavector(self, flatten=True):
        """The table as a vector."""


def measurement(clique, values, stddev=2.0, query=Factor.datavector):
    return SimpleNamespace(noisy_measurement=np.asarray(values), clique=clique, stddev=stddev, query=query)


FIRST = measurement(("age", "sex"), [5.5, 1.0, -0.5, 3.0, 2.0, 4.0])
SECOND = measurement(("job",), [9.0, 7.0], stddev=3.0)


@pytest.mark.parametrize("domain", [SIZES, DOMAIN, SimpleNamespace(attrs=DOMAIN.attributes, shape=DOMAIN.shape)])
def test_tables_are_in_the_order_of_their_columns(domain):
    """Catches a table whose columns are taken in the order of the domain, and noise of another table."""
    found = read_linear_measurements([FIRST, SECOND], domain, 16, dpjax.Gaussian)
    expected = dpjax.joint(
        dpjax.Release(FIRST.noisy_measurement, dpjax.Gaussian(2.0), dpjax.statistics.cells(["age", "sex"], [3, 2]), 16),
        dpjax.Release(SECOND.noisy_measurement, dpjax.Gaussian(3.0), dpjax.statistics.cells("job", 2), 16),
    )
    np.testing.assert_array_equal(found.value, expected.value)
    assert found.mechanism == expected.mechanism
    assert found.statistic == expected.statistic


def test_names_of_levels_are_kept_and_other_noise_is_possible():
    """A single table needs no joint release."""
    domain = {"sex": ["f", "m"], "age": 3, "job": ["yes", "no"]}
    found = read_linear_measurements([SECOND], domain, 16, lambda stddev: dpjax.Laplace(stddev / 2**0.5))
    assert found.statistic == dpjax.statistics.cells("job", 2, [["yes", "no"]])
    np.testing.assert_allclose(found.mechanism.scale, 3 / 2**0.5)


@pytest.mark.parametrize(
    ("measurements", "mechanism", "error", "message"),
    [
        ([measurement(("job",), [1.0, 2.0], query=lambda table: table)], dpjax.Gaussian, ValueError, "query: given"),
        ([measurement(("job",), [1.0, 2.0, 3.0])], dpjax.Gaussian, ValueError, "noisy_measurement: given 3"),
        ([measurement(("jobs",), [1.0, 2.0])], dpjax.Gaussian, ValueError, "clique"),
        ([measurement((), [16.0])], dpjax.Gaussian, ValueError, "prior of n"),
        ([measurement(("job",), [1.0, 2.0], stddev=0.0)], dpjax.Gaussian, ValueError, "stddev"),
        ([SECOND], dpjax.Laplace, ValueError, "standard deviation 4.24 for 3"),
        ([SECOND], dpjax.Gaussian(1.0), TypeError, "mechanism"),
        ([SimpleNamespace(clique=("job",))], dpjax.Gaussian, TypeError, "noisy_measurement"),
        ([], dpjax.Gaussian, ValueError, "empty list"),
        ("job", dpjax.Gaussian, TypeError, "measurements"),
    ],
)
def test_what_cannot_be_read_is_refused(measurements, mechanism, error, message):
    """Each by the attribute that is wrong: a query of one's own would be taken for the whole table."""
    with pytest.raises(error, match=message):
        read_linear_measurements(measurements, SIZES, 16, mechanism)
