"""Climbs from several starts: the highest maximum is taken, and others are told of."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

import dpjax
from dpjax.likelihood import other_starts
from dpjax.likelihood.newton import climb
from dpjax.likelihood.surface import Moments, Surface

MODEL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
RELEASE = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
MAXIMA, WEIGHTS = np.array([-6.0, 6.0]), np.array([0.2, 0.8])


def height(vector: float) -> float:
    """The logarithm of a mixture of two Normal densities."""
    return float(np.log(np.sum(WEIGHTS * np.exp(-((vector - MAXIMA) ** 2) / 2))))


class Mixed(Surface):
    """That likelihood, without Monte Carlo error."""

    def evaluate(self, key: Any, values: Any, vectors: np.ndarray, chains: Any, length: int) -> tuple[Moments, Any]:
        weights = WEIGHTS * np.exp(-((vectors - MAXIMA) ** 2) / 2)
        shares = weights / np.sum(weights, axis=1, keepdims=True)
        slopes = MAXIMA - vectors
        score = np.sum(shares * slopes, axis=1)[:, None, None]
        square = np.sum(shares * slopes**2, axis=1)[:, None, None, None]
        ones = np.ones_like(square)
        return Moments(score, square, ones, ones, np.zeros((1, 1))), chains

    def copy(self, chains: Any, count: int) -> Any:
        return chains

    def simulate(self, key: Any, vector: np.ndarray, count: int) -> Any:
        raise NotImplementedError


@pytest.mark.x64
@pytest.mark.parametrize("start", [-5.0, 5.0])
def test_the_highest_maximum_of_several_starts_is_taken(start: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """From -5 the climb ended at -6, whose log-likelihood is lower by log 4, and nothing was said."""
    monkeypatch.setattr(
        other_starts, "estimate_log_likelihood", lambda key, surface, model, release, vector: (height(vector[0]), 0.01)
    )
    surface = Mixed(model=MODEL, release=RELEASE)
    settings = {"precision": 0.05, "num_steps": 20_000}
    key = jax.random.key(1)
    found = climb(surface, key, surface.values, np.array([[start]]), None, **settings)
    assert abs(found.vectors[0, 0] - np.sign(start) * 6) < 1e-3
    starts = np.array([[5.5], [-5.5]])
    made, remarks = other_starts.compare_starts(key, surface, MODEL, RELEASE, found, starts, None, **settings)
    assert abs(made.vectors[0, 0] - 6) < 1e-3
    assert made.num_steps > found.num_steps
    assert len(remarks) == 1
    assert "lower by 1.4 (" in remarks[0]
    _, none = other_starts.compare_starts(key, surface, MODEL, RELEASE, made, starts[:1], None, **settings)
    assert none == ()


@pytest.mark.x64
def test_starts_are_far_from_each_other() -> None:
    vectors = np.array([[0.0, 0.0], [1.0, 100.0], [-3.0, 0.0], [0.5, 50.0]])
    np.testing.assert_array_equal(other_starts.far_starts(vectors), [[-3.0, 0.0], [1.0, 100.0]])


@pytest.mark.x64
def test_a_climb_that_drifted_to_a_plateau_gives_way_to_a_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a maximum that is left out as it is within the huge standard errors of a drifting climb."""
    monkeypatch.setattr(
        other_starts, "estimate_log_likelihood", lambda key, surface, model, release, vector: (height(vector[0]), 0.01)
    )
    surface, settings = Mixed(model=MODEL, release=RELEASE), {"precision": 0.05, "num_steps": 20_000}
    found = climb(surface, jax.random.key(1), surface.values, np.array([[-5.0]]), None, **settings)
    flat = replace(found, solution=found.solution._replace(covariance=1e6 * found.solution.covariance))
    starts = np.array([[5.5]])
    made, _ = other_starts.compare_starts(jax.random.key(2), surface, MODEL, RELEASE, flat, starts, None, **settings)
    assert abs(made.vectors[0, 0] - 6) < 1e-3
