"""Runs whose draws are not kept: the figures of the draws of the same run, in memory that does not grow."""

import jax
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.runtime import run as runtime_run
from dpjax.runtime.progress import Progress
from tests.validation import record

OPTIONS = {"num_samples": 3_000}


@pytest.fixture(scope="module")
def kept(run, model, release):
    return run(model, release, **OPTIONS)


@pytest.fixture(scope="module")
def summarized(run, model, release):
    return run(model, release, keep="summary", **OPTIONS)


def assert_same(one, other):
    """Raise unless digests, reports and states agree to the last bit."""
    for name in ("streaming", "info", "final_states", "tuning"):
        pairs = zip(jax.tree.leaves(getattr(one, name)), jax.tree.leaves(getattr(other, name)), strict=True)
        for here, there in pairs:
            np.testing.assert_array_equal(here, there)


def test_the_figures_are_those_of_the_draws(kept, summarized):
    ours, theirs = summarized.summary(), kept.summary()
    assert ours.rows == theirs.rows == ("mean", "squared")
    for name in ("mean", "sd"):
        np.testing.assert_allclose(ours.columns[name], theirs.columns[name], rtol=1e-5)
    for name in ("2.5%", "25%", "50%", "75%", "97.5%"):  # ranks are wrong by 3 / 4096 at most
        np.testing.assert_allclose(ours.columns[name], theirs.columns[name], atol=0.02)
    assert np.all(np.abs(ours.columns["r_hat"] - 1) < 0.01)
    assert "draws were not kept" in str(ours)
    assert "4 chains of 3000 draws, not kept, of mean, squared" in summarized.describe()


def test_quantiles_are_those_asked_for(kept, summarized):
    ours, theirs = (posterior.summary(quantiles=[0.1, 0.9]).columns for posterior in (summarized, kept))
    assert list(ours)[:4] == list(theirs)[:4] == ["mean", "sd", "10%", "90%"]
    for name in ("10%", "90%"):  # ranks are wrong by 3 / 4096 at most
        np.testing.assert_allclose(ours[name], theirs[name], atol=0.02)


def test_reports_are_those_of_all_draws(kept, summarized):
    rates = summarized.info["acceptance_rate"]
    np.testing.assert_allclose(rates[:, 0], kept.info["acceptance_rate"].mean(axis=1), rtol=1e-5)
    assert rates.shape == (4, 1)
    np.testing.assert_array_equal(summarized.info["num_nonfinite"], np.zeros((4, 1)))
    np.testing.assert_array_equal(
        summarized.info["acceptance_rate_per_record"], kept.info["acceptance_rate_per_record"]
    )
    np.testing.assert_array_equal(summarized.final_states.parameters["mean"], kept.draws["mean"][:, -1])


NEEDS_DRAWS = {
    "draws": lambda posterior: posterior.draws["mean"],
    "names": lambda posterior: list(posterior.draws),
    "predict": lambda posterior: posterior.predict(jax.random.key(1)),
    "predict some": lambda posterior: posterior.predict(jax.random.key(1), 10),
    "to_arviz": lambda posterior: posterior.to_arviz(),
    "plot_forest": lambda posterior: posterior.plot_forest(),
}


@pytest.mark.parametrize("name", NEEDS_DRAWS)
def test_what_needs_draws_is_refused_by_name(summarized, name):
    with pytest.raises(ValueError, match=r'draws: given a run with keep="summary"; expected draws that were kept'):
        NEEDS_DRAWS[name](summarized)


def test_an_interrupted_run_continues_to_the_same_digest(monkeypatch, tmp_path, summarized, run, model, release):
    total = 0

    def advance(self, made, phase):
        nonlocal total
        total += made
        if total > 700:
            raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(Progress, "advance", advance)
        context.setattr(runtime_run, "next_length", lambda made, seconds: 37)
        with pytest.warns(UserWarning, match="interrupted after"):
            part = run(model, release, keep="summary", checkpoint=tmp_path / "run.npz", **OPTIONS)
    assert 0 < part.streaming.summary.number < 3_000
    assert_same(run(model, release, keep="summary", checkpoint=tmp_path / "run.npz", **OPTIONS), summarized)
    with pytest.raises(ValueError, match="differs in keep: saved summary, now draws"):
        run(model, release, checkpoint=tmp_path / "run.npz", **OPTIONS)


