"""Scaled and stacked statistics against the same in NumPy."""

from dpjax import statistics
from tests.statistics.sums import GENERATOR, N, assert_close, total_of


def test_scaled_and_stacked_take_functions_too():
    records = {"y": GENERATOR.normal(size=N)}
    square = statistics.scaled(lambda record: record["y"][None] ** 2, 0.5)
    joined = statistics.stacked(statistics.total("y", -1, 1), square)
    y = records["y"]
    assert_close(total_of(joined, records), [y.clip(-1, 1).sum(), 0.5 * (y**2).sum()])
