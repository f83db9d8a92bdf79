"""One replicate: true parameters and records, a release of them, a chain of its posterior, and the ranks."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.parameters import Tuning, fit_step_size, fit_tuning
from dpjax.plan import SweepPlan
from dpjax.release import PrivateRelease
from dpjax.sampling.starts import climb, search
from dpjax.simulate import draw_position_at
from dpjax.states import GibbsState, Position, init_state
from dpjax.sweep import build_sweep

LOG_DENSITY = "log_density"
"""The name of the log-density of the release given the records, which is always ranked."""

Quantities = Callable[[Parameters, Records, PrivateRelease], dict[str, Any]]


class Replicate(NamedTuple):
    """What a replicate reports, by name, each [...].

    Attributes
    ----------
    ranks
        How many draws are below the truth.
    autocorrelation
        The correlation of neighbouring draws.
    found
        Whether a start of positive density was found [].
    """

    ranks: dict[str, Array]
    autocorrelation: dict[str, Array]
    found: Array


class Design(NamedTuple):
    """What all replicates share, and what programs are compiled for: the two models, the sweep and the quantities."""

    model: Model
    fit: Model
    plan: SweepPlan
    quantities: Quantities | None
    num_draws: int


def run_replicate(design: Design, template: PrivateRelease, tuning: Tuning | None, thins: Array, key: Key) -> Replicate:
    """Draw a truth from `design.model` and rank it among draws from the posterior of `design.fit`.

    Parameters
    ----------
    template
        The release whose mechanism, statistic and n are used.
    tuning
        The whitening of the first window, which knows the prior only; None where no step uses one.
    thins
        Steps between draws in each window [window]; the last is that of the draws kept.
    """
    prior_key, record_key, release_key, search_key, climb_key, chain_key, rank_key = jax.random.split(key, 7)
    truth = draw_position_at(record_key, design.model, design.model.sample_prior(prior_key), template.n)
    release = template.sample(release_key, truth.records)
    # The chain starts where one of `dpjax.sample` would: a chain that never left the truth would rank it uniformly.
    start = climb(design.fit, climb_key, release, search(design.fit, 1, search_key, release, None))
    state = jax.tree.map(lambda leaf: leaf[0], start.state)
    draws = run_chain(design, release, tuning, thins, chain_key, state)
    ranks = rank(rank_key, draws, evaluate(design.quantities, release, truth))
    return Replicate(ranks, jax.tree.map(autocorrelation, draws), start.found[0])


def evaluate(quantities: Quantities | None, release: PrivateRelease, position: Position) -> dict[str, Array]:
    """All that is ranked: parameters, quantities and the log-density, computed alike for the truth and for draws."""
    parameters, records = position
    more = {} if quantities is None else quantities(parameters, records, release)
    log_density = init_state(release, position).latent.log_density
    return {**parameters, **jax.tree.map(jnp.asarray, more), LOG_DENSITY: log_density}


def run_chain(
    design: Design, release: PrivateRelease, tuning: Tuning | None, thins: Array, key: Key, state: GibbsState
) -> dict[str, Array]:
    """Draws [draw, ...] of the last window; after each window the kernel is fitted to its draws, as in warm-up."""
    kernel = build_sweep(design.fit, release, design.plan)
    sweep_key, fit_key = jax.random.split(key)
    names = tuple(state.parameters)

    def sweep(carry: tuple[GibbsState, Array], tuning: Tuning | None) -> tuple[GibbsState, Array]:
        state, number = carry
        return kernel.move(jax.random.fold_in(sweep_key, number), state, tuning)[0], number + 1

    def window(carry: Any, thin: Array) -> Any:
        moving, tuning = carry

        def draw(moving: Any, _: None) -> Any:
            state, number = jax.lax.fori_loop(0, thin, lambda _, moving: sweep(moving, tuning), moving)
            state = kernel.complete(jax.random.fold_in(sweep_key, number - 1), state)[0]
            position = Position(state.parameters, state.latent.records)
            return (state, number), evaluate(design.quantities, release, position)

        moving, draws = jax.lax.scan(draw, moving, length=design.num_draws)
        if tuning is not None:
            whitening = fit_tuning(design.fit, {name: draws[name] for name in names})
            tuning = whitening._replace(step_size=tuning.step_size)
        return (moving, fit_step(tuning, *moving)), draws

    def fit_step(tuning: Tuning | None, state: GibbsState, number: Array) -> Tuning | None:
        here = jax.tree.map(lambda leaf: leaf[None], (state.parameters, state.latent.records))
        return fit_step_size(
            jax.random.fold_in(fit_key, number), design.fit, design.plan.parameter_kernel, tuning, *here
        )

    first = fit_step(tuning, state, jnp.array(-1))
    _, draws = jax.lax.scan(window, ((state, jnp.array(0)), first), thins)
    return jax.tree.map(lambda leaf: leaf[-1], draws)


def rank(key: Key, draws: dict[str, Array], truth: dict[str, Array]) -> dict[str, Array]:
    """How many draws [draw, ...] are below the truth [...]; among equal ones its place is drawn at random."""
    ranks = {}
    for index, (name, leaf) in enumerate(draws.items()):
        below = jnp.sum(leaf < truth[name][None], axis=0)
        equal = jnp.sum(leaf == truth[name][None], axis=0)
        ranks[name] = below + jax.random.randint(jax.random.fold_in(key, index), equal.shape, 0, equal + 1)
    return ranks


def autocorrelation(draws: Array) -> Array:
    """The correlation [...] of neighbouring draws [draw, ...]; 0 for constant ones."""
    centred = draws.astype(float) - jnp.mean(draws.astype(float), axis=0, keepdims=True)
    variance = jnp.sum(centred**2, axis=0)
    return jnp.sum(centred[1:] * centred[:-1], axis=0) / jnp.where(variance > 0, variance, 1.0)
