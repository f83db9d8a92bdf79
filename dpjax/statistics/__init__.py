"""Statistics of one record whose sum over records is released: each knows its dimension and its sensitivities.

Any function ``record -> [d]`` of the user's own is equally welcome wherever a statistic is taken.
"""

from dpjax.statistics.around import Around, around
from dpjax.statistics.base import RecordStatistic
from dpjax.statistics.clipped import Clipped, clipped
from dpjax.statistics.combinators import Scaled, Stacked, scaled, stacked
from dpjax.statistics.compositions import LogComposition, log_composition
from dpjax.statistics.groups import TotalsOfGroups, group_totals
from dpjax.statistics.linear import Linear, linear
from dpjax.statistics.losses import FittedDerivatives, Huber, Logistic, LossDerivatives, Squared, loss_derivatives
from dpjax.statistics.moments import Count, Gram, Total, count, gram, mean, total
from dpjax.statistics.powers import Powers, powers
from dpjax.statistics.tables import Cells, ClassFeatures, Grouped, Histogram, cells, class_features, grouped, histogram

__all__ = [
    "Around",
    "Cells",
    "ClassFeatures",
    "Clipped",
    "Count",
    "FittedDerivatives",
    "Gram",
    "Grouped",
    "Histogram",
    "Huber",
    "Linear",
    "LogComposition",
    "Logistic",
    "LossDerivatives",
    "Powers",
    "RecordStatistic",
    "Scaled",
    "Squared",
    "Stacked",
    "Total",
    "TotalsOfGroups",
    "around",
    "cells",
    "class_features",
    "clipped",
    "count",
    "gram",
    "group_totals",
    "grouped",
    "histogram",
    "linear",
    "log_composition",
    "loss_derivatives",
    "mean",
    "powers",
    "scaled",
    "stacked",
    "total",
]
