"""Releases from results of diffprivlib, by the distribution in its code; that library itself is not imported."""

from dpjax.adapters.diffprivlib.models import read_model
from dpjax.adapters.diffprivlib.tools import (
    read_count,
    read_histogram,
    read_mean,
    read_quantile,
    read_std,
    read_sum,
    read_var,
)

__all__ = [
    "read_count",
    "read_histogram",
    "read_mean",
    "read_model",
    "read_quantile",
    "read_std",
    "read_sum",
    "read_var",
]
