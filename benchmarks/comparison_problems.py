"""Four models whose posterior is published: the two of the DP-HMC paper, a logistic and a Poisson regression.

Covariates of the regressions have a few public levels, so that what a record adds to a release has exact moments. A
guess of the parameters is public; the truth is some posterior standard deviations away from it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import poisson

import dpjax
from benchmarks.papers.dphmc.problems import EIGENVALUES, TWIST, VARIANCES

Records = dict[str, Any]
Statistic = Callable[[Records], jax.Array]
OFFSET = 3.0
"""How far the truth is from the guess in each direction, in posterior standard deviations."""
KEPT = {True: 0.9999, False: 0.9}
"""The share of records that a release leaves at their length: nearly all where the moments leave clipping out."""
PRIOR = {"banana": 1000.0, "Gaussian": 100.0**2, "logistic": 1.0, "Poisson": 1.0}
"""Prior variances."""
LEVELS = np.sqrt(0.5) * np.arange(-2.0, 3.0)
"""Those of a covariate, of mean 0 and variance 1."""
DESIGN = np.array([[1.0, first, second] for first in LEVELS for second in LEVELS])
"""An intercept and two covariates of every kind of record [25, 3]; records have each with equal probability."""
MOST = 60
"""The largest response whose probability is not negligible."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, and its posterior given records and given a release of sums.

    Attributes
    ----------
    name
        How it is called in the results.
    n
        The number of records.
    guess
        The parameters [d] that the public believes in.
    log_likelihood, log_prior
        ``(theta [d], record) -> []`` and ``theta -> []``.
    simulate
        ``(key, theta, n) -> records``.
    exact
        ``(rng, records, count) -> [count, d]``: draws of the posterior given the records.
    sums
        What a record adds to sums that need no guess.
    moments
        ``(theta, statistic) -> (mean [k], covariance [k, k])`` of what a record adds.
    """

    name: str
    n: int
    guess: np.ndarray
    log_likelihood: Callable[[jax.Array, Records], jax.Array]
    log_prior: Callable[[jax.Array], jax.Array]
    simulate: Callable[[jax.Array, jax.Array, int], Records]
    exact: Callable[[np.random.Generator, Records, int], np.ndarray]
    sums: Statistic
    moments: Callable[[jax.Array, Any], tuple[jax.Array, jax.Array]]

    @property
    def is_linear(self) -> bool:
        """Whether the score is linear in the record, so that its curvature tells nothing more."""
        return self.name in ("banana", "Gaussian")

    @cached_property
    def pilot(self) -> Records:
        """Records that are made up from the guess, as many as the confidential ones."""
        return self.draw_records(jax.random.key(1), self.guess)

    def draw_records(self, key: jax.Array, theta: np.ndarray) -> Records:
        """Records of these parameters."""
        return jax.jit(self.simulate, static_argnums=2)(key, jnp.asarray(theta), self.n)

    @cached_property
    def scale(self) -> np.ndarray:
        """A factor C [d, d] of the covariance C Cᵀ that the posterior has near the guess, as the pilot predicts it."""
        records = self.pilot

        def log_posterior(theta: jax.Array) -> jax.Array:
            each = jax.vmap(lambda record: self.log_likelihood(theta, record))(records)
            return jnp.sum(each) + self.log_prior(theta)

        precision = -np.asarray(jax.jit(jax.hessian(log_posterior))(jnp.asarray(self.guess)), float)
        return np.linalg.cholesky(np.linalg.inv(precision))

    def truth(self, rng: np.random.Generator) -> np.ndarray:
        """Parameters [d] near the guess."""
        return self.guess + OFFSET * self.scale @ rng.normal(size=len(self.guess))

    def place(self, whitened: Any) -> jax.Array:
        """The parameters [d] at a vector on the scale on which the pilot's posterior is N(0, I)."""
        return jnp.asarray(self.guess) + jnp.asarray(self.scale) @ whitened

    def derivatives(self, record: Records) -> jax.Array:
        """Score and curvature of one record at the guess, on that scale; the score alone where it is linear."""

        def loss(whitened: jax.Array) -> jax.Array:
            return -self.log_likelihood(self.place(whitened), record)

        origin = jnp.zeros(len(self.guess))
        if self.is_linear:
            return jax.grad(loss)(origin)
        curvature = jax.hessian(loss)(origin)[np.triu_indices(len(self.guess))]
        return jnp.concatenate([jax.grad(loss)(origin), curvature])

    @cached_property
    def statistics(self) -> dict[str, Any]:
        """What can be released, clipped to lengths that are chosen on the pilot."""
        return {"sums": self.clip(self.sums), "derivatives": self.clip(self.derivatives)}

    def clip(self, function: Statistic) -> Any:
        """A function of the record that leaves most of the pilot's records at their length."""
        rows = np.asarray(jax.jit(jax.vmap(function))(self.pilot))
        bound = np.quantile(np.linalg.norm(rows, axis=1), KEPT[self.is_linear])
        return dpjax.statistics.clipped(function, float(bound), dimension=rows.shape[1])

    @cached_property
    def model(self) -> dpjax.Model:
        """What readers of a release believe about the records."""
        deviation, size = np.sqrt(PRIOR[self.name]), len(self.guess)
        return dpjax.Model(
            sample_prior=lambda key: {"theta": deviation * jax.random.normal(key, (size,))},
            log_prior=lambda parameters: self.log_prior(parameters["theta"]),
            sample_records=lambda key, parameters, n: self.simulate(key, parameters["theta"], n),
            log_density=lambda parameters, records: jax.vmap(
                lambda record: self.log_likelihood(parameters["theta"], record)
            )(records),
            statistic_moments=lambda parameters, statistic: self.moments(parameters["theta"], statistic),
        )


