"""Counts whose law has a gap that no window spans, behind local noise: against sums over all counts."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats

import dpjax
from dpjax.data_augmentation.records import local
from dpjax.models.simulation import init_latent
from tests.tools.perfect_start import REJECT

NUM_RECORDS, NUM_SWEEPS = 2_000, 40
COUNTS = np.arange(400)


def zero_inflated(n: int) -> None:
    gate = numpyro.sample("gate", dist.Beta(1.0, 1.0))
    with numpyro.plate("people", n):
        numpyro.sample("y", dist.ZeroInflatedPoisson(gate, 200.0))


def two_rates(n: int) -> None:
    share = numpyro.sample("gate", dist.Beta(1.0, 1.0))
    shares = jnp.broadcast_to(jnp.stack([share, 1 - share]), (n, 2))
    rates = jnp.broadcast_to(jnp.array([5.0, 200.0]), (n, 2))
    with numpyro.plate("people", n):
        numpyro.sample("y", dist.MixtureSameFamily(dist.Categorical(shares), dist.Poisson(rates)))


LOW = {zero_inflated: (COUNTS == 0).astype(float), two_rates: stats.poisson.pmf(COUNTS, 5)}


def law(model: Any, value: float, scale: float, gate: float) -> np.ndarray:
    """The probability of each count given the released value and the parameters."""
    prior = gate * LOW[model] + (1 - gate) * stats.poisson.pmf(COUNTS, 200)
    weight = prior * stats.laplace.pdf(value, COUNTS, scale)
    return weight / weight.sum()


def draw(build: Any, model: Any, value: float, scale: float, gate: float, start: int) -> np.ndarray:
    """So many records with one released value each, after the kernel's sweeps from one start."""
    program = dpjax.from_numpyro(model, records=["y"], n=NUM_RECORDS)
    release = dpjax.LocalRelease(jnp.full(NUM_RECORDS, value), dpjax.Laplace(scale), field="y")
    step = build(program, release)

    def sweep(latent: Any, key: Any) -> Any:
        return step(key, latent, {"gate": jnp.array(gate)})[0], None

    latent = init_latent(release, {"y": jnp.full(NUM_RECORDS, start)})
    keys = jax.random.split(jax.random.key(17), NUM_SWEEPS)
    return np.asarray(jax.jit(lambda keys: jax.lax.scan(sweep, latent, keys)[0].records["y"])(keys))


def p_value(drawn: np.ndarray, probability: np.ndarray) -> float:
    """By χ² on cells of the counts below 100 and on each side of the middle of those above."""
    high = COUNTS[100:][np.cumsum(probability[100:]) >= probability[100:].sum() / 2][0]
    edges = np.array([0, 100, high + 1, 400])
    expected = np.diff(np.concatenate([[0.0], np.cumsum(probability)])[edges]) * drawn.size
    observed = np.histogram(drawn, edges)[0]
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.x32
@pytest.mark.parametrize("start", [0, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("model", "value", "scale"), [(zero_inflated, 95.0, 30.0), (two_rates, 110.0, 40.0)])
def test_counts_cross_the_gap(model: Any, value: float, scale: float, start: int) -> None:
    drawn = draw(local.build_kernel, model, value, scale, 0.4, start)
    assert p_value(drawn, law(model, value, scale, 0.4)) > REJECT


@pytest.mark.x32
def test_windows_alone_do_not() -> None:
    """A mutation, as it was."""
    drawn = draw(local.build_window_kernel, zero_inflated, 95.0, 30.0, 0.4, 0)
    assert p_value(drawn, law(zero_inflated, 95.0, 30.0, 0.4)) < REJECT


def test_a_proposal_that_forgets_the_noise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: every proposal is accepted."""
    monkeypatch.setattr(local, "decision_uniforms", lambda key, shape: jnp.zeros(shape))
    drawn = draw(local.build_metropolis_kernel, zero_inflated, 80.0, 30.0, 0.4, 0)
    assert p_value(drawn, law(zero_inflated, 80.0, 30.0, 0.4)) < REJECT
