"""Starts of log-linear models at the tables that were released, and tables that contradict each other."""

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Key, Parameters
from dpjax.mechanisms.base import parts_of
from dpjax.mechanisms.composite import merge_parts
from dpjax.mechanisms.spread import simulated_variance
from dpjax.models.programs import jit_model
from dpjax.models.table_effects import Columns, contrasts, tables_of
from dpjax.numerics.elimination import log_normaliser
from dpjax.release import PrivateRelease, Release
from dpjax.release.summed import one_sum_of
from dpjax.release.unknown_count import expected_number

__all__ = ["HasStarts", "starts_at_tables"]

RARE = 1e-4
"""Largest probability of a difference as large as that of two tables, over all pairs, that is remarked on."""

STEPS = 200
"""Most steps of an ascent: starts need not be at its end."""


@runtime_checkable
class HasStarts(Protocol):
    """A model that knows parameters near what was released, where its chains start."""

    def first_parameters(self, key: Key, release: PrivateRelease, num_chains: int) -> Parameters | None:
        """Parameters [chain, ...]; None where the release is of another kind."""


Table = tuple[Columns, np.ndarray, np.ndarray]
"""The columns of a released table, increasing, its counts and the variances of their noise."""


def starts_at_tables(model: Any, key: Key, release: PrivateRelease, num_chains: int) -> Parameters | None:
    """Effects [chain, k] whose margins are those of the released tables with more noise; a warning if these disagree.

    Each effect is a contrast of some margin. A contrast that several tables have is their average, weighted by their
    precision. The effects with these contrasts are found by ascent of a concave function, the log-density of records
    that have them. Iterative proportional fitting would need tables that agree. Effects in no table are draws from the
    prior.
    """
    summed = one_sum_of(release)
    tables = None if summed is None else tables_of(summed.statistic, model.cells)
    if summed is None or tables is None:
        return None
    spread_key, prior_key, noise_key = jax.random.split(key, 3)
    value, variance = np.asarray(summed.value, float), noise_variance(spread_key, summed)
    split = split_tables(model, tables, value, variance)
    remark_on_contradictions(model, split)
    number = expected_number(summed.n)
    noise = np.asarray(jax.random.normal(noise_key, (num_chains, value.size), float)) * np.sqrt(variance)
    # Noise that is larger than the counts vary leaves the effects to their prior.
    trust = 1 / (1 + float(np.mean([np.sum(table[2]) for table in split])) / number)
    starts = []
    for chain in range(num_chains):
        drawn = np.asarray(model.sample_prior(jax.random.fold_in(prior_key, chain))["effects"])
        noisy = split_tables(model, tables, value + noise[chain], variance)
        wanted, known = released_contrasts(model, noisy)
        starts.append(ascend(model, wanted, known, drawn, number, trust))
    return {"effects": jnp.asarray(np.stack(starts), float)}


def ascend(
    model: Any, wanted: np.ndarray, known: np.ndarray, drawn: np.ndarray, number: float, trust: float
) -> np.ndarray:
    """The effects [k] with these contrasts of probabilities, where they are known, else as drawn."""

    def negative(effects: np.ndarray) -> tuple[float, np.ndarray]:
        whole = jnp.asarray(np.where(known, effects, drawn), float)
        value, slope = log_density_of_contrasts.unoptimized(model, whole, jnp.asarray(wanted, float), number * trust)
        return -float(value), np.where(known, -np.asarray(slope, float), 0.0)

    with np.errstate(all="ignore"):
        found = scipy.optimize.minimize(
            negative, np.where(known, 0.0, drawn), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}
        )
    return np.where(known, found.x, drawn)


@jit_model
def log_density_of_contrasts(model: Any, effects: Array, wanted: Array, number: Array) -> Any:
    """The log-density [] of the prior and so many records with these contrasts, and its gradient [k]."""

    def density(effects: Array) -> Array:
        parameters = {"effects": effects}
        per_record = jnp.sum(effects * wanted) - log_normaliser(model.plan, model.weights(parameters))
        return number * per_record + model.log_prior(parameters)

    return jax.value_and_grad(density)(effects)


