"""Whatever runs on a model and a release runs on their count form: loops, tempering, calibration, coupled chains."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import coupling, models, statistics
from dpjax.data_augmentation.problem import augment
from dpjax.runtime import run as runtime_run
from dpjax.runtime.progress import Progress
from tests.data_augmentation.counts import cases
from tests.data_augmentation.counts.accuracy import check_figures

COUNTS = dpjax.counts(width=8)
MOST_ERRORS = 5.0


def position_of(case: cases.Case, row: int) -> dpjax.data_augmentation.Position:
    """Some parameters, and one of the tables that are possible."""
    possible = case.law.tables[np.isfinite(case.law.log_weights)]
    counts = jnp.asarray(possible[row % len(possible)])
    return dpjax.data_augmentation.Position(case.model.sample_prior(jax.random.key(row)), {"counts": counts[None]})


@pytest.mark.slow
def test_a_loop_of_ones_own_meets_the_oracle() -> None:
    case = cases.build("known margins")
    algorithm = dpjax.gibbs(case.model, case.release, imputation=COUNTS)
    states = [algorithm.init(position_of(case, 100 * chain)) for chain in range(16)]

    @jax.jit
    def run(key: jax.Array, state: dpjax.data_augmentation.GibbsState) -> tuple:
        def step(state: dpjax.data_augmentation.GibbsState, key: jax.Array) -> tuple:
            state, _ = algorithm.step(key, state)
            return state, (state.latent.records["counts"][0], state.parameters["probabilities"])

        return jax.lax.scan(step, state, jax.random.split(key, 2_000))[1]

    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    counts, shares = jax.vmap(run)(jax.random.split(jax.random.key(31), 16), stacked)
    check_figures(np.asarray(counts)[:, 50:], case.figures["counts"])
    check_figures(np.asarray(shares)[:, 50:], case.figures["probabilities"])


def moments_error(result: object, name: str, moments: cases.Moments) -> float:
    """The largest distance of means in standard errors."""
    summary = result.summary()
    return max(
        abs(summary[f"{name}[{k}]"]["mean"] - mean) / summary[f"{name}[{k}]"]["se_mean"]
        for k, mean in enumerate(moments[0])
    )


@pytest.mark.x64
@pytest.mark.parametrize("name", ["skewed", pytest.param("uniform size", marks=pytest.mark.slow)])
def test_marginal_likelihoods_meet_the_oracle(name: str) -> None:
    case, sizes = cases.build(name), {"num_particles": 200, "num_islands": 16, "num_sweeps": 2}
    result = dpjax.sample_smc(jax.random.key(32), case.model, case.release, imputation=COUNTS, **sizes)
    error = result.log_marginal_likelihood_error
    assert error < 0.2
    assert abs(result.log_marginal_likelihood - case.law.log_evidence) < MOST_ERRORS * error
    assert moments_error(result, "probabilities", case.figures["probabilities"]) < MOST_ERRORS


def fullest(parameters: dict, records: dict, release: dpjax.Release) -> dict:
    """A quantity of the table, and one of its noise."""
    counts = records["counts"][0]
    return {"fullest": jnp.max(counts).astype(float), "noise": jnp.sum(jnp.abs(release.value - release.total(records)))}


SMALL = models.categorical(np.array([0.8, 2.0, 1.0, 1.5]))


def small_design(n: object = 20) -> dpjax.Release:
    return dpjax.Release(np.zeros(4), dpjax.DiscreteGaussian(1.5), statistics.cells("cell", 4), n)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table", "unknown size"])
def test_ranks_are_uniform(name: str) -> None:
    n = 20 if name == "table" else dpjax.UnknownCount(models.PoissonCount(15.0))
    lengths = {"num_replicates": 400, "num_samples": 19, "thin": 4, "num_warmup": 50}
    result = dpjax.sbc(jax.random.key(33), SMALL, small_design(n), quantities=fullest, imputation=COUNTS, **lengths)
    assert {"probabilities", "fullest", "noise"} <= set(result.ranks)
    assert min(np.min(p_value) for p_value in result.p_values().values()) > 1e-4


SHORT = {"num_chains": 4, "num_warmup": 50, "num_samples": 60, "progress": False, "imputation": COUNTS}


@pytest.fixture(scope="module")
def skewed() -> dpjax.Posterior:
    """A run whose imputation is left to the sampler."""
    case = cases.build("skewed")
    lengths = {"num_chains": 4, "num_warmup": 50, "num_samples": 2_000}
    return dpjax.sample(jax.random.key(34), case.model, case.release, progress=False, **lengths)


@pytest.mark.x64
def test_counts_are_the_default_where_they_are_cheaper(skewed: dpjax.Posterior) -> None:
    """And say so; another imputation forces records."""
    assert "Counts" in skewed.describe()
    problem = augment(skewed.model, skewed.release, imputation=dpjax.imwg(), allow_counts=True)
    assert "Counts" not in problem.plan.describe()


def test_a_posterior_says_where_parameters_are_integrated_out(skewed: dpjax.Posterior) -> None:
    assert "integrated out" in skewed.describe()
    held = replace(skewed, plan=replace(skewed.plan, imputation=dpjax.counts(8, collapse=False)))
    assert "integrated out" not in held.describe()


@pytest.mark.x64
def test_parameters_that_no_sweep_reads_are_drawn_for_the_draws_kept() -> None:
    """For all chains at once, in one sweep of three; and they are those that every sweep would have drawn."""
    case, drawn = cases.build("skewed"), []

    def counted() -> dpjax.base.ConjugateCounts:
        conjugate = case.model.conjugate()

        def update(key: jax.Array, sums: jax.Array) -> dict:
            jax.debug.callback(lambda: drawn.append(1))
            return conjugate.update(key, sums)

        return conjugate._replace(update=update)

    model = case.model._replace(conjugate=counted)
    run = partial(dpjax.sample, jax.random.key(38), model, case.release, **SHORT | {"num_warmup": 0})
    thinned = run(num_samples=20, thin=3)
    jax.effects_barrier()
    assert len(drawn) == 20
    every = run(num_samples=60)
    for name, draws in thinned.draws.items():
        np.testing.assert_array_equal(draws, every.draws[name][:, 2::3])
    jax.tree.map(np.testing.assert_array_equal, thinned.final_states, every.final_states)


@pytest.mark.x64
def test_no_tuning_is_made_where_no_step_uses_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be a square of the number of cells."""

    def fit(*_: object) -> None:
        raise AssertionError("a tuning was fitted")

    for module in ("dpjax.data_augmentation.sweep", "dpjax.mcmc.sample", "dpjax.mcmc.run", "dpjax.smc.sampler"):
        for name in ("fit_to_prior", "fit_tuning"):
            monkeypatch.setattr(f"{module}.{name}", fit, raising=False)
    case = cases.build("skewed")
    posterior = dpjax.sample(jax.random.key(39), case.model, case.release, **SHORT | {"num_warmup": 64})
    assert posterior.tuning is None
    dpjax.gibbs(case.model, case.release, plan=posterior.plan, tuning=posterior.tuning)
    sizes = {"num_particles": 20, "num_islands": 2, "num_sweeps": 1}
    dpjax.sample_smc(jax.random.key(40), case.model, case.release, imputation=COUNTS, **sizes)


