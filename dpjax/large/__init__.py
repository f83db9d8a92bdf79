"""Posteriors under the normal law of the sum, for releases of so many records that none is imputed."""

from dpjax.large.predictive import predict_values
from dpjax.large.sample import large_sample

__all__ = ["large_sample", "predict_values"]