def noise_variance(key: Key, release: Release) -> np.ndarray:
    """The variance [d] of the noise of each cell."""
    found = np.zeros(release.value.size)
    for place, (part, where) in enumerate(parts_of(merge_parts(release.mechanism), release.value.size)):
        known = None if part.noise is None else part.noise.variance()
        if known is None:
            known = simulated_variance(jax.random.fold_in(key, place), part, release.value[where])
        found[where] = np.asarray(known)
    return found


def split_tables(model: Any, tables: tuple[Columns, ...], value: np.ndarray, variance: np.ndarray) -> list[Table]:
    """The columns of each table, increasing, its counts and the variances of their noise."""
    found: list[Table] = []
    start = 0
    for table in tables:
        shape = tuple(model.cells.sizes[column] for column in table)
        end, order = start + int(np.prod(shape)), np.argsort(table)
        counts, noise = (numbers[start:end].reshape(shape).transpose(order) for numbers in (value, variance))
        found.append((tuple(sorted(table)), counts, noise))
        start = end
    return found


def released_contrasts(model: Any, tables: list[Table]) -> tuple[np.ndarray, np.ndarray]:
    """The contrast of probabilities of each effect [k], and whether a table has it."""
    terms, sums, weights = model.layout.terms, [], []
    for term in terms:
        size = int(np.prod([model.cells.sizes[column] - 1 for column in term]))
        total, weight = np.zeros(size), 0.0
        for columns, counts, variance in tables:
            if not set(term) <= set(columns):
                continue
            rest = tuple(axis for axis, column in enumerate(columns) if column not in term)
            # Counts below one half would have effects without end.
            shares = np.maximum(counts, 0.5).sum(axis=rest)
            for axis, column in enumerate(term):
                shares = np.moveaxis(
                    np.tensordot(contrasts(model.cells.sizes[column])[:, 1:], shares, (0, axis)), 0, axis
                )
            precision = 1 / (np.mean(variance) * counts.size / shares.size + 1)
            total, weight = total + precision * shares.ravel() / np.maximum(counts, 0.5).sum(), weight + precision
        sums.append(total)
        weights.append(np.full(size, weight))
    precisions = np.concatenate(weights)
    return np.concatenate(sums) / np.where(precisions > 0, precisions, 1), precisions > 0


def remark_on_contradictions(model: Any, tables: list[Table]) -> None:
    """Warn of the two tables whose common margins differ most beyond their noise, if any do."""
    pairs = list(differences(tables))
    if not pairs or min(pairs)[0] * len(pairs) >= RARE:
        return
    probability, one, other, common = min(pairs)
    names = [tuple(model.cells.fields[column] for column in columns) for columns in (one, other, common)]
    shared = f"the counts of {names[2]}" if common else "their totals"
    warn_at_the_call(
        f"The released tables {names[0]} and {names[1]} contradict each other: they differ in {shared} by more than "
        f"their noise does, with probability {probability:.1g}. Check that both are of the same records, and the "
        "scales of their noise."
    )


def differences(
    tables: list[Table],
) -> Iterator[tuple[float, Columns, Columns, Columns]]:
    """How probable the differences of the common margins of two tables are, with their columns, for each pair."""
    for one, other in combinations(tables, 2):
        common = tuple(sorted(set(one[0]) & set(other[0])))
        margin = partial(margin_of, common)
        variance = margin(one[0], one[2]) + margin(other[0], other[2])
        gap = margin(one[0], one[1]) - margin(other[0], other[1])
        noisy = variance > 0
        square = float(np.sum(np.square(gap[noisy]) / variance[noisy]))
        yield float(scipy.stats.chi2.sf(square, max(noisy.sum(), 1))), one[0], other[0], common


def margin_of(common: Columns, columns: Columns, table: np.ndarray) -> np.ndarray:
    """The sums of a table over all columns but the common ones, as a vector."""
    return table.sum(axis=tuple(axis for axis, column in enumerate(columns) if column not in common)).ravel()
