"""Results: draws from a posterior, what can be asked of them, and how results of several runs are put together."""

from dpjax.posterior.batch import BatchPosterior
from dpjax.posterior.completed import Combined, DataSets, combine
from dpjax.posterior.posterior import Posterior
from dpjax.posterior.prediction import sample_prior_predictive

__all__ = ["BatchPosterior", "Combined", "DataSets", "Posterior", "combine", "sample_prior_predictive"]
