"""Runs of a model whose posterior is known."""

from tests.tools.conjugate import assert_same, bounded, exact, make_release, model, posterior, release, run

__all__ = ["assert_same", "bounded", "exact", "make_release", "model", "posterior", "release", "run"]
