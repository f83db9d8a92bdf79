"""Starts of chains: modes found from the prior by Fisher scoring, and over-dispersed points around them.

At n = 10⁸ the posterior may be ten thousand times narrower than the prior, so that a random walk from the prior would
not find it. Scoring steps are damped (Levenberg and Marquardt). Each chain climbs separately, from the best of a few
draws of a Normal distribution fitted to the prior. Different chains then find different modes, and disagree.

The information of the steps also whitens the chains' coordinates. L-BFGS of optax finds the same modes, but compiles
for two to three times as long. BFGS of JAX does not find them in float32 at n = 10⁸.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dpjax._util.validation import fail
from dpjax.base import Array, Key, Model, Parameters
from dpjax.clt.density import CltProblem, build_problem
from dpjax.clt.moments import Source
from dpjax.clt.number import number_at, reference_number, with_place
from dpjax.data_augmentation.parameters.coordinates import Tuning, build_log_density, fit_to_prior
from dpjax.models.programs import jit_model
from dpjax.models.simulation import parameter_shapes
from dpjax.numerics import tree_where
from dpjax.numerics.linear_algebra import factorize, product, solve_lower, solve_upper
from dpjax.release import Release

__all__ = ["Starts", "check_starts", "find_starts", "unravel_of"]

CANDIDATES = 32
"""Number of draws per chain, from a Normal distribution fitted to the prior."""

STEPS = 100
"""Number of scoring steps per chain, after the candidates."""

MAX_DEFICIT = 30.0
"""Largest log-density deficit of a mode to the best, plus two per parameter; below, the best is used instead."""

DISPERSION = 2.0
"""Ratio of the starts' sd about a mode to that of the normal approximation there."""


class Starts(NamedTuple):
    """The starts of chains.

    Attributes
    ----------
    parameters
        The parameters of the chains [chain, ...].
    tuning
        The whitening by the normal approximation at the best mode.
    log_density
        The log-density at that mode [].
    precision
        The smallest eigenvalue [] of the correlation matrix of the value there.
    """

    parameters: Parameters
    tuning: Tuning
    log_density: Array
    precision: Array


class Point(NamedTuple):
    """The density and its derivatives at whitened parameters [k].

    Attributes
    ----------
    log_density
        The log-density [].
    slope
        Its gradient [k].
    information
        The Fisher information of value and prior about the parameters [k, k], for fixed V.
    covariance
        The covariance V of the residual [d, d].
    """

    whitened: Array
    log_density: Array
    slope: Array
    information: Array
    covariance: Array


@partial(jit_model, static_argnames=("source", "num_chains"))
def find_starts(
    key: Key,
    model: Model,
    release: Release,
    source: Source,
    rule: Any,
    simulated: Array,
    num_chains: int,
) -> Starts:
    """Starts around modes of the density in which all noise is Normal."""
    prior_key, candidate_key, spread_key = jax.random.split(key, 3)
    problem = build_problem(model, release, source, rule, simulated)
    problem = problem._replace(noise=problem.noise._replace(scaled=np.arange(0), held=()))
    prior = fit_to_prior(prior_key, with_place(model, release))
    evaluate = build_evaluation(model, problem, prior)

    def climb(key: Key) -> Point:
        return climb_from(evaluate, jax.random.normal(key, (CANDIDATES, prior.location.size), prior.location.dtype))

    # One after another: jaxlib 0.10 can wait forever for two batches of triangular systems that are solved at once.
    modes = jax.lax.map(climb, jax.random.split(candidate_key, num_chains))
    best = jax.tree.map(lambda leaf: leaf[jnp.argmax(modes.log_density)], modes)
    negligible = modes.log_density < best.log_density - MAX_DEFICIT - 2 * prior.location.size
    whitened = jnp.where(negligible[:, None], best.whitened[None], modes.whitened)
    tuning = whiten_about(prior, best)
    apart = jax.vmap(lambda mode: tuning.whiten(prior.colour(mode)))(whitened)
    normals = DISPERSION * jax.random.normal(spread_key, apart.shape, apart.dtype)
    whole, unravel = with_place(model, release), unravel_of(with_place(model, release))
    starts = jax.vmap(lambda one: whole.constrain(unravel(tuning.colour(one))))(apart + normals)
    return Starts(starts, tuning, best.log_density, correlation_floor(best.covariance, release))


