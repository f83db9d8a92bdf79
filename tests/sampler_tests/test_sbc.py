"""Calibration passes where model and sampler are right, and fails where the model or the kernel is wrong."""

import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.records.forms import latent_form
from dpjax.sampler_tests import SBCResult
from dpjax.sampler_tests.sbc import (
    CalibrationDesign,
    Ranked,
    Replicates,
    autocorrelation,
    make_schedule,
    rank,
    run_batches,
)

N = 10
ACCEPT = 1e-3
SHORT = {"num_replicates": 400, "num_samples": 19, "thin": 4, "num_warmup": 100}


def total(record: dict) -> jax.Array:
    return record["y"][None]


def noise_size(parameters: dict, records: dict, release: dpjax.Release) -> dict:
    """Data-dependent, and of more than one entry."""
    return {"residual": jnp.abs(release.value - release.total(records))}


MODEL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
NARROW = models.normal(mean_prior=models.NormalPrior(0.0, 0.5), variance=1.0)
DESIGN = dpjax.Release([0.0], dpjax.Laplace(3.0), total, N)


def smallest(calibration: SBCResult) -> float:
    return min(np.min(p_value) for p_value in calibration.p_values().values())


@pytest.fixture(scope="module")
def right() -> SBCResult:
    return dpjax.sbc(jax.random.key(1), MODEL, DESIGN, quantities=noise_size, **SHORT)


@pytest.mark.keys
def test_a_right_model_passes(right: SBCResult) -> None:
    assert set(right.ranks) == {"mean", "residual", "log_density"}
    assert right.ranks["mean"].shape == (400,)
    assert right.ranks["residual"].shape == (400, 1)
    assert all(np.min(ranks) >= 0 and np.max(ranks) <= 19 for ranks in right.ranks.values())
    assert smallest(right) > ACCEPT
    table = right.summary()
    assert abs(table["mean"]["mean"] - 0.5) < 5 * 0.289 / np.sqrt(400)
    assert abs(table["mean"]["autocorrelation"]) < 0.3


@pytest.mark.x32
def test_a_wrong_prior_is_rejected() -> None:
    """The fitted model's prior has half the standard deviation."""
    wrong = dpjax.sbc(jax.random.key(1), MODEL, DESIGN, fit=NARROW, interweave=False, **SHORT)
    assert np.min(wrong.p_values()["mean"]) < 1e-6


@pytest.mark.slow
def test_chains_that_keep_their_records_are_rejected() -> None:
    """A kernel that never moves the records is no sampler of the posterior, wherever its chains start."""
    with pytest.warns(UserWarning, match="Neighbouring draws of .* correlate by more than 0.3"):
        stuck = dpjax.sbc(jax.random.key(1), MODEL, DESIGN, imputation=keep_records, interweave=False, **SHORT)
    assert np.min(stuck.p_values()["log_density"]) < 1e-6


def keep_records(model: dpjax.Model, release: dpjax.Release) -> object:
    def step(key: jax.Array, latent: dpjax.base.Latent, parameters: dict) -> tuple:
        keeps = jnp.arange(N) + jax.random.randint(key, (), 0, 1)
        return latent, dpjax.base.ImputationInfo(jnp.zeros(()), keeps, jnp.array(0))

    return step


@pytest.mark.slow
def test_a_local_release_passes() -> None:
    design = dpjax.LocalRelease(np.zeros(N, int), dpjax.RandomizedResponse(0.8, 2))
    model = models.categorical(np.ones(2))
    result = dpjax.sbc(jax.random.key(2), model, design)
    assert smallest(result) > ACCEPT
    # The two probabilities are mirror images, and so are their ranks.
    np.testing.assert_array_equal(result.ranks["probabilities"].sum(axis=1), 99)


def test_batches_are_of_one_size_and_their_surplus_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def report(design: CalibrationDesign, key: jax.Array, numbers: np.ndarray) -> Replicates:
        asked.append(len(numbers))
        return Replicates({"x": numbers}, {"x": numbers})

    monkeypatch.setattr("dpjax.models.simulation.BATCH_BYTES", 10 * N * 2 * jnp.zeros(()).nbytes)
    monkeypatch.setattr(sys.modules["dpjax.sampler_tests.sbc"], "run_batch", report)
    design = CalibrationDesign(MODEL, augment(MODEL, DESIGN), Ranked(None), ())
    reports = run_batches(design, 25, jax.random.key(2))
    np.testing.assert_array_equal(reports.ranks["x"], np.arange(25))
    assert asked == [9, 9, 9]


def test_the_warm_up_has_windows_of_as_many_draws_as_are_ranked() -> None:
    schedule = make_schedule(num_warmup=200, num_samples=19, thin=7)
    assert [segment.draws for segment in schedule] == [19] * 5
    assert [segment.thin for segment in schedule] == [2, 2, 4, 8, 7]
    assert [segment.start for segment in schedule[1:]] == [segment.stop for segment in schedule[:-1]]
    assert [segment.tune for segment in schedule] == [True] * 4 + [False]


def of_ranks(ranks: np.ndarray, num_samples: int) -> SBCResult:
    return SBCResult({"x": ranks}, num_samples, {"x": np.zeros(ranks.shape[1:])})


