"""Posteriors under the normal law of the sum, for releases of so many records that none is imputed."""

from dpjax.clt.inputs import check_problem
from dpjax.clt.sample import Drawn, Size, default_points, draw, sample_clt

__all__ = ["Drawn", "Size", "check_problem", "default_points", "draw", "sample_clt"]
