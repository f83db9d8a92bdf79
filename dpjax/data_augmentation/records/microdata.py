"""Records of which some fields are known, some perturbed and some missing: all people are moved at once.

Given the parameters the records are independent, and record i has the density ∝ f(x_i | θ) Π η(z_if | x_if) over the
fields f that were released of it; exact fields stay as they are. Finite records and a Normal field are drawn exactly.
Otherwise the hidden fields of finitely many values are drawn given the rest, and each continuous one moves by two
Metropolis steps. The first proposes from the Normal distribution that has the slope and the curvature of the
log-density, which is an exact draw where that is quadratic. The second is a random walk. Whole numbers without a list
move by that alone. Beside exact fields, which can leave a number several modes far apart, it is also drawn from a wide
window of values. Records of which nothing is known exactly are also proposed as a whole by the model.

Each of these moves is reversible for each record by itself. If a sum over the same records was released, too, the
result of a move is a proposal. It is accepted by the density of the sum, one record after another (`imwg`).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.dependence import dependent_results
from dpjax._util.validation import fail, is_traced
from dpjax.base import Array, ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters, Records
from dpjax.data_augmentation.records.exchanges import build_exchange_kernel, has_known_totals
from dpjax.data_augmentation.records.hidden_numbers import Move, Moved, jump, move_by_curvature, walk
from dpjax.data_augmentation.records.local import MAX_SUPPORT
from dpjax.data_augmentation.records.proposals import check_noisy
from dpjax.data_augmentation.records.whole_numbers import check_density_falls
from dpjax.mechanisms.base import draws_latent_normal
from dpjax.models.simulation import init_latent, parameter_shapes, position_shapes
from dpjax.numerics import accept, decision_uniforms, leading_size, proper_density, select_indices, tree_where
from dpjax.release import Microdata, Release

MAX_TOGETHER = MAX_SUPPORT
"""Largest number of combinations of hidden values that are enumerated together, beyond those of one field. Fields that
determine each other could not move one after another."""


SweepOfSum = Callable[[Release, Records, Records, Array], tuple[Latent, ImputationInfo]]
"""``(summed, records, proposals, uniforms) -> (latent, info)``: decisions on proposals by the density of a sum."""


def build_kernel(model: Model, release: Microdata, decide: SweepOfSum) -> ImputationKernel:
    """A kernel that leaves p(records | parameters, release) invariant: each of the moves in turn.

    Parameters
    ----------
    decide
        How proposals are decided on where a sum was released, too.
    """
    if has_known_totals(release):
        return build_exchange_kernel(model, release, set(hidden_fields(model, release)))
    moves = choose_moves(model, release)
    if release.summed is not None:
        remedy = "Leave the exact sum out, or state it with the noise of its rounding."
        check_noisy(release.summed, "imwg(...)", remedy)
        moves = [under_sum(release, release.summed, move, decide) for move in moves]

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        moved, made = Moved(latent.records, jnp.ones(release.n, bool), jnp.array(0)), []
        for key, move in zip(jax.random.split(rng_key, max(len(moves), 1)), moves, strict=False):
            moved = move(key, parameters, moved.records)
            made.append(moved)
        return init_latent(release, moved.records), imputation_info(made or [moved])

    return step


def imputation_info(made: list[Moved]) -> ImputationInfo:
    """The report of several moves: a record took a proposal if it took that of one of them."""
    accepted = jnp.stack([moved.accepted for moved in made])
    num_nonfinite = jnp.sum(jnp.stack([moved.num_nonfinite for moved in made]))
    return ImputationInfo(jnp.mean(accepted), jnp.any(accepted, axis=0).astype(int), num_nonfinite)


def under_sum(release: Microdata, summed: Release, move: Move, decide: SweepOfSum) -> Move:
    """The move whose results are accepted by the density of a sum over the records, one after another.

    The results for records that are not in the sum are accepted as they are.
    """

    def weighed(rng_key: Key, parameters: Parameters, records: Records) -> Moved:
        move_key, accept_key = jax.random.split(rng_key)
        proposed = move(move_key, parameters, records)
        uniforms = decision_uniforms(accept_key, (summed.n,))
        _, info = decide(summed, release.of_sum(records), release.of_sum(proposed.records), uniforms)
        taken = jnp.concatenate([info.accepted > 0, jnp.ones(release.num_others, bool)])
        num_nonfinite = proposed.num_nonfinite + info.num_nonfinite
        return Moved(tree_where(taken, proposed.records, records), proposed.accepted & taken, num_nonfinite)

    return weighed


def choose_moves(model: Model, release: Microdata) -> list[Move]:
    """The moves of a sweep; none where all is known.

    Raises
    ------
    ValueError
        If a hidden field of flags or codes has values that neither its model nor its channel lists.
    """
    hidden = hidden_fields(model, release)
    if not hidden:
        return []
    if model.has("normal_field") and can_draw_normal(release):
        return [draw_normal(model, release)]
    groups, others = split_hidden(model, release, hidden)
    if release.exact:
        check_numbers(model, release.n, others)
    whole = all(name in release.missing for name in release.exact)
    moves = [propose_whole(model, release)] if whole and (others or len(groups) > 1) else []
    moves += [draw_levels(model, release, group) for group in groups]
    for name, leaf in others.items():
        for place in np.ndindex(leaf.shape[1:]):
            if jnp.issubdtype(leaf.dtype, jnp.floating):
                moves += [move_by_curvature(model, release, name, place), walk(model, release, name, place)]
                moves += [jump(model, release, name, place)] if release.exact else []
            elif (release.exact or model.count_field == name) and leaf.dtype != bool:
                moves += [walk(model, release, name, place)]
    return moves


def split_hidden(
    model: Model, release: Microdata, hidden: dict[str, Any]
) -> tuple[list[Records], dict[str, jax.ShapeDtypeStruct]]:
    """The possible values of hidden fields, for groups of these, and the other hidden fields."""
    domain = model.domain
    if domain.is_finite and domain.size <= MAX_SUPPORT:
        return [domain()], {}
    groups = list(group_levels(list_levels(model, release, hidden)))
    return groups, {name: leaf for name, leaf in hidden.items() if not any(name in group for group in groups)}


def hidden_fields(model: Model, release: Microdata) -> dict[str, jax.ShapeDtypeStruct]:
    """The random fields [n, ...] of the records that are not wholly known."""
    known = set(release.exact) - set(release.missing)
    shapes = position_shapes(model, release.n).records
    return {name: leaf for name, leaf in shapes.items() if name not in known | constant_fields(model, release.n)}


def constant_fields(model: Model, n: int) -> set[str]:
    """The fields that no draw changes: known covariates, which only models of one number of records have."""
    if model.num_records is None:
        return set()
    given = jax.eval_shape(jax.random.key, 0), parameter_shapes(model)
    drawn = dependent_results(lambda given: model.sample_records(given[0], given[1], n), given)
    return {name for name, is_drawn in drawn.items() if not is_drawn}


def can_draw_normal(release: Microdata) -> bool:
    """Whether the one field that was released is exact, or its channel draws a Normal field behind it."""
    channels = [field.channel for field in release.fields.values()]
    return len(channels) == 1 and (channels[0].sums.known or draws_latent_normal(channels[0]))


def list_levels(model: Model, release: Microdata, hidden: dict[str, Any]) -> list[Records]:
    """The possible values [c] of hidden fields: those that the model lists together, and of others by their channel."""
    # What the model's code lists without its numbers is known while a program is traced, and then can be shortened.
    with jax.ensure_compile_time_eval():
        levels = model.domain()
    found = [distinct({name: leaf for name, leaf in levels.items() if name in hidden}, levels)] if levels else []
    for name, leaf in hidden.items():
        if name in levels:
            continue
        sizes = [field.channel.sums.categories for field in release.noisy_parts(name).values()]
        known = [size for size in sizes if size is not None]
        if known and leaf.ndim == 1:
            found.append({name: jnp.arange(max(known), dtype=leaf.dtype)})
        elif leaf.dtype == bool and leaf.ndim == 1:
            found.append({name: jnp.array([False, True])})
    return [group for group in found if set(group) & set(hidden)]


def distinct(wanted: Records, levels: Records) -> Records:
    """The distinct combinations of the wanted fields; all levels, the others with them, where these are traced."""
    if not wanted or is_traced(levels):
        return levels
    arrays = {name: np.asarray(leaf) for name, leaf in wanted.items()}
    rows = np.concatenate([leaf.reshape(len(leaf), -1) for leaf in arrays.values()], axis=1)
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    return {name: jnp.asarray(leaf[first]) for name, leaf in arrays.items()}


def group_levels(found: list[Records]) -> Iterator[Records]:
    """The possible values of several fields at once, as long as these are few."""
    group: Records = {}
    for levels in found:
        if group and leading_size(group) * leading_size(levels) > MAX_TOGETHER:
            yield group
            group = {}
        group = cross(group, levels) if group else levels
    if group:
        yield group


def cross(one: Records, other: Records) -> Records:
    """All pairs of two lists of values."""
    first, second = leading_size(one), leading_size(other)
    repeated = {name: jnp.repeat(leaf, second, axis=0) for name, leaf in one.items()}
    return repeated | {name: jnp.concatenate([leaf] * first) for name, leaf in other.items()}


def check_numbers(model: Model, n: int, others: dict[str, Any]) -> None:
    """Raise if flags, or codes, whose values are not listed, are hidden beside exact fields."""
    for name, leaf in others.items():
        if leaf.dtype == bool:
            given = f"no list of the values of the field {name!r}, which is hidden in part while others are exact"
            remedy = "Give the model a `discrete_support`, or each flag a field of its own."
            fail("model", given, "a list of its possible values", remedy)
        if jnp.issubdtype(leaf.dtype, jnp.integer):
            check_density_falls(model, n, name)


class LevelMoves(NamedTuple):
    """Possible values of hidden fields.

    Attributes
    ----------
    release
        What was released; its exact values stay as they are, also those that are none of the levels.
    values
        The combinations [c].
    log_released
        The log-density [c, n] of what was released of these fields, given each of them.
    """

    release: Microdata
    values: Records
    log_released: Array

    def log_weights(self, model: Model, parameters: Parameters, records: Records) -> Array:
        """The log-density [c, n] of each record with these values in it, and of what was released of them."""
        if model.exchangeable and set(self.values) == set(records) and not set(self.values) & set(self.release.exact):
            return proper_density(model.log_density(parameters, self.values)[:, None] + self.log_released)

        def everywhere(level: Records) -> Array:
            filled = {name: jnp.broadcast_to(leaf, records[name].shape) for name, leaf in level.items()}
            return model.log_density(parameters, self.release.hold(records | filled))

        return proper_density(jax.vmap(everywhere)(self.values) + self.log_released)

    def choose(self, key: Key, log_weights: Array, records: Records) -> Moved:
        """The records with fields drawn by weights [c, n]; as they are where all of these are impossible."""
        cells, possible = select_indices(log_weights, jax.random.uniform(key, log_weights.shape[1:]))
        drawn = self.release.hold(records | jax.tree.map(lambda leaf: leaf[cells], self.values))
        return Moved(tree_where(possible, drawn, records), possible, jnp.array(0))


def find_levels(release: Microdata, values: Records) -> LevelMoves:
    """The possible values of hidden fields, with the densities of what was released of them.

    An exact value that is none of the levels, such as a large count beside codes of small ones, counts as the first.
    """
    log_released = jnp.zeros((release.n, leading_size(values)))
    for key, field in release.fields.items():
        if field.field in values:
            terms = field.log_densities_of_support(values)
            if field.channel.sums.known:
                unlisted = ~jnp.any(jnp.isfinite(terms), axis=1, keepdims=True)
                first = jax.vmap(lambda level, levels=values[key]: jnp.all(level == levels[0]))(values[key])
                terms = jnp.where(unlisted, jnp.where(first, 0.0, -jnp.inf), terms)
            log_released += release.of_seen(key, terms)
    return LevelMoves(release, values, log_released.T)


def draw_levels(model: Model, release: Microdata, values: Records) -> Move:
    """Exact draws of fields from their possible values [c] given the other fields of each record.

    Exact fields among them allow only their own value.
    """
    levels = find_levels(release, values)

    def move(rng_key: Key, parameters: Parameters, records: Records) -> Moved:
        return levels.choose(rng_key, levels.log_weights(model, parameters, records), records)

    return move


def values_summed_out(model: Model, release: Any) -> Records | None:
    """The values [c] of all that is hidden beside exact fields, where it can be summed out of each record by itself."""
    if not release.exact:
        return None
    hidden = hidden_fields(model, release)
    if release.summed is not None or not hidden:
        return None
    groups, others = split_hidden(model, release, hidden)
    return groups[0] if len(groups) == 1 and not others else None


def draw_normal(model: Model, release: Microdata) -> Move:
    """Exact draws of a Normal field: given what was released of it, or from the model where it is missing."""
    ((name, field),) = release.fields.items()
    missing = release.missing.get(name)

    def move(rng_key: Key, parameters: Parameters, records: Records) -> Moved:
        seen_key, fresh_key = jax.random.split(rng_key)
        mean, scale = model.normal_field(parameters)
        drawn = field.values
        if not field.channel.sums.known:
            drawn = field.channel.noise.sample_latent_normal(seen_key, field.values, mean, scale)
        if missing is not None:
            fresh = mean + scale * jax.random.normal(fresh_key, drawn.shape, drawn.dtype)
            drawn = tree_where(missing, fresh, drawn)
        return Moved(records | {name: drawn.astype(records[name].dtype)}, jnp.ones(release.n, bool), jnp.array(0))

    return move


def propose_whole(model: Model, release: Microdata) -> Move:
    """A Metropolis step of each record of which nothing is exact, with a proposal from the model."""
    free = reduce_and([release.missing[name] for name in release.exact], release.n)

    def move(rng_key: Key, parameters: Parameters, records: Records) -> Moved:
        proposal_key, accept_key = jax.random.split(rng_key)
        proposals = model.sample_records(proposal_key, parameters, release.n)
        proposed, present = release.log_densities(proposals), release.log_densities(records)
        accepted, broken = accept(proposed, present, jnp.log(decision_uniforms(accept_key, (release.n,))))
        accepted &= free
        return Moved(tree_where(accepted, proposals, records), accepted, jnp.sum(free & broken))

    return move


def reduce_and(masks: list[Array], n: int) -> Array:
    """Where all masks hold [n]."""
    return jnp.all(jnp.stack([jnp.ones(n, bool), *masks]), axis=0)
