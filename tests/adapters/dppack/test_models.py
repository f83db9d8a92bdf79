"""Fits of the shape that DPpack makes, drawn as its code draws them, follow the density that their reader assigns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special, stats

from dpjax.adapters import dppack

X64 = jax.config.jax_enable_x64


N, DRAWS, MIN_P, MAX_P = 30, 400, 1e-3, 1e-4


X = np.random.default_rng(3).normal(size=(N, 2)) * [1.0, 3.0]


CLASS = (np.random.default_rng(4).random(N) < special.expit(X[:, 0])).astype(float)


LOWER, UPPER = [-1.0, -2.0], [1.5, 4.0]


MODELS = {(2.0, 1.0, True): 1, (0.2, 0.05, False): 2}  # ε, γ, and whether there is an intercept


def fit(eps: float, gamma: float, bias: bool, rng: np.random.Generator) -> np.ndarray:
    """The published coefficients, as the package fits them: a mean, with a penalty that its calibration may add."""
    columns, low, high = np.clip(X, LOWER, UPPER), np.array(LOWER), np.array(UPPER)
    if bias:
        columns, low, high = np.c_[np.ones(N), columns], np.r_[1.0, low], np.r_[1.0, high]
    scales = np.maximum(abs(low), abs(high)) * np.sqrt(low.size)
    design, left, added = columns / scales, eps - np.log(1 + 0.5 / gamma + 1 / (16 * gamma**2)), 0.0
    if left <= 0:
        left, added = eps / 2, 0.25 / (N * (np.exp(eps / 4) - 1)) - gamma / N
    direction = rng.normal(size=low.size)
    b = rng.gamma(low.size, 2 / left) * direction / np.linalg.norm(direction)

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        eta = design @ theta
        risk = np.mean(np.logaddexp(0, eta) - CLASS * eta) + (gamma * theta @ theta / 2 + b @ theta) / N
        slope = design.T @ (special.expit(eta) - CLASS) / N + (gamma * theta + b) / N
        return risk + added * theta @ theta / 2, slope + added * theta

    found = optimize.minimize(objective, np.zeros(low.size), jac=True, method="BFGS", options={"gtol": 1e-9})
    return found.x / scales


def norms(eps: float, gamma: float, bias: bool, wrong: float = 1.0) -> np.ndarray:
    """The norms of b, in units of its scale, that published coefficients imply by their release's statistic."""
    rng, found = np.random.default_rng(5), []
    records = {"x": jnp.asarray(X), "y": jnp.asarray(CLASS)}
    published = {"model": "LogisticRegressionDP", "perturbation.method": "objective", "eps": eps, "gamma": gamma}
    for _ in range(60):
        fitted = published | {"coeff": fit(eps, gamma, bias, rng).tolist()}
        release = dppack.read_model(fitted, LOWER, UPPER, n=N, add_bias=bias)
        loss, theta = release.statistic.loss, release.value
        slopes = jax.vmap(jax.grad(loss), (None, 0))(theta, records)
        b = jnp.sum(slopes, axis=0) + release.mechanism.regularization * theta * wrong
        found.append(float(jnp.linalg.norm(b)) / float(release.mechanism.linear_term.scale))
    return np.array(found)


@pytest.mark.x32
@pytest.mark.parametrize("options", MODELS, ids=["as it is", "with a penalty added"])
def test_the_linear_terms_of_fits_follow_the_density(options: tuple[float, float, bool]) -> None:
    size = 2 + options[2]
    assert stats.kstest(norms(*options), "gamma", args=(size,)).pvalue > MIN_P


def test_the_density_of_a_fit_is_that_of_the_textbook() -> None:
    fitted = {"model": "LogisticRegressionDP", "perturbation.method": ["objective"], "eps": [2.0], "gamma": 1.0}
    fitted = fitted | {"eps": 2.0, "coeff": [[0.4], [0.2]]}
    release = dppack.read_model(fitted, LOWER, UPPER, n=N)
    scales = np.array([1.5, 4.0]) * np.sqrt(2)
    design, theta = np.clip(X, LOWER, UPPER) / scales, np.array([0.4, 0.2]) * scales
    np.testing.assert_allclose(release.value, theta, rtol=1e-6)
    chance = special.expit(design @ theta)
    size = np.linalg.norm(design.T @ (chance - CLASS) + theta)
    rate = (2 - 2 * np.log(1.25)) / 2
    hessian = (design.T * chance * (1 - chance)) @ design + np.eye(2)
    expected = -rate * size + 2 * np.log(rate) - np.log(2 * np.pi) + np.linalg.slogdet(hessian)[1]
    records = {"x": jnp.asarray(X), "y": jnp.asarray(CLASS)}
    total = release.total(records)
    found = float(release.mechanism.log_density(release.value, total))
    np.testing.assert_allclose(found, expected, rtol=1e-10 if X64 else 1e-5)
