"""Sequential Monte Carlo from the prior to the posterior, for posteriors with modes apart from each other."""

from dpjax.tempered.result import TemperedSample
from dpjax.tempered.run import tempered

__all__ = ["TemperedSample", "tempered"]
