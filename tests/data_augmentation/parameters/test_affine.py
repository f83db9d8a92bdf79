"""The affine step: the laws of the noise's frame, its invariance, mutation tests, and where `sample` takes it."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions
from scipy import stats

import dpjax
from dpjax import models, statistics
from dpjax.data_augmentation.parameters import affine
from dpjax.mcmc.run import CHECKED, check_surrogate
from tests.tools.perfect_start import REJECT, noise_p_value, parameter_p_value, run

K, MANY = 3, 9
N = 6
"""Few records, of which quadrature is a poor surrogate: what corrects it has much to do."""

REGRESSION = models.linear_regression(
    covariate_mean=[0.5],
    covariate_cov=[[1.0]],
    noise_variance=models.NormalInverseGammaPrior(np.zeros(2), np.eye(2), 4.0, 3.0),
)
GRAM = dpjax.Release(jnp.zeros(5), dpjax.Laplace(0.7), statistics.gram(lower=[-1], upper=[1.5], response=(-2, 2)), N)
LAWS = {
    "variance": lambda variance: (variance, stats.invgamma(4.0, scale=3.0)),
    "coef": lambda coef: (coef[:, 0], stats.t(8.0, scale=0.75**0.5)),
}


def columns() -> jax.Array:
    return 2.0 + jax.random.normal(jax.random.key(3), (K, MANY), float) * jnp.array([[1.0], [0.1], [5.0]])


@pytest.mark.x64
def test_a_frame_and_what_is_left_of_the_columns() -> None:
    drawn = columns()
    frame = affine.find_frame(drawn)
    standardised = frame.standardise(drawn)
    np.testing.assert_allclose(jnp.mean(standardised, axis=1), np.zeros(K), atol=1e-12)
    np.testing.assert_allclose(standardised @ standardised.T / MANY, np.eye(K), atol=1e-12)
    np.testing.assert_allclose(frame.place(standardised), drawn, rtol=1e-12)
    again = affine.to_frame(affine.to_coordinates(frame, MANY), K, MANY)
    np.testing.assert_allclose(again.mean, frame.mean, rtol=1e-12)
    np.testing.assert_allclose(again.factor, frame.factor, rtol=1e-12, atol=1e-12)


@pytest.mark.x64
def test_the_law_of_the_frame_is_bartletts() -> None:
    """Against SciPy's laws of the mean, the entries below the diagonal and the squares of those on it."""

    def scipys(coordinates: np.ndarray) -> float:
        frame = affine.to_frame(jnp.asarray(coordinates), K, MANY)
        factor = np.asarray(frame.factor) * MANY**0.5
        free = MANY - 1.0 - np.arange(K)
        squares = np.diagonal(factor) ** 2
        normal = [*(np.asarray(frame.mean) * MANY**0.5), *factor[np.tril_indices(K, -1)]]
        # A square is exp of twice the coordinate over √(2 df) times df.
        slopes = np.log(squares * 2 / np.sqrt(2 * free))
        return float(np.sum(stats.norm.logpdf(normal)) + np.sum(stats.chi2.logpdf(squares, free) + slopes))

    places = np.random.default_rng(5).normal(size=(6, affine.num_coordinates(K))) * 1.5
    ours = np.array([float(affine.log_density(jnp.asarray(place), K, MANY)) for place in places])
    theirs = np.array([scipys(place) for place in places])
    np.testing.assert_allclose(ours, theirs - scipys(np.zeros(affine.num_coordinates(K))), rtol=1e-10)


