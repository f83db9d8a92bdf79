"""The likelihood of many records, with their sum taken to be Normal: differentiated as it is, at a cost free of n."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from dpjax.base import Array, Key, Model
from dpjax.clt.accuracy import check_errors, measure_errors, measure_skewness, warn_of_skewness
from dpjax.clt.density import CltProblem, build_problem, release_noise
from dpjax.clt.moments import Source
from dpjax.likelihood.surface import Moments, Surface, parameters_at
from dpjax.models.programs import jit_model
from dpjax.models.simulation import draw_values
from dpjax.numerics.linear_algebra import factorize, product, solve_lower
from dpjax.numerics.quadrature import Rule, as_rule, sobol
from dpjax.release import Release
from dpjax.release.summed import as_sum

__all__ = ["Approximate", "scale_rules"]

NUM_RULES, NUM_SCALES = 8, 256
"""Scrambled rules for the latent variances of Laplace noise, whose differences say how exact they are, and their size.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Approximate(Surface):
    """The likelihood of a sum that is taken to be Normal; groups are rules for the latent variances of Laplace noise.

    Parameters
    ----------
    release
        With real noise.
    given
        The release as it was published.
    source
        The source of the moments of a record's contribution.
    rule
        The quadrature of these moments.
    finer
        The one that it is compared with.
    simulated
        Variances [d] of noise of unknown variance.
    scales
        Rules [group, ...] for the latent variances; None if there are none.
    """

    release: Release
    given: Release
    source: Source
    rule: Any
    finer: Any
    simulated: Array
    scales: Rule | None

    METHOD: ClassVar[str] = "the sum taken to be Normal"

    @property
    def is_exact(self) -> bool:
        """Whether there is no Monte Carlo error: no latent variances."""
        return self.scales is None

    def evaluate(self, key: Key, values: Array, vectors: np.ndarray, chains: Any, length: int) -> tuple[Moments, Any]:
        """See `Surface`; neither the key nor the length matter, as there are no chains."""
        arguments = self.release, self.rule, self.simulated, self.scales, values, jnp.asarray(vectors, float)
        moments = Moments(*(np.asarray(leaf, float) for leaf in differentiate(self.model, self.source, *arguments)))
        return moments.kept_where_finite(), chains

    def copy(self, chains: Any, count: int) -> Any:
        """See `Surface`; there are no chains."""
        return chains

    def simulate(self, key: Key, vector: np.ndarray, count: int) -> tuple[Array, Any]:
        """See `Surface`; values come from records, and not from the approximation."""
        parameters = parameters_at(self.model, jnp.asarray(vector, float))
        several = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), parameters)
        return jnp.asarray(draw_values(key, self.model, self.given, several, count)), None

    def log_likelihood(self, vector: np.ndarray) -> tuple[float, float]:
        """The log-density of the value at a vector [k], and its standard error between rules."""
        arguments = self.release, self.rule, self.simulated, self.scales, jnp.asarray(vector, float)
        found = np.asarray(log_densities(self.model, self.source, *arguments), float)
        error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
        return float(np.mean(found)), float(error)

    def check(self, key: Key, vector: np.ndarray) -> None:
        """Raise if the quadrature is too coarse at a vector [k], and warn if the sum is skew."""
        parameters = parameters_at(self.model, jnp.asarray(vector, float))
        one = jax.tree.map(lambda leaf: leaf[None], parameters)
        if not self.source.is_exact:
            nodes = self.rule, self.finer
            errors = measure_errors(self.model, self.release, self.source, *nodes, self.simulated, one)
            check_errors(errors, len(jax.tree.leaves(self.rule)[-1]), type(self.given.statistic).__name__)
        skewness = measure_skewness(key, self.model, self.release, self.simulated, one)
        warn_of_skewness(skewness)


def scale_rules(key: Key, release: Release, simulated: Array) -> Rule | None:
    """Scrambled rules [group, ...] for the latent variances of Laplace noise; None if there are none."""
    size = release_noise(release, simulated).scaled.size
    if not size:
        return None
    rules = [as_rule(*sobol(jax.random.fold_in(key, number), size, NUM_SCALES)) for number in range(NUM_RULES)]
    return Rule(*(jnp.stack(leaves) for leaves in zip(*rules, strict=True)))


@partial(jit_model, static_argnames=("source",))
def differentiate(
    model: Model,
    source: Source,
    release: Release,
    rule: Any,
    simulated: Array,
    scales: Rule | None,
    values: Array,
    vectors: Array,
) -> Moments:
    """The derivatives [release, group, ...] at vectors [release, k]; the scale is Fisher's information."""

    def one(value: Array, vector: Array) -> Moments:
        problem = build_problem(model, as_sum(release).observing(value), source, rule, simulated)
        information = expected_information(model, problem, vector)

        def group(scales: Rule | None) -> Moments:
            density = build_density(model, problem, scales)
            score, hessian = jax.grad(density)(vector), jax.hessian(density)(vector)
            return Moments(score, score[:, None] * score[None], -hessian, information, jnp.zeros(()))

        if scales is None:
            return jax.tree.map(lambda leaf: leaf[None], group(None))
        return jax.lax.map(group, scales)

    return jax.vmap(one)(values, vectors)


@partial(jit_model, static_argnames=("source",))
def log_densities(
    model: Model, source: Source, release: Release, rule: Any, simulated: Array, scales: Rule | None, vector: Array
) -> Array:
    """The log-density [group] of the value at a vector [k]."""
    problem = build_problem(model, release, source, rule, simulated)
    if scales is None:
        return build_density(model, problem, None)(vector)[None]
    return jax.lax.map(lambda scales: build_density(model, problem, scales)(vector), scales)


def build_density(model: Model, problem: CltProblem, scales: Rule | None) -> Callable[[Array], Array]:
    """The log-density [] of the value as a function of the vector [k], up to a constant.

    Laplace noise is Normal noise of latent variance: its density is a mean over the Normal scores of these.
    """
    none = jnp.zeros(0, problem.release.value.dtype)

    def log_density(vector: Array) -> Array:
        parameters = parameters_at(model, vector)
        if scales is None:
            return problem.log_likelihood(parameters, none, none)
        log_terms = jax.vmap(lambda point: problem.log_likelihood(parameters, point, none), in_axes=1)(scales.points)
        return logsumexp(log_terms + jnp.log(scales.weights))

    return log_density


def expected_information(model: Model, problem: CltProblem, vector: Array) -> Array:
    """Fisher's information [k, k] of a Normal value with this mean and covariance."""

    def moments(vector: Array) -> tuple[Array, Array]:
        residual, covariance = problem.residual(parameters_at(model, vector))
        return residual, covariance + jnp.diag(problem.noise.variance / problem.release.n)

    factor = factorize(moments(vector)[1])
    slopes, changes = jax.jacfwd(moments)(vector)
    white = solve_lower(factor, slopes)
    spreads = jax.vmap(lambda change: solve_lower(factor, solve_lower(factor, change).T), in_axes=2)(changes)
    flat = spreads.reshape(len(spreads), -1)
    return product(white.T, white) + product(flat, flat.T) / 2
