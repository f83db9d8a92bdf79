"""Moves of parameters and records that the densities of a model leave invariant, whatever its samplers draw.

Every move is symmetric but for a Metropolis decision, or a draw by the densities of some values. So a state and what
it moves to can be exchanged, if the state was drawn from these densities.
"""

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.models.record_noise import has_scores, normal_scores, weigh_noise
from dpjax.models.simulation import draw_position
from dpjax.models.unconstrained import to_vector
from dpjax.numerics import decision_uniforms, leading_size, proper_density, select_indices, tree_where

__all__ = ["MOVES", "Draws", "LawFacts", "LawState", "MoveComparison", "draw_all", "record_numbers"]

MOST_LEVELS = 64
"""Largest number of listed values of which one is drawn; of more, so many are chosen by chance."""

NUM_STEPS = 8
"""Number of Metropolis steps of a move."""

REFRESH = 0.5
"""How much of its noise a record keeps where that is drawn anew in part."""


class LawState(NamedTuple):
    """Parameters, and records [n, ...] drawn given them."""

    parameters: Parameters
    records: Records


class LawFacts(NamedTuple):
    """What draws tell of each number of a record.

    Attributes
    ----------
    free
        Whether it is of a field whose values the model does not list [m].
    steps
        Whether it takes few values, such as counts, and so moves by differences of them [m].
    low
        The least value [m].
    high
        The greatest value [m].
    atoms
        Values that a number that is otherwise continuous takes again and again [m, 2]; NaN for none.
    """

    free: Any
    steps: Any
    low: Any
    high: Any
    atoms: Any


class Draws(NamedTuple):
    """What all moves of a state are made of.

    Attributes
    ----------
    state
        A draw from the model.
    other
        Another one.
    third
        Further parameters from the prior.
    records
        Two further sets of records [2, n, ...], given the parameters of the state.
    update
        An update of the parameters of the state.
    noise
        The noise of its records.
    """

    state: LawState
    other: LawState
    third: Parameters
    records: Records
    update: Any
    noise: Any


Move = Callable[[Key, Model, LawFacts, Draws], tuple[LawState, LawState]]
"""``(key, model, facts, draws) -> (before, after)``; the two can be exchanged if the model's densities are right."""


def draw_all(key: Key, model: Model, n: int) -> Draws:
    """Draws for the moves of one state of n records."""
    state_key, other_key, third_key, record_key, update_key, noise_key = jax.random.split(key, 6)
    state, other = (LawState(*draw_position(each, model, n)) for each in (state_key, other_key))
    records = jax.vmap(lambda key: model.sample_records(key, state.parameters, n))(jax.random.split(record_key))
    update = model.update(update_key, *state)
    noise = model.noncentred.noise(noise_key, *state)
    return Draws(state, other, model.sample_prior(third_key), records, update, noise)


def record_numbers(records: Records) -> Array:
    """All numbers [n, m] of records."""
    leaves = [jnp.reshape(leaf, (leaf.shape[0], -1)).astype(float) for leaf in jax.tree.leaves(records)]
    return jnp.concatenate(leaves, axis=1)


def with_numbers(records: Records, numbers: Array) -> Records:
    """The records with other numbers [n, m], in their dtypes."""
    leaves, structure = jax.tree.flatten(records)
    stops = np.cumsum([leaf[0].size for leaf in leaves])[:-1]
    parts = jnp.split(numbers, stops, axis=1)

    def put(leaf: Array, part: Array) -> Array:
        whole = not jnp.issubdtype(leaf.dtype, jnp.floating)
        return jnp.reshape(jnp.round(part) if whole else part, leaf.shape).astype(leaf.dtype)

    return jax.tree.unflatten(structure, list(map(put, leaves, parts)))


def accepted(key: Key, proposed: Array, present: Array) -> Array:
    """Whether Metropolis's rule accepts; nothing moves from or to what is impossible."""
    proposed, present = proper_density(proposed), proper_density(present)
    possible = (proposed > -jnp.inf) & (present > -jnp.inf)
    log_uniform = jnp.log(decision_uniforms(key, proposed.shape))
    return possible & (log_uniform < jnp.where(possible, proposed - present, -jnp.inf))


def step_size(key: Key, size: int) -> Array:
    """A factor [] of a difference of draws of so many numbers: of the usual size, or up to a hundred times smaller."""
    normal_key, scale_key = jax.random.split(key)
    scale = 2.38 / sqrt(2 * max(size, 1)) * 0.01 ** jax.random.uniform(scale_key)
    return scale * jax.random.normal(normal_key)


def repeat(key: Key, step: Callable[[Key, Any], Any], start: Any) -> Any:
    """The result of several steps, of which each can be exchanged with the next."""
    return jax.lax.scan(lambda carry, key: (step(key, carry), None), start, jax.random.split(key, NUM_STEPS))[0]


