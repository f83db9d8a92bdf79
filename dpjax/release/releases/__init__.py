"""Releases from what was published, if that is more than a value and the scale of its noise."""

from dpjax.release.releases.estimates import estimates
from dpjax.release.releases.fitted import objective_perturbation
from dpjax.release.releases.linear import linear
from dpjax.release.releases.moments import moments
from dpjax.release.releases.observed import with_observed
from dpjax.release.releases.protocols import hadamard_response, local_hashing, subset_selection, unary_encoding
from dpjax.release.releases.quantiles import interval_quantile, median, quantile
from dpjax.release.releases.quotient import quotient
from dpjax.release.releases.report_counts import randomized_response_counts, unary_encoding_sums
from dpjax.release.releases.reports import likelihoods
from dpjax.release.releases.suppressed import suppressed
from dpjax.release.releases.thresholded import thresholded
from dpjax.release.releases.units import suppressed_units, thresholded_units, withheld_units
from dpjax.release.releases.variance import variance

__all__ = [
    "estimates",
    "hadamard_response",
    "interval_quantile",
    "likelihoods",
    "linear",
    "local_hashing",
    "median",
    "moments",
    "objective_perturbation",
    "quantile",
    "quotient",
    "randomized_response_counts",
    "subset_selection",
    "suppressed",
    "suppressed_units",
    "thresholded",
    "thresholded_units",
    "unary_encoding",
    "unary_encoding_sums",
    "variance",
    "with_observed",
    "withheld_units",
]
