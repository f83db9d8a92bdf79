"""Releases from results of the R package DPpack, by the distribution in its code; its objects come as JSON."""

from dpjax.adapters.dppack.models import read_model
from dpjax.adapters.dppack.summaries import read_histogram, read_mean, read_quantile, read_sd, read_table, read_var

__all__ = ["read_histogram", "read_mean", "read_model", "read_quantile", "read_sd", "read_table", "read_var"]