def test_p_values_are_those_of_chi_square_times_their_number() -> None:
    ranks = np.random.default_rng(3).integers(0, 100, (200, 2))
    calibration = of_ranks(ranks, 99)
    counts = [np.bincount(column // 5, minlength=20) for column in ranks.T]
    expected = [min(1.0, 2 * stats.chisquare(count).pvalue) for count in counts]
    np.testing.assert_allclose(calibration.p_values()["x"], expected)
    np.testing.assert_array_equal(calibration.counts()["x"].T, counts)


def test_bins_of_unequal_width_are_expected_to_differ() -> None:
    calibration = of_ranks(np.arange(11 * 7) % 11, 10)
    np.testing.assert_allclose(calibration.expected_counts(), calibration.counts()["x"])
    assert len(calibration.expected_counts()) == 7
    assert calibration.p_values()["x"] == 1.0
    biased = of_ranks(np.arange(11 * 7) % 5, 10)
    assert biased.p_values()["x"] < 1e-6


def test_equal_draws_are_ranked_at_random() -> None:
    keys = jax.random.split(jax.random.key(4), 2_000)
    draws, truth = {"x": jnp.array([0.0, 1.0, 1.0, 2.0])}, {"x": jnp.array(1.0)}
    ranks = np.asarray(jax.vmap(lambda key: rank(key, draws, truth)["x"])(keys))
    assert set(ranks) == {1, 2, 3}
    assert stats.chisquare(np.bincount(ranks)[1:]).pvalue > 1e-4


def test_autocorrelation_of_neighbours() -> None:
    draws = np.random.default_rng(5).normal(size=(50, 3))
    centred = draws - draws.mean(axis=0)
    expected = np.sum(centred[1:] * centred[:-1], axis=0) / np.sum(centred**2, axis=0)
    np.testing.assert_allclose(autocorrelation(jnp.asarray(draws)), expected, rtol=1e-4)
    assert autocorrelation(jnp.ones(5)) == 0


@pytest.mark.x64
def test_histograms_have_a_panel_for_each_number(right: SBCResult) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    panels = right.plot(axes=figure.subplots(1, 3))
    figure.draw_without_rendering()
    assert [axes.get_title() for axes in panels] == ["log_density", "mean", "residual[0]"]
    with pytest.raises(ValueError, match="axes: given 2 axes; expected 3, one for each quantity"):
        right.plot(axes=figure.subplots(1, 2))


def twice(parameters: dict, records: dict, release: dpjax.Release) -> dict:
    return {"mean": parameters["mean"]}


def no_dict(parameters: dict, records: dict, release: dpjax.Release) -> jax.Array:
    return parameters["mean"]


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        ({"key": 3}, TypeError, "key: given 3; expected one typed key"),
        ({"num_replicates": 10}, ValueError, "num_replicates: given 10; expected a whole number >= 20"),
        ({"num_samples": 2.5}, TypeError, "num_samples: given 2.5"),
        ({"num_warmup": 0}, ValueError, "num_warmup: given 0"),
        ({"thin": 0}, ValueError, "thin: given 0"),
        ({"quantities": "mean"}, TypeError, "quantities: given 'mean'; expected a hashable function or None"),
        ({"quantities": no_dict}, TypeError, "quantities: given a function that returns .*; expected a dict"),
        ({"quantities": twice}, ValueError, r"quantities: given names \['mean'\] twice"),
        ({"imputation": dpjax.soma("auto")}, ValueError, "imputation: given SOMA.*'auto'.*; expected fixed numbers"),
        ({"fit": models.categorical(np.ones(2))}, ValueError, "cell"),
        (
            {
                "fit": models.normal(
                    mean_prior=models.NormalPrior(0.0, 1.0), variance=models.InverseGammaPrior(3.0, 2.0)
                )
            },
            ValueError,
            "fit: given a model with parameters .*variance.*; expected .*mean",
        ),
    ],
)
def test_bad_input(choices: dict, error: type, message: str) -> None:
    arguments = {"key": jax.random.key(0), "model": MODEL, "release_design": DESIGN} | choices
    with pytest.raises(error, match=message):
        dpjax.sbc(**arguments)


@pytest.mark.slow
def test_models_that_need_different_room_for_an_unknown_number_can_be_compared():
    """The design's value needs more records under the narrow prior than under the wide one."""
    narrow, wide = (dpjax.models.normal(dpjax.models.NormalPrior(0.0, scale), 1.0) for scale in (0.3, 20.0))
    number = dpjax.UnknownCount(dpjax.models.PoissonCount(5.0))
    design = dpjax.Release([120.0], dpjax.Laplace(1.0), dpjax.statistics.total("y", -4.0, 4.0), number)
    capacities = [latent_form(model, design, dpjax.imwg())[1].statistic.capacity for model in (narrow, wide)]
    assert capacities[0] != capacities[1]
    short = {"num_replicates": 20, "num_samples": 4, "thin": 1, "num_warmup": 8}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = dpjax.sbc(jax.random.key(1), narrow, design, fit=wide, **short)
    assert result.ranks["mean"].shape == (20,)
