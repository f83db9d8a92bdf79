"""One island: a tempered sequential Monte Carlo sampler (Del Moral, Doucet and Jasra 2006), independent of the others.

Particles (θ, x) from p(θ) f(x | θ), of positive density η(s | x) if such are found, pass through the distributions
∝ p(θ) Π f(x_i | θ) η(s | x)^λ with inverse temperatures 0 = λ_0 < ... < λ_T = 1. At each step they are reweighted by η
to the power λ_t − λ_{t−1}, resampled, and moved by Gibbs sweeps that leave the distribution at λ_t invariant. The
product of the mean weights estimates p(s). If the records are summed out, the particles are parameters alone, and η
is the likelihood of these.

Step, resampling, effective sample size and root solver are BlackJAX's. Its adaptive tempered sampler is not used. It
passes a log-density to the mutation kernel, while a Gibbs sweep needs λ itself. And it chooses each λ from particles
that were not yet resampled and moved at the previous one.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from blackjax.smc import base, ess, resampling, solver
from jax.scipy.special import logsumexp

from dpjax.base import Array, Key, Model
from dpjax.data_augmentation.parameters import fit_tuning
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.summed_out import Likelihood
from dpjax.data_augmentation.sweep import build_sweep
from dpjax.models.simulation import GibbsState
from dpjax.numerics import proper_density, tree_where
from dpjax.release import PrivateRelease
from dpjax.smc.particles import particles_of

MAX_TEMPERATURES = 200
"""Largest number of steps of an island."""

MAX_ROUNDS = 128
"""Largest number of draws from the prior for a particle of positive density."""

STEP_SIZE_CHAINS = 4
"""Number of particles to which the step size is fitted, for kernels that have one."""


class Trace(NamedTuple):
    """Reports on each step [step]; NaN beyond the last.

    Attributes
    ----------
    temperature
        The inverse temperature λ at which the particles were moved.
    ess
        The effective sample size of the weights before resampling.
    log_increment
        The logarithm of the mean weight. In the first step it is times the estimated prior probability of positive
        density over the share of particles that have it. The sum over steps estimates log p(s).
    acceptance_rate
        The fraction of imputation proposals accepted.
    num_nonfinite
        The number of weights, proposals and moves rejected because of a non-finite density, parameter or record.
    """

    temperature: Array
    ess: Array
    log_increment: Array
    acceptance_rate: Array
    num_nonfinite: Array


class PowerSearch(NamedTuple):
    """The state of the search for particles of positive density.

    Attributes
    ----------
    particles
        States [particle, ...].
    possible
        Which of them have positive density [particle].
    num_draws
        The number of draws from the prior so far [].
    round
        How many draws those particles took that are not possible yet [].
    """

    particles: GibbsState
    possible: Array
    num_draws: Array
    round: Array


class Island(NamedTuple):
    """The state of the loop.

    Attributes
    ----------
    particles
        States [particle, ...] of equal weight, whose ``latent.log_density`` is log η, not tempered.
    temperature
        The inverse temperature λ of their distribution [].
    number
        The number of steps made [].
    log_excess
        What the logarithm of the first step's mean weight leaves out of that of p(s) [].
    trace
        The reports on them.
    """

    particles: GibbsState
    temperature: Array
    number: Array
    log_excess: Array
    trace: Trace


def run_island(
    model: Model,
    plan: SweepPlan,
    num_particles: int,
    num_sweeps: int,
    key: Key,
    release: PrivateRelease | Likelihood,
    target_ess: Array,
) -> Island:
    """The particles at λ = 1; at λ = NaN if none has positive density, below 1 after `MAX_TEMPERATURES` steps."""
    start_key, step_key, tuning_key = jax.random.split(key, 3)

    def wanted(island: Island) -> Array:
        return (island.temperature < 1) & (island.number < MAX_TEMPERATURES)

    def step(island: Island) -> Island:
        key = jax.random.fold_in(step_key, island.number)
        fit_key = jax.random.fold_in(tuning_key, island.number)
        return advance_temperature(
            partial(move_particles, model, plan, num_sweeps, release, fit_key), key, target_ess, island
        )

    return jax.lax.while_loop(wanted, step, start_island(model, num_particles, start_key, release))


def start_island(model: Model, num_particles: int, key: Key, release: PrivateRelease | Likelihood) -> Island:
    """Particles from the prior, of which those of zero density were drawn anew.

    If a release excludes data sets, the prior probability of the others is a factor of p(s). It is estimated by the
    number of draws that each particle took, so that it does not depend on how few particles of one draw are possible.
    """
    kind = particles_of(model, release)
    draw = kind.each(kind.draw)
    particles = draw(jax.random.split(key, num_particles))

    def wanted(search: PowerSearch) -> Array:
        return ~jnp.all(search.possible) & (search.round < MAX_ROUNDS)

    def again(search: PowerSearch) -> PowerSearch:
        fresh = draw(jax.random.split(jax.random.fold_in(key, search.round), num_particles))
        particles = tree_where(~search.possible, fresh, search.particles)
        num_draws = search.num_draws + jnp.sum(~search.possible)
        return PowerSearch(particles, is_possible(particles), num_draws, search.round + 1)

    first = PowerSearch(particles, is_possible(particles), jnp.array(num_particles), jnp.array(1))
    found = jax.lax.while_loop(wanted, again, first)
    nothing = jnp.full(MAX_TEMPERATURES, jnp.nan)
    trace = Trace(nothing, nothing, nothing, nothing, nothing)
    return Island(found.particles, jnp.zeros(()), jnp.array(0), log_excess(found), trace)


def is_possible(particles: GibbsState) -> Array:
    """Which particles [particle] have positive density."""
    return proper_density(particles.latent.log_density) > -jnp.inf


def log_excess(search: PowerSearch) -> Array:
    """The log of the estimated prior probability of positive density over the share of particles that have it [].

    With draws until the N-th possible one (N − 1) / (draws − 1) is an unbiased estimate. If the search was given up,
    that of possible ones over draws has a bias far below its error.
    """
    size, number = search.possible.size, jnp.sum(search.possible)
    complete, given_up = (size - 1) / (search.num_draws - 1), size / search.num_draws
    return jnp.log(jnp.where(number == size, complete, given_up).astype(float))


def advance_temperature(move: Callable, key: Key, target_ess: Array, island: Island) -> Island:
    """Reweight the particles for the next inverse temperature, resample them, and move them at it.

    Parameters
    ----------
    move
        ``(keys, particles, temperature) -> (particles, (acceptance_rate, num_nonfinite))``, leading axes [particle].
    """
    raw = island.particles.latent.log_density
    log_likelihoods = proper_density(raw)
    temperature = next_temperature(log_likelihoods, island.temperature, target_ess)
    log_weights = raise_to(log_likelihoods, temperature - island.temperature)
    weights = jax.nn.softmax(log_weights)
    state = base.SMCState(island.particles, weights, temperature)
    # BlackJAX reweights after the move; here weights are computed once the next inverse temperature is known.
    state, info = base.step(key, state, move, lambda particles: jnp.zeros_like(weights), resampling.systematic)
    rates, broken = info.update_info
    num_nonfinite = jnp.sum(~(raw < jnp.inf)) + jnp.sum(broken)
    increment = log_mean(log_weights) + jnp.where(island.number == 0, island.log_excess, 0.0)
    figures = Trace(temperature, 1 / jnp.sum(weights**2), increment, jnp.mean(rates), num_nonfinite)
    trace = jax.tree.map(
        lambda held, figure: held.at[island.number].set(figure.astype(held.dtype)), island.trace, figures
    )
    return Island(state.particles, temperature, island.number + 1, island.log_excess, trace)


def move_particles(
    model: Model,
    plan: SweepPlan,
    num_sweeps: int,
    release: PrivateRelease | Likelihood,
    fit_key: Key,
    keys: Key,
    particles: GibbsState,
    temperature: Array,
) -> tuple[GibbsState, tuple[Array, Array]]:
    """Sweeps of each particle that leave p(θ) Π f(x_i | θ) η(s | x)^λ invariant, with (acceptance_rate, num_nonfinite).

    The tuning is fitted to all particles, as it is in warm-up to all chains.
    """
    raised: Any = release.tempered(temperature)
    kind = particles_of(model, release)
    kernel = build_sweep(model, raised, plan)
    whitening = fit_tuning(model, particles.parameters) if plan.uses_tuning else None
    some = jax.tree.map(lambda leaf: leaf[:STEP_SIZE_CHAINS], particles)
    tuning = kind.fit_step(fit_key, raised, plan.parameter_kernel, whitening, some)

    def sweeps(key: Key, particle: GibbsState) -> tuple[GibbsState, tuple[Array, Array]]:
        def sweep(state: GibbsState, index: Array) -> tuple[GibbsState, tuple[Array, Array]]:
            state, info = kernel.move(jax.random.fold_in(key, index), state, tuning)
            return state, (info.imputation.acceptance_rate, info.num_nonfinite)

        first = kind.begin(raised, particle)
        state, (rates, broken) = jax.lax.scan(sweep, first, jnp.arange(num_sweeps))
        state, more = kernel.complete(jax.random.fold_in(key, num_sweeps - 1), state)
        return kind.weigh(state), (jnp.mean(rates), jnp.sum(broken) + more)

    return kind.each(sweeps)(keys, particles)


def next_temperature(log_likelihoods: Array, temperature: Array, target_ess: Array) -> Array:
    """The largest λ up to 1 at which the effective sample size is a given fraction of the particles.

    Particles of zero density have weight 0 at every λ > 0 and do not count; NaN if there are no others.
    """
    goal = jnp.log(target_ess * jnp.sum(log_likelihoods > -jnp.inf, dtype=target_ess.dtype))

    def surplus(step: Array) -> Array:
        return jnp.asarray(ess.log_ess(raise_to(log_likelihoods, step))) - goal

    rest = 1 - temperature
    step = jnp.asarray(solver.dichotomy(surplus, jnp.zeros(()), rest))
    return jnp.where(step >= rest, 1.0, temperature + step)


def raise_to(log_likelihoods: Array, power: Array) -> Array:
    """The log-likelihoods times a power, with 0 × −∞ = −∞."""
    return jnp.where(log_likelihoods > -jnp.inf, power * log_likelihoods, -jnp.inf)


def log_mean(log_weights: Array) -> Array:
    """The logarithm [] of the mean of weights [particle]."""
    return logsumexp(log_weights) - jnp.log(log_weights.shape[0])
