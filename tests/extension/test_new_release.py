"""A release of a new kind is one file: samplers ask it for what it says, and nothing else is changed."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import diagnostics
from tests.extension.noisy_maximum import NoisyMaximum

N, VALUE, WIDTH = 4, 4.0, 0.3
MODEL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
RELEASE = NoisyMaximum(jnp.array([VALUE]), WIDTH, N)
OPTIONS: dict[str, Any] = {"num_warmup": 100, "num_samples": 400, "progress": False}


def exact_mean() -> float:
    """The posterior mean on a grid: the maximum is below m with probability Φ(m − mean)^n."""
    means = np.linspace(-8, 10, 2_001)
    below, above = (stats.norm.cdf(VALUE + side * WIDTH - means) ** N for side in (-1, 1))
    weights = stats.norm.pdf(means, scale=2.0) * (above - below)
    return float(np.sum(weights * means) / np.sum(weights))


def test_chains_have_the_posterior() -> None:
    """Few draws from the prior have such a maximum, so that starts are looked for by exchanges of all records."""
    draws = dpjax.sample(jax.random.key(1), MODEL, RELEASE, **OPTIONS).draws["mean"]
    assert abs(draws.mean() - exact_mean()) < 5 * diagnostics.mcse_mean(draws)


@pytest.mark.x64
def test_one_sweep_at_given_parameters_keeps_the_density() -> None:
    """Records of exact draws stay such: a kernel that took every proposal would fail this."""
    drawn = jax.random.normal(jax.random.key(2), (20_000, N))
    given = drawn[np.abs(np.max(drawn, axis=1) - 1.0) < WIDTH][:4_000]
    algorithm = dpjax.impute(MODEL, NoisyMaximum(jnp.array([1.0]), WIDTH, N), {"mean": 0.0})
    states = jax.vmap(lambda y: algorithm.init({"y": y}))(given)
    moved, info = jax.vmap(algorithm.step)(jax.random.split(jax.random.key(3), len(given)), states)
    change = np.asarray(moved.records["y"] ** 2 - given**2).sum(axis=1)
    assert abs(change.mean()) < 5 * change.std() / np.sqrt(len(change))
    assert 0.1 < float(np.mean(info.acceptance_rate)) < 1


@pytest.mark.x64
def test_what_needs_a_sum_says_so() -> None:
    with pytest.raises(TypeError, match=r"^imputation: given soma\(...\) with a NoisyMaximum; expected a release of"):
        dpjax.gibbs(MODEL, RELEASE, "soma")
    with pytest.raises(TypeError, match=r"^release: given a NoisyMaximum; expected a release of one summed value"):
        dpjax.sample_clt(jax.random.key(1), MODEL, RELEASE)
    with pytest.raises(TypeError, match=r"^release: given a NoisyMaximum; expected a kind with a JSON text"):
        RELEASE.to_json()
    assert str(dpjax.describe(RELEASE)).startswith("NoisyMaximum of n = 4 records\n")


@dpjax.mechanisms.frozen_pytree
@dataclass(frozen=True, eq=False, repr=False)
class Unfinished(dpjax.release.OwnRelease):
    """A release of which nothing is said but how many records there are."""

    observed: jax.Array
    n: int = field(metadata={"static": True})


def test_what_a_kind_lacks_says_what_to_write() -> None:
    """Without a density there was an error without words."""
    release, records = Unfinished(jnp.zeros(1), N), {"y": jnp.zeros(N)}
    with pytest.raises(TypeError, match=r"^release: given a Unfinished; expected .* density. Write log_likelihood"):
        dpjax.sample(jax.random.key(1), MODEL, release, **OPTIONS)
    with pytest.raises(TypeError, match=r"^release: given a Unfinished; expected .* simulated. Write sample"):
        release.sample(jax.random.key(1), records)
    with pytest.raises(TypeError, match=r"^release: given a Unfinished; expected .* tempered. Write tempered"):
        release.tempered(jnp.ones(()))
