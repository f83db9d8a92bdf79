"""Numerical functions of arrays, independent of models, releases and samplers."""

from dpjax.numerics.arrays import all_finite, leading_size, proper_density, take_entry, tree_where
from dpjax.numerics.selection import (
    accept,
    decision_uniforms,
    scale_weights,
    select_index,
    select_indices,
    select_weight,
)
from dpjax.numerics.sums import sum_rows

__all__ = [
    "accept",
    "all_finite",
    "decision_uniforms",
    "leading_size",
    "proper_density",
    "scale_weights",
    "select_index",
    "select_indices",
    "select_weight",
    "sum_rows",
    "take_entry",
    "tree_where",
]
