"""The starts of parameters that move alone: modes climbed to from the prior, whitened by the curvature there.

Chains climb separately, each from the best of some draws from the prior, so that different chains find different modes.
From prior draws themselves the first trajectories would be hundreds of gradients long.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from dpjax._util.validation import fail
from dpjax.base import Array, Key, Model, Parameters
from dpjax.data_augmentation.parameters.coordinates import Tuning, build_log_density, fit_to_prior
from dpjax.data_augmentation.problem import Problem
from dpjax.data_augmentation.summed_out import MarginalLikelihood, sum_out, thin
from dpjax.models.programs import jit_model
from dpjax.models.unconstrained import to_vector
from dpjax.numerics.linear_algebra import factorize, product

__all__ = ["Ascent", "fit_to", "settle"]

NUM_CANDIDATES = 100
"""Draws from the prior among which a chain's climb begins."""

TEMPERATURE = 4.0
"""The candidates are chosen by the likelihood to the power of its inverse."""

NUM_STEPS, FIRST_RATE, LAST_RATE = 300, 0.1, 1e-3
"""Steps of Adam, and its first and last rate, in prior standard deviations."""

MOST_CLIMBS = 64
"""Most climbs that are made; with more chains some start at the same mode."""

MOST_TOGETHER = 2**26
"""Most numbers that are summed over at once, for all climbs that an accelerator makes together."""

LEAST_CURVATURE = 0.1
"""The least curvature, in units of the prior's precision: directions that curve less are taken to curve so much."""


class Ascent(NamedTuple):
    """What the climbs lead to.

    Attributes
    ----------
    starts
        The parameters at which chains start [chain, ...].
    log_density
        The log-density [climb] at the ends of the climbs.
    tuning
        The whitening by the curvature at the best of them.
    modes
        The ends [climb, ...].
    """

    starts: Parameters
    log_density: Array
    tuning: Tuning
    modes: Parameters


@partial(jit_model, static_argnames=("num",))
def draw_candidates(model: Model, key: Key, num: int) -> tuple[Tuning, Array]:
    """The whitening fitted to draws from the prior, and other draws in its coordinates [climb, candidate, p].

    It is a program by itself: with all its random numbers in it, that of the climbs takes twice as long to compile.
    """
    prior_key, draw_key = jax.random.split(key)
    prior, keys = fit_to_prior(prior_key, model), jax.random.split(draw_key, (num, NUM_CANDIDATES))
    return prior, jax.vmap(jax.vmap(lambda key: prior.whiten(to_vector(model, model.sample_prior(key))[0])))(keys)


@jit_model
def whiten_starts(model: Model, prior: Tuning, initial: Parameters) -> Array:
    """Given starts [climb, ...] as the only candidates [climb, 1, p] of their climbs."""
    return jax.vmap(lambda one: prior.whiten(to_vector(model, one)[0])[None])(initial)


@partial(jit_model, static_argnames=("together",))
def climb_to_modes(
    model: Model, likelihood: MarginalLikelihood, key: Key, prior: Tuning, candidates: Array, together: int | None
) -> Ascent:
    """The modes of p(parameters | release), each climbed to from one of some candidates [climb, candidate, p].

    So many climbs are made `together`; None makes them one after another.
    """
    shape_key, choice_key = jax.random.split(key)
    unravel = to_vector(model, model.sample_prior(shape_key))[1]
    target = build_log_density(model, prior, unravel, likelihood.build())

    def rise(given: tuple[Key, Array]) -> tuple[Array, Array]:
        key, candidates = given
        score = jax.lax.map(target, candidates) / TEMPERATURE
        return ascend(target, candidates[jnp.argmax(score + jax.random.gumbel(key, score.shape))])

    keys = jax.random.split(choice_key, len(candidates))
    modes, densities = jax.lax.map(rise, (keys, candidates), batch_size=together)
    best = modes[jnp.argmax(jnp.where(jnp.isnan(densities), -jnp.inf, densities))]
    modes = jnp.where(jnp.isfinite(densities)[:, None], modes, best[None])
    ends = jax.vmap(lambda mode: model.constrain(unravel(prior.colour(mode))))(modes)
    return Ascent(ends, densities, whiten_about(prior, target, best), ends)


