"""Releases from what was published, where that is more than a value and the scale of its noise."""

from dpjax.release.releases.linear import linear
from dpjax.release.releases.suppressed import suppressed
from dpjax.release.releases.thresholded import thresholded

__all__ = ["linear", "suppressed", "thresholded"]
