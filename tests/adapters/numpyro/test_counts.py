"""Counts without an upper bound, each behind integer noise: windows of candidates, against sums and a grid."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats
from scipy.special import logsumexp

import dpjax
from dpjax import diagnostics
from dpjax.data_augmentation.records import local
from dpjax.models.simulation import init_latent
from tests.tools.perfect_start import REJECT, lattice_p_value, parameter_p_value, run

N, SIGMA = 40, 3.0
X = np.random.default_rng(3).standard_normal(N)


def areas(x: Any) -> None:
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    b = numpyro.sample("b", dist.Normal(0.0, 0.5))
    with numpyro.plate("areas", len(x)):
        numpyro.sample("count", dist.Poisson(jnp.exp(1.0 + a + b * x)))


def model() -> dpjax.Model:
    return dpjax.from_numpyro(areas, records=["x", "count"], x=jnp.asarray(X))


def discrete_gaussian(k: np.ndarray, scale: float) -> np.ndarray:
    reach = np.arange(-int(40 * scale), int(40 * scale) + 1)
    return np.exp(-(np.asarray(k) ** 2) / (2 * scale**2)) / np.sum(np.exp(-(reach**2) / (2 * scale**2)))


@pytest.mark.x64
def test_which_fields_are_counts() -> None:
    def pair(n: int) -> None:
        rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
        with numpyro.plate("people", n):
            numpyro.sample("y", dist.Poisson(rate))
            numpyro.sample("z", dist.Poisson(rate))

    def trials(n: int) -> None:
        p = numpyro.sample("p", dist.Beta(1.0, 1.0))
        with numpyro.plate("people", n):
            numpyro.sample("y", dist.Binomial(5, probs=p))

    assert model().count_field == "count"
    assert dpjax.from_numpyro(pair, records=["y", "z"]).count_field is None
    assert dpjax.from_numpyro(trials, records=["y"]).count_field is None


def draw_counts(noise: float, value: int, num_sweeps: int, num_chains: int = 4_000) -> np.ndarray:
    """Independent chains [chain] of one count of mean e behind noise, each started from the released value or 0."""

    def single(n: int) -> None:
        rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
        with numpyro.plate("people", n):
            numpyro.sample("y", dist.Poisson(rate))

    program = dpjax.from_numpyro(single, records=["y"])
    release = dpjax.LocalRelease(jnp.array([value]), dpjax.DiscreteGaussian(noise), field="y")
    step = local.build_window_kernel(program, release)

    def chain(key: jax.Array) -> jax.Array:
        latent = init_latent(release, {"y": jnp.array([max(value, 0)])})

        def sweep(latent: Any, index: jax.Array) -> Any:
            return step(jax.random.fold_in(key, index), latent, {"rate": jnp.array(np.e, float)})[0], None

        return jax.lax.scan(sweep, latent, jnp.arange(num_sweeps))[0].records["y"][0]

    return np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(8), num_chains)))


def count_p_value(drawn: np.ndarray, noise: float, value: int) -> float:
    """By χ² against Poisson probabilities times the noise, on the counts of which five or more are expected."""
    counts = np.arange(200)
    weight = stats.poisson.pmf(counts, np.e) * discrete_gaussian(value - counts, noise)
    expected = weight / weight.sum() * drawn.size
    often = expected >= 5
    observed = np.bincount(drawn, minlength=200)
    held = np.append(observed[often], observed[~often].sum()), np.append(expected[often], expected[~often].sum())
    return float(stats.chisquare(held[0], held[1]).pvalue)


@pytest.mark.x32
@pytest.mark.parametrize(("noise", "value"), [(3.0, -4), pytest.param(40.0, 60, marks=pytest.mark.slow)])
def test_windows_draw_counts_from_their_law(noise: float, value: int) -> None:
    assert count_p_value(draw_counts(noise, value, 64), noise, value) > REJECT


@pytest.mark.x32
def test_windows_that_tell_the_count_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: every window begins at the count itself, so that no count is ever lowered."""
    monkeypatch.setattr(local.jax.random, "randint", lambda key, shape, low, high, dtype: jnp.zeros(shape, dtype))
    assert count_p_value(draw_counts(3.0, 2, 8), 3.0, 2) < REJECT


@pytest.mark.slow
def test_a_perfect_start_stays_perfect() -> None:
    template = dpjax.LocalRelease(jnp.zeros(N, int), dpjax.DiscreteGaussian(SIGMA), field="count")
    after = run(jax.random.key(6), model(), template, dpjax.imwg(), interweave=True, num_chains=2_000, num_sweeps=6)
    laws = {"a": lambda a: (a, stats.norm(scale=1.0)), "b": lambda b: (b, stats.norm(scale=0.5))}
    assert parameter_p_value(after, laws) > REJECT
    assert lattice_p_value(after.noise, lambda k: discrete_gaussian(k, SIGMA), 7) > REJECT


def moments_on_a_grid(values: np.ndarray) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of both coefficients: each area's likelihood is a sum over its count."""
    a, b = np.meshgrid(np.linspace(0.0, 2.0, 121), np.linspace(-0.2, 1.2, 121), indexing="ij")
    counts = np.arange(300)
    log_noise = np.log(np.maximum(discrete_gaussian(values[:, None] - counts, SIGMA), 1e-300))
    density = stats.norm.logpdf(a) + stats.norm.logpdf(b, scale=0.5)
    for x, row in zip(X, log_noise, strict=True):
        density += logsumexp(stats.poisson.logpmf(counts, np.exp(1 + a + b * x)[..., None]) + row, axis=-1)
    weight = np.exp(density - density.max())
    weight /= weight.sum()
    moments = {}
    for name, points in {"a": a, "b": b}.items():
        mean = np.sum(weight * points)
        moments[name] = mean, np.sqrt(np.sum(weight * (points - mean) ** 2))
    return moments


@pytest.mark.slow
def test_the_poisson_regression_agrees_with_a_grid() -> None:
    """Means and standard deviations within 5 standard errors of the chains."""
    rng = np.random.default_rng(5)
    values = rng.poisson(np.exp(2 + 0.5 * X)) + np.rint(SIGMA * rng.standard_normal(N)).astype(int)
    release = dpjax.LocalRelease(jnp.asarray(values), dpjax.DiscreteGaussian(SIGMA), field="count")
    posterior = dpjax.sample(jax.random.key(7), model(), release, progress=False)
    for name, (mean, sd) in moments_on_a_grid(values).items():
        draws = np.asarray(posterior.draws[name], float)
        assert diagnostics.ess_bulk(draws) > 800
        assert abs(draws.mean() - mean) < 5 * diagnostics.mcse_mean(draws)
        assert abs(draws.std() - sd) < 5 * diagnostics.mcse_sd(draws)
