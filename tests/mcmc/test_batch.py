"""A batch of releases gives each the posterior that a call gives it alone."""

import os
import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.data_augmentation.problem import augment
from dpjax.diagnostics import ess_mean
from dpjax.diagnostics.summary import summarize
from dpjax.mcmc.batch import find_all, split_keys, stack
from dpjax.mcmc.batch_run import BatchRun, run_batch
from dpjax.mcmc.starts import find_starts
from dpjax.posterior.posterior import Posterior

MODEL = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
CELLS = dpjax.models.categorical(np.ones(3))
TOTAL = dpjax.statistics.total("y", -5.0, 5.0)
SETTINGS = {"num_chains": 2, "num_warmup": 64, "num_samples": 30, "progress": False}
KEY = jax.random.key(7)
TOLERANCE = 1e-2 if os.environ.get("DPJAX_TEST_FLOAT32") == "1" else 1e-9
RELEASES = [dpjax.Release([value], dpjax.Laplace(scale), TOTAL, n=8) for value, scale in ((1.0, 2.0), (9.0, 0.7))]


def first_record(state):
    return state.latent.records["y"][0]


@pytest.fixture(scope="module")
def batch():
    return dpjax.sample_batch(KEY, MODEL, RELEASES, collect=first_record, **SETTINGS)


