"""Tables and histograms against the same in NumPy, and the order of their cells."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import statistics
from tests.statistics.sums import GENERATOR, N, assert_close, total_of


def test_cells_are_contingency_tables_in_c_order():
    records = {"a": GENERATOR.integers(0, 2, N), "b": GENERATOR.integers(0, 3, N), "c": GENERATOR.integers(0, 4, N)}
    assert_close(total_of(statistics.cells("c", 4), records), np.bincount(records["c"], minlength=4))
    table = np.zeros((2, 3, 4))
    np.add.at(table, tuple(records.values()), 1)
    assert_close(total_of(statistics.cells(["a", "b", "c"], [2, 3, 4]), records), table.ravel())


@pytest.mark.parametrize("record", [{"a": -1, "b": 1}, {"a": 0, "b": 3}, {"a": 2, "b": 0}])
def test_categories_outside_the_table_count_nowhere(record):
    value = statistics.cells(["a", "b"], [2, 3])(jax.tree.map(jnp.asarray, record))
    assert_close(value, np.zeros(6))


def test_histogram_keeps_outer_values_in_the_end_bins():
    value = np.array([-5.0, 0.0, 0.5, 1.0, 1.9, 2.0, 3.9, 4.0, 40.0])
    assert_close(total_of(statistics.histogram("y", [0, 1, 2, 4]), {"y": value}), [3, 2, 4])
    inside = GENERATOR.uniform(0, 4, N)
    counts = np.histogram(inside, [0, 1, 2, 4])[0]
    assert_close(total_of(statistics.histogram("y", [0, 1, 2, 4]), {"y": inside}), counts)


def test_outer_edges_may_be_infinite():
    """They do not matter, so that a table whose last bin is open is taken as it was published, from JSON too."""
    value = {"y": np.array([-5.0, 0.5, 1.9, 40.0])}
    for edges in ([0, 1, 2, np.inf], [-np.inf, 1, 2, 4], [-np.inf, 1, 2, np.inf]):
        table = statistics.histogram("y", edges)
        assert_close(total_of(table, value), total_of(statistics.histogram("y", [0, 1, 2, 4]), value))
        again = dpjax.from_json(dpjax.Release([2.0, 1.0, 1.0], dpjax.Laplace(1.0), table, 4).to_json())
        assert again.statistic == table


def test_class_features_are_ordered_feature_level_class():
    num_classes, num_features, num_levels = 2, 3, 4
    labels, features = GENERATOR.integers(0, num_classes, N), GENERATOR.integers(0, num_levels, (N, num_features))
    counts = np.zeros((num_features, num_levels, num_classes))
    for label, levels in zip(labels, features, strict=True):
        for feature, level in enumerate(levels):
            counts[feature, level, label] += 1
    statistic = statistics.class_features(num_classes, num_features, num_levels)
    assert_close(total_of(statistic, {"class": labels, "features": features}), counts.ravel())
