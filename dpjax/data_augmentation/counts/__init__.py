"""Tables of any size: how many records take each possible value, in place of the records."""

from dpjax.data_augmentation.counts.counts import Counts, counts
from dpjax.data_augmentation.counts.form import count_form
from dpjax.data_augmentation.counts.least_squares import least_squares

__all__ = ["Counts", "count_form", "counts", "least_squares"]