def check_same(one, alone):
    """Raise unless a posterior of a batch is that of a call, to rounding."""
    assert isinstance(one, Posterior)
    assert one.keys == alone.keys
    assert one.release is alone.release
    for part in ("draws", "info", "collected", "final_states", "tuning"):
        for leaf, expected in zip(*(jax.tree.leaves(getattr(each, part)) for each in (one, alone)), strict=True):
            np.testing.assert_allclose(leaf, expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.x64
@pytest.mark.parametrize("number", [0, 1])
def test_each_release_has_the_draws_that_it_has_alone(batch, number):
    own_key = jax.random.fold_in(KEY, number)
    alone = dpjax.sample(own_key, MODEL, RELEASES[number], collect=first_record, **SETTINGS)
    check_same(batch[number], alone)


@pytest.mark.slow
def test_step_sizes_are_fitted_to_each_release():
    """At the starts: in a longer warm-up the search for step sizes enlarges the rounding a hundredfold each time."""
    settings = SETTINGS | {"num_warmup": 0, "parameter_kernel": "mala"}
    batch = dpjax.sample_batch(KEY, MODEL, RELEASES, **settings)
    assert not np.isclose(*batch.tuning.step_size, rtol=0.01)  # far more than `check_same` allows
    check_same(batch[1], dpjax.sample(jax.random.fold_in(KEY, 1), MODEL, RELEASES[1], **settings))


def test_each_release_is_adapted_to_by_itself(batch):
    assert not np.isclose(*batch.tuning.location[:, 0], atol=0.1)


@pytest.mark.x64
def test_local_releases_have_the_draws_that_they_have_alone():
    """A local release has no sums, and so arrays without entries. Its summary has the names of categories."""
    channel = dpjax.RandomizedResponse(0.8, 3)
    values = [0, 1, 1, 2, 0], [2, 2, 2, 0, 2]
    releases = [dpjax.LocalRelease(one, channel, field="cell", levels=["a", "b", "c"]) for one in values]
    batch = dpjax.sample_batch(KEY, CELLS, releases, **SETTINGS)
    with pytest.warns(UserWarning, match="effective sample size"):
        assert batch.summary().rows[:4] == tuple(f"probabilities[{row}]" for row in ("0,a", "0,b", "0,c", "1,a"))
    check_same(batch[1], dpjax.sample(jax.random.fold_in(KEY, 1), CELLS, releases[1], **SETTINGS))


def test_figures_are_those_of_each_release(batch):
    figures = batch.figures()["mean"]
    for number, posterior in enumerate(batch):
        for name, figure in summarize(posterior.draws["mean"]).items():
            np.testing.assert_allclose(figures[name][number], figure, rtol=1e-6, err_msg=name)
    with pytest.warns(
        UserWarning, match=r"an effective sample size below 400: mean\[0\] \(bulk \d+, tails \d+\), mean\[1\] "
    ):
        table = batch.summary()
    assert table.rows == ("mean[0]", "mean[1]")
    assert table["mean[1]"]["mean"] == pytest.approx(figures["mean"][1])
    lowest = batch.figures(quantiles=(0.1,))["mean"]["10%"]
    np.testing.assert_allclose(lowest, np.quantile(batch.draws["mean"], 0.1, axis=(1, 2)), rtol=1e-6)


def test_a_batch_says_what_it_is(batch):
    assert len(batch) == 2
    assert repr(batch).startswith("BatchPosterior: 2 releases, each 2 chains of 30 draws of mean\nimputation: IMwG")
    for number in (2, slice(0, 1)):
        with pytest.raises((IndexError, TypeError)):
            batch[number]


def test_posteriors_of_a_batch_are_put_together_with_others(batch):
    more = dpjax.sample(jax.random.key(9), MODEL, RELEASES[0], collect=first_record, **SETTINGS)
    assert Posterior.concat([batch[0], more]).draws["mean"].shape == (4, 30)


def test_other_releases_share_the_program(batch):
    size = run_batch.jitted._cache_size()
    others = [replace(release, value=release.value + 1) for release in RELEASES]
    other = dpjax.sample_batch(jax.random.key(8), MODEL, others, collect=first_record, **SETTINGS, devices=None)
    assert run_batch.jitted._cache_size() == size
    assert not np.allclose(other.draws["mean"], batch.draws["mean"])


@pytest.mark.parametrize(
    ("platform", "number", "group"), [("cpu", 200, 20), ("cpu", 7, 7), ("cpu", 53, 1), ("gpu", 53, 53)]
)
def test_a_processor_takes_some_releases_at_a_time(monkeypatch, platform, number, group):
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    keys = split_keys(KEY, np.arange(number), 4)
    run = BatchRun(problem=None, releases=RELEASES[0], collect=None, keys=keys, schedule=())
    assert run.group == group


def test_interrupted_runs_keep_what_they_have(monkeypatch):
    real, calls = run_batch, []

    def interrupt(*arguments, **options):
        calls.append(1)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    interrupt.eval_shape, interrupt.lower = real.eval_shape, real.lower
    monkeypatch.setattr(BatchRun, "PROGRAM", staticmethod(interrupt))
    monkeypatch.setattr("dpjax.runtime.run.next_length", lambda made, seconds: 4)
    with pytest.warns(UserWarning, match="sample_batch was interrupted after"):
        batch = dpjax.sample_batch(KEY, MODEL, RELEASES, collect=first_record, **SETTINGS)
    assert batch.interrupted
    assert 0 < batch.draws["mean"].shape[2] < 30


IMPOSSIBLE = replace(RELEASES[0], n=9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"releases": []}, "releases: given []; expected a list of releases"),
        ({"releases": RELEASES[0]}, "releases: given Release; expected a list of releases"),
        ({"releases": [RELEASES[0], 3.0]}, "releases: given float in place 1"),
        ({"releases": [RELEASES[0], IMPOSSIBLE]}, "releases: given release 1, which is of another kind"),
        ({"releases": [RELEASES[0], replace(RELEASES[0], mechanism=dpjax.Gaussian(1.0))]}, "releases: given release 1"),
        ({"imputation": dpjax.soma("auto")}, "imputation: given "),
        ({"devices": 10_000}, "devices: given 10000"),
        ({"num_chains": 0}, "num_chains: given 0"),
    ],
)
def test_what_is_no_batch_is_refused_by_name(change, message):
    given = {"releases": RELEASES, **SETTINGS, **change}
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        dpjax.sample_batch(KEY, MODEL, **given)


def clipped_and_squared(record):
    return jnp.stack([jnp.clip(record["y"], -5.0, 5.0), record["y"] ** 2])


