"""Logarithms of compositions against the same in NumPy."""

import numpy as np

from dpjax import statistics
from tests.statistics.sums import GENERATOR, N, assert_close, total_of


def test_log_composition():
    share = GENERATOR.dirichlet([0.2, 1, 3], N)
    statistic = statistics.log_composition("share", 0.01)
    assert_close(total_of(statistic, {"share": share}), np.log(np.maximum(share, 0.01)).sum(0))