def move_parameters(
    key: Key, model: Model, draws: Draws, parameters: Parameters, log_density: Callable[[Parameters], Array]
) -> Parameters:
    """Metropolis steps on the unconstrained scale, by a difference of draws from the prior (ter Braak 2006)."""
    vector, unravel = to_vector(model, parameters)
    way = to_vector(model, draws.other.parameters)[0] - to_vector(model, draws.third)[0]

    def target(vector: Array) -> Array:
        free = unravel(vector)
        return log_density(model.constrain(free)) + model.log_jacobian(free)

    def step(key: Key, present: Array) -> Array:
        scale_key, accept_key = jax.random.split(key)
        moved = present + step_size(scale_key, present.size) * way
        return jnp.where(accepted(accept_key, target(moved), target(present)), moved, present)

    return model.constrain(unravel(repeat(key, step, vector)))


def move_by_prior(key: Key, model: Model, facts: LawFacts, draws: Draws) -> tuple[LawState, LawState]:
    """Parameters move by the prior; the records still belong to the old ones."""
    moved = move_parameters(key, model, draws, draws.state.parameters, model.log_prior)
    return draws.state, LawState(moved, draws.state.records)


def move_by_joint(key: Key, model: Model, facts: LawFacts, draws: Draws) -> tuple[LawState, LawState]:
    """Parameters move by the prior times the density of the records."""
    records = draws.state.records

    def joint(parameters: Parameters) -> Array:
        return model.log_prior(parameters) + jnp.sum(model.log_density(parameters, records))

    return draws.state, LawState(move_parameters(key, model, draws, draws.state.parameters, joint), records)


def move_records(key: Key, model: Model, facts: LawFacts, draws: Draws) -> tuple[LawState, LawState]:
    """Each record moves given the parameters: its listed fields by their densities, then its other numbers."""
    level_key, number_key = jax.random.split(key)
    levels, moved = model.domain(), draws.state
    if levels:
        moved = LawState(moved.parameters, draw_listed(level_key, model, levels, moved))
    if set(moved.records) - set(levels):
        moved = LawState(moved.parameters, move_numbers(number_key, model, facts, draws, moved.records))
    return draws.state, moved


def draw_listed(key: Key, model: Model, levels: Records, state: LawState) -> Records:
    """Fields drawn from their present value and listed ones, by the densities of the records with these."""
    choice_key, draw_key = jax.random.split(key)
    parameters, records = state
    size = leading_size(levels)
    places = jnp.arange(size) if size <= MOST_LEVELS else jax.random.randint(choice_key, (MOST_LEVELS,), 0, size)
    some = jax.tree.map(lambda leaf: jnp.asarray(leaf)[places], levels)

    def weigh(level: Records) -> Array:
        filled = {name: jnp.broadcast_to(leaf, records[name].shape) for name, leaf in level.items()}
        return proper_density(model.log_density(parameters, records | filled))

    weights = jax.vmap(weigh)(some)
    if size > MOST_LEVELS:
        weights = jnp.concatenate([weights, proper_density(model.log_density(parameters, records))[None]])
    chosen, possible = select_indices(weights, jax.random.uniform(draw_key, weights.shape[1:]))
    drawn = jax.tree.map(lambda leaf: leaf[jnp.minimum(chosen, len(places) - 1)], some)
    kept = {name: records[name] for name in some}
    return records | tree_where(possible & (chosen < len(places)), drawn, kept)


def move_numbers(key: Key, model: Model, facts: LawFacts, draws: Draws, records: Records) -> Records:
    """Metropolis steps of each record by a difference of draws: of its counts, or of its continuous numbers."""
    one, other = jax.vmap(record_numbers)(draws.records)
    # Each number by itself, for all records [n, m].
    is_count, is_free, low, high, atoms = (
        jnp.broadcast_to(leaf, (*one.shape, *leaf.shape[1:]))
        for leaf in (facts.steps, facts.free, facts.low, facts.high, facts.atoms)
    )

    def step(key: Key, present: Array) -> Array:
        turn_key, scale_key, sign_key, accept_key = jax.random.split(key, 4)
        chosen = is_free & (is_count == decide_turn(turn_key, facts)) & (is_count | ~is_atom(present))
        scale = jnp.where(is_count, jax.random.rademacher(sign_key, (), float), step_size(scale_key, one.shape[1]))
        moved = jnp.where(chosen, present + scale * (one - other), present)
        fits = jnp.where(is_count, (moved >= low) & (moved <= high), ~is_atom(moved))
        taken = accepted(accept_key, log_density(moved), log_density(present)) & jnp.all(fits | ~chosen, axis=1)
        return jnp.where(taken[:, None], moved, present)

    def is_atom(numbers: Array) -> Array:
        return jnp.any(numbers[..., None] == atoms, axis=-1)

    def log_density(numbers: Array) -> Array:
        return model.log_density(draws.state.parameters, with_numbers(records, numbers))

    moved = repeat(key, step, record_numbers(records))
    return with_numbers(records, moved)


