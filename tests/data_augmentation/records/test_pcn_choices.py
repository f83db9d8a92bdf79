"""What pCN leaves to the warm-up, what ``imputation="auto"`` means, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.problem import augment, tune_plan
from dpjax.data_augmentation.records.imwg import sum_blocks
from dpjax.data_augmentation.records.pcn import CORRELATIONS, candidate_blocks, expected_jump
from dpjax.models.simulation import GibbsState, init_state
from dpjax.runtime.fingerprint import plain_values, restore

N = 64
MODEL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
STATISTIC = statistics.total("y", -4.0, 4.0)
PLAIN = MODEL._replace(noncentred=None)
UNSCORED = MODEL._replace(noncentred=MODEL.noncentred._replace(scores=None))
TILTED = MODEL._replace(noncentred=MODEL.noncentred._replace(log_density=lambda theta, noise: jnp.zeros(N)))


def make_release(scale: float) -> dpjax.Release:
    return dpjax.Release([1.0], dpjax.Laplace(scale), STATISTIC, N)


LOCAL = dpjax.LocalRelease(np.zeros(N), dpjax.Laplace(1.0), field="y")


def states(release: dpjax.Release) -> GibbsState:
    """Eight chains whose statistic is the released value."""
    y = jax.random.normal(jax.random.key(1), (8, N), float)
    y = y - jnp.mean(y, axis=1, keepdims=True) + 1 / N
    return jax.vmap(lambda y: init_state(release, dpjax.data_augmentation.Position({"mean": jnp.zeros(())}, {"y": y})))(
        y
    )


def choose(model: dpjax.Model, scale: float, imputation: object = "auto") -> object:
    release = make_release(scale)
    problem = augment(model, release, imputation)
    return tune_plan(problem, states(release), jax.random.key(2)).imputation


def test_much_noise_gives_large_blocks_of_independent_proposals() -> None:
    chosen = choose(MODEL, 1e4)
    assert chosen.correlation == 0.0
    assert chosen.block >= 16


def test_little_noise_gives_single_records_and_small_steps() -> None:
    chosen = choose(MODEL, 0.02)
    assert chosen.correlation > 0.5
    assert chosen.block <= 4


def test_the_choice_depends_on_its_arguments_alone() -> None:
    assert choose(MODEL, 1.0) == choose(MODEL, 1.0)
    assert choose(MODEL, 1.0, dpjax.pcn(block=3)).block == 3
    assert choose(MODEL, 1.0, dpjax.pcn(correlation=0.7)).correlation == 0.7


@pytest.mark.parametrize("model", [PLAIN, UNSCORED, TILTED], ids=["no noise", "no scores", "noise not free"])
def test_proposals_are_independent_where_there_is_no_standard_noise(model: dpjax.Model) -> None:
    assert choose(model, 0.02).correlation == 0.0


def test_auto_of_a_local_release_is_the_exact_update() -> None:
    assert augment(MODEL, LOCAL, "auto").plan.imputation == dpjax.imwg()
    assert augment(MODEL, make_release(1.0), "auto").plan.imputation == dpjax.pcn()
    assert augment(MODEL, make_release(1.0)).plan.imputation == dpjax.imwg()
    few = dpjax.Release([1.0], dpjax.Laplace(1.0), STATISTIC, 20)
    assert augment(MODEL, few, "auto").plan.imputation == dpjax.imwg()


def test_a_checkpoint_restores_the_choice() -> None:
    plan = SweepPlan(dpjax.pcn(), True, None)
    adapted = SweepPlan(dpjax.pcn(8, 0.95), True, None)
    assert restore(plan, plain_values(adapted)) == adapted


@pytest.mark.x64
def test_auto_runs_and_repeats_itself() -> None:
    options = {"num_chains": 2, "num_warmup": 60, "num_samples": 40, "progress": False, "imputation": "auto"}
    first, second = (dpjax.sample(jax.random.key(3), MODEL, make_release(0.5), **options) for _ in range(2))
    np.testing.assert_array_equal(first.draws["mean"], second.draws["mean"])
    assert 0.1 < first.info["acceptance_rate"].mean() <= 1.0


def test_expected_jump_is_the_average_over_acceptances() -> None:
    release = dpjax.Release([1.7], dpjax.Laplace(0.7), STATISTIC, N)  # off the sum, where the sign of a change counts
    state = jax.tree.map(lambda leaf: leaf[0], states(release))
    changes = jax.random.normal(jax.random.key(4), (1, N), float)
    for block in (1, 3):
        summed = [float(jnp.sum(changes[0, start : start + block])) for start in range(0, N, block)]
        residual = float(release.value[0] - state.latent.statistic[0])
        ratios = [min(1.0, np.exp((abs(residual) - abs(residual - change)) / 0.7)) for change in summed]
        jump = expected_jump(release, state.latent, sum_blocks(changes, block), jnp.full(1, 3.0))
        np.testing.assert_allclose(jump, 3.0 * np.dot(ratios, np.square(summed)), rtol=1e-4)


@pytest.mark.parametrize(("n", "blocks"), [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (999, (1, 2, 4, 8, 16, 32, 64))])
def test_candidate_blocks(n: int, blocks: tuple[int, ...]) -> None:
    assert candidate_blocks(n) == blocks
    assert CORRELATIONS[0] == 0.0


@pytest.mark.parametrize(("model", "release", "imputation", "error", "message"), [
    (MODEL, make_release(1.0), "auto", ValueError, "imputation: given 'auto'; .* only the warm-up of dpjax.sample"),
    (MODEL, make_release(1.0), dpjax.pcn(), ValueError, r"imputation: given PCN\(.*; expected fixed numbers"),
    (MODEL, make_release(1.0), dpjax.soma("auto"), ValueError, r"imputation: given SOMA\(.*; expected fixed numbers"),
    (MODEL, make_release(1.0), dpjax.pcn(65, 0.0), ValueError, r"block: given 65; expected a whole number in 1\.\.64"),
    (MODEL, LOCAL, dpjax.pcn(2, 0.0), TypeError, r"imputation: given pcn.* LocalRelease; .* use dpjax.imwg\(\)"),
    (PLAIN, make_release(1.0), dpjax.pcn(2, 0.5), ValueError, "correlation: given 0.5; expected 0, .* `scores`"),
    (UNSCORED, make_release(1.0), dpjax.pcn(2, 0.5), ValueError, "correlation: given 0.5; expected 0"),
    (TILTED, make_release(1.0), dpjax.pcn(2, 0.5), ValueError, "correlation: given 0.5; expected 0"),
])  # fmt: skip
def test_misfits_are_refused(model: object, release: object, imputation: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        dpjax.gibbs(model, release, imputation=imputation)


@pytest.mark.parametrize("name", ["block", "correlation"])
def test_an_open_choice_makes_no_kernel(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: given 'auto'; expected a number .* dpjax.sample tunes it"):
        dpjax.pcn(**({"block": 2, "correlation": 0.5} | {name: "auto"}))(MODEL, make_release(1.0))


@pytest.mark.parametrize(("choices", "message"), [
    ({"block": 0}, "block: given 0; expected a whole number"),
    ({"block": 2.5}, "block: given 2.5 .* Pass a whole number in 1..n or 'auto'"),
    ({"correlation": 1.0}, r"correlation: given 1.0; expected a number in \[0, 1\)"),
    ({"correlation": "some"}, "correlation: given 'some'; expected a number"),
    ({"correlation": float("nan")}, "correlation: given nan"),
])  # fmt: skip
def test_bad_choices_are_refused(choices: dict, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        dpjax.pcn(**choices)
