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
from dpjax.mcmc.climb import settle

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
