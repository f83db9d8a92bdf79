"""Maximum likelihood from private releases, by the imputation that samples posteriors; no prior enters."""

from dpjax.likelihood.fit import maximum_likelihood
from dpjax.likelihood.intervals import ConfidenceIntervals
from dpjax.likelihood.ratio_test import LikelihoodRatioTest, likelihood_ratio_test
from dpjax.likelihood.result import MaximumLikelihood

__all__ = [
    "ConfidenceIntervals",
    "LikelihoodRatioTest",
    "MaximumLikelihood",
    "likelihood_ratio_test",
    "maximum_likelihood",
]
