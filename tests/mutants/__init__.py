"""Mutation tests: faults planted in the library, each of which the nearest tests must notice."""

from tests.mutants import (
    adapters,
    coupling,
    mechanisms,
    mixture,
    models,
    private,
    records,
    results,
    sampling,
    statistics,
)
from tests.mutants.base import Mutant

__all__ = ["MUTANTS", "Mutant"]

AREAS = (mechanisms, statistics, models, records, sampling, coupling, mixture, private, results, adapters)
MUTANTS = tuple(mutant for area in AREAS for mutant in area.MUTANTS)