def make_problem(name: str, n: int) -> Problem:
    """One of the four problems."""
    makers = {"banana": make_banana, "Gaussian": make_gaussian, "logistic": make_logistic, "Poisson": make_poisson}
    problem = makers[name](n)
    assert problem.scale.shape  # computed here, and not in a program that is being traced
    return problem


def make_banana(n: int) -> Problem:
    """x₁ ~ N(θ₁, 2000), x₂ ~ N(θ₂ + 20 θ₁², 2500): Normal and conjugate in (θ₁, θ₂ + 20 θ₁²), with Jacobian 1."""
    covariance, prior = np.diag(VARIANCES), PRIOR["banana"]

    def straighten(theta: jax.Array) -> jax.Array:
        return jnp.stack([theta[0], theta[1] + TWIST * theta[0] ** 2])

    def exact(rng: np.random.Generator, records: Records, count: int) -> np.ndarray:
        straight = draw_mean(rng, np.asarray(records["x"], float), covariance, prior, count)
        return np.stack([straight[:, 0], straight[:, 1] - TWIST * straight[:, 0] ** 2], axis=1)

    return make_normal("banana", n, np.array([0.0, 3.0]), covariance, straighten, exact)


def make_gaussian(n: int) -> Problem:
    """x ~ N(θ, Σ) with known Σ in 10 dimensions."""
    basis, _ = np.linalg.qr(np.random.default_rng(102).normal(size=(10, 10)))
    covariance = basis @ np.diag(EIGENVALUES) @ basis.T

    def exact(rng: np.random.Generator, records: Records, count: int) -> np.ndarray:
        return draw_mean(rng, np.asarray(records["x"], float), covariance, PRIOR["Gaussian"], count)

    return make_normal("Gaussian", n, np.array([0.0, 3.0, *np.zeros(8)]), covariance, lambda theta: theta, exact)


def draw_mean(
    rng: np.random.Generator, records: np.ndarray, covariance: np.ndarray, prior: float, count: int
) -> np.ndarray:
    """Draws [count, d] of the mean of Normal records [n, d] with prior N(0, prior I)."""
    precision = np.linalg.inv(covariance)
    posterior = np.linalg.inv(len(records) * precision + np.eye(len(covariance)) / prior)
    normals = rng.normal(size=(count, len(covariance)))
    return posterior @ precision @ records.sum(axis=0) + normals @ np.linalg.cholesky(posterior).T


def make_normal(
    name: str, n: int, guess: np.ndarray, covariance: np.ndarray, mean: Callable[[jax.Array], jax.Array], exact: Any
) -> Problem:
    """Normal records of known covariance whose mean is a function of θ."""
    factor, precision = jnp.asarray(np.linalg.cholesky(covariance)), jnp.asarray(np.linalg.inv(covariance))
    spread = jnp.asarray(covariance)
    centre = np.asarray(mean(jnp.asarray(guess)))

    def log_likelihood(theta: jax.Array, record: Records) -> jax.Array:
        residual = record["x"] - mean(theta)
        return -0.5 * jnp.dot(residual, precision @ residual)

    def simulate(key: jax.Array, theta: jax.Array, n: int) -> Records:
        return {"x": mean(theta) + jax.random.normal(key, (n, len(guess))) @ factor.T}

    def moments(theta: jax.Array, statistic: Any) -> tuple[jax.Array, jax.Array]:
        """Those of a linear function: one record in 10,000 is clipped, to both sides alike."""

        def unclipped(x: jax.Array) -> jax.Array:
            return statistic.statistic({"x": x})

        slopes = jax.jacobian(unclipped)(jnp.asarray(centre))
        return unclipped(mean(theta)), slopes @ spread @ slopes.T

    return Problem(
        name,
        n,
        guess,
        log_likelihood,
        lambda theta: -0.5 * jnp.sum(mean(theta) ** 2) / PRIOR[name],
        simulate,
        exact,
        lambda record: record["x"] - jnp.asarray(centre),
        moments,
    )


