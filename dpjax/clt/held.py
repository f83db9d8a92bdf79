"""The Normal sum with the covariance of the sum held at the mode: for hundreds of released numbers and parameters.

The covariance V(θ) of a thousand cells takes seconds, and its gradient more, but between draws of a posterior it
changes little. Held at the mode it leaves a likelihood whose gradient is that of the mean alone. What that changes is
measured: the ratios of both likelihoods at draws of the posterior would be the weights of these draws.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dpjax._util.validation import fail, name_of
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Key, Model, Parameters
from dpjax.clt.accuracy import choose_draws, warn_of_skewness
from dpjax.clt.likelihood import NormalSum
from dpjax.clt.starts import DISPERSION, Starts, check_starts, correlation_floor, unravel_of
from dpjax.data_augmentation.parameters.coordinates import Tuning
from dpjax.models.programs import jit_model
from dpjax.models.table_starts import HasStarts
from dpjax.numerics.linear_algebra import factorize, product, solve_lower, solve_upper
from dpjax.release.unknown_count import is_unknown

__all__ = ["HeldNormalSum", "hold_covariance"]

STEPS, NEAR = 20, 0.01
"""Most scoring steps to the mode, and how little the log-density would rise in another one."""

HALVINGS = 20
"""Most lengths of a step that are tried, each half of the one before."""

NUM_DRAWS = 16
"""Draws of the posterior at which the covariance is computed anew."""

LEAST_SHARE = 0.3
"""Share of those draws that would be effective if they were weighted, below which a warning is given."""

AT_ONCE = 64
"""Derivatives that are computed side by side."""


class HeldNormalSum(NormalSum):
    """The log-density of a noisy sum that is taken to be Normal, with the covariance of one place.

    Attributes
    ----------
    precision
        The inverse covariance [d, d] of √n (value / n − mean).
    mode
        The unconstrained vector [k] of that place.
    spread
        The Cholesky factor [k, k] of the covariance of the parameters there.
    floor
        The smallest eigenvalue [] of the correlation matrix of the value there.
    """

    precision: Array
    mode: Array
    spread: Array
    floor: Array

    @property
    def is_large(self) -> bool:
        """A gradient is always most of a step."""
        return True

    def build(self) -> Any:
        """See `Likelihood`."""
        precision = self.precision

        def log_density(parameters: Parameters) -> Array:
            residual = residual_of(self, parameters)
            return -product(residual, product(precision, residual)) / 2

        return log_density

    def find_starts(self, key: Key, model: Model, num_chains: int) -> Starts:
        """Starts about the mode, over-dispersed."""
        tuning = Tuning(self.mode, self.spread, jnp.ones_like(self.mode[0]))
        normals = DISPERSION * jax.random.normal(key, (num_chains, self.mode.size), self.mode.dtype)
        unravel = unravel_of(model)
        places = [model.constrain(unravel(tuning.colour(one))) for one in normals]
        several = jax.tree.map(lambda *leaves: jnp.stack(leaves), *places)
        found = Starts(several, tuning, jnp.zeros_like(self.floor), self.floor)
        check_starts(found, self.release)
        return found

    def examine(self, key: Key, draws: Parameters) -> dict[str, Any]:
        """The share of draws that would be effective with the whole likelihood, and the skewness of the cells."""
        del key
        chosen = choose_draws(draws, NUM_DRAWS)
        gaps, skewness = compare(self, chosen)
        weights = np.exp(np.asarray(gaps, float) - np.max(gaps))
        share = float(np.square(weights.sum()) / np.square(weights).sum() / weights.size)
        if not share >= LEAST_SHARE:
            warn_at_the_call(
                f"The covariance of the released sum, held at the mode, changes so much over the draws that a share "
                f"{share:.2g} of them would be effective if they were weighted. Use "
                "normal_sum() without hold_covariance, or impute the records: imputation=dpjax.imwg()."
            )
        found = np.sqrt(np.mean(np.square(np.asarray(skewness, float)), axis=0))
        warn_of_skewness(found)
        return {"held_share": np.asarray(share), "skewness": found}


def residual_of(exact: NormalSum, parameters: Parameters) -> Array:
    """√n times the difference [d] between value / n and its mean, which is computed without the covariance."""
    model: Any = exact.model
    mean = model.statistic_mean(parameters, exact.release.statistic)
    return exact.problem.residual_at(exact.release.n, mean - exact.release.value / exact.release.n)


@jit_model
def compare(model: HeldNormalSum, draws: Parameters) -> tuple[Array, Array]:
    """The log-density with the covariance of each draw, less that with the one held [draw]; the skewness [draw, d]."""
    likelihood, none = model, jnp.zeros(0, model.release.value.dtype)
    problem, held = likelihood.problem, likelihood.build()
    n = likelihood.release.n

    def one(parameters: Parameters) -> tuple[Array, Array]:
        moments = problem.moments(parameters)
        share = moments[0] + likelihood.release.value / n
        spread = jnp.sqrt(n * share * (1 - share) + problem.noise.variance)
        third = n * share * (1 - share) * (1 - 2 * share)
        return problem.log_density(n, moments, none, none) - held(parameters), third / spread**3

    return jax.lax.map(one, draws)


def hold_covariance(exact: NormalSum) -> HeldNormalSum:
    """The likelihood with the covariance of the mode, which scoring steps find from the released tables.

    Raises
    ------
    TypeError, ValueError
        If the model has no starts of its own, the number of records is unknown, or noise is not Normal.
    """
    model, release, problem = exact.model, exact.release, exact.problem
    remedy = "Leave hold_covariance out."
    if is_unknown(release):
        fail("hold_covariance", "True with an unknown number of records", "a known number", remedy)
    starts = model.first_parameters(jax.random.key(0), release, 1) if isinstance(model, HasStarts) else None
    if starts is None:
        given = f"True for {name_of(model)}"
        fail("hold_covariance", given, "dpjax.models.log_linear with released tables of its columns", remedy)
    if problem.noise.scaled.size or problem.noise.held:
        given = f"True with {name_of(release.mechanism)}"
        fail("hold_covariance", given, "Normal noise, or whole noise in whose place it can be", remedy)
    mode = ravel_pytree(model.unconstrain({name: leaf[0] for name, leaf in starts.items()}))[0]
    place = score(exact, mode)
    for _ in range(STEPS):
        if not place.rise > NEAR:
            break
        shorter = (mode + place.step / 2**halving for halving in range(HALVINGS))
        better = (one for one in shorter if density_at(exact, one, place.factor) > place.log_density)
        if (vector := next(better, None)) is None:
            break
        place, mode = score(exact, vector), vector
    if not np.isfinite(place.log_density):
        fail("release", "a value of undefined density at the released tables", "a finite one", remedy)
    white = solve_lower(place.factor, jnp.eye(len(place.factor), dtype=place.factor.dtype))
    floor = correlation_floor(product(place.factor, place.factor.T), release)
    fields = {name: getattr(exact, name) for name in NormalSum.__dataclass_fields__}
    return HeldNormalSum(**fields, precision=product(white.T, white), mode=mode, spread=place.spread, floor=floor)


class Place(NamedTuple):
    """The Normal sum at some parameters.

    Attributes
    ----------
    log_density
        The log-density [] of value and prior, up to a constant of the covariance.
    step
        The scoring step [k] of the unconstrained vector, with the covariance held.
    rise
        By how much the log-density rises by it [], if it is quadratic.
    factor
        The Cholesky factor [d, d] of the covariance of √n (value / n − mean).
    spread
        That of the covariance of the parameters [k, k], by the information.
    """

    log_density: Array
    step: Array
    rise: Array
    factor: Array
    spread: Array


@jit_model
def score(model: NormalSum, vector: Array) -> Place:
    """The scoring step at a vector [k]: Fisher's information of the mean, and the prior's curvature."""
    problem, whole, n = model.problem, model.model, model.release.n
    unravel = unravel_of(whole)

    def residual_at(vector: Array) -> Array:
        return residual_of(model, whole.constrain(unravel(vector)))

    def log_prior(vector: Array) -> Array:
        return whole.log_prior(whole.constrain(unravel(vector)))

    covariance = problem.residual(whole.constrain(unravel(vector)))[1]
    residual, derivative = jax.linearize(residual_at, vector)
    slopes = jax.lax.map(derivative, jnp.eye(vector.size, dtype=vector.dtype), batch_size=min(AT_ONCE, vector.size))
    factor = factorize(covariance + jnp.diag(jnp.broadcast_to(problem.noise.variance / n, residual.shape)))
    white, gap = solve_lower(factor, slopes.T), solve_lower(factor, residual[:, None])[:, 0]
    pull, bend = jax.jvp(jax.grad(log_prior), (vector,), (jnp.ones_like(vector),))
    information = factorize(product(white.T, white) - jnp.diag(bend))
    slope = pull - product(white.T, gap)
    step = solve_upper(information, solve_lower(information, slope[:, None]))[:, 0]
    inverse = solve_upper(information, jnp.eye(vector.size, dtype=vector.dtype))
    density = log_prior(vector) - jnp.sum(jnp.square(gap)) / 2
    return Place(density, step, jnp.sum(slope * step) / 2, factor, factorize(product(inverse, inverse.T)))


@jit_model
def density_at(model: NormalSum, vector: Array, factor: Array) -> Array:
    """The log-density [] of value and prior at a vector [k], with a covariance [d, d] of this factor."""
    parameters = model.model.constrain(unravel_of(model.model)(vector))
    gap = solve_lower(factor, residual_of(model, parameters)[:, None])
    return model.model.log_prior(parameters) - jnp.sum(jnp.square(gap)) / 2
