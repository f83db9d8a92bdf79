"""Posteriors under the normal approximation of the sum, for many records, without imputation."""

from dpjax.clt.inputs import check_problem
from dpjax.clt.sample import Drawn, Size, default_points, draw, sample_clt

__all__ = ["Drawn", "Size", "check_problem", "default_points", "draw", "sample_clt"]
