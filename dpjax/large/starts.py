"""Where the chains begin: modes found from the prior by Fisher scoring, and places spread widely about them.

At n = 10⁸ the posterior may be ten thousand times narrower than the prior, so no walk from the prior would find it.
Scoring steps are damped (Levenberg and Marquardt), each chain climbing by itself from the best of a few draws of the
prior: modes apart from each other are then found by different chains, and show as disagreement between these.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model
from dpjax.large.density import Place, Problem, build_problem, build_target, unravel_of
from dpjax.large.moments import Source
from dpjax.numbered import jit_model
from dpjax.numerics.linear_algebra import factorize, product, solve_lower, solve_upper
from dpjax.parameters.coordinates import Tuning, constrain, fit_to_prior
from dpjax.release import Release
from dpjax.validation import fail

__all__ = ["Starts", "check_starts", "find_starts"]

CANDIDATES = 32
"""Draws from the prior for each chain."""

STEPS = 100
"""Scoring steps of each chain."""

HOPELESS = 30.0
"""A mode whose log-density is by more than this and two for each parameter below the best one is left for the best."""

DISPERSION = 2.0
"""Starts are so many times wider about a mode than the Normal law there."""


class Starts(NamedTuple):
    """Where chains begin.

    places
        [chain, ...].
    tuning
        The whitening by the Normal law at the best mode.
    log_density
        At that mode [].
    precision
        The smallest eigenvalue [] of the correlations of the value there.
    """

    places: Place
    tuning: Tuning
    log_density: Array
    precision: Array


class Climb(NamedTuple):
    """How far a chain has climbed: where it is [k], the log-density there [], and the damping []."""

    whitened: Array
    log_density: Array
    damping: Array


@partial(jit_model, static_argnames=("source", "num_chains"))
def find_starts(
    keys: tuple[Key, Key, Key],
    model: Model,
    release: Release,
    source: Source,
    rule: Any,
    simulated: Array,
    num_chains: int,
) -> Starts:
    """Starts about modes, by the density in which all noise is Normal."""
    prior_key, candidate_key, spread_key = keys
    problem = build_problem(model, release, source, rule, simulated)
    problem = problem._replace(noise=problem.noise._replace(scaled=np.arange(0), held=()))
    prior = fit_to_prior(prior_key, model)
    log_density = build_target(model, problem, prior)

    def density_at(whitened: Array) -> Array:
        return log_density(problem.start(whitened))

    def begin(key: Key) -> Climb:
        size = prior.location.size
        normals = jax.random.normal(key, (CANDIDATES, size), prior.location.dtype)
        densities = jax.vmap(density_at)(normals)
        best = jnp.argmax(jnp.where(jnp.isnan(densities), -jnp.inf, densities))
        return Climb(normals[best], densities[best], jnp.ones((), densities.dtype))

    def step(_: Array, climb: Climb) -> Climb:
        return scoring_step(density_at, partial(information, model, problem, prior), climb)

    def climb(key: Key) -> Climb:
        return jax.lax.fori_loop(0, STEPS, step, begin(key))

    climbs = jax.vmap(climb)(jax.random.split(candidate_key, num_chains))
    best = jnp.argmax(climbs.log_density)
    hopeless = climbs.log_density < climbs.log_density[best] - HOPELESS - 2 * prior.location.size
    modes = jnp.where(hopeless[:, None], climbs.whitened[best][None], climbs.whitened)
    root = factorize(information(model, problem, prior, climbs.whitened[best]))
    tuning = whiten_about(prior, climbs.whitened[best], root)
    normals = DISPERSION * jax.random.normal(spread_key, modes.shape, modes.dtype)
    apart = jax.vmap(lambda mode: tuning.whiten(prior.colour(mode)))(modes)
    # The places are those of the whole problem, with its latent numbers.
    places = jax.vmap(build_problem(model, release, source, rule, simulated).start)(apart + normals)
    precision = correlation_floor(model, problem, prior, climbs.whitened[best])
    return Starts(places, tuning, climbs.log_density[best], precision)


def scoring_step(density_at: Any, information_at: Any, climb: Climb) -> Climb:
    """One damped step, taken back where the density falls."""
    slope = jax.grad(density_at)(climb.whitened)
    curvature = information_at(climb.whitened)
    damped = factorize(curvature + climb.damping * jnp.diag(jnp.diagonal(curvature)))
    moved = climb.whitened + solve_upper(damped, solve_lower(damped, slope[:, None]))[:, 0]
    density = density_at(moved)
    better = density >= climb.log_density
    damping = jnp.clip(jnp.where(better, climb.damping / 8, climb.damping * 4), 1e-9, 1e9)
    return Climb(jnp.where(better, moved, climb.whitened), jnp.where(better, density, climb.log_density), damping)


def information(model: Model, problem: Problem, tuning: Tuning, whitened: Array) -> Array:
    """The information [k, k] of value and prior about whitened parameters, where V is held."""

    def mean(whitened: Array) -> Array:
        return problem.residual(constrain(model, unravel_of(model)(tuning.colour(whitened))))[0]

    slopes = jax.jacfwd(mean)(whitened)
    white = solve_lower(factorize(spread(model, problem, tuning, whitened)), slopes)
    return product(white.T, white) + jnp.eye(whitened.size, dtype=whitened.dtype)


def spread(model: Model, problem: Problem, tuning: Tuning, whitened: Array) -> Array:
    """The covariance V [d, d] of the residual."""
    _, covariance = problem.residual(constrain(model, unravel_of(model)(tuning.colour(whitened))))
    return covariance + jnp.diag(problem.noise.variance / problem.release.n)


def correlation_floor(model: Model, problem: Problem, tuning: Tuning, whitened: Array) -> Array:
    """The smallest eigenvalue [] of the correlations of the residual; 0 where one varies by rounding alone."""
    covariance = spread(model, problem, tuning, whitened)
    variance = jnp.diagonal(covariance)
    rounding = 64 * jnp.finfo(variance.dtype).eps * problem.release.value / problem.release.n
    scale = jnp.sqrt(jnp.where(variance > jnp.square(rounding), variance, jnp.inf))
    return jnp.linalg.eigvalsh(covariance / scale[:, None] / scale[None])[0]


def whiten_about(tuning: Tuning, mode: Array, root: Array) -> Tuning:
    """The whitening by a Normal law about a mode [k] in another's coordinates, whose precision has this factor."""
    factor = product(tuning.factor, solve_upper(root, jnp.eye(mode.size, dtype=mode.dtype)))
    return Tuning(tuning.colour(mode), factorize(product(factor, factor.T)), jnp.ones((), mode.dtype))


def check_starts(starts: Starts, release: Release) -> None:
    """Raise if no density is positive, or the value has a part that neither varies nor carries noise."""
    dtype = starts.precision.dtype
    if starts.precision <= 64 * release.value.size * np.finfo(dtype).eps:
        given = "a value of which some part, up to rounding, is neither random in the model nor by its noise"
        remedy = "Leave out exact totals that n or other numbers already tell"
        if dtype == np.float32:
            remedy += "; where the noise is small, call jax.config.update('jax_enable_x64', True) first"
        fail("release", given, "a value of which every part varies between records or carries noise", f"{remedy}.")
    if not np.isfinite(starts.log_density):
        given = "a value of zero or undefined density wherever the climbs from the prior led"
        remedy = "Check that model, statistic and value are in the same units, and that the prior reaches the value."
        fail("release", given, "positive density somewhere", remedy)