@pytest.fixture
def poor_surrogate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A surrogate that is cheap and poor: its sums move half as far as they should."""
    monkeypatch.setattr(affine, "MIN_NODES", 16)
    build = affine.build_sums

    def build_poor(model: dpjax.Model, release: dpjax.Release) -> affine.Sums:
        sums = build(model, release)
        return lambda parameters, coordinates: sums(parameters, coordinates) / 2

    monkeypatch.setattr(affine, "build_sums", build_poor)


def p_value(noise: str, num_sweeps: int = 4) -> float:
    options = {"interweave": True, "noise": noise, "num_sweeps": num_sweeps}
    replicates = run(jax.random.key(12), REGRESSION, GRAM, dpjax.imwg(), **options)
    return min(noise_p_value(replicates.noise, stats.laplace(scale=0.7)), parameter_p_value(replicates, LAWS))


@pytest.mark.keys
@pytest.mark.usefixtures("poor_surrogate")
@pytest.mark.parametrize("noise", [pytest.param("moved", marks=pytest.mark.slow), "moved by surrogate"])
def test_perfect_start(noise: str) -> None:
    assert p_value(noise) > REJECT


@pytest.mark.slow
@pytest.mark.usefixtures("poor_surrogate")
def test_a_frame_of_no_law_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(affine, "log_density", lambda coordinates, k, n: jnp.sum(coordinates) * 0)
    assert p_value("moved", num_sweeps=16) < REJECT


@pytest.mark.x32
@pytest.mark.usefixtures("poor_surrogate")
def test_a_surrogate_that_is_not_corrected_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(affine, "decision_uniforms", lambda key, shape: jnp.zeros(shape))
    assert p_value("moved by surrogate") < REJECT


MANY_RECORDS, NOISE = 2_000, 45.0
MEAN = models.normal(mean_prior=models.NormalPrior(0.0, 5.0), variance=1.0)
SHORT = {"num_chains": 4, "num_warmup": 128, "num_samples": 1_000, "progress": False}


@pytest.fixture(scope="module")
def half_known() -> dpjax.Posterior:
    """A release whose noise is as wide as the sampling error."""
    statistic = statistics.total("y", -50.0, 50.0)
    return dpjax.sample(
        jax.random.key(8), MEAN, dpjax.Release([800.0], dpjax.Gaussian(NOISE), statistic, 2_000), **SHORT
    )


@pytest.mark.x32
def test_a_mean_of_many_records_is_that_of_its_closed_form(half_known: dpjax.Posterior) -> None:
    assert half_known.plan.noise == "moved by surrogate"
    assert "noise moved by surrogate" in half_known.describe()
    variance = (MANY_RECORDS + NOISE**2) / MANY_RECORDS**2
    exact = 1 / (1 / variance + 1 / 25.0)
    draws = half_known.draws["mean"]
    size = dpjax.diagnostics.ess_bulk(draws)
    assert abs(draws.mean() - exact * 0.4 / variance) < 4 * np.sqrt(exact / size)
    assert abs(draws.std() / np.sqrt(exact) - 1) < 4 / np.sqrt(2 * size)
    assert size > 0.2 * draws.size


TOTAL = statistics.total("y", -5.0, 5.0)
HISTOGRAM = dpjax.Release([500.0, 500.0], dpjax.Laplace(0.2), statistics.histogram("y", [-30.0, 0.0, 30.0]), 1_000)


def test_a_surrogate_that_is_mostly_refused_is_given_up() -> None:
    plan = dpjax.data_augmentation.SweepPlan(dpjax.imwg(), True, None, "moved by surrogate")
    assert check_surrogate(plan, {"interweaving_is_accepted": np.full((2, 8), 0.6)}) == plan
    assert check_surrogate(plan, {"interweaving_is_accepted": np.full((2, 8), 0.4)}).noise == "moved"
    assert CHECKED < 8


@pytest.mark.slow
def test_a_run_gives_such_a_surrogate_up() -> None:
    posterior = dpjax.sample(jax.random.key(9), MEAN, HISTOGRAM, **SHORT | {"num_samples": 200})
    assert posterior.plan.noise == "moved"


@pytest.mark.parametrize(("model", "release"), [
    (MEAN, dpjax.Release([1.0], dpjax.Gaussian(1.0), TOTAL, 999)),
    (MEAN, dpjax.Release([1.0, 1.0], dpjax.DiscreteGaussian(1.0), HISTOGRAM.statistic, 2_000)),
    (MEAN._replace(exchangeable=False), dpjax.Release([1.0], dpjax.Gaussian(1.0), TOTAL, 2_000)),
])  # fmt: skip
def test_where_the_noise_is_held(model: dpjax.Model, release: dpjax.Release) -> None:
    assert not affine.should_move_noise(model, release)


@pytest.mark.x32
def test_the_noise_of_counts_is_held() -> None:
    """Their sum has no slope in it; beside a real field it may be moved."""

    def counts(n: int, with_covariate: bool = False) -> None:
        rate = numpyro.sample("rate", distributions.Gamma(2.0, 1.0))
        with numpyro.plate("people", n):
            if with_covariate:
                numpyro.sample("x", distributions.Normal(0.0, 1.0))
            numpyro.sample("y", distributions.Poisson(rate))

    release = dpjax.Release([1.0], dpjax.Gaussian(1.0), TOTAL, 2_000)
    assert not affine.should_move_noise(dpjax.from_numpyro(counts, records=["y"]), release)
    both = dpjax.from_numpyro(counts, records=["x", "y"], with_covariate=True)
    assert affine.should_move_noise(both, release)


@pytest.mark.parametrize(("release", "noise", "expected"), [
    (HISTOGRAM, "moving", "'held' or 'moved' or 'moved by surrogate'"),
    (dpjax.Release([1.0, 1.0], dpjax.DiscreteGaussian(1.0), HISTOGRAM.statistic, 2_000), "moved", "'held'"),
])  # fmt: skip
def test_a_plan_that_no_step_follows_is_refused(release: dpjax.Release, noise: str, expected: str) -> None:
    with pytest.raises(ValueError, match=f"plan: given noise='{noise}'; expected {expected}"):
        dpjax.gibbs(MEAN, release, plan=dpjax.data_augmentation.SweepPlan(dpjax.imwg(), True, None, noise))


@pytest.mark.x64
def test_the_plan_of_a_run_is_taken_up(half_known: dpjax.Posterior) -> None:
    algorithm = dpjax.gibbs(MEAN, half_known.release, plan=half_known.plan, tuning=half_known.tuning)
    state = jax.tree.map(lambda leaf: leaf[0], half_known.final_states)
    _, info = jax.jit(algorithm.step)(jax.random.key(4), state)
    assert int(info.interweaving.num_shrink) >= affine.SURROGATE_MOVES
