"""dapper's three worked cases: the page's code and dapper's own answers against answers found without either."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from scipy.special import digamma, polygamma

import dpjax
from dpjax import diagnostics

PAGE = Path(__file__).parents[1] / "docs" / "coming-from" / "dapper.md"
MAX_DEVIATION = 5.0  # standard errors
SEED = 2024


class Moments(NamedTuple):
    """Means [k] and standard deviations [k], with their Monte Carlo errors [k]."""

    mean: np.ndarray
    sd: np.ndarray
    mean_error: np.ndarray | float = 0.0
    sd_error: np.ndarray | float = 0.0


def survey_moments(keep: float) -> Moments:
    """The four cells and the log odds ratio of case 1, by Gauss-Legendre quadrature over the simplex.

    Answers are independent given the shares p, and each lands in cell j with probability (p M)_j.
    """
    nodes, weights = np.polynomial.legendre.leggauss(96)
    u, w = (nodes + 1) / 2, weights / 2
    a, b, c = np.meshgrid(u, u, u, indexing="ij")
    shares = np.stack([a, (1 - a) * b, (1 - a) * (1 - b) * c, (1 - a) * (1 - b) * (1 - c)], axis=-1)
    coin = np.array([[keep, 1 - keep], [1 - keep, keep]])
    log_likelihood = np.log(shares @ np.kron(coin, coin)) @ np.array([104, 120, 74, 102])
    density = np.exp(log_likelihood - log_likelihood.max()) * (1 - a) ** 2 * (1 - b)  # sticks have that Jacobian
    mass = np.einsum("abc,a,b,c->abc", density, w, w, w)
    values = np.concatenate([shares, np.log(shares) @ np.array([[1.0], [-1.0], [-1.0], [1.0]])], axis=-1)
    mean = np.einsum("abc,abck->k", mass, values) / mass.sum()
    return Moments(mean, np.sqrt(np.einsum("abc,abck->k", mass, values**2) / mass.sum() - mean**2))


def table_moments(scale: float) -> Moments:
    """The four cells and the log odds ratio of case 2, by enumeration of the tables with 400 records.

    Under a flat prior all tables are equally likely; given one, the shares are Dirichlet. Cells further than nine
    scales from what was released have no weight that a double could hold beside the others.
    """
    released, n = np.array([110, 131, 47, 110]), 400
    near = [np.arange(max(0, int(cell - 9 * scale)), int(cell + 9 * scale) + 1) for cell in released[:3]]
    first = np.stack(np.meshgrid(*near, indexing="ij"), axis=-1).reshape(-1, 3)
    tables = np.concatenate([first, n - first.sum(axis=1, keepdims=True)], axis=1)
    tables = tables[tables[:, 3] >= 0]
    weights = np.exp(-np.sum((released - tables) ** 2, axis=1) / (2 * scale**2))
    weights /= weights.sum()
    counts, total, signs = tables + 1, n + 4, np.array([1, -1, -1, 1])
    log_odds, variance = digamma(counts) @ signs, np.sum(polygamma(1, counts), axis=1)
    first_moment = np.append(weights @ counts / total, weights @ log_odds)
    second_moment = np.append(
        weights @ (counts * (counts + 1)) / (total * (total + 1)), weights @ (log_odds**2 + variance)
    )
    return Moments(first_moment, np.sqrt(second_moment - first_moment**2))


def clamped_sums(rng: np.random.Generator, coef: np.ndarray, n: int) -> np.ndarray:
    """The nine sums [m, 9] over n records drawn at each of m coefficients, clamped to ±10 and divided by 10."""
    x = np.array([0.9, -1.17])[:, None] + rng.standard_normal((len(coef), 2, n))
    y = coef[:, :1] + np.einsum("mj,mjn->mn", coef[:, 1:], x) + np.sqrt(2) * rng.standard_normal((len(coef), n))
    (a, b), y = np.moveaxis(np.clip(x, -10, 10) / 10, 1, 0), np.clip(y, -10, 10) / 10
    return np.stack([term.sum(axis=-1) for term in (y, a * y, b * y, y * y, a, a * a, b, a * b, b * b)], axis=-1)


def regression_moments(scale: float) -> Moments:
    """The coefficients of case 3, by importance sampling: proposals from a t law near the posterior, data drawn anew.

    The law of the proposals was found by a run of the same kind; it decides the error of the answer and nothing else.
    """
    rng, freedom, released = np.random.default_rng(1), 6, np.asarray(RELEASED_SUMS)
    centre = np.array([-0.92, -2.05, 0.63])
    factor = np.linalg.cholesky(1.2 * np.array([[2.3, -0.58, 1.31], [-0.58, 1.86, 0.91], [1.31, 0.91, 1.83]]))
    coef, log_weight = [], []
    for _ in range(6):
        t = rng.standard_normal((10_000, 3)) / np.sqrt(rng.chisquare(freedom, (10_000, 1)) / freedom)
        proposal = centre + t @ factor.T
        log_proposal = -(freedom + 3) / 2 * np.log1p(np.sum(t**2, axis=1) / freedom)
        log_noise = -np.sum(np.abs(released - clamped_sums(rng, proposal, 50)), axis=1) / scale
        coef.append(proposal)
        log_weight.append(-np.sum(proposal**2, axis=1) / 8 + log_noise - log_proposal)  # the prior is N(0, 2²)
    values, weights = np.concatenate(coef), np.exp(np.concatenate(log_weight) - np.max(log_weight))
    weights /= weights.sum()
    mean = weights @ values
    square = (values - mean) ** 2
    sd = np.sqrt(weights @ square)
    return Moments(
        mean,
        sd,
        np.sqrt(weights**2 @ square),
        np.sqrt(weights**2 @ (square - sd**2) ** 2) / (2 * sd),
    )


RELEASED_SUMS = [-17.154731, -5.225432, 1.626183, 11.031302, 3.482710, 6.808920, -6.910959, 1.075616, -2.072164]

EXACT: dict[str, tuple[Callable[[float], Moments], float, float]] = {
    "survey": (survey_moments, 0.75, 0.65),
    "table": (table_moments, 6.32, 12.64),
    "regression": (regression_moments, 1.5, 0.75),
}
"""The answer as a function of the noise, the noise of the case, and a wrong one."""


DAPPER = {
    "survey": ([0.281, 0.336, 0.111, 0.272], [0.0610, 0.0638, 0.0548, 0.0601], [362, 431, 282, 389]),
    "table": ([0.278, 0.326, 0.120, 0.276, 0.681], [0.0247, 0.0269, 0.0213, 0.0264, 0.264], [624, 586, 450, 644, 407]),
    "regression": ([-0.983, -1.81, 0.764], [1.55, 1.55, 1.40], [378, 132, 126]),
}
"""Means, standard deviations and bulk effective sizes: of its vignette, then of its code with its authors' seeds."""