def make_logistic(n: int) -> Problem:
    """A response of 0 and 1."""

    def log_probability(predictor: jax.Array, response: jax.Array) -> jax.Array:
        return response * predictor - jax.nn.softplus(predictor)

    def respond(key: jax.Array, predictor: jax.Array) -> jax.Array:
        return jax.random.bernoulli(key, jax.nn.sigmoid(predictor)).astype(predictor.dtype)

    return make_regression("logistic", n, np.array([-0.5, 0.8, -0.6]), log_probability, respond, np.arange(2))


def make_poisson(n: int) -> Problem:
    """A count."""

    def log_probability(predictor: jax.Array, response: jax.Array) -> jax.Array:
        return poisson.logpmf(response, jnp.exp(predictor))

    def respond(key: jax.Array, predictor: jax.Array) -> jax.Array:
        return jax.random.poisson(key, jnp.exp(predictor)).astype(predictor.dtype)

    return make_regression("Poisson", n, np.array([-0.5, 0.5, 0.3]), log_probability, respond, np.arange(MOST))


def make_regression(
    name: str, n: int, guess: np.ndarray, log_probability: Any, respond: Any, responses: np.ndarray
) -> Problem:
    """A response given an intercept and two covariates of five levels each."""
    kinds, numbers = np.repeat(DESIGN, len(responses), axis=0), np.tile(responses, len(DESIGN)).astype(float)
    listed = {"x": jnp.asarray(kinds[:, 1:]), "y": jnp.asarray(numbers)}

    def predict(theta: jax.Array, x: jax.Array) -> jax.Array:
        return theta[0] + x @ theta[1:]

    def log_likelihood(theta: jax.Array, record: Records) -> jax.Array:
        return log_probability(predict(theta, record["x"]), record["y"])

    def log_prior(theta: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum(theta**2) / PRIOR[name]

    def simulate(key: jax.Array, theta: jax.Array, n: int) -> Records:
        kind_key, response_key = jax.random.split(key)
        x = jnp.asarray(DESIGN[:, 1:])[jax.random.randint(kind_key, (n,), 0, len(DESIGN))]
        return {"x": x, "y": respond(response_key, predict(theta, x))}

    def moments(theta: jax.Array, statistic: Any) -> tuple[jax.Array, jax.Array]:
        """Sums over all kinds of records and responses, the largest response standing for those beyond it."""
        rows = jax.vmap(statistic)(listed)
        chances = jnp.exp(log_probability(predict(theta, listed["x"]), listed["y"])).reshape(len(DESIGN), -1)
        chances = chances.at[:, -1].add(1 - chances.sum(axis=1)).reshape(-1) / len(DESIGN)
        mean = chances @ rows
        return mean, (chances[:, None] * rows).T @ rows - jnp.outer(mean, mean)

    def exact(rng: np.random.Generator, records: Records, count: int) -> np.ndarray:
        return draw_by_weight(rng, log_likelihood, log_prior, records, guess, count)

    return Problem(
        name,
        n,
        guess,
        log_likelihood,
        log_prior,
        simulate,
        exact,
        lambda record: record["y"] * jnp.append(1.0, record["x"]),
        moments,
    )


def draw_by_weight(
    rng: np.random.Generator, log_likelihood: Any, log_prior: Any, records: Records, guess: np.ndarray, count: int
) -> np.ndarray:
    """Draws [count, d] of a posterior: of the Normal at its mode, drawn again by their weights.

    Records of one kind and response count as one that is weighted.
    """
    table = np.column_stack([np.asarray(records["x"]), np.asarray(records["y"])])
    kinds, numbers = np.unique(table, axis=0, return_counts=True)
    distinct, numbers = {"x": jnp.asarray(kinds[:, :2]), "y": jnp.asarray(kinds[:, 2])}, jnp.asarray(numbers, float)

    def log_density(theta: jax.Array) -> jax.Array:
        return numbers @ jax.vmap(lambda record: log_likelihood(theta, record))(distinct) + log_prior(theta)

    slope, curvature = jax.jit(jax.grad(log_density)), jax.jit(jax.hessian(log_density))
    mode = guess
    for _ in range(10):
        mode = mode - np.linalg.solve(np.asarray(curvature(jnp.asarray(mode))), np.asarray(slope(jnp.asarray(mode))))
    factor = np.linalg.cholesky(np.linalg.inv(-np.asarray(curvature(jnp.asarray(mode)))))
    normals = rng.normal(size=(10 * count, len(mode)))
    proposed = mode + normals @ factor.T
    log_weights = np.asarray(jax.jit(jax.vmap(log_density))(jnp.asarray(proposed))) + np.sum(normals**2, axis=1) / 2
    weights = np.exp(log_weights - log_weights.max())
    return proposed[rng.choice(len(proposed), size=count, replace=False, p=weights / weights.sum())]
