"""Every kernel leaves the joint distribution of parameters, records and release as it is; mutations do not."""

import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models, statistics
from dpjax.numerics import select_index
from tests.tools.perfect_start import REJECT, lattice_p_value, noise_p_value, parameter_p_value, run

N = 5

NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=models.InverseGammaPrior(4.0, 3.0))
NORMAL_LAWS = {
    "mean": lambda mean: (mean, stats.norm()),
    "variance": lambda variance: (variance, stats.invgamma(4.0, scale=3.0)),
}
BOUNDED = dpjax.Release(jnp.zeros(1), dpjax.Laplace(1.0), statistics.total("y", -2.0, 2.0), N)

REGRESSION = models.linear_regression(
    covariate_mean=[0.5],
    covariate_cov=[[1.0]],
    noise_variance=models.NormalInverseGammaPrior(np.zeros(2), np.eye(2), 4.0, 3.0),
)
GRAM = dpjax.Release(jnp.zeros(5), dpjax.Laplace(0.7), statistics.gram(lower=[-3], upper=[3], response=(-3, 3)), N)

TABLE = models.categorical(concentration=[2.0, 1.0, 3.0])
COUNTS = dpjax.Release(jnp.zeros(3), dpjax.DiscreteGaussian(1.0), statistics.cells("cell", 3), N)

BAYES = models.naive_bayes([2.0, 1.0], np.full((2, 2, 2), 1.5))
CLASSES = dpjax.Release(jnp.zeros(8), dpjax.Laplace(1.0), statistics.class_features(2, 2, 2), N)

COMPOSITION = models.dirichlet(shape_prior=models.GammaPrior(3.0, 1.0), dim=2)
LOGS = dpjax.Release(jnp.zeros(2), dpjax.Gaussian(1.5), statistics.log_composition("share", 0.05, dimension=2), N)


def mala(log_density: Callable) -> dpjax.base.SamplingAlgorithm:
    import blackjax

    return blackjax.mala(log_density, step_size=0.3)


CASES = {
    "imwg, interweaved": (NORMAL, BOUNDED, dpjax.imwg(), True, None),
    "imwg random": (NORMAL, BOUNDED, dpjax.imwg(scan="random"), False, None),
    "soma, interweaved": (NORMAL, BOUNDED, dpjax.soma(), True, None),
    "soma windows": (NORMAL, BOUNDED, dpjax.soma(attempts=2), False, None),
    "a BlackJAX kernel": (NORMAL, BOUNDED, dpjax.imwg(), False, mala),
    "regression": (REGRESSION, GRAM, dpjax.soma(attempts=2), True, None),
    "table": (TABLE, COUNTS, dpjax.soma(), True, None),
    "naive bayes": (BAYES, CLASSES, dpjax.imwg(), True, None),
    "slice sampling": (COMPOSITION, LOGS, dpjax.imwg(), False, "coordinate_slice"),
}
PARAMETER_LAWS = {
    id(NORMAL): NORMAL_LAWS,
    id(REGRESSION): {
        "variance": NORMAL_LAWS["variance"],
        "coef": lambda coef: (coef[:, 0], stats.t(8.0, scale=0.75**0.5)),
    },
    id(TABLE): {"probabilities": lambda p: (p[:, 0], stats.beta(2.0, 4.0))},
    id(BAYES): {
        "class_probabilities": lambda p: (p[:, 0], stats.beta(2.0, 1.0)),
        "feature_probabilities": lambda p: (p[:, 1, 0, 1], stats.beta(1.5, 1.5)),
    },
    id(COMPOSITION): {"shape": lambda shape: (shape[:, 1], stats.gamma(3.0))},
}


def noise_p(release: dpjax.Release, noise: np.ndarray) -> float:
    mechanism = release.mechanism
    if isinstance(mechanism, dpjax.DiscreteGaussian):
        weights = np.exp(-(np.arange(-60, 61) ** 2) / (2 * float(mechanism.scale) ** 2))
        return lattice_p_value(noise, lambda k: np.exp(-(k**2) / (2 * float(mechanism.scale) ** 2)) / weights.sum(), 3)
    law = stats.laplace if isinstance(mechanism, dpjax.Laplace) else stats.norm
    return noise_p_value(noise, law(scale=float(mechanism.scale)))


LONG = ("regression", "naive bayes", "slice sampling")
"""What other cases cover, and for slice sampling the laws of parameter kernels; their programs take long to compile."""


def marks(name: str) -> list[pytest.MarkDecorator]:
    # The key reuse checker takes BlackJAX's own scan over slice directions for a reuse.
    return [pytest.mark.keys] * (name != "slice sampling") + [pytest.mark.slow] * (name in LONG)


CHECKED = [pytest.param(name, marks=marks(name)) for name in CASES]


@pytest.mark.parametrize("name", CHECKED)
def test_the_joint_law_is_invariant(name: str) -> None:
    model, release, imputation, interweave, kernel = CASES[name]
    replicates = run(jax.random.key(11), model, release, imputation, interweave=interweave, parameter_kernel=kernel)
    assert noise_p(release, replicates.noise) > REJECT
    assert parameter_p_value(replicates, PARAMETER_LAWS[id(model)]) > REJECT
    assert 0.2 < replicates.acceptance_rate.mean() < 1.0  # the kernel moves, and does not accept all