def ascend(target: Callable[[Array], Array], start: Array) -> tuple[Array, Array]:
    """The end of a climb by Adam (Kingma and Ba 2015), and the log-density [] there."""
    rule = optax.adam(optax.exponential_decay(FIRST_RATE, NUM_STEPS, LAST_RATE / FIRST_RATE))

    def step(carry: tuple[Array, Any], _: None) -> tuple[tuple[Array, Any], None]:
        place, memory = carry
        slope = jnp.nan_to_num(jax.grad(target)(place), posinf=0.0, neginf=0.0)
        with jax.numpy_dtype_promotion("standard"):  # as optax has it
            change, memory = rule.update(-slope, memory, place)
        return (place + change, memory), None

    (place, _), _ = jax.lax.scan(step, (start, rule.init(start)), None, NUM_STEPS)
    return place, target(place)


def whiten_about(prior: Tuning, target: Callable[[Array], Array], mode: Array) -> Tuning:
    """The whitening by the curvature at a mode, which is given in the coordinates of the prior's whitening."""
    slope = jax.grad(target)
    basis = jnp.eye(mode.size, dtype=mode.dtype)
    hessian = jax.lax.map(lambda direction: jax.jvp(slope, (mode,), (direction,))[1], basis)
    values, vectors = jnp.linalg.eigh(-jnp.nan_to_num(hessian + hessian.T) / 2)
    scales = 1 / jnp.sqrt(jnp.maximum(values, LEAST_CURVATURE))
    factor = product(prior.factor, vectors * scales[None])
    covariance = product(factor, factor.T)
    return Tuning(prior.colour(mode), factorize(covariance), jnp.ones((), mode.dtype))


def settle(
    problem: Problem, key: Key, initial: Parameters | None, num_chains: int, in_turn: bool
) -> tuple[Problem, Ascent]:
    """The problem with windows fitted to where the parameters will be, and where chains start.

    Parameters
    ----------
    in_turn
        Whether chains climb one after another, as is best on CPUs.

    Raises
    ------
    ValueError
        If the density is not positive where the climbs end.
    """
    likelihood = problem.swept_release
    num = min(num_chains, MOST_CLIMBS)
    together = None if in_turn else max(min(num, MOST_TOGETHER // likelihood.terms.size), 1)
    draw_key, climb_key = jax.random.split(key)
    prior, candidates = draw_candidates.unoptimized(problem.model, draw_key, num)
    if initial is not None:
        candidates = whiten_starts.unoptimized(
            problem.model, prior, {name: leaf[:num] for name, leaf in initial.items()}
        )
    climb = climb_to_modes.on_host if likelihood.is_large else climb_to_modes.unoptimized
    ascent = climb(problem.model, likelihood, climb_key, prior, candidates, together)
    places = np.arange(num_chains) % num
    starts = jax.tree.map(lambda leaf: leaf[places], ascent.modes) if initial is None else initial
    ascent = ascent._replace(starts=starts)
    if not np.any(np.isfinite(ascent.log_density)):
        given = "a release of zero or undefined density at all modes climbed to from the prior"
        remedy = "Check that the model, with parameters from the prior, can give such values. Or pass `initial`."
        fail("release", given, "positive density somewhere", remedy)
    problem = replace(problem, likelihood=likelihood)
    return fit_to(problem, ascent.modes) if likelihood.is_approximate else problem, ascent


def fit_to(problem: Problem, parameters: Parameters) -> Problem:
    """The problem with windows fitted to parameters [draw, ...]."""
    likelihood = sum_out(problem.model, problem.release, parameters)
    # Of records that are drawn every number is possible.
    return replace(problem, likelihood=likelihood if problem.plan.draws_records else thin(likelihood, parameters))