def decide_turn(key: Key, facts: LawFacts) -> Array:
    """Whether the counts of records move [], or their continuous numbers: one kind by chance, if there are both."""
    counts, others = jnp.any(facts.steps & facts.free), jnp.any(~facts.steps & facts.free)
    return jnp.where(counts & others, jax.random.bernoulli(key), counts)


def move_by_update(key: Key, model: Model, facts: LawFacts, draws: Draws) -> tuple[LawState, LawState]:
    """The model's own update."""
    return draws.state, LawState(draws.update, draws.state.records)


def move_updated(key: Key, model: Model, facts: LawFacts, draws: Draws) -> tuple[LawState, LawState]:
    """Updated parameters move by the density of the update."""
    density, state = model.update_log_density, draws.state
    moved = move_parameters(key, model, draws, draws.update, lambda new: density(new, *state))
    return LawState(draws.update, state.records), LawState(moved, state.records)


def exchange_updated(key: Key, model: Model, facts: LawFacts, draws: Draws) -> tuple[LawState, LawState]:
    """Updated parameters are attributed to another state, by the normalised densities of the updates of both."""
    update, state, other = draws.update, draws.state, draws.other
    densities = [model.update_log_density(update, *each) for each in (other, state)]
    records = tree_where(accepted(key, *densities), other.records, state.records)
    return LawState(update, state.records), LawState(update, records)


def move_noncentred(key: Key, model: Model, facts: LawFacts, draws: Draws) -> tuple[LawState, LawState]:
    """Parameters move while the noise of the records is held, and the records with them."""
    form, noise = model.noncentred, draws.noise

    def density(parameters: Parameters) -> Array:
        log_noise, possible = weigh_noise(form, parameters, noise)
        return jnp.where(possible, model.log_prior(parameters) + log_noise, -jnp.inf)

    moved = move_parameters(key, model, draws, draws.state.parameters, density)
    return draws.state, LawState(moved, form.records(moved, noise))


def refresh_noise(key: Key, model: Model, facts: LawFacts, draws: Draws) -> tuple[LawState, LawState]:
    """The standard Normal noise of the records is drawn anew in part."""
    scores, parameters = normal_scores(model), draws.state.parameters
    leaves, structure = jax.tree.flatten(scores.scores(draws.noise))
    fresh = [
        jax.random.normal(each, leaf.shape, leaf.dtype)
        for each, leaf in zip(jax.random.split(key, len(leaves)), leaves, strict=True)
    ]
    mixed = [REFRESH * leaf + sqrt(1 - REFRESH**2) * new for leaf, new in zip(leaves, fresh, strict=True)]
    noise = scores.noise(jax.tree.unflatten(structure, mixed))
    return draws.state, LawState(parameters, model.noncentred.records(parameters, noise))


class MoveComparison(NamedTuple):
    """A move, the member that it tries if those before are right, and what that should be."""

    name: str
    member: str
    move: Move
    expected: str
    remedy: str
    applies: Callable[[Model, bool], Any]
    with_records: bool = True


MOVES = (
    MoveComparison(
        "sample_prior, log_prior",
        "log_prior",
        move_by_prior,
        "the log-density of sample_prior, with the log_jacobian of constrain if there is one",
        "Compare log_prior, sample_prior and log_jacobian, up to a constant.",
        lambda model, real: real,
        with_records=False,
    ),
    MoveComparison(
        "sample_records, log_density",
        "log_density",
        move_records,
        "the log-density of what sample_records draws, given the parameters",
        "Compare sample_records with log_density: scales, degrees, probabilities.",
        lambda model, real: True,
    ),
    MoveComparison(
        "log_density, normalised",
        "log_density",
        move_by_joint,
        "a log-density that is normalised at all parameters",
        "Add what depends on the parameters alone, such as the logarithm of a scale.",
        lambda model, real: real,
    ),
    MoveComparison(
        "update",
        "update",
        move_by_update,
        "a draw that leaves p(parameters | records) invariant",
        "Compare update with log_prior plus the sum of log_density.",
        lambda model, real: model.has("update"),
    ),
    MoveComparison(
        "update_log_density",
        "update_log_density",
        move_updated,
        "the log-density of update(key, parameters, records)",
        "Compare it with update.",
        lambda model, real: real and model.has("update") and model.has("update_log_density"),
    ),
    MoveComparison(
        "update_log_density, normalised",
        "update_log_density",
        exchange_updated,
        "a log-density that is normalised for all parameters and records",
        "Add what depends on the records alone.",
        lambda model, real: model.has("update") and model.has("update_log_density"),
    ),
    MoveComparison(
        "noncentred",
        "noncentred",
        move_noncentred,
        "noise that is free of the parameters, or has the log_density that is given",
        "Compare noncentred.records with sample_records, and give noncentred.log_density if the noise is not free.",
        lambda model, real: real and model.has("noncentred"),
    ),
    MoveComparison(
        "noncentred.scores",
        "noncentred.scores",
        refresh_noise,
        "independent standard Normal scores",
        "Compare the scores with the distribution of the noise.",
        lambda model, real: has_scores(model),
    ),
)
