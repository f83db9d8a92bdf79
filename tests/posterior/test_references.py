"""Posteriors against exact and long-run references: every mean, sd and quantile within 4 joint standard errors."""

from collections.abc import Callable

import jax
import numpy as np
import pytest

import dpjax
from dpjax import diagnostics
from tests.posterior import cases

JOINT_ERRORS = 4.0

SETTINGS = {
    "imwg": {"imputation": dpjax.imwg()},
    "imwg random": {"imputation": dpjax.imwg(scan="random")},
    "soma": {"imputation": dpjax.soma()},
    "soma window": {"imputation": dpjax.soma(attempts=7)},
    "imwg centred": {"imputation": dpjax.imwg(), "interweave": False},
    "imwg random centred": {"imputation": dpjax.imwg(scan="random"), "interweave": False},
    "soma centred": {"imputation": dpjax.soma(), "interweave": False},
    "soma window centred": {"imputation": dpjax.soma(attempts=7), "interweave": False},
}

LENGTHS = {"num_chains": 8, "num_warmup": 500, "num_samples": 2_500}
# Without interweaving a regression has 0.002 effective draws a sweep, so that run is long.
LONG = {"num_chains": 32, "num_warmup": 2_000, "num_samples": 2_000, "thin": 20}

BUILDS = {
    "normal mean": cases.normal_mean,
    "table": cases.discrete_gaussian_table,
    "naive bayes": lambda: cases.naive_bayes("nb_small"),
    "naive bayes 10": lambda: cases.naive_bayes("nb10"),
    "regression": cases.linear_regression,
}
QUICK = {
    ("normal mean", "soma"),
    ("normal mean", "soma window centred"),
    ("regression", "imwg"),
}
"""A model of one number and one of several, an update and SOMA; the whole grid is slow."""

GRID = [
    pytest.param(case, setting, marks=() if (case, setting) in QUICK else pytest.mark.slow)
    for case in BUILDS
    for setting in SETTINGS
]


def figure(draws: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """An estimate [k] from draws [chain, draw, k] and its standard error [k]."""
    if name == "mean":
        return draws.mean(axis=(0, 1)), diagnostics.mcse_mean(draws)
    if name == "sd":
        return draws.std(axis=(0, 1), ddof=1), diagnostics.mcse_sd(draws)
    probability = float(name)
    return np.quantile(draws, probability, axis=(0, 1)), diagnostics.mcse_quantile(draws, probability)


def misses(draws: np.ndarray, case: cases.Case) -> dict[str, np.ndarray]:
    """The distance of each figure from its reference in joint standard errors [k]."""
    result = {}
    for name, (value, error) in case.figures.items():
        estimate, own_error = figure(draws, name)
        result[name] = (estimate - value) / np.sqrt(error**2 + own_error**2)
    return result


@pytest.mark.x32
@pytest.mark.parametrize(("name", "setting"), GRID)
def test_posterior_meets_its_reference(name: str, setting: str) -> None:
    case = BUILDS[name]()
    lengths = LONG if name == "regression" and "centred" in setting else LENGTHS
    posterior = dpjax.sample(
        jax.random.key(2026), case.model, case.release, progress=False, **lengths, **SETTINGS[setting]
    )
    draws = case.flatten(posterior.draws)
    assert np.min(diagnostics.ess_bulk(draws)) > 400
    for name, distance in misses(draws, case).items():
        assert np.nanmax(np.abs(distance)) < JOINT_ERRORS, (name, distance)


def test_a_wrong_imputation_misses_its_reference() -> None:
    """Proposals accepted without regard to the release give the prior, and the test says so."""
    case = cases.normal_mean()
    posterior = dpjax.sample(
        jax.random.key(2026),
        case.model,
        case.release,
        imputation=accept_all,
        interweave=False,
        refresh=False,
        progress=False,
        **LENGTHS,
    )
    assert max(np.nanmax(np.abs(d)) for d in misses(case.flatten(posterior.draws), case).values()) > 2 * JOINT_ERRORS


def accept_all(model: dpjax.Model, release: dpjax.Release) -> Callable:
    """A mutation: every proposal is taken."""

    def step(rng_key: jax.Array, latent: dpjax.base.Latent, parameters: dict) -> tuple:
        records = model.sample_records(rng_key, parameters, release.n)
        statistic = release.total(records)
        ones = jax.numpy.ones(release.n, int)
        info = dpjax.base.ImputationInfo(jax.numpy.ones(()), ones, jax.numpy.zeros((), int))
        return dpjax.base.Latent(records, statistic, release.log_density(statistic)), info

    return step
