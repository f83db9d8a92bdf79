"""Two hundred values behind Laplace noise: clusters and density against long runs of three other samplers."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import dpjax
from dpjax import diagnostics, mixture

REFERENCE = json.loads((Path(__file__).parents[1] / "references" / "mixture_laplace.json").read_text())
GATE = 4


def draw(num_samples: int, **options: Any) -> mixture.MixturePosterior:
    return mixture.sample(
        jax.random.key(7),
        np.array(REFERENCE["values"]),
        dpjax.Laplace(REFERENCE["scale"]),
        component=mixture.NormalInverseGamma(**REFERENCE["base"]),
        concentration=REFERENCE["concentration"],
        num_samples=num_samples,
        num_warmup=500,
        progress=False,
        **options,
    )


def scores(posterior: mixture.MixturePosterior, name: str) -> dict[str, np.ndarray]:
    """Differences from a long run in joint standard errors: of the mean number, its law and the density."""
    expected = {key: np.array(value) for key, value in REFERENCE["long_runs"][name].items()}
    number = posterior.draws["num_clusters"].astype(float)
    common = np.flatnonzero(expected["K_pmf"] > 0.005) + 1
    shares = (number[..., None] == common).astype(float)
    density = posterior.density(REFERENCE["grid"])
    law_errors = np.hypot(diagnostics.mcse_mean(shares), expected["K_pmf_mcse"][common - 1])
    return {
        "mean": (number.mean() - expected["K_mean"]) / np.hypot(diagnostics.mcse_mean(number), expected["K_mean_mcse"]),
        "law": (shares.mean(axis=(0, 1)) - expected["K_pmf"][common - 1]) / law_errors,
        "density": (density.mean - expected["dens_mean"]) / np.hypot(density.mcse, expected["dens_mcse"]),
    }


def largest(found: dict[str, np.ndarray]) -> float:
    return max(float(np.max(np.abs(score))) for score in found.values())


@pytest.mark.slow
def test_clusters_and_density_agree_with_long_runs() -> None:
    posterior = draw(1_500)
    assert all(largest(scores(posterior, name)) < GATE for name in ("slice", "neal5"))
    assert posterior.info["acceptance_rate"].min() == 1
    assert posterior.truncation_error == 0


SLOW = {
    "metropolis": {"sampler": mixture.conditional(proposals=1)},
    "several proposals": {"sampler": mixture.conditional(proposals=4)},
    "sticks": {"sampler": mixture.conditional("stick"), "num_chains": 16},
    "blocked": {"sampler": mixture.conditional(truncation=40)},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_every_variant_agrees_with_long_runs(name: str) -> None:
    posterior = draw(5_000, **SLOW[name])
    assert largest(scores(posterior, "slice")) < GATE
    assert np.exp(-10.0) < posterior.info["acceptance_rate"].mean() <= 1
    assert posterior.truncation_error < 1e-10


@pytest.mark.slow
def test_another_concentration_is_rejected() -> None:
    expected = REFERENCE["long_runs"]["slice"]
    wrong = REFERENCE | {"concentration": 1.5}
    posterior = mixture.sample(
        jax.random.key(7),
        np.array(wrong["values"]),
        dpjax.Laplace(wrong["scale"]),
        component=mixture.NormalInverseGamma(**wrong["base"]),
        concentration=wrong["concentration"],
        num_samples=2_000,
        progress=False,
    )
    number = posterior.draws["num_clusters"].astype(float)
    error = np.hypot(diagnostics.mcse_mean(number), expected["K_mean_mcse"])
    assert abs(number.mean() - expected["K_mean"]) / error > GATE
