"""Programs of tables are compiled once: for all numbers in priors, and in calls that are the same."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import dpjax
from dpjax.data_augmentation.counts import count_form
from dpjax.data_augmentation.counts.counts import MAX_WIDTH, expect_spreads, fit_width, measure
from dpjax.data_augmentation.counts.table import table_of

RELEASE = dpjax.Release([12.0, 30.0, 8.0], dpjax.DiscreteLaplace(2.0), dpjax.statistics.cells("cell", 3), 50)
IMPUTATION = dpjax.counts(width=16)

MOST_PROGRAMS = 32
"""Of a first call for a table: a dozen, and conversions of what the user passes."""


def run(model: dpjax.Model, imputation: dpjax.base.Imputation | None = IMPUTATION) -> np.ndarray:
    posterior = dpjax.sample(
        jax.random.key(3), model, RELEASE, num_chains=2, num_warmup=8, num_samples=8, imputation=imputation
    )
    return posterior.draws["probabilities"]


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*effective sample size", "ignore:R-hat")
@pytest.mark.parametrize("imputation", [IMPUTATION, dpjax.counts(width=16, collapse=False), None])
def test_other_numbers_in_the_prior_and_the_same_call_compile_nothing(imputation, compilations):
    run(dpjax.models.categorical([1.0, 1.0, 1.0]), imputation)
    before = list(compilations)
    assert before
    run(dpjax.models.categorical([1.0, 1.0, 1.0]), imputation)
    assert compilations == before
    run(dpjax.models.categorical([2.5, 0.5, 7.0]), imputation)
    assert compilations == before


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*effective sample size", "ignore:R-hat")
def test_a_first_call_compiles_few_programs(compilations):
    """Starts, width and chains have a program each; operations one by one had a hundred between them."""
    jax.clear_caches()
    run(dpjax.models.categorical([1.0, 1.0, 1.0]), None)
    assert {"jit(propose)", "jit(states_at)", "jit(spreads_at)", "jit(advance_chains)"} <= set(compilations)
    assert len(compilations) <= MOST_PROGRAMS


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*effective sample size", "ignore:R-hat")
@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_the_program_of_the_chains_is_compiled_once_while_starts_are_sought(scale, compilations):
    model, statistic = dpjax.models.categorical([1.0] * 4), dpjax.statistics.cells("cell", 4)
    release = dpjax.Release([150.0, 300.0, 150.0, 400.0], dpjax.DiscreteLaplace(scale), statistic, 1_000)
    jax.clear_caches()
    compilations.clear()
    posterior = dpjax.sample(jax.random.key(3), model, release, num_chains=2, num_warmup=64, num_samples=8)
    assert compilations.count("jit(advance_chains)") == 1
    assert posterior.plan.imputation.width == {1.0: 8, 40.0: MAX_WIDTH}[scale]


@pytest.mark.x64
@pytest.mark.parametrize("collapsed", [True, False])
def test_spreads_expected_without_a_state_are_those_of_cells_of_equal_size(collapsed):
    """Under Gaussian noise far narrower and far wider than the sampling error of cells with 100,000 records each."""
    model = dpjax.models.categorical([1.0] * 4)
    for scale in (3.0, 20.0):
        statistic = dpjax.statistics.cells("cell", 4)
        release = dpjax.Release([1e5] * 4, dpjax.Gaussian(scale), statistic, 400_000)
        formed = count_form(model, release)
        parameters = {"probabilities": jnp.full((1, 4), 0.25)}
        exact = measure(*formed, collapsed, jnp.full((1, 1, 4), 100_000), parameters)
        expected = expect_spreads(table_of(formed[1]), formed[1], collapsed)
        for one, other in zip(expected, exact, strict=True):
            np.testing.assert_allclose(one, other, rtol=0.01)


@pytest.mark.x64
def test_nothing_is_expected_of_noise_whose_variance_is_not_known():
    model, statistic = dpjax.models.categorical([1.0] * 3), dpjax.statistics.cells("cell", 3)
    release = dpjax.Release([10.0, 30.0, 10.0], dpjax.Rounded(dpjax.DiscreteLaplace(2.0), 5.0), statistic, 50)
    _, counted = count_form(model, release)
    assert expect_spreads(table_of(counted), counted, collapsed=True) == []


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*effective sample size", "ignore:R-hat")
def test_the_same_call_for_a_numpyro_model_compiles_nothing(compilations):
    def program(n: int) -> None:
        share = numpyro.sample("share", dist.Normal(0.0, 1.0))
        with numpyro.plate("people", n):
            logits = jnp.broadcast_to(jnp.stack([jnp.zeros_like(share), share]), (n, 2))
            numpyro.sample("cell", dist.Categorical(logits=logits))

    model = dpjax.from_numpyro(program, ["cell"])
    release = dpjax.Release([20.0], dpjax.Laplace(2.0), dpjax.statistics.grouped("cell", [-1, 0]), 5_000)
    options = {"num_chains": 2, "num_warmup": 8, "num_samples": 8, "imputation": dpjax.counts(width=16)}
    first = dpjax.sample(jax.random.key(3), model, release, **options)
    compilations.clear()
    second = dpjax.sample(jax.random.key(3), model, release, **options)
    assert compilations == []
    np.testing.assert_array_equal(first.draws["share"], second.draws["share"])


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*effective sample size", "ignore:R-hat")
def test_numbers_are_those_of_the_model_and_not_of_the_program(compilations):
    """A mutation would be a program that keeps the first prior: here one that holds the first cell at 1."""
    run(dpjax.models.categorical([1.0, 1.0, 1.0]))
    shared = run(dpjax.models.categorical([1e6, 1.0, 1.0]))
    assert np.all(shared[..., 0] > 0.999)
    compilations.clear()
    jax.clear_caches()
    np.testing.assert_array_equal(run(dpjax.models.categorical([1e6, 1.0, 1.0])), shared)
    assert compilations


@pytest.mark.x64
def test_a_cell_that_the_model_makes_impossible_is_still_found() -> None:
    def program(n: int) -> None:
        share = numpyro.sample("share", dist.Beta(1.0, 1.0))
        with numpyro.plate("people", n):
            first = numpyro.sample("first", dist.Categorical(jnp.broadcast_to(jnp.stack([1 - share, share]), (n, 2))))
            numpyro.sample("second", dist.Categorical(jnp.array([[1.0, 0.0], [0.5, 0.5]])[first]))

    model = dpjax.from_numpyro(program, ["first", "second"])
    statistic = dpjax.statistics.cells(("first", "second"), (2, 2))
    release = dpjax.Release([10.0, 1.0, 8.0, 9.0], dpjax.Laplace(1.0), statistic, 28)
    _, counted = dpjax.data_augmentation.counts.count_form(model, release)
    assert counted.statistic.table.impossible.tolist() == [False, True, False, False]


def test_moves_without_a_spread_leave_the_width_to_others() -> None:
    assert fit_width(np.array([np.nan, 3.0])) == fit_width(np.array([3.0]))
    assert fit_width(np.array([np.nan])) == fit_width(np.zeros(0))


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*effective sample size", "ignore:R-hat")
def test_a_table_that_is_known_is_kept() -> None:
    """Nothing moves but the parameters, whose posterior is known."""
    release = dpjax.Release([12.0, 30.0, 8.0], dpjax.Exact(), RELEASE.statistic, 50)
    model = dpjax.models.categorical([1.0, 1.0, 1.0])
    draws = dpjax.sample(jax.random.key(1), model, release, num_warmup=8, num_samples=500).draws["probabilities"]
    expected, variance = np.array([13, 31, 9]) / 53, 13 / 53 * 40 / 53 / 54
    assert np.all(np.abs(draws.mean(axis=(0, 1)) - expected) < 5 * np.sqrt(variance * 1.6 / draws[..., 0].size))


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*effective sample size", "ignore:R-hat")
def test_a_kernel_can_be_built_within_a_program() -> None:
    model = dpjax.models.categorical([1.0, 2.0, 3.0])

    @jax.jit
    def draw(key: jax.Array) -> jax.Array:
        algorithm = dpjax.gibbs(model, RELEASE, IMPUTATION)
        position = dpjax.data_augmentation.Position(model.sample_prior(key), {"counts": jnp.array([[12, 30, 8]])})
        return algorithm.step(key, algorithm.init(position))[0].parameters["probabilities"]

    assert abs(float(jnp.sum(draw(jax.random.key(1)))) - 1) < 1e-5
    assert np.all(np.isfinite(run(model)))  # nothing of that program is left where the model is looked up again
