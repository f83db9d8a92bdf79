"""Posteriors under the normal approximation of the sum, for many records, without imputation."""

from dpjax.clt.inputs import check_problem, default_points
from dpjax.clt.sample import Drawn, Size, draw, sample_clt

__all__ = ["Drawn", "Size", "check_problem", "default_points", "draw", "sample_clt"]
