"""Sequential Monte Carlo from the prior to the posterior, for posteriors with modes apart from each other."""

from dpjax.smc.result import TemperedSample
from dpjax.smc.sample import tempered

__all__ = ["TemperedSample", "tempered"]
