"""Sequential Monte Carlo from the prior to the posterior, for posteriors with modes apart from each other."""

from dpjax.tempering.result import TemperedSample
from dpjax.tempering.run import tempered

__all__ = ["TemperedSample", "tempered"]
