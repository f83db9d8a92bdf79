"""The composed sampler: its contract with BlackJAX, what it refuses, and that new data never recompile."""

import pickle

import blackjax
import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.records.soma import candidate_sizes, choose_attempts, expected_acceptance

N = 6
MODEL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
RELEASE = dpjax.Release([1.0], dpjax.Laplace(2.0), statistics.total("y", -3.0, 3.0), N)


@pytest.mark.x64
def test_runs_unchanged_in_a_blackjax_loop() -> None:
    algorithm = dpjax.gibbs(MODEL, RELEASE, imputation=dpjax.soma(attempts=2))
    key = jax.random.key(3)
    final, (states, infos) = blackjax.util.run_inference_algorithm(key, algorithm, 20, initial_position={"mean": 0.3})
    assert states.parameters["mean"].shape == (20,)
    assert infos.imputation.accepted.shape == (20, N)
    np.testing.assert_allclose(final.latent.statistic, RELEASE.total(final.latent.records), rtol=1e-5)


def test_a_position_keeps_its_records() -> None:
    records = {"y": jnp.linspace(-1.0, 1.0, N)}
    algorithm = dpjax.gibbs(MODEL, RELEASE)
    state = algorithm.init(dpjax.data_augmentation.Position({"mean": jnp.array(0.3)}, records))
    np.testing.assert_array_equal(state.latent.records["y"], records["y"])
    state, info = jax.jit(algorithm.step)(jax.random.key(1), state)
    assert 0.0 <= float(info.imputation.acceptance_rate) <= 1.0
    assert int(info.interweaving.num_shrink) >= 2


def test_known_parameters_are_checked_under_jit() -> None:
    algorithm = dpjax.gibbs(MODEL, RELEASE, interweave=False)
    states = jax.jit(lambda key: algorithm.init({"mean": jnp.array(0.3)}, key))(jax.random.key(1))
    assert states.parameters["mean"] == pytest.approx(0.3)


def test_records_need_a_key() -> None:
    with pytest.raises(ValueError, match=r"rng_key: given None; expected a key, to draw the records"):
        dpjax.gibbs(MODEL, RELEASE).init({"mean": jnp.array(0.3)})


class Unhashable:
    """A callable that no compiled program can be found again for."""

    __hash__ = None

    def __call__(self, *arguments: object) -> None:
        raise AssertionError


NO_NONCENTRED = MODEL._replace(noncentred=None)
TABLE = dpjax.Release([1.0, 2.0], dpjax.Laplace(2.0), statistics.cells("cell", 2), N)
LARGER = dpjax.Release([1.0, 2.0, 3.0], dpjax.Laplace(2.0), statistics.cells("cell", 3), N)
PAIR = models.categorical(np.ones(2))
NEVER = "release: given a table of 3 categories of 'cell', of which no record of the model takes 2"


