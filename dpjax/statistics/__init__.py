"""Statistics of one record whose sum over records is released: each knows its dimension and its sensitivities.

Any function ``record -> [d]`` of the user's own is equally welcome wherever a statistic is taken.
"""

from dpjax.statistics.base import RecordStatistic, SparseStatistic
from dpjax.statistics.combinators import Scaled, SparseScaled, SparseStacked, Stacked, scaled, stacked
from dpjax.statistics.compositions import LogComposition, log_composition
from dpjax.statistics.groups import Grouped, grouped
from dpjax.statistics.moments import Gram, Total, gram, mean, total
from dpjax.statistics.tables import Cells, ClassFeatures, Histogram, cells, class_features, histogram

__all__ = [
    "Cells",
    "ClassFeatures",
    "Gram",
    "Grouped",
    "Histogram",
    "LogComposition",
    "RecordStatistic",
    "Scaled",
    "SparseScaled",
    "SparseStacked",
    "SparseStatistic",
    "Stacked",
    "Total",
    "cells",
    "class_features",
    "gram",
    "grouped",
    "histogram",
    "log_composition",
    "mean",
    "scaled",
    "stacked",
    "total",
]