@pytest.mark.x32
def test_predictions_have_the_law_of_new_tables(skewed: dpjax.Posterior) -> None:
    case, posterior = cases.build("skewed"), skewed
    predicted = posterior.predict(jax.random.key(35), num_samples=2_000)
    mean, sd = case.figures["probabilities"]
    variance = cases.N * (mean * (1 - mean) - sd**2) + (cases.N * sd) ** 2 + cases.NOISE**2
    errors = (predicted.values.mean(axis=0) - cases.N * mean) / np.sqrt(variance / 2_000)
    assert np.abs(errors).max() < MOST_ERRORS
    np.testing.assert_allclose(predicted.values.std(axis=0), np.sqrt(variance), rtol=0.1)


@pytest.mark.x64
def test_predictions_cost_no_more_for_a_billion_records(skewed: dpjax.Posterior) -> None:
    """Of a table as large, with the shares of a small one."""
    n = 1_000_000_000
    release = dpjax.Release(np.full(6, n / 6).round(), dpjax.DiscreteGaussian(1_000.0), statistics.cells("cell", 6), n)
    predicted = replace(skewed, release=release).predict(jax.random.key(35), num_samples=100)
    np.testing.assert_allclose(predicted.values.sum(axis=1), n, rtol=1e-4)


@pytest.mark.slow
def test_a_run_is_taken_up_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the same draws; size and counts, which are reported and collected, too."""
    case = cases.build("uniform size")
    options = SHORT | {"imputation": dpjax.counts(), "collect": cases.tally("uniform size")}
    whole = dpjax.sample(jax.random.key(36), case.model, case.release, **options)
    steps = 0

    def advance(self: Progress, made: int, phase: str) -> None:
        nonlocal steps
        steps += made
        if steps > 80:
            raise KeyboardInterrupt

    options["checkpoint"] = tmp_path / "run.npz"
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "advance", advance)
        patch.setattr(runtime_run, "next_length", lambda made, seconds: 7)
        with pytest.warns(UserWarning, match="interrupted after"):
            part = dpjax.sample(jax.random.key(36), case.model, case.release, **options)
    assert part.interrupted
    rest = dpjax.sample(jax.random.key(36), case.model, case.release, **options)
    for name, draws in whole.draws.items():
        np.testing.assert_array_equal(rest.draws[name], draws)
    np.testing.assert_array_equal(rest.collected, whole.collected)
    np.testing.assert_array_equal(rest.draws["num_records"], rest.collected.sum(axis=-1))


def counts_of(position: dpjax.data_augmentation.Position) -> dict:
    return {"counts": position.records["counts"][0].astype(float), "shares": position.parameters["probabilities"]}


@pytest.mark.x32
def test_coupled_chains_meet_and_are_unbiased() -> None:
    case = cases.build("skewed")
    kernel = coupling.coupled_gibbs(case.model, case.release, COUNTS)
    estimates = coupling.unbiased_estimates(
        jax.random.key(37), kernel, counts_of, k=10, m=60, num_pairs=200, max_steps=2_000
    )
    found = estimates.estimate()
    for name, figure in (("counts", "counts"), ("shares", "probabilities")):
        errors = (found.mean[name] - case.figures[figure][0]) / found.standard_error[name]
        assert np.abs(errors).max() < MOST_ERRORS


@pytest.mark.x64
@pytest.mark.parametrize(
    "imputation", [dpjax.counts(8), pytest.param(dpjax.imwg(), marks=pytest.mark.slow)], ids=["counts", "records"]
)
def test_predictions_have_as_many_records_as_their_draws(imputation: dpjax.base.Imputation) -> None:
    number = dpjax.UnknownCount(models.UniformCount(0, 60))
    release = dpjax.Release([11.0, 9.0], dpjax.Gaussian(0.5), dpjax.statistics.cells("cell", 2), number)
    model = models.categorical([1.0, 1.0])
    posterior = dpjax.sample(
        jax.random.key(36), model, release, num_warmup=50, num_samples=200, imputation=imputation, progress=False
    )
    predicted = posterior.predict(jax.random.key(37), num_samples=400).values.sum(axis=1)
    # From the prior of the number, the mean would be 30 with a standard deviation of 17.
    np.testing.assert_allclose(predicted.mean(), posterior.draws["num_records"].mean(), atol=0.5)
    assert predicted.std() < 2