@pytest.mark.parametrize(("model", "release", "choices", "error", "message"), [
    (MODEL, RELEASE, {"imputation": dpjax.soma(attempts=7)}, ValueError, r"attempts: given 7; expected .* 1\.\.6"),
    (MODEL, RELEASE, {"imputation": Unhashable()}, TypeError, "imputation: given .*; expected a hashable function"),
    (MODEL, RELEASE, {"imputation": 3}, TypeError, "imputation: given 3; expected a hashable function"),
    (MODEL, RELEASE, {"parameter_kernel": 3}, TypeError, "parameter_kernel: given 3; expected a hashable function"),
    (NO_NONCENTRED, RELEASE, {"interweave": True}, ValueError, "interweave: given True; expected .* non-centred form"),
    (MODEL, TABLE, {}, ValueError, "cell"),
    (PAIR, LARGER, {}, ValueError, NEVER),
    (PAIR, dpjax.joint(TABLE, LARGER), {}, ValueError, NEVER),
    (RELEASE, MODEL, {}, TypeError, r"release: given \w+; expected a Release"),
])  # fmt: skip
def test_misfits_are_refused(model: object, release: object, choices: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        dpjax.gibbs(model, release, **choices)


def test_a_table_may_leave_out_some_values_of_its_field() -> None:
    dpjax.gibbs(models.categorical(np.ones(3)), TABLE)


@pytest.mark.parametrize("attempts", [0, -1, 2.0, "some", True])
def test_attempts_are_a_whole_number(attempts: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"attempts: given .*1\.\.n, 'auto' or None"):
        dpjax.soma(attempts)


def test_scan_has_two_names() -> None:
    with pytest.raises(ValueError, match="scan: given 'cyclic'; expected 'systematic' or 'random'"):
        dpjax.imwg(scan="cyclic")


def test_interweaving_is_the_default_where_there_is_a_noncentred_form() -> None:
    assert augment(MODEL, RELEASE).plan.interweave
    assert not augment(NO_NONCENTRED, RELEASE).plan.interweave


@pytest.mark.x64
def test_new_data_of_the_same_shape_never_recompile(compilations: list[str]) -> None:
    """A second run, under the counter, may trace for the checks of shapes alone, which compile nothing."""
    options = {"num_chains": 2, "num_warmup": 80, "num_samples": 20, "progress": False}

    def run(value: float, scale: float, seed: int) -> None:
        release = dpjax.Release([value], dpjax.Laplace(scale), RELEASE.statistic, N)
        dpjax.sample(jax.random.key(seed), MODEL, release, **options)

    run(1.0, 2.0, 1)
    compilations.clear()
    run(2.0, 1.0, 2)
    run(-3.0, 0.5, 3)
    assert compilations == []


def test_expected_acceptance_is_the_average_of_equation_8() -> None:
    log_weights, log_current = np.array([-1.0, 0.5, -3.0, 2.0]), 1.0
    for size, rate in zip(
        (1, 2, 4), expected_acceptance(jnp.asarray(log_weights), log_current, (1, 2, 4)), strict=True
    ):
        weights = np.exp(log_weights[:size])
        total = weights.sum()
        alpha = np.minimum(1.0, total / (total + np.exp(log_current) - weights))
        np.testing.assert_allclose(rate, np.sum(weights / total * alpha), rtol=1e-5)


@pytest.mark.parametrize(
    ("n", "sizes"), [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (5_000, tuple(2**k for k in range(11)))]
)
def test_candidate_sizes(n: int, sizes: tuple[int, ...]) -> None:
    assert candidate_sizes(n) == sizes


@pytest.mark.x64
@pytest.mark.parametrize(("scale", "least", "most"), [(1e6, 1, 1), (1e-3, 2, N)])
def test_chosen_attempts_grow_as_the_noise_shrinks(scale: float, least: int, most: int) -> None:
    release = dpjax.Release([1.0], dpjax.Laplace(scale), RELEASE.statistic, N)
    keys = jax.random.split(jax.random.key(4), 32)
    records = {"y": jax.random.normal(jax.random.key(5), (32, N))}
    records = {"y": records["y"] - jnp.mean(records["y"], axis=1, keepdims=True) + 1 / N}
    state = jax.vmap(
        lambda r: dpjax.gibbs(MODEL, release).init(dpjax.data_augmentation.Position({"mean": jnp.zeros(())}, r))
    )(records)
    chosen = choose_attempts(keys[0], MODEL, release, state.latent, state.parameters)
    assert least <= chosen <= most


@pytest.mark.x64
def test_the_sweep_of_a_run_is_kept_and_taken_up() -> None:
    sizes = {"num_chains": 2, "num_warmup": 64, "num_samples": 5, "progress": False}
    posterior = dpjax.sample(jax.random.key(1), MODEL, RELEASE, imputation=dpjax.soma("auto"), **sizes)
    plan = posterior.plan
    assert isinstance(plan.imputation.attempts, int)
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert posterior.describe().startswith(f"2 chains of 5 draws of mean\n{plan.describe()}, 16 sweeps and ")
    assert f"imputation: {plan.imputation!r}\ninterweaving: on" in plan.describe()
    assert plan.describe().endswith("parameters given records: the model's exact update\nrefreshes: on")
    tuned = {"tuning": posterior.tuning}
    taken = dpjax.gibbs(MODEL, RELEASE, plan=plan, **tuned)
    same = dpjax.gibbs(MODEL, RELEASE, plan.imputation, interweave=True, **tuned)
    state = jax.tree.map(lambda leaf: leaf[0], posterior.final_states)
    chex.assert_trees_all_equal(*(jax.jit(sampler.step)(jax.random.key(2), state) for sampler in (taken, same)))
