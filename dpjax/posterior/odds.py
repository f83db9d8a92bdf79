"""Odds ratios of a table against a reference level of each of its first two fields."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpjax._util.validation import fail, name_of
from dpjax.diagnostics.summary import Summary, summarize, tabulate
from dpjax.domain import Domain
from dpjax.models.categorical import Categorical


@runtime_checkable
class HasLogOdds(Protocol):
    """A model some of whose parameters are differences of log odds."""

    @property
    def log_odds(self) -> tuple[str, ...]:
        """Their names; none if its outcome has no odds."""


def tabulate_odds(
    model: Any,
    draws: Mapping[str, np.ndarray],
    level_names: dict[str, tuple[str, ...]],
    reference: str | Mapping[str, str] | None,
) -> Summary:
    """The summary of the odds ratios and their logarithms, as `Posterior.odds_ratios` describes it.

    With probabilities p, that of levels i and j against references r and s is (p_ij / p_rj) / (p_is / p_rs).
    """
    if not (isinstance(model, Categorical) and model.table is not None):
        remedy = "Pass fields and levels of two or more variables to dpjax.models.categorical."
        fail(
            "model", name_of(model), "a table of two or more fields, or a logistic regression", remedy, error=TypeError
        )
    domain = model.cells.named(level_names)
    if domain.sizes != model.table:  # the records have one field, the number of the cell
        domain = Domain(tuple(map(str, range(len(model.table)))), model.table)
    levels = domain.levels or tuple(tuple(map(str, range(size))) for size in domain.sizes)
    (first, place), (second, other) = find_references(dict(zip(domain.fields, levels, strict=True)), reference)
    probabilities = draws["probabilities"]
    # As in the model, a probability that underflows counts as the smallest float.
    logs = np.log(np.maximum(probabilities, np.finfo(probabilities.dtype).tiny))
    table = logs.reshape(*logs.shape[:2], *map(len, levels))
    against = table - np.take(table, [place], axis=2)
    ratios = against - np.take(against, [other], axis=3)
    ratios = np.delete(np.delete(ratios, place, axis=2), other, axis=3)
    labels = (compared(first, place), compared(second, other), *levels[2:])
    figures = {"odds_ratio": summarize(np.exp(ratios)), "log_odds_ratio": summarize(ratios)}
    return tabulate(figures, labels=dict.fromkeys(figures, labels))


def compared(levels: tuple[str, ...], place: int) -> tuple[str, ...]:
    """The names of all other levels beside that of the reference."""
    return tuple(f"{level}/{levels[place]}" for level in levels if level != levels[place])


def find_references(
    fields: Mapping[str, tuple[str, ...]], reference: Any
) -> tuple[tuple[tuple[str, ...], int], tuple[tuple[str, ...], int]]:
    """The levels and the place of the reference of each of the first two fields."""
    chosen = dict.fromkeys(list(fields)[:2], 0)
    named = reference if isinstance(reference, Mapping) else dict.fromkeys(chosen, reference)
    known = {(name, level): fields[name].index(level) for name in chosen for level in fields[name]}
    found = {name: known[name, level] for name, level in named.items() if (name, level) in known}
    if reference is not None and (not found or (isinstance(reference, Mapping) and len(found) < len(named))):
        expected = " or ".join(f"{name!r}: one of {', '.join(fields[name])}" for name in chosen)
        fail("reference", repr(reference), f"a level of {expected}", "Pass such as {'field': 'level'}.")
    one, two = ((fields[name], place) for name, place in (chosen | found).items())
    return one, two