@pytest.mark.x64
def test_starts_are_those_of_each_release_alone(bounded):
    """The first by exchanges of records, where no candidate is possible; the second is there at once."""
    cases = (([10.0, 30.0], 0.1), ([0.0, 8.0], 30.0))
    releases = [dpjax.Release(value, bounded(width), clipped_and_squared, n=8) for value, width in cases]
    keys = split_keys(KEY, np.arange(2), 2)
    problem = augment(MODEL, releases[0])
    run = BatchRun(problem=problem, releases=stack(releases), collect=None, keys=keys, schedule=())
    states = find_all(run, keys.starts)
    for number, release in enumerate(releases):
        own_keys = (keys.starts[0][number], keys.starts[1][number])
        alone = find_starts(own_keys, MODEL, release, 2, None)
        for leaf, expected in zip(jax.tree.leaves(states), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(leaf[number], expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.x64
def test_a_release_without_a_start_is_named(bounded):
    """Squares are positive, so no records can come near a negative sum of squares."""
    releases = [dpjax.Release([0.0, value], bounded(9.0), clipped_and_squared, n=8) for value in (8.0, -50.0)]
    with pytest.raises(ValueError, match="release: given a Release of zero density at every start") as details:
        dpjax.sample_batch(KEY, MODEL, releases, **SETTINGS)
    assert details.value.__notes__ == ["It is release 1 of the batch."]


def tables(totals):
    """Releases of tables of nine records, of which so many are known to be in the first cell."""
    cells, first = dpjax.statistics.cells("cell", 3), dpjax.statistics.grouped("cell", [0, -1, -1])
    noisy = dpjax.Release([4.0, 3.0, 2.0], dpjax.DiscreteGaussian(2.0), cells, n=9)
    return [dpjax.joint(noisy, dpjax.Release([total], dpjax.Exact(), first, n=9)) for total in totals]


@pytest.mark.x64
@pytest.mark.parametrize(
    ("totals", "message", "notes"),
    [
        ((10.0, 10.0), "totals that contradict", ["It is release 0 of the batch."]),
        ((4.0, 5.0), "releases: given release 1, whose known totals, or fitted coefficients, are others", None),
    ],
)
def test_tables_that_cannot_be_sampled_together_are_named(totals, message, notes):
    with pytest.raises(ValueError, match=message) as details:
        dpjax.sample_batch(KEY, CELLS, tables(totals), imputation=dpjax.counts(width=4), **SETTINGS)
    assert getattr(details.value, "__notes__", None) == notes


def test_tables_need_no_choice_of_windows():
    cells = dpjax.statistics.cells("cell", 3)
    noisy = [dpjax.Release(value, dpjax.DiscreteLaplace(2.0), cells, 9) for value in ([4.0, 3.0, 2.0], [1.0, 0.0, 8.0])]
    batch = dpjax.sample_batch(KEY, CELLS, noisy, **SETTINGS)
    assert batch[0].plan.imputation == dpjax.counts(16)
    wide = replace(noisy[1], mechanism=dpjax.DiscreteLaplace(40.0))
    assert dpjax.sample_batch(KEY, CELLS, [noisy[0], wide], **SETTINGS)[0].plan.imputation == dpjax.counts(256)
    with pytest.raises(ValueError, match="posterior: given draws without rates of records"):
        batch[0].plot_acceptance()


def exact_mean(release):
    """The posterior mean by quadrature over the mean of the records, whose total is hardly ever clamped."""
    means, nodes = np.linspace(-8, 8, 1_601), stats.norm.ppf((np.arange(400) + 0.5) / 400)
    totals = release.n * means[:, None] + np.sqrt(release.n) * nodes
    misfit = np.abs(np.asarray(release.value, float)[0] - totals) / float(release.mechanism.scale)
    density = np.exp(-misfit).mean(axis=1) * np.exp(-(means**2) / 8)
    return density @ means / density.sum()


@pytest.mark.x64
def test_all_releases_are_refreshed_at_the_same_rates():
    wide = dpjax.statistics.total("y", -50.0, 50.0)
    releases = [dpjax.Release([value], dpjax.Laplace(2.0), wide, n=8) for value in (1.0, 9.0, -4.0)]
    settings = SETTINGS | {"num_chains": 4, "num_warmup": 640, "num_samples": 1_000}
    batch = dpjax.sample_batch(KEY, MODEL, releases, **settings)
    assert len(set(batch.refresh.refreshes.tolist())) == 1
    assert np.all(batch.refresh.kept >= 0)
    assert batch.info["num_refreshes"].shape == (3, 4, 1_000)
    for posterior, release in zip(batch, releases, strict=True):
        draws = posterior.draws["mean"]
        error = float(draws.std() / np.sqrt(ess_mean(draws)))
        assert abs(draws.mean() - exact_mean(release)) < 4 * error
        assert "refreshes: on, " in posterior.describe()
    plain = dpjax.sample_batch(KEY, MODEL, releases, **SETTINGS, refresh=False)
    assert plain.refresh is None
    assert "num_refreshes" not in plain.info