def page_calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[tuple, dict[str, Any]]]:
    """The arguments with which the page samples each case, found by running it without sampling."""
    calls: list[tuple[tuple, dict[str, Any]]] = []

    def sample(*arguments: Any, **options: Any) -> SimpleNamespace:
        calls.append((arguments, options))
        return SimpleNamespace(summary=lambda: "")

    monkeypatch.setattr(dpjax, "sample", sample)
    exec(page_code(), {"__name__": "dapper"})
    monkeypatch.undo()
    return dict(zip(EXACT, calls, strict=True))


def page_code() -> Any:
    """The page's code."""
    return compile("\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)), "dapper", "exec")


def moments_of(draws: dict[str, np.ndarray]) -> Moments:
    """What a posterior's draws say of the shares and the log odds ratio, or of the coefficients."""
    names = ("coef",) if "coef" in draws else ("probabilities", "log_odds_ratio")
    values = [np.asarray(draws[name]) for name in names]
    values = [value if value.ndim == 3 else value[..., None] for value in values]
    flat = np.concatenate(values, axis=-1)
    errors = diagnostics.mcse_mean(flat), diagnostics.mcse_sd(flat)
    return Moments(flat.mean(axis=(0, 1)), flat.std(axis=(0, 1), ddof=1), *errors)


def distance(one: Moments, other: Moments) -> float:
    """The largest difference of a mean or a standard deviation, in joint standard errors."""
    means = np.abs(one.mean - other.mean) / np.hypot(one.mean_error, other.mean_error)
    sds = np.abs(one.sd - other.sd) / np.hypot(one.sd_error, other.sd_error)
    return float(np.max([means, sds]))


@pytest.mark.x32
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "table" else []) for name in EXACT]
)
def test_the_page_asks_for_the_exact_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's model and release, by dapper's algorithm but for the regression, where it would take minutes."""
    (_, model, release), options = page_calls(monkeypatch)[name]
    options |= {"num_samples": 2_000, "progress": False}
    if name == "table":
        options |= {"imputation": dpjax.imwg(), "interweave": False}
    posterior = dpjax.sample(jax.random.key(SEED), model, release, **options)
    found = moments_of(posterior.draws)
    moments, noise, wrong = EXACT[name]
    assert distance(found, moments(noise)) < MAX_DEVIATION
    assert distance(found, moments(wrong)) > MAX_DEVIATION


@pytest.mark.parametrize("name", EXACT)
def test_dapper_is_within_its_error_of_the_exact_answer(name: str) -> None:
    mean, sd, size = map(np.asarray, DAPPER[name])
    moments, noise, _ = EXACT[name]
    exact = Moments(*(part if np.ndim(part) == 0 else part[: len(mean)] for part in moments(noise)))
    printed = Moments(mean, sd, sd / np.sqrt(size), sd / np.sqrt(2 * size))
    assert distance(printed, exact) < MAX_DEVIATION


@pytest.mark.parametrize("name", ["survey", "table"])
def test_the_page_prints_the_exact_answer(name: str) -> None:
    moments, noise, _ = EXACT[name]
    mean, sd, *_ = moments(noise)
    for one, spread in zip(mean[:4], sd[:4], strict=True):
        assert f"| {one:.4f} ({spread:.4f}) |" in PAGE.read_text()


@pytest.mark.slow
def test_the_page_runs_and_prints_the_exact_answers() -> None:
    names: dict[str, Any] = {"__name__": "dapper"}
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        exec(page_code(), names)
    for name, (moments, noise, _) in EXACT.items():
        assert distance(moments_of(names[name].draws), moments(noise)) < MAX_DEVIATION, name
