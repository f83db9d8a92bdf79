"""Runs of a model whose posterior is known."""

from tests.tools.conjugate import exact, model, posterior, release, run

__all__ = ["exact", "model", "posterior", "release", "run"]
