"""Starts of chains of counts: tables near the released sums, moved apart by noise of the release's own size."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from scipy.sparse import csr_array, hstack, vstack

from dpjax._util.jit import jit_unoptimized
from dpjax._util.validation import fail
from dpjax.base import Array, Key, Model, Parameters
from dpjax.data_augmentation.counts.form import as_count_model
from dpjax.data_augmentation.counts.sums import CellSums
from dpjax.data_augmentation.counts.table import COUNTS, Table, table_of
from dpjax.mechanisms.base import parts_of
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState, Position, init_state, noise_size
from dpjax.numerics import all_finite
from dpjax.release import Release

__all__ = ["find_starts", "nearest_counts", "round_counts"]

NUM_STEPS = 300

FEW_CELLS = 2**12
"""For all chains together: with more, a search by a program that was compiled quickly takes longer than it saves."""

MAX_CELLS = 64
"""Largest number of cells of a sum that are tried for one more record, if the sum is impossible for its value."""


def find_starts(
    keys: tuple[Key, Key],
    model: Model,
    release: Release,
    num_chains: int,
    initial: Parameters | None,
    collapsed: bool,
) -> GibbsState:
    """States [chain, ...] of positive density, with parameters from the prior unless given.

    Parameters
    ----------
    collapsed
        Whether the parameters are integrated out, so that they make no cell impossible.

    Raises
    ------
    ValueError
        If known totals contradict each other or cells of probability 0, or a start has density zero.
    """
    table = table_of(release)
    search = propose.unoptimized if num_chains * table.num_cells <= FEW_CELLS else propose
    parameters, counts = search(model, num_chains, keys[0], release, initial)
    if table.known:
        counts = move_into(table, known_limits(table), model, parameters, counts, collapsed)
    states, found = states_at.unoptimized(model, release, parameters, counts)
    if not np.all(np.isfinite(states.latent.log_density)):
        if limits := possible_limits(table, release):
            counts = move_into(table, [*known_limits(table), *limits], model, parameters, counts, collapsed)
        counts = np.stack([where_possible(table, release, each) for each in np.asarray(counts)])
        states, found = states_at.unoptimized(model, release, parameters, counts)
    if not np.all(found):
        given = f"a release of zero density at the nearest tables found for {np.sum(~np.asarray(found))} chains"
        remedy = "Check value, mechanism and statistic, which are in counts of records, and the prior of `initial`."
        fail("release", given, "positive density near the released sums", remedy)
    return states


@jit_model
def states_at(model: Model, release: Release, parameters: Parameters, counts: Array) -> tuple[GibbsState, Array]:
    """The states [chain, ...] at parameters and counts, and whether prior and release have positive density there."""

    def one(parameters: Parameters, counts: Array) -> tuple[GibbsState, Array]:
        state = init_state(release, Position(parameters, {COUNTS: counts[None]}))
        return state, all_finite((parameters, model.log_prior(parameters) + state.latent.log_density))

    return jax.vmap(one)(parameters, counts)


class Limits(NamedTuple):
    """Sums [q] of counts, and between which numbers each lies."""

    sums: CellSums
    least: np.ndarray
    most: np.ndarray


def known_limits(table: Table) -> list[Limits]:
    """Those of the known totals."""
    return [Limits(sums, values, values) for sums, values in table.known]


def possible_limits(table: Table, release: Release) -> list[Limits]:
    """Those within which the published numbers can have been released."""
    found = []
    for (mechanism, where), sums in zip(parts_of(release.mechanism, len(release.value)), table.parts, strict=True):
        if mechanism.sums.bounds is not None:
            least, most = mechanism.sums.bounds(release.value[where])
            found.append(Limits(sums, np.asarray(least), np.asarray(most)))
    return found


def move_into(
    table: Table, limits: list[Limits], model: Model, parameters: Parameters, counts: Array, collapsed: bool
) -> np.ndarray:
    """The tables [chain, c] within the limits that are nearest to given ones."""
    possible = possible_cells.unoptimized(model, parameters, collapsed)
    return np.stack([into_limits(table, limits, *each) for each in zip(np.asarray(counts), possible, strict=True)])


@jit_model
def possible_cells(model: Model, parameters: Parameters, collapsed: bool) -> Array:
    """The cells [chain, c] that may gain records: those of positive probability, or all if parameters are no bar."""
    return (jax.vmap(as_count_model(model).of_cells)(parameters) > -jnp.inf) | collapsed


@partial(jit_model, static_argnames=("num_chains",))
def propose(
    model: Model, num_chains: int, key: Key, release: Release, initial: Parameters | None
) -> tuple[Parameters, Array]:
    """Parameters [chain, ...], and tables [chain, c] of `guess_counts`, in whole numbers."""
    table = table_of(release)
    scale_key, chain_key = jax.random.split(key)
    scale = noise_size(scale_key, release)

    def one(key: Key, parameters: Parameters | None) -> tuple[Parameters, Array]:
        prior_key, noise_key = jax.random.split(key)
        chosen = model.sample_prior(prior_key) if parameters is None else parameters
        probability = jnp.exp(as_count_model(model).of_cells(chosen))
        guess = guess_counts(table, release, scale, probability, noise_key)
        return chosen, leave_impossible(round_counts(guess, guess_number(table, guess)), probability)

    return jax.vmap(one)(jax.random.split(chain_key, num_chains), initial)


def guess_counts(table: Table, release: Release, scale: Array, probability: Array, key: Key) -> Array:
    """Numbers [c] that add up to n: near the released value with noise added once more, or those that are expected.

    The latter if some mechanism reads its sums together: its value is no sum to which tables could be near.
    """
    if table.entangled:
        return jnp.asarray(table.draw_number(key), probability.dtype) * probability
    value = release.value
    if release.mechanism._can_sample:
        value = release.mechanism.sample(key, near_sums(release, value))
    return nearest_counts(table, near_sums(release, value), scale, probability)


def near_sums(release: Release, value: Array) -> Array:
    """Sums [d] near those that lead to a value [d] like this one."""
    parts = parts_of(release.mechanism, len(value))
    return jnp.concatenate([mechanism.sums.near(value[where]) for mechanism, where in parts])


def where_possible(table: Table, release: Release, counts: np.ndarray) -> np.ndarray:
    """The table [c] with a record more in a cell of each sum that cannot have given its value, while that helps.

    A published key occurs in some record, but may be rounded to none if it is rare. Records come from the fullest cell;
    tables with known totals do not change.
    """
    if table.known or not release.mechanism._is_elementwise:
        return counts
    for place in np.flatnonzero(impossible_sums(release, counts)):
        cells = np.flatnonzero(np.any((table.sums.index == place) & (table.sums.weight != 0), axis=1))
        for cell in cells[:MAX_CELLS]:
            moved = counts.copy()
            moved[np.argmax(counts)] -= min(np.max(counts), 1)
            moved[cell] += 1
            if np.sum(impossible_sums(release, moved)) < np.sum(impossible_sums(release, counts)):
                counts = moved
                break
    return counts


def impossible_sums(release: Release, counts: np.ndarray) -> np.ndarray:
    """Which sums [d] of a table cannot have given their values."""
    return np.asarray(log_density_of_sums(release, counts)) == -np.inf


@jit_unoptimized
def log_density_of_sums(release: Release, counts: Array) -> Array:
    """The log-density [d] of each released sum at a table [c]."""
    total = table_of(release).sums.total(counts).astype(release.value.dtype)
    terms: Array = release.mechanism.log_density_terms(release.value, total)
    return terms


def leave_impossible(counts: Array, probability: Array) -> Array:
    """Counts [c] with empty cells of probability 0: their records go to the likeliest cell."""
    kept = jnp.where(probability > 0, counts, 0)
    return kept.at[jnp.argmax(probability)].add(jnp.sum(counts - kept))


def guess_number(table: Table, cells: Array) -> Array:
    """The number of records [], or the possible one nearest to the sum of guessed counts."""
    low, high = table.bounds
    return jnp.clip(jnp.round(jnp.sum(cells)).astype(int), low, high)


def nearest_counts(table: Table, value: Array, scale: Array, probability: Array) -> Array:
    """Nonnegative numbers [c] that add up to n, whose sums are nearest to the value in units of noise.

    Accelerated projected gradients (Beck and Teboulle 2009), from the expected counts.
    """
    kind = value.dtype
    number = None if table.prior is not None else jnp.asarray(table.n, kind)
    guess = 1.0 if number is None else number
    weight = jnp.asarray(table.sums.weight, kind)
    place = np.where(table.sums.index < 0, table.sums.size, table.sums.index)

    def slope(cells: Array) -> Array:
        pull = (table.sums.total(cells) - value) / scale**2
        return jnp.sum(weight * jnp.append(pull, 0.0)[place], axis=1)

    def power(vector: Array, _: None) -> tuple[Array, Array]:
        image = slope(vector) - slope(jnp.zeros_like(vector))
        size = jnp.linalg.norm(image)
        return image / size, size

    curvature = jax.lax.scan(power, jnp.full(table.num_cells, table.num_cells**-0.5, kind), length=30)[1][-1]

    def step(carry: tuple[Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array], None]:
        cells, ahead, pace = carry
        moved = project(ahead - slope(ahead) / (1.1 * curvature), number)
        next_pace = (1 + jnp.sqrt(1 + 4 * pace**2)) / 2
        return (moved, moved + (pace - 1) / next_pace * (moved - cells), next_pace), None

    first = project(guess * probability.astype(kind), number)
    return jax.lax.scan(step, (first, first, jnp.ones((), kind)), length=NUM_STEPS)[0][0]


def project(point: Array, total: Array | None) -> Array:
    """The nearest point [c] with nonnegative entries, of a given sum if there is one."""
    if total is None:
        return jnp.maximum(point, 0)
    ordered = -jnp.sort(-point)
    excess = (jnp.cumsum(ordered) - total) / jnp.arange(1, point.size + 1, dtype=point.dtype)
    last = jnp.maximum(jnp.sum(ordered > excess), 1) - 1
    return jnp.maximum(point - excess[last], 0)


def round_counts(cells: Array, n: Array) -> Array:
    """Whole numbers [c] that add up to n, near the given ones."""
    below = jnp.floor(cells)
    rank, whole = jnp.argsort(jnp.argsort(below - cells)), below.astype(int)
    missing = n - jnp.sum(whole)
    share, rest = jnp.divmod(jnp.maximum(missing, 0), cells.size)
    whole = whole + share + (rank < rest).astype(int)
    # Rounding in single precision may leave too many, which the fullest cells give up.
    order = jnp.argsort(-whole)
    held = whole[order]
    before = jnp.cumsum(held) - held
    given = jnp.clip(jnp.maximum(-missing, 0) - before, 0, held)
    return whole.at[order].add(-given)


def into_limits(table: Table, limits: list[Limits], cells: np.ndarray, possible: np.ndarray) -> np.ndarray:
    """The table [c] within limits that is nearest to a given one in the sum of absolute differences.

    Parameters
    ----------
    possible
        The cells [c] that may gain records.

    Raises
    ------
    ValueError
        If there is no table of nonnegative whole numbers within them.
    """
    size = len(cells)
    least, most = table.bounds
    totals = vstack([csr_array(np.ones((1, size))), *[each.sums.matrix for each in limits]])
    low = np.concatenate([[least], *[each.least for each in limits]])
    high = np.concatenate([[np.inf if most is None else most], *[each.most for each in limits]])
    held = totals @ cells
    # Variables are what is added to each cell and what is taken from it.
    constraint = scipy.optimize.LinearConstraint(hstack([totals, -totals]), low - held, high - held)
    bounds = scipy.optimize.Bounds(0, np.concatenate([np.where(possible, np.inf, 0.0), cells]))
    found = scipy.optimize.milp(np.ones(2 * size), constraints=constraint, bounds=bounds, integrality=np.ones(2 * size))
    if found.x is None:
        given = "known or rounded totals that contradict each other, the number of records, or cells of probability 0"
        remedy = "Check the released values, mechanisms and n, and the model's support and `initial`."
        fail("release", given, "totals that some table of whole numbers has", remedy)
    added, taken = np.round(found.x).astype(cells.dtype).reshape(2, size)
    return cells + added - taken