def test_it_can_stop_when_the_figures_are_good_enough(run, model, release):
    posterior = run(model, release, keep="summary", until=dpjax.until(ess=500, r_hat=1.05), **OPTIONS)
    assert posterior.streaming.summary.number < 3_000
    assert np.all(posterior.summary().columns["ess_mean"] >= 500)
    assert "enough for ess=500, r_hat=1.05" in posterior.describe()


def test_too_few_draws_are_said_to_be_too_few(run, model, release):
    with pytest.warns(UserWarning, match=r"effective sample size below 400: mean \(of the mean 0\), squared"):
        table = run(model, release, keep="summary").summary()
    assert np.all(np.isnan(table.columns["ess_mean"]))


def test_unknown_words_and_what_would_need_memory_are_refused(run, model, release):
    with pytest.raises(ValueError, match="keep: given 'all'; expected 'draws' or 'summary'"):
        run(model, release, keep="all")
    with pytest.raises(ValueError, match="keep: given 'summary' beside `collect`"):
        run(model, release, keep="summary", collect=lambda state: state.latent.statistic)


@pytest.mark.x64
def test_a_slow_chain_is_not_taken_for_a_quick_one():
    """Noise as wide as the sum of 400 records, by sweeps without interweaving: a hundred are worth less than a draw."""
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
    release = dpjax.Release([200.0], dpjax.Laplace(400.0), dpjax.statistics.total("y"), n=400)
    slow = {"num_warmup": 200, "num_samples": 1_500, "interweave": False, "progress": False}
    slow |= {"refresh": False, "until": dpjax.until(ess=100)}
    kept = dpjax.sample(jax.random.key(1), model, release, **slow)
    posterior = dpjax.sample(jax.random.key(1), model, release, keep="summary", **slow)
    assert "not enough for ess=100" in posterior.describe()
    size = posterior.streaming.figures()["mean"]["ess_mean"]
    assert size < 2 * dpjax.diagnostics.ess_mean(kept.draws["mean"])


def exact_mean():
    """The posterior mean of that case, by sums over a grid: a Normal sum, and Laplace noise."""
    grid, scores = np.linspace(-12, 12, 2_001), stats.norm.ppf((np.arange(201) + 0.5) / 201)
    noise = stats.laplace.pdf(200 - (400 * grid[:, None] + 20 * scores), 0, 400).mean(axis=1)
    weights = stats.norm.pdf(grid, 0, 2) * noise
    return float(weights @ grid / weights.sum())


@pytest.mark.slow
def test_errors_where_slow_chains_stop_are_what_they_say():
    """25 keys tell the spread of z to 14 %, and a coverage of 95 % to 4 %; short batches gave 3.96 and 32 %."""
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
    release = dpjax.Release([200.0], dpjax.Laplace(400.0), dpjax.statistics.total("y"), n=400)
    options = {"num_warmup": 500, "num_samples": 60_000, "interweave": False, "refresh": False, "keep": "summary"}
    exact, z, numbers = exact_mean(), [], []
    for seed in range(25):
        enough = dpjax.until(ess=100)
        posterior = dpjax.sample(jax.random.key(seed), model, release, until=enough, progress=False, **options)
        figures = posterior.streaming.figures()["mean"]
        z.append((figures["mean"] - exact) / figures["mcse_mean"])
        numbers.append(posterior.streaming.summary.number)
    spread, covered = np.sqrt(np.mean(np.square(z))), np.mean(np.abs(z) < 1.96)
    record(
        "streaming-chain",
        title="Stopping by streaming summaries",
        what="the mean and its error where slow chains stop at a reported effective size of 100, 25 keys",
        against="the posterior mean by sums over a grid",
        cases=25,
        precisions=["float32" if jax.numpy.ones(()).dtype == np.float32 else "float64"],
        result=f"root mean square z {spread:.2f}, {covered:.0%} of 95 % intervals cover, "
        f"after {np.median(numbers):.0f} draws a chain in the middle",
        command="pytest -m slow tests/mcmc/test_summary_only.py -k slow_chains_stop",
    )
    assert spread < 1.5
    assert covered >= 0.8
