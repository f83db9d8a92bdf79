"""Climbs to modes where prior and data disagree on the scale of the parameters, against SciPy's maximum."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist
from scipy import optimize, stats
from scipy.special import logsumexp

import dpjax
from dpjax.data_augmentation.problem import augment
from dpjax.mcmc.climb import fit_to, settle

CELLS = np.array(list(itertools.product([0, 1], [0, 1], [0, 1, 2])))
A, B, C1, C2 = CELLS[:, 0], CELLS[:, 1], CELLS[:, 2] == 1, CELLS[:, 2] == 2
DESIGN = np.stack([np.ones(12), A, B, C1, C2, A * B, A * C1, A * C2, B * C1, B * C2], axis=1).astype(float)
PUBLISHED = np.array([13, 31, 2, 10, 16, 5, 37, 59, 12, 22, 31, 11])
SCALE, SPREAD = 3.0, 5.0


def log_linear(n: int, design: jax.Array, y: jax.Array | None = None) -> None:
    """A table of 12 cells, of which ten numbers are not known."""
    effects = numpyro.sample("effects", dist.Normal(0.0, SPREAD).expand([10]).to_event(1))
    with numpyro.plate("cells", n):
        numpyro.sample("y", dist.Poisson(jnp.exp(design @ effects)), obs=y)


def highest() -> float:
    """The largest log-density of the effects and what was published, on a sum of numbers up to 249."""
    numbers = np.arange(250)[:, None]
    noise = np.log(np.tanh(0.5 / SCALE)) - np.abs(PUBLISHED - numbers) / SCALE

    def depth(effects: np.ndarray) -> float:
        likelihood = logsumexp(stats.poisson.logpmf(numbers, np.exp(DESIGN @ effects)) + noise, axis=0).sum()
        return -float(likelihood + stats.norm.logpdf(effects, 0.0, SPREAD).sum())

    return -optimize.minimize(depth, np.append(3.0, np.zeros(9)), method="BFGS").fun


def test_climbs_that_stop_halfway_are_led_on_to_the_mode():
    """Catches chains with starts, a whitening and windows from halfway: 5,120 numbers a cell in place of 256."""
    model = dpjax.from_numpyro(log_linear, "y", n=12, design=jnp.asarray(DESIGN))
    release = dpjax.LocalRelease(PUBLISHED, dpjax.DiscreteLaplace(SCALE), field="y")
    settled, ascent = settle(augment(model, release, allow_sums=True), jax.random.key(0), None, 4, True)
    np.testing.assert_allclose(ascent.log_density, highest(), atol=1.0)
    assert settled.swept_release.size <= 12 * 256


TOTALS = np.array([85, 133, 33])
LEVELS = jnp.arange(3)


def test_sums_beside_exact_totals_are_the_same_for_every_key(compilations):
    """Catches lengths that follow draws near the modes: a second key compiled its longest program anew.

    The gradient is compared with differences of convolutions, which share no code.
    """
    model = dpjax.from_numpyro(log_linear, ["y", "design"], n=12, design=jnp.asarray(DESIGN))
    noisy = dpjax.LocalRelease(PUBLISHED, dpjax.DiscreteLaplace(SCALE), field="y")
    totals = dpjax.Release(TOTALS, dpjax.Exact(), by_level, n=12)
    problem = augment(model, dpjax.joint(noisy, totals), allow_sums=True)
    effects = np.linalg.lstsq(DESIGN, np.log(PUBLISHED), rcond=None)[0]
    at = {"effects": jnp.asarray(effects)}
    program = jax.jit(lambda likelihood: (jax.value_and_grad(likelihood)(at), likelihood.left_out(at)))
    for seed, spread in enumerate((0.03, 0.05, 0.07)):
        near = effects + spread * np.random.default_rng(seed).normal(size=(64, 10))
        compilations.clear()
        (value, slope), left_out = program(fit_to(problem, {"effects": jnp.asarray(near)}).swept_release)
        assert seed == 0 or compilations == []
    tolerance = 1e-5 if jnp.zeros(()).dtype == np.float32 else 1e-10
    np.testing.assert_allclose(value, beside_totals(effects), rtol=tolerance)
    steps = 1e-5 * np.eye(10)
    right = [(beside_totals(effects + step) - beside_totals(effects - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(slope["effects"], right, rtol=1e-3 if tolerance == 1e-5 else 1e-5, atol=1e-4)
    assert left_out < 1e-7


def by_level(record: dict[str, jax.Array]) -> jax.Array:
    """The count of a cell, in the place of the level of its third factor."""
    level = (record["design"][3] + 2 * record["design"][4]).astype(int)
    return jnp.where(level == LEVELS, record["y"], 0)


def beside_totals(effects: np.ndarray) -> float:
    """The log-density of the noisy cells and the exact totals, by convolution."""
    numbers = np.arange(250)
    noise = np.tanh(0.5 / SCALE) * np.exp(-np.abs(PUBLISHED[:, None] - numbers) / SCALE)
    laws = stats.poisson.pmf(numbers, np.exp(DESIGN @ effects)[:, None]) * noise
    whole = [np.ones(1)] * 3
    for level, law in zip(CELLS[:, 2], laws, strict=True):
        whole[level] = np.convolve(whole[level], law)
    return float(sum(np.log(law[total]) for law, total in zip(whole, TOTALS, strict=True)))