def build_evaluation(model: Model, problem: CltProblem, tuning: Tuning) -> Callable[[Array], Point]:
    """The function that evaluates a `Point` at whitened parameters [k], by one forward derivative."""
    model, none = with_place(model, problem.release), jnp.zeros(0, problem.release.value.dtype)
    unravel = unravel_of(model)

    def log_likelihood(parameters: Parameters) -> Array:
        # At the place itself: the slope of the interpolated density is small where its neighbours differ by much.
        number = number_at(problem.release, parameters)
        return problem.log_density(number, problem.moments(parameters), none, none)

    target = build_log_density(model, tuning, unravel, log_likelihood)

    def values(whitened: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        parameters = model.constrain(unravel(tuning.colour(whitened)))
        residual, covariance = problem.residual(parameters)
        density, number = target(whitened), number_at(problem.release, parameters)
        return (density, residual), (density, covariance + jnp.diag(problem.noise.variance / number))

    def evaluate(whitened: Array) -> Point:
        (slope, slopes), (density, covariance) = jax.jacfwd(values, has_aux=True)(whitened)
        white = solve_lower(factorize(covariance), slopes)
        information = product(white.T, white) + jnp.eye(whitened.size, dtype=whitened.dtype)
        return Point(whitened, density, slope, information, covariance)

    return evaluate


def unravel_of(model: Model) -> Callable[[Array], Parameters]:
    """The map from a vector [k] to unconstrained parameters."""
    free = jax.eval_shape(model.unconstrain, parameter_shapes(model))
    return ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), free))[1]


def climb_from(evaluate: Callable[[Array], Point], candidates: Array) -> Point:
    """The end of a climb from the best candidate [candidate, k] by scoring steps, damped when the density falls.

    Candidates and steps are evaluated in one loop, since the evaluation is slow to compile.
    """

    def step(number: Array, carry: tuple[Point, Array]) -> tuple[Point, Array]:
        point, damping = carry
        damped = factorize(point.information + damping * jnp.diag(jnp.diagonal(point.information)))
        change = solve_upper(damped, solve_lower(damped, point.slope[:, None]))[:, 0]
        climbing = number >= CANDIDATES
        moved = evaluate(jnp.where(climbing, point.whitened + change, candidates[jnp.minimum(number, CANDIDATES - 1)]))
        better = (moved.log_density > point.log_density) | (number == 0)
        changed = jnp.clip(jnp.where(better, damping / 8, damping * 4), 1e-9, 1e9)
        return tree_where(better, moved, point), jnp.where(climbing, changed, damping)

    shapes = jax.eval_shape(evaluate, candidates[0])
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    first = nothing._replace(information=jnp.eye(candidates.shape[1], dtype=candidates.dtype))
    return jax.lax.fori_loop(0, CANDIDATES + STEPS, step, (first, jnp.ones((), candidates.dtype)))[0]


def correlation_floor(covariance: Array, release: Release) -> Array:
    """The smallest eigenvalue [] of the residual's correlation matrix; 0 if a coordinate varies by rounding alone."""
    variance = jnp.diagonal(covariance)
    rounding = 64 * jnp.finfo(variance.dtype).eps * release.value / reference_number(release)
    scale = jnp.sqrt(jnp.where(variance > jnp.square(rounding), variance, jnp.inf))
    return jnp.linalg.eigvalsh(covariance / scale[:, None] / scale[None])[0]


def whiten_about(tuning: Tuning, mode: Point) -> Tuning:
    """The whitening by the normal approximation at a mode, which is given in another whitening's coordinates."""
    identity = jnp.eye(mode.whitened.size, dtype=mode.whitened.dtype)
    factor = product(tuning.factor, solve_upper(factorize(mode.information), identity))
    return Tuning(tuning.colour(mode.whitened), factorize(product(factor, factor.T)), jnp.ones_like(mode.log_density))


def check_starts(starts: Starts, release: Release) -> None:
    """Raise if no density is positive, or some part of the value neither varies nor has noise."""
    dtype = starts.precision.dtype
    if starts.precision <= 64 * release.value.size * np.finfo(dtype).eps:
        given = "a value of which some part, up to rounding, is neither random in the model nor noisy"
        remedy = "Leave out exact totals that n or other numbers already determine"
        if dtype == np.float32:
            remedy += "; where the noise is small, call jax.config.update('jax_enable_x64', True) first"
        fail("release", given, "a value of which every part varies between records or carries noise", f"{remedy}.")
    if not np.isfinite(starts.log_density):
        given = "a value of zero or undefined density at all modes found from the prior"
        remedy = "Check that model, statistic and value are in the same units, and that the prior reaches the value."
        fail("release", given, "positive density somewhere", remedy)
