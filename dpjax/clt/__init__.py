"""Posteriors under the normal approximation of the sum, for many records, without imputation."""

from dpjax.clt.inputs import check_problem, default_points, obstacle_to_clt
from dpjax.clt.sample import Drawn, Size, draw_chains, sample_clt

__all__ = ["Drawn", "Size", "check_problem", "default_points", "draw_chains", "obstacle_to_clt", "sample_clt"]
