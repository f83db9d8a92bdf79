"""Posteriors under the normal law of the sum, for releases of so many records that none is imputed."""

from dpjax.large.inputs import check_problem
from dpjax.large.predictive import predict_values
from dpjax.large.sample import large_sample

__all__ = ["check_problem", "large_sample", "predict_values"]
