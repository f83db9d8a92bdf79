"""Releases from what was published, where that is more than a value and the scale of its noise."""

from dpjax.release.releases.fitted import objective_perturbation
from dpjax.release.releases.linear import linear
from dpjax.release.releases.quantiles import interval_quantile, median, quantile
from dpjax.release.releases.quotient import quotient
from dpjax.release.releases.reports import likelihoods, unary_encoding
from dpjax.release.releases.suppressed import suppressed
from dpjax.release.releases.thresholded import thresholded
from dpjax.release.releases.variance import variance

__all__ = [
    "interval_quantile",
    "likelihoods",
    "linear",
    "median",
    "objective_perturbation",
    "quantile",
    "quotient",
    "suppressed",
    "thresholded",
    "unary_encoding",
    "variance",
]
