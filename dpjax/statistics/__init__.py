"""Statistics of one record whose sum over records is released: each knows its dimension and its sensitivities.

Any function ``record -> [d]`` of the user's own is equally welcome wherever a statistic is taken.
"""

from dpjax.statistics.around import Around, around
from dpjax.statistics.base import RecordStatistic
from dpjax.statistics.clipped import Clipped, clipped
from dpjax.statistics.combinators import Scaled, Stacked, scaled, stacked
from dpjax.statistics.linear import Linear, linear
from dpjax.statistics.losses import Huber, Logistic, LossDerivatives, Squared, loss_derivatives
from dpjax.statistics.moments import Gram, LogComposition, Total, gram, log_composition, mean, total
from dpjax.statistics.tables import Cells, ClassFeatures, Grouped, Histogram, cells, class_features, grouped, histogram

__all__ = [
    "Around",
    "Cells",
    "ClassFeatures",
    "Clipped",
    "Gram",
    "Grouped",
    "Histogram",
    "Huber",
    "Linear",
    "LogComposition",
    "Logistic",
    "LossDerivatives",
    "RecordStatistic",
    "Scaled",
    "Squared",
    "Stacked",
    "Total",
    "around",
    "cells",
    "class_features",
    "clipped",
    "gram",
    "grouped",
    "histogram",
    "linear",
    "log_composition",
    "loss_derivatives",
    "mean",
    "scaled",
    "stacked",
    "total",
]
