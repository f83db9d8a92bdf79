"""Sequential Monte Carlo from the prior to the posterior, for posteriors with modes apart from each other."""

from dpjax.smc.result import SMCSample
from dpjax.smc.sample import sample_smc

__all__ = ["SMCSample", "sample_smc"]
