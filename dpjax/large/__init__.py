"""Posteriors under the normal law of the sum, for releases of so many records that none is imputed."""

from dpjax.large.draws import Drawn, Size, default_points, draw
from dpjax.large.inputs import check_problem
from dpjax.large.predictive import predict_values
from dpjax.large.sample import large_sample

__all__ = ["Drawn", "Size", "check_problem", "default_points", "draw", "large_sample", "predict_values"]
