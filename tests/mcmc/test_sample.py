"""`sample` draws from the exact posterior, the same draws however a run is cut, and compiles once."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import diagnostics
from dpjax.data_augmentation.parameters import initial_tuning
from dpjax.data_augmentation.problem import augment
from dpjax.mcmc import run as mcmc_run
from dpjax.mcmc.run import Kernel, PosteriorRun, make_schedule, split_key
from dpjax.runtime.chunk import MAX_CAPACITY


@pytest.mark.keys
def test_draws_agree_with_the_exact_posterior(posterior, exact):
    draws = posterior.draws["mean"]
    assert draws.shape == (4, 1_000)
    assert abs(draws.mean() - exact.mean) < 5 * diagnostics.mcse_mean(draws)
    assert abs(draws.std() - exact.sd) < 5 * diagnostics.mcse_sd(draws)


def test_chains_have_keys_of_their_own():
    """Chains that share a key come together from any starts, and still have the posterior each."""
    keys = jax.random.key_data(split_key(jax.random.key(1), 4).chains)
    assert len(np.unique(keys, axis=0)) == 4
    np.testing.assert_array_equal(keys[:2], jax.random.key_data(split_key(jax.random.key(1), 2).chains))


@pytest.mark.x64
def test_draws_of_another_release_are_told_apart(run, model, make_release, exact):
    """The test above can fail: it rejects draws made for a value half a noise sd away."""
    draws = run(model, make_release(18.0), num_warmup=200, num_samples=1_000).draws["mean"]
    assert abs(draws.mean() - exact.mean) > 5 * diagnostics.mcse_mean(draws)


@pytest.mark.parametrize("length", [1, 7, 10**6])
def test_draws_do_not_depend_on_the_chunks(monkeypatch, run, model, release, assert_same, length):
    monkeypatch.setattr("dpjax.runtime.run.next_length", lambda made, seconds: length)
    one = run(model, release)
    monkeypatch.undo()
    assert_same(one, run(model, release))


def test_thinning_keeps_every_third_draw_of_the_same_chains(run, model, release):
    every, third = run(model, release), run(model, release, num_samples=20, thin=3)
    chex.assert_trees_all_equal(third.draws, jax.tree.map(lambda leaf: leaf[:, 2::3], every.draws))
    chex.assert_trees_all_equal(third.final_states, every.final_states)
    by_draw = {name: leaf.reshape(4, 20, 3) for name, leaf in every.info.items() if leaf.shape == (4, 60)}
    np.testing.assert_allclose(third.info["acceptance_rate"], by_draw["acceptance_rate"].mean(2), rtol=1e-6)
    np.testing.assert_array_equal(third.info["num_nonfinite"], by_draw["num_nonfinite"].sum(2))
    same = "acceptance_rate_per_record"
    np.testing.assert_array_equal(third.info[same], every.info[same])


@pytest.mark.x64
def test_many_records_are_swept_one_chain_after_another(monkeypatch, run, model, release):
    """Which changes draws by rounding alone; a function to collect that is new makes the program anew."""
    few = {"num_warmup": 0, "num_samples": 5}
    together = run(model, release, **few)
    monkeypatch.setattr(mcmc_run, "MANY_BYTES", 1)
    in_turn = run(model, release, **few, collect=lambda state: None)
    rounding = np.sqrt(np.finfo(together.draws["mean"].dtype).eps)
    chex.assert_trees_all_close(in_turn.draws, together.draws, rtol=rounding)


def test_reports(posterior):
    rate, per_record = posterior.info["acceptance_rate"], posterior.info["acceptance_rate_per_record"]
    assert rate.shape == (4, 1_000)
    assert per_record.shape == (4, 20)
    # A sweep of IMwG makes one proposal to each record, so both count the same acceptances.
    np.testing.assert_allclose(per_record.mean(1), rate.mean(1), rtol=1e-6)
    assert 0 < rate.mean() < 1
    assert not np.any(posterior.info["num_nonfinite"])


@pytest.mark.x64
def test_records_are_kept_only_on_request(run, model, release):
    plain = run(model, release)
    assert plain.collected is None
    assert sum(leaf.nbytes for leaf in plain.draws.values()) == 2 * plain.draws["mean"].nbytes
    kept = run(model, release, collect=total_of_records, num_samples=20, thin=3)
    assert kept.collected["records"].shape == (4, 20, 20)
    # Twenty records of a few units, whose sum may be near 0, are added in another order.
    rounding = 100 * np.finfo(kept.collected["statistic"].dtype).eps
    np.testing.assert_allclose(kept.collected["records"].sum(2), kept.collected["statistic"], rtol=1e-5, atol=rounding)
    np.testing.assert_array_equal(kept.collected["statistic"][:, -1:], kept.final_states.latent.statistic)


def total_of_records(state):
    return {"records": state.latent.records["y"], "statistic": state.latent.statistic[0]}


def test_new_values_of_the_same_shapes_compile_nothing(run, model, make_release, compilations):
    run(model, make_release(1.0), seed=1, num_samples=40)
    compilations.clear()
    run(model, make_release(2.0), seed=2, num_samples=70, thin=2)
    assert compilations == []


OTHERS = {
    "one of several proposals": lambda release: (release, {"imputation": dpjax.soma(4)}),
    "a kernel that is tuned": lambda release: (release, {"parameter_kernel": "mala"}),
    "kept by the user": lambda release: (release, {"collect": total_of_records}),
    "one value a record": lambda release: (
        dpjax.LocalRelease(jnp.zeros(20), dpjax.Laplace(1.0), "y"),
        {},
    ),
}


@pytest.mark.x64
@pytest.mark.parametrize("name", OTHERS)
def test_what_is_compiled_beside_the_search_for_starts_is_what_runs(run, model, release, compilations, name):
    """Were it another program, however little, the longest compilation would be made twice."""
    released, options = OTHERS[name](release)
    new = model._replace(update=lambda *given: model.update(*given))
    run(new, released, **options)
    assert compilations.count("jit(advance_chains)") == 1


def hold(key, parameters, records):
    return parameters


@pytest.mark.x64
def test_the_kernel_is_traced_once_and_runs_start_at_the_initial_parameters(monkeypatch, run, model, make_release):
    monkeypatch.setattr(mcmc_run, "build_sweep", chex.assert_max_traces(mcmc_run.build_sweep, n=1))
    held = model._replace(update=hold, noncentred=None, derived=None)
    for shift in range(3):
        start = np.array([-1.0, 0.0, 1.0, 2.0]) + shift
        posterior = run(held, make_release(5.0 * shift), initial={"mean": start}, num_warmup=0, num_samples=3 + shift)
        np.testing.assert_array_equal(posterior.draws["mean"], np.repeat(start[:, None], 3 + shift, axis=1))


def test_the_memory_of_a_chunk_is_bounded(model, release):
    def large(state):
        return jnp.zeros(10**6)

    shapes = run_of(model, release).state_shapes
    assert mcmc_run.choose_capacity(model, None, shapes) == MAX_CAPACITY
    assert mcmc_run.choose_capacity(model, large, shapes) == 1


def test_the_draws_of_a_chunk_do_not_grow_with_the_records(model, release, make_release):
    """With a million records the chains carry them once, and the buffers hold parameters and scalar reports only."""
    large, small = (chunk_shapes(model, make_release(n=n)) for n in (10**6, 20))
    assert size_of(large[1]) == size_of(small[1]) < 2**20
    assert size_of(large[0]) < 4 * 10**6 * (8 + 4 + 1)


def chunk_shapes(model, release):
    """The shapes of what a chunk returns."""
    run = run_of(model, release)
    kernel = Kernel(run.problem.plan, initial_tuning(jax.random.key(0), model))
    status = run.open_segment(0, kernel, run.state_shapes)
    return mcmc_run.run_chunk.eval_shape(*run.static(status), **run.arguments(status, 1))


def run_of(model, release):
    """A run of ten draws of four chains."""
    settings = {"keys": split_key(jax.random.key(0), 4), "schedule": make_schedule(0, 10, 1)}
    return PosteriorRun(problem=augment(model, release), collect=None, **settings)


def size_of(shapes):
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
