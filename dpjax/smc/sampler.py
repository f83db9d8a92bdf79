"""One island: a tempered sequential Monte Carlo sampler (Del Moral, Doucet and Jasra 2006), independent of the others.

Particles (θ, x) from p(θ) f(x | θ) pass through the distributions ∝ p(θ) Π f(x_i | θ) η(s | x)^λ with inverse
temperatures 0 = λ_0 < ... < λ_T = 1. At each step they are reweighted by η to the power λ_t − λ_{t−1}, resampled, and
moved by Gibbs sweeps that leave the distribution at λ_t invariant. The product of the mean weights estimates p(s).

Step, resampling, effective sample size and root solver are BlackJAX's. Its adaptive tempered sampler is not used: it
passes a log-density to the mutation kernel, where a Gibbs sweep needs λ itself; and it chooses each λ from particles
that were not yet resampled and moved at the previous one.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from blackjax.smc import base, ess, resampling, solver
from jax.scipy.special import logsumexp

from dpjax.base import Array, Key, Model
from dpjax.data_augmentation.parameters import fit_step_size, fit_tuning
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.sweep import build_sweep
from dpjax.mechanisms.composite import temper_mechanism
from dpjax.models.simulation import GibbsState, Position, draw_state, init_state
from dpjax.numerics import proper_density
from dpjax.release import PrivateRelease

MAX_TEMPERATURES = 200
"""Largest number of steps of an island."""

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
        The logarithm of the mean weight; the sum over steps estimates log p(s).
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
    """

    particles: GibbsState
    temperature: Array
    number: Array
    trace: Trace


def run_island(
    model: Model,
    plan: SweepPlan,
    num_particles: int,
    num_sweeps: int,
    key: Key,
    release: PrivateRelease,
    target_ess: Array,
) -> Island:
    """The particles at λ = 1; at λ = NaN if none has positive density, below 1 after `MAX_TEMPERATURES` steps."""
    start_key, step_key, tuning_key = jax.random.split(key, 3)

    def wanted(island: Island) -> Array:
        return (island.temperature < 1) & (island.number < MAX_TEMPERATURES)

    def step(island: Island) -> Island:
        key = jax.random.fold_in(step_key, island.number)
        fit_key = jax.random.fold_in(tuning_key, island.number)
        return advance(partial(move, model, plan, num_sweeps, release, fit_key), key, target_ess, island)

    return jax.lax.while_loop(wanted, step, start(model, num_particles, start_key, release))


def start(model: Model, num_particles: int, key: Key, release: PrivateRelease) -> Island:
    """Particles from the prior."""
    draw = partial(draw_state, model=model, release=release)
    particles = jax.vmap(draw)(jax.random.split(key, num_particles))
    nothing = jnp.full(MAX_TEMPERATURES, jnp.nan)
    return Island(particles, jnp.zeros(()), jnp.array(0), Trace(nothing, nothing, nothing, nothing, nothing))


def advance(move: Callable, key: Key, target_ess: Array, island: Island) -> Island:
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
    figures = Trace(temperature, 1 / jnp.sum(weights**2), log_mean(log_weights), jnp.mean(rates), num_nonfinite)
    trace = jax.tree.map(
        lambda held, figure: held.at[island.number].set(figure.astype(held.dtype)), island.trace, figures
    )
    return Island(state.particles, temperature, island.number + 1, trace)


def move(
    model: Model,
    plan: SweepPlan,
    num_sweeps: int,
    release: PrivateRelease,
    fit_key: Key,
    keys: Key,
    particles: GibbsState,
    temperature: Array,
) -> tuple[GibbsState, tuple[Array, Array]]:
    """Sweeps of each particle that leave p(θ) Π f(x_i | θ) η(s | x)^λ invariant, with (acceptance_rate, num_nonfinite).

    The tuning is fitted to all particles, as it is in warm-up to all chains.
    """
    raised = temper(release, temperature)
    kernel = build_sweep(model, raised, plan)
    whitening = fit_tuning(model, particles.parameters) if plan.uses_tuning else None
    some = jax.tree.map(lambda leaf: leaf[:STEP_SIZE_CHAINS], (particles.parameters, particles.latent.records))
    tuning = fit_step_size(fit_key, model, plan.parameter_kernel, whitening, *some)

    def sweeps(key: Key, particle: GibbsState) -> tuple[GibbsState, tuple[Array, Array]]:
        def sweep(state: GibbsState, index: Array) -> tuple[GibbsState, tuple[Array, Array]]:
            state, info = kernel.move(jax.random.fold_in(key, index), state, tuning)
            return state, (info.imputation.acceptance_rate, info.num_nonfinite)

        first = init_state(raised, Position(particle.parameters, particle.latent.records))
        state, (rates, broken) = jax.lax.scan(sweep, first, jnp.arange(num_sweeps))
        state, more = kernel.complete(jax.random.fold_in(key, num_sweeps - 1), state)
        last = init_state(release, Position(state.parameters, state.latent.records))
        return last, (jnp.mean(rates), jnp.sum(broken) + more)

    return jax.vmap(sweeps)(keys, particles)


def temper(release: PrivateRelease, power: Array) -> PrivateRelease:
    """The release with its density raised to a power."""
    return release.with_mechanism(temper_mechanism(release.mechanism, power))


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
