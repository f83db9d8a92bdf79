"""Further states of the chains of a posterior, and how many steps apart they are nearly independent."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Key, Model
from dpjax.data_augmentation.parameters import Tuning
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.refresh import RefreshTuning
from dpjax.data_augmentation.sweep import build_mixed_step, build_sweep
from dpjax.diagnostics.convergence import ess_bulk
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState
from dpjax.release import PrivateRelease

if TYPE_CHECKING:
    from dpjax.posterior.posterior import Posterior

__all__ = ["draw_further", "spacing_of"]

MOST_STEPS = 1_000
"""Most steps of a chain between two states, however slowly it mixes."""

PILOT = 200
"""States of each chain by which the spacing is fitted to the records, ten between two states as far apart as before."""

ROUNDS = 3
"""Most pilots, each of which may find that records mix more slowly than the one before could see."""

GOLDEN = 2.399963
"""Radians, the golden angle: cosines of its multiples tell records apart."""


def draw_further(posterior: "Posterior", key: Key, num: int, spacing: int, take: Callable[[GibbsState], Any]) -> Any:
    """What `take` takes of so many states [num, ...] after the end of the chains, `spacing` steps of a chain apart."""
    problem, num_chains = posterior.problem, len(posterior.info["acceptance_rate"])
    kernel = {"release": problem.release, "tuning": posterior.tuning, "refresh": posterior.refresh}
    chains = {"keys": jax.random.split(key, num_chains), "states": posterior.final_states}
    drawn = take_states(
        problem.model, problem.plan, -(-num // num_chains), take, **kernel, **chains, spacing=jnp.int32(spacing)
    )
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:])[:num], drawn)


def spacing_of(posterior: "Posterior", key: Key) -> int:
    """Steps of a chain that give about one effective draw of the slowest parameter and `projections` of records."""
    wanted = spacing_of_parameters(posterior)
    for round_key in jax.random.split(key, ROUNDS):
        before = wanted
        wanted = max(before, spacing_of_records(posterior, round_key, min(before, MOST_STEPS)))
        if wanted <= 2 * before or wanted > MOST_STEPS:
            break
    if wanted > MOST_STEPS:
        text = f"The chains need about {wanted:,} steps for one effective draw of the slowest parameter or records"
        warn_at_the_call(f"{text}: data sets that are {MOST_STEPS:,} steps apart resemble each other.")
    return min(wanted, MOST_STEPS)


def spacing_of_parameters(posterior: "Posterior") -> int:
    """Steps of a chain that give about one effective draw of the slowest parameter."""
    if not posterior.draws:
        return MOST_STEPS // 10
    sizes = np.concatenate([np.ravel(ess_bulk(np.asarray(leaf, float))) for leaf in posterior.draws.values()])
    if np.all(np.isnan(sizes)):
        return MOST_STEPS
    return steps_for(sizes, posterior.info["acceptance_rate"].size, posterior.settings.get("thin", 1))


def spacing_of_records(posterior: "Posterior", key: Key, spacing: int) -> int:
    """Steps of a chain that give about one effective draw of the slowest projection, by a pilot of a tenth of these."""
    step, num_chains = -(-spacing // 10), len(posterior.info["acceptance_rate"])
    found = draw_further(posterior, key, PILOT * num_chains, step, projections).reshape(PILOT, num_chains, -1)
    return steps_for(ess_bulk(np.moveaxis(found, 0, 1).astype(float)), PILOT * num_chains, step)


def steps_for(sizes: np.ndarray, num_draws: int, step: int) -> int:
    """Steps for one effective draw, by effective sizes of draws that are so many steps apart; NaN if none moved."""
    least = np.min(sizes, where=~np.isnan(sizes), initial=num_draws)
    return int(np.ceil(step * num_draws / least))


def projections(state: GibbsState) -> Array:
    """The mean, mean square and a sum of cosines of each field of the records, by which records are distinguished."""
    fields = [leaf.astype(float).reshape(-1) for leaf in jax.tree.leaves(state.latent.records)]
    weights = [jnp.cos(GOLDEN * jnp.arange(field.size, dtype=field.dtype)) for field in fields]
    found = [(jnp.mean(x), jnp.mean(x**2), jnp.mean(w * x)) for x, w in zip(fields, weights, strict=True)]
    return jnp.stack([number for numbers in found for number in numbers])


@partial(jit_model, static_argnames=("plan", "num", "take"))
def take_states(
    model: Model,
    plan: SweepPlan,
    num: int,
    take: Callable[[GibbsState], Any],
    *,
    release: PrivateRelease,
    tuning: Tuning | None,
    refresh: RefreshTuning | None,
    keys: Key,
    states: GibbsState,
    spacing: Array,
) -> Any:
    """What is taken of states [num, chain, ...] so many steps apart: draws from p(parameters, records | release)."""
    sweep = build_sweep(model, release, plan)
    mixed = None if refresh is None else build_mixed_step(model, sweep, tuning, refresh, keep=lambda info: ())
    step_keys, last_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)

    def step(key: Key, number: Array, state: GibbsState) -> GibbsState:
        step_key = jax.random.fold_in(key, number)
        if mixed is None:
            return sweep.move(jax.random.split(step_key)[0], state, tuning)[0]
        return mixed(step_key, number, state)[0]

    def all_chains(number: Array, states: GibbsState) -> GibbsState:
        return jax.vmap(step, in_axes=(0, None, 0))(step_keys, number, states)

    def keep(states: GibbsState, place: Array) -> tuple[GibbsState, Any]:
        states = jax.lax.fori_loop(place * spacing, (place + 1) * spacing, all_chains, states)
        final_keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(last_keys, place)
        return states, jax.vmap(take)(jax.vmap(sweep.complete)(final_keys, states)[0])

    return jax.lax.scan(keep, states, jnp.arange(num, dtype=jnp.int32))[1]
