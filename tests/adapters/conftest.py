"""A run of a model whose posterior is known."""

from tests.tools.conjugate import posterior

__all__ = ["posterior"]
