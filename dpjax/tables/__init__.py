"""Tables of any size: how many records take each possible value, in place of the records."""

from dpjax.tables.counts import Counts, counts
from dpjax.tables.form import count_form
from dpjax.tables.linear import least_squares

__all__ = ["Counts", "count_form", "counts", "least_squares"]
