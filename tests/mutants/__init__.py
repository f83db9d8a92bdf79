"""Mutation tests: faults planted in the library, each of which the nearest tests must notice."""

from tests.mutants import mechanisms, statistics
from tests.mutants.base import Mutant

__all__ = ["MUTANTS", "Mutant"]

MUTANTS = (*mechanisms.MUTANTS, *statistics.MUTANTS)
