"""Markov chains for one release or many: starts, warm-up, compiled chunks and stopping rules."""

from dpjax.mcmc.batch import sample_batch
from dpjax.mcmc.sample import sample
from dpjax.mcmc.sample_clt import sample_clt
from dpjax.mcmc.until import Until, until

__all__ = ["Until", "sample", "sample_batch", "sample_clt", "until"]
