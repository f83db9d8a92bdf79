"""The Normal sum with the covariance of the mode: against enumeration in NumPy, and what is refused or warned of."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

import dpjax
from dpjax import diagnostics, models, statistics
from dpjax.clt.held import HeldNormalSum

SIZES, N, SCALE = {"a": 2, "b": 2, "c": 2}, 1_000, 8.0
MODEL = models.log_linear(SIZES, [("a", "b"), ("b", "c")], models.NormalPrior(0.2, 0.8))
EVERY = np.array(list(product(range(2), repeat=3)))
CELLS = np.concatenate([np.eye(4)[2 * EVERY[:, 0] + EVERY[:, 1]], np.eye(4)[2 * EVERY[:, 1] + EVERY[:, 2]]], axis=1)
VALUE = np.array([290.0, 130.0, 260.0, 330.0, 300.0, 240.0, 140.0, 310.0])
STATISTIC = statistics.stacked(statistics.cells(["a", "b"], [2, 2]), statistics.cells(["b", "c"], [2, 2]))
RELEASE = dpjax.Release(VALUE, dpjax.Gaussian(SCALE), STATISTIC, N)


def shares(effects: np.ndarray) -> np.ndarray:
    """The probabilities [draw, 8] of all combinations, by signs."""
    sign = (1 - 2 * EVERY) / np.sqrt(2)
    terms = np.array([sign[:, 0], sign[:, 1], sign[:, 2], sign[:, 0] * sign[:, 1], sign[:, 1] * sign[:, 2]])
    logs = effects @ terms
    return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))


def log_likelihood(effects: np.ndarray, mode: np.ndarray) -> np.ndarray:
    """The log-density [draw] of the value, up to a constant, with the covariance of the mode."""
    at_mode = shares(mode[None])[0]
    mean = at_mode @ CELLS
    covariance = N * ((CELLS.T * at_mode) @ CELLS - np.outer(mean, mean)) + SCALE**2 * np.eye(8)
    gap = VALUE - N * shares(effects) @ CELLS
    return -0.5 * np.sum(gap * np.linalg.solve(covariance, gap.T).T, axis=1)


@pytest.mark.x64
def test_the_density_and_the_draws_are_those_of_the_held_covariance() -> None:
    """The mode, the density and the whole way to draws: a covariance of another place moves all three."""
    likelihood = dpjax.normal_sum(hold_covariance=True).sum_out(MODEL, RELEASE)
    mode = np.asarray(likelihood.mode)
    rng = np.random.default_rng(1)
    effects = mode + 2.0 * rng.normal(size=(20_000, 5)) @ np.asarray(likelihood.spread).T
    expected = log_likelihood(effects, mode)
    some = [float(likelihood({"effects": jnp.asarray(one, float)})) for one in effects[:4]]
    np.testing.assert_allclose(np.diff(some), np.diff(expected[:4]), rtol=1e-8)

    def log_posterior(effects: np.ndarray) -> np.ndarray:
        return log_likelihood(effects, mode) - 0.5 * np.sum(np.square((effects - 0.2) / 0.8), axis=1)

    # No step of a tenth of a standard deviation rises by more than scoring steps may leave.
    steps = mode + 0.1 * np.concatenate([likelihood.spread.T, -likelihood.spread.T])
    assert np.max(log_posterior(steps)) < log_posterior(mode[None])[0] + 0.05
    scores = np.linalg.solve(np.asarray(likelihood.spread), (effects - mode).T)
    log_weight = log_posterior(effects) + np.sum(np.square(scores), axis=0) / 8
    weight = np.exp(log_weight - logsumexp(log_weight))
    run = {
        "num_warmup": 200,
        "num_samples": 500,
        "progress": False,
        "likelihood": dpjax.normal_sum(hold_covariance=True),
    }
    posterior = dpjax.sample(jax.random.key(2), MODEL, RELEASE, **run)
    assert posterior.approximate
    assert posterior.info["held_share"] > 0.5
    for place in range(5):
        draws, mean = posterior.draws["effects"][..., place], weight @ effects[:, place]
        error = np.sqrt(np.square(weight) @ np.square(effects[:, place] - mean))
        assert abs(draws.mean() - mean) < 4 * np.hypot(diagnostics.mcse_mean(draws), error), place
        assert abs(draws.std() / np.sqrt(weight @ np.square(effects[:, place] - mean)) - 1) < 0.1, place


def test_draws_far_apart_are_warned_of() -> None:
    """Few records and no noise: the covariance differs from draw to draw."""
    likelihood = dpjax.normal_sum(hold_covariance=True).sum_out(MODEL, RELEASE)
    draws = {"effects": np.random.default_rng(1).normal(size=(1, 16, 5))}
    with pytest.warns(UserWarning, match="held at the mode"):
        found = likelihood.examine(jax.random.key(0), draws)
    assert isinstance(likelihood, HeldNormalSum)
    assert found["held_share"] < 0.3


@pytest.mark.parametrize(
    ("model", "mechanism", "message"),
    [
        (models.categorical(1.0, (2, 2, 2), fields=list(SIZES)), dpjax.Gaussian(8.0), "dpjax.models.log_linear"),
        (MODEL, dpjax.Laplace(8.0), "Normal noise"),
    ],
    ids=["model", "noise"],
)
def test_what_cannot_be_held_is_refused(model: dpjax.Model, mechanism: object, message: str) -> None:
    """By the argument's name, before anything runs."""
    release = dpjax.Release(VALUE, mechanism, STATISTIC, N)
    with pytest.raises(ValueError, match=f"hold_covariance: given True .*{message}"):
        dpjax.sample(jax.random.key(1), model, release, likelihood=dpjax.normal_sum(hold_covariance=True))
    with pytest.raises(TypeError, match="hold_covariance: given 1"):
        dpjax.normal_sum(hold_covariance=1)
