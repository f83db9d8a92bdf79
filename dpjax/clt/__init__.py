"""The likelihood by the Normal approximation of the sum, for many records, without imputation."""

from dpjax.clt.inputs import check_problem, default_points, obstacle_to_clt, source_or_obstacle
from dpjax.clt.likelihood import REFINEMENT, NormalSum, normal_sum
from dpjax.clt.predictive import predict_values

__all__ = [
    "REFINEMENT",
    "NormalSum",
    "check_problem",
    "default_points",
    "normal_sum",
    "obstacle_to_clt",
    "predict_values",
    "source_or_obstacle",
]
