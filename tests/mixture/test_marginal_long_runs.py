"""The marginal samplers against long runs of others, and against the conditional sampler under the same prior."""

import jax
import numpy as np
import pytest

import dpjax
from dpjax import diagnostics, mixture
from dpjax.mixture.samplers import SAMPLERS
from tests.mixture.test_long_runs import GATE, REFERENCE, draw, largest, scores

SLOW = {
    "neal 5": {"sampler": mixture.neal5(), "num_chains": 16},
    "neal 5, redrawn": {"sampler": mixture.neal5(5)},
    "neal 5, all auxiliaries kept": {"sampler": mixture.neal5(5, redraw=False), "num_chains": 16},
    "neal 8": {"sampler": mixture.neal8()},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_every_variant_agrees_with_long_runs(name: str) -> None:
    posterior = draw(5_000, **SLOW[name])
    assert all(largest(scores(posterior, reference)) < GATE for reference in ("slice", "neal5"))
    assert np.exp(-10.0) < posterior.info["acceptance_rate"].mean() <= 1


def behind_gaussian(sampler: str, num_samples: int) -> mixture.MixturePosterior:
    return mixture.sample(
        jax.random.key(8),
        np.array(REFERENCE["values"])[::2],
        dpjax.Gaussian(2.0),
        component=mixture.TruncatedNormalInverseGamma(**REFERENCE["base"]),
        concentration=REFERENCE["concentration"],
        sampler=SAMPLERS[sampler](),
        num_samples=num_samples,
        num_warmup=300,
        progress=False,
    )


@pytest.mark.slow
def test_samplers_agree_under_a_base_measure_conjugate_to_the_values() -> None:
    runs = {"conditional": 10_000, "neal2": 4_000, "neal3": 1_500, "neal8": 4_000}
    posteriors = {name: behind_gaussian(name, size) for name, size in runs.items()}
    grid = np.linspace(-15, 15, 31)

    def estimates(posterior: mixture.MixturePosterior) -> tuple[np.ndarray, np.ndarray]:
        number = posterior.draws["num_clusters"]
        shares = (number[..., None] == np.arange(2, 9)).astype(float)
        density = posterior.density(grid)
        means = np.append(shares.mean(axis=(0, 1)), density.mean)
        return means, np.append(diagnostics.mcse_mean(shares), density.mcse)

    expected, error = estimates(posteriors.pop("conditional"))
    for posterior in posteriors.values():
        found, own = estimates(posterior)
        assert np.max(np.abs(found - expected) / np.hypot(own, error)) < GATE
