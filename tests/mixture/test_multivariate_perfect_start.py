"""Mixtures of vectors keep the joint distribution, behind Gaussian and Laplace noise; mutations do not."""

import jax
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import mixture
from dpjax.mixture.samplers import SAMPLERS
from dpjax.mixture.samplers.base import Setup, Slots
from dpjax.mixture.samplers.conditional import Conditional
from dpjax.mixture.samplers.neal2 import Neal2
from dpjax.mixture.samplers.neal3 import Neal3
from dpjax.mixture.samplers.neal5 import Neal5
from dpjax.mixture.samplers.neal8 import Neal8
from dpjax.models import GammaPrior
from tests.mixture.perfect import NOISE, Ends, cluster_p_value, run
from tests.tools.perfect_start import REJECT

MEAN = np.array([0.5, -1.0])
SCALE = np.array([[2.0, 0.8], [0.8, 1.5]])
BASE = mixture.NormalInverseWishart(MEAN, 0.5, 5.0, SCALE)
OTHER = mixture.NormalInverseWishart(MEAN, 0.5, 5.0, SCALE * np.array([[1.0, -1.0], [-1.0, 1.0]]))
PRIOR = GammaPrior(6.0, 10.0)
GAUSSIAN, LAPLACE = dpjax.Gaussian(NOISE), dpjax.Laplace(NOISE)

CASES = {
    "conditional": (Setup(Conditional(proposals=0), Slots(20)), GAUSSIAN),
    "metropolis": (Setup(Conditional(proposals=1), Slots(20)), LAPLACE),
    "blocked": (Setup(Conditional(truncation=20, proposals=3), Slots(20)), GAUSSIAN),
    "neal 5": (Setup(Neal5(), Slots(32)), LAPLACE),
    "neal 8": (Setup(Neal8(2), Slots(32)), GAUSSIAN),
    "neal 2": (Setup(Neal2(), Slots(32)), None),
    "neal 3": (Setup(Neal3(), Slots(32)), None),
}
QUICK = ("conditional",)
MARKED = [pytest.param(name, marks=pytest.mark.keys if name in QUICK else pytest.mark.slow) for name in CASES]


def p_value(ends: Ends, channel: object) -> float:
    """The smallest p-value, times their number, that the ends follow the laws they began with."""
    mean, cholesky = (np.asarray(ends.theta[name], float) for name in ("mean", "cholesky"))
    direction = np.array([1.0, -1.5])
    spread = direction @ SCALE @ direction
    p_values = [
        cluster_p_value(ends.num_clusters, PRIOR),
        stats.kstest(mean @ direction, stats.t(4.0, MEAN @ direction, np.sqrt(spread / 4 / 0.5)).cdf).pvalue,
        stats.kstest(np.sum((direction @ cholesky) ** 2, axis=1), stats.invgamma(2.0, scale=spread / 2).cdf).pvalue,
    ]
    if channel is not None:
        law = (stats.norm if channel is GAUSSIAN else stats.laplace)(scale=NOISE)
        p_values += [stats.kstest(ends.noise[:, place, axis], law.cdf).pvalue for place in (0, -1) for axis in (0, 1)]
    return min(1.0, min(p_values) * len(p_values))


@pytest.mark.parametrize("name", MARKED)
def test_the_joint_law_is_invariant(name: str) -> None:
    setup, channel = CASES[name]
    ends = run(jax.random.key(31), setup, PRIOR, channel, component=BASE)
    assert p_value(ends, channel) > REJECT
    assert ends.overflow.mean() < 2e-3


WRONG = {
    "noise of another scale": ((dpjax.Gaussian(1.3 * NOISE), PRIOR), BASE),
    "a concentration of another prior": ((GAUSSIAN, GammaPrior(6.0, 6.0)), BASE),
    "a scale of another sign": ((GAUSSIAN, PRIOR), OTHER),
}
COVERED = "a concentration of another prior"
"""Of which the same step is convicted in `test_marginal_perfect_start`."""

FAULTS = [pytest.param(fault, marks=[pytest.mark.slow] * (fault == COVERED)) for fault in WRONG]


@pytest.mark.x32
@pytest.mark.parametrize("fault", FAULTS)
def test_sweeps_of_another_model_are_rejected(fault: str) -> None:
    setup, channel = CASES["conditional"]
    believed, component = WRONG[fault]
    ends = run(jax.random.key(31), setup, PRIOR, channel, component=BASE, believed=(*believed, component))
    assert p_value(ends, channel) < REJECT


def clusters(sampler: str, channel: dpjax.Gaussian | dpjax.Laplace, **options: object) -> mixture.MixturePosterior:
    """A short run on records around two centres."""
    generator = np.random.default_rng(2)
    records = np.repeat([[-4.0, 4.0], [4.0, 2.0]], 20, axis=0) + generator.normal(size=(40, 2))
    released = records + channel.scale * generator.normal(size=records.shape)
    base = mixture.NormalInverseWishart(np.zeros(2), 0.1, 5.0, 2 * np.eye(2))
    settings = {
        "component": base,
        "concentration": 0.5,
        "sampler": SAMPLERS[sampler](),
        "collect": ("labels", "records"),
    }
    settings |= {"num_chains": 2, "num_warmup": 60, "num_samples": 100, "progress": False}
    return mixture.sample(jax.random.key(3), released, channel, **(settings | options))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["conditional", "neal5", "neal8"])
@pytest.mark.parametrize("channel", [dpjax.Gaussian(0.8), dpjax.Laplace(0.6)], ids=["Gaussian", "Laplace"])
def test_clusters_and_densities_of_vectors(sampler: str, channel: dpjax.Gaussian | dpjax.Laplace) -> None:
    if sampler == "neal8" and isinstance(channel, dpjax.Laplace):
        with pytest.raises(ValueError, match=r"^sampler: given"):
            clusters(sampler, channel)
        return
    # A chain of Neal 5 that starts with one cluster may need hundreds of sweeps to find the other.
    posterior = clusters(sampler, channel, num_warmup=1_000)
    shared = posterior.co_clustering()
    assert shared[:20, :20].mean() > 0.5 > 0.1 > shared[:20, 20:].mean()
    assert posterior.collected["records"].shape == (2, 100, 40, 2)
    axis = np.linspace(-12, 12, 31)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    density = posterior.density(grid)
    assert np.all(density.lower <= density.mean * 1.001)
    assert 0.8 < density.mean.sum() * (axis[1] - axis[0]) ** 2 < 1.01
    expected = posterior.functional(mixture_mean).mean(axis=(0, 1))
    np.testing.assert_allclose(expected, [0, 3], atol=1.0)


def mixture_mean(weights: jax.Array, theta: dict[str, jax.Array]) -> jax.Array:
    return weights @ theta["mean"]