def accept_all(model: dpjax.Model, release: dpjax.Release) -> Callable:
    """A mutation: the release is not looked at."""
    always = dpjax.Release(release.value, dpjax.Laplace(1e6), release.statistic, release.n)
    return dpjax.imwg()(model, always)


def imwg_ratio(log_weights: jax.Array, log_current: jax.Array, select: jax.Array, accept: jax.Array) -> tuple:
    """A mutation: SOMA's place, with the acceptance of IMwG."""
    index, _ = select_index(log_weights, select)
    ratio = jnp.exp(log_weights[index] - log_current)
    return index, accept < ratio, ratio


def test_accepting_every_proposal_is_rejected() -> None:
    assert noise_p(BOUNDED, run(jax.random.key(11), NORMAL, BOUNDED, accept_all).noise) < REJECT


@pytest.mark.x32
def test_the_ratio_of_imwg_at_the_place_of_soma_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys.modules["dpjax.data_augmentation.records.soma"], "choose_place", imwg_ratio
    )  # the package exports a function of that name
    replicates = run(jax.random.key(11), NORMAL, BOUNDED, dpjax.soma(), num_chains=20_000)
    assert noise_p(BOUNDED, replicates.noise) < REJECT


@pytest.mark.x32
def test_records_on_another_scale_after_interweaving_are_rejected() -> None:
    """A mutation: the noise is divided by the standard deviation and not multiplied by it again."""
    wide = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=models.InverseGammaPrior(4.0, 30.0))
    noncentred = dpjax.base.NonCentred(
        wide.noncentred.noise, lambda parameters, noise: {"y": parameters["mean"] + noise}
    )
    release = dpjax.Release(jnp.zeros(1), dpjax.Laplace(1.0), statistics.total("y", -10.0, 10.0), N)
    replicates = run(jax.random.key(11), wide._replace(noncentred=noncentred), release, dpjax.imwg(), interweave=True)
    laws = {"variance": lambda variance: (variance, stats.invgamma(4.0, scale=30.0))}
    assert min(noise_p(release, replicates.noise), parameter_p_value(replicates, laws)) < REJECT


@pytest.mark.slow
def test_a_forgotten_jacobian_is_rejected() -> None:
    broken = NORMAL._replace(log_jacobian=lambda unconstrained: jnp.zeros(()))
    replicates = run(jax.random.key(11), broken, BOUNDED, dpjax.imwg(), interweave=True)
    assert parameter_p_value(replicates, NORMAL_LAWS) < REJECT


LOCAL = {
    "exact, finite": (
        TABLE,
        dpjax.LocalRelease(np.zeros(N, int), dpjax.RandomizedResponse(keep=0.7, num_categories=3)),
    ),
    "exact, Laplace": (NORMAL, dpjax.LocalRelease(np.zeros(N), dpjax.Laplace(0.8), field="y")),
    "exact, Gaussian": (NORMAL, dpjax.LocalRelease(np.zeros(N), dpjax.Gaussian(0.8), field="y")),
    "metropolis": (NORMAL._replace(normal_field=None), dpjax.LocalRelease(np.zeros(N), dpjax.Laplace(0.8), field="y")),
}


def local_p(release: dpjax.LocalRelease, noise: np.ndarray) -> float:
    if isinstance(release.channel, dpjax.RandomizedResponse):
        kept = np.sum(noise == 0)
        return float(stats.binomtest(int(kept), noise.size, 0.7).pvalue)
    law = stats.laplace if isinstance(release.channel, dpjax.Laplace) else stats.norm
    return noise_p_value(noise, law(scale=float(release.channel.scale)))


@pytest.mark.keys
@pytest.mark.parametrize("name", LOCAL)
def test_local_updates_leave_the_joint_law_invariant(name: str) -> None:
    model, release = LOCAL[name]
    replicates = run(jax.random.key(12), model, release, dpjax.imwg())
    laws = {"probabilities": PARAMETER_LAWS[id(TABLE)]["probabilities"]} if model is TABLE else NORMAL_LAWS
    assert local_p(release, replicates.noise) > REJECT
    assert parameter_p_value(replicates, laws) > REJECT
    assert (replicates.acceptance_rate.mean() == 1.0) == name.startswith("exact")


def test_a_channel_read_the_wrong_way_is_rejected() -> None:
    """A mutation: the table of the channel is transposed."""
    matrix = jnp.array([[0.8, 0.1, 0.1], [0.3, 0.5, 0.2], [0.1, 0.1, 0.8]])

    class Transposed(dpjax.LocalRelease):
        def log_densities_of_support(self, support: dict) -> jax.Array:
            return jnp.log(matrix)[self.values][:, support["cell"]]

    jax.tree_util.register_pytree_node(
        Transposed, lambda r: ((r.values, r.channel), r.field), lambda field, data: rebuild(Transposed, field, data)
    )
    broken = Transposed(np.zeros(N, int), dpjax.RandomizedResponse(matrix=matrix))
    replicates = run(jax.random.key(12), TABLE, broken, dpjax.imwg())
    assert parameter_p_value(replicates, {"probabilities": PARAMETER_LAWS[id(TABLE)]["probabilities"]}) < REJECT


def rebuild(noun: type, field: str, data: tuple) -> dpjax.LocalRelease:
    release = object.__new__(noun)
    for name, value in zip(("values", "channel", "field"), (*data, field), strict=True):
        object.__setattr__(release, name, value)
    return release
