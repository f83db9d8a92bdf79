"""Regressions with group effects from formulas in R's language."""

from dpjax.adapters.formula.model import formula

__all__ = ["formula"]
