"""Many releases of one kind, each with a posterior of its own, by one compiled program."""

from dpjax.batches.posterior import BatchPosterior
from dpjax.batches.sample import sample_batch

__all__ = ["BatchPosterior", "sample_batch"]
