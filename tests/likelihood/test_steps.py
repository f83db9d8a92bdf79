"""The deterministic parts: derivatives, steps, jackknife and ends of intervals; and the move that keeps a law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models
from dpjax.base import Latent
from dpjax.likelihood.imputed import build_derivatives, build_move, decide_refresh
from dpjax.likelihood.intervals import find_ends, wald_ends
from dpjax.likelihood.newton import Constraint, LastStep, Moments, jackknife, leave_one_out, solve
from dpjax.models.simulation import init_latent

RNG = np.random.default_rng(3)
NORMAL = models.normal(models.NormalPrior(0.0, 2.0), variance=models.InverseGammaPrior(2.0, 2.0))


@pytest.mark.x64
def test_derivatives_of_normal_records_in_closed_form() -> None:
    y, mean, log_variance = RNG.normal(size=7), 0.4, -0.3
    found = build_derivatives(NORMAL)(jnp.array([mean, log_variance]), {"y": jnp.asarray(y)})
    precision, off = np.exp(-log_variance), y - mean
    squares = precision * np.sum(off**2) / 2
    score = np.array([precision * off.sum(), squares - 3.5])
    curvature = np.array([[7 * precision, precision * off.sum()], [precision * off.sum(), squares]])
    np.testing.assert_allclose(found.score, score, atol=1e-10)
    np.testing.assert_allclose(found.square, np.outer(score, score), atol=1e-10)
    np.testing.assert_allclose(found.curvature, curvature, atol=1e-10)


@pytest.mark.x64
def test_records_without_a_summary_have_the_same_derivatives() -> None:
    records, vector = {"y": jnp.asarray(RNG.normal(size=5))}, jnp.array([0.4, -0.3])
    plain = NORMAL._replace(summarize=None, log_likelihood=None)
    for one, other in zip(*(build_derivatives(model)(vector, records) for model in (NORMAL, plain)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def moments(size: int = 3) -> Moments:
    """Moments [2, ...] of two releases with positive definite information."""
    curvature = np.stack([np.eye(size) * 4 + 0.3 * np.ones((size, size))] * 2)
    score = RNG.normal(size=(2, size))
    square = curvature * 0.4 + score[:, :, None] * score[:, None]
    return Moments(score, square, curvature, curvature, np.zeros(2))


def test_a_free_step_is_newtons() -> None:
    mean = moments()
    found = solve(mean, Constraint(np.zeros((2, 3)), np.zeros(2)), np.full(2, 1e-6))
    information = 0.6 * mean.curvature
    np.testing.assert_allclose(found.covariance, np.linalg.inv(information), atol=1e-10)
    np.testing.assert_allclose(found.change, np.linalg.solve(information, mean.score[..., None])[..., 0], atol=1e-10)
    np.testing.assert_allclose(found.shares, 0.6, atol=1e-10)
    np.testing.assert_allclose(np.swapaxes(found.steps, 1, 2) @ found.steps, found.covariance, atol=1e-10)


def test_a_step_that_holds_a_quantity_solves_its_equations() -> None:
    """A δ + λ a = S and a'δ = r, solved as one system."""
    mean, gradient, missing = moments(), RNG.normal(size=(2, 3)), np.array([0.3, -0.2])
    found = solve(mean, Constraint(gradient, missing), np.full(2, 1e-6))
    for row in range(2):
        system = np.block(
            [[0.6 * mean.curvature[row], gradient[row][:, None]], [gradient[row][None], np.zeros((1, 1))]]
        )
        exact = np.linalg.solve(system, np.append(mean.score[row], missing[row]))
        np.testing.assert_allclose(found.change[row], exact[:3], atol=1e-10)
        np.testing.assert_allclose(found.multiplier[row], exact[3], atol=1e-10)


def test_a_bound_keeps_the_step_short_where_nothing_is_known() -> None:
    mean = moments()
    mean = mean._replace(square=mean.curvature + mean.score[:, :, None] * mean.score[:, None])
    found = solve(mean, Constraint(np.zeros((2, 3)), np.zeros(2)), np.full(2, 0.5))
    expected = 2 * np.linalg.solve(mean.curvature, mean.score[..., None])[..., 0]
    np.testing.assert_allclose(found.change, expected, atol=1e-10)


def test_a_step_too_far_is_cut_where_the_slope_is_zero() -> None:
    """On a parabola of curvature 2 with a step four times too long, the next one ends at the maximum."""
    origin, change = np.zeros((1, 1)), np.full((1, 1), 4.0)
    trail = LastStep(origin, change, np.array([4.0 * 2.0]))
    solution = solve(moments(1), Constraint(np.zeros((2, 1)), np.zeros(2)), np.full(2, 1e-6))
    solution = solution._replace(slope=np.full((1, 1), 2.0 - 2 * 4.0), change=np.full((1, 1), -9.0))
    assert trail.next(origin + change, solution, np.array([True])).end() == pytest.approx(1.0)
    assert trail.next(origin + change, solution, np.array([False])).end() == pytest.approx(-5.0)


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    groups = RNG.normal(size=(1, 12, 2))
    zero = np.zeros((1, 12, 2, 2))
    replicates = leave_one_out(Moments(groups, zero, zero, zero, np.zeros((1, 12)))).score
    np.testing.assert_allclose(jackknife(replicates)[0], stats.sem(groups[0], axis=0), atol=1e-12)
    assert jackknife(np.ones((1, 3))).tolist() == [0.0, 0.0, 0.0]


def test_ends_of_a_parabola() -> None:
    """With slope −(x − 1) / 4 the log-likelihood has fallen by 2 at 1 ± 4."""
    held = np.array([-6.0, -3.0, 0.0, 2.0, 4.0, 7.0])
    np.testing.assert_allclose(find_ends(1.0, held, -(held - 1) / 4, 2.0), (-3.0, 5.0), atol=1e-6)
    assert find_ends(1.0, held, -(held - 1) / 400, 2.0) == (-np.inf, np.inf)
    # A slope of another sign would be noticed.
    assert find_ends(1.0, held, (held - 1) / 4, 2.0) == (-np.inf, np.inf)


def test_wald_ends_have_the_errors_of_both_parts() -> None:
    replicates = np.array([[1.0], [1.2], [0.8]]), np.array([[0.5], [0.6], [0.4]])
    ends = wald_ends(np.ones(1), np.full(1, 0.5), replicates, 0.9)
    factor = stats.norm.ppf(0.95)
    assert ends.lower == pytest.approx(1 - factor * 0.5)
    assert ends.mcse_upper == pytest.approx(jackknife(np.array([1.0, 1.2, 0.8]) + factor * np.array([0.5, 0.6, 0.4])))


def first(record: dict) -> jax.Array:
    return record["y"][None]


@pytest.mark.keys
def test_the_move_keeps_the_noise_as_it_is() -> None:
    """From records and a release drawn together the implied noise stays Laplace; new records taken always would not."""
    model, parameters = models.normal(models.NormalPrior(0.0, 1.0), 1.0), {"mean": jnp.asarray(0.3)}
    release = dpjax.Release([0.0], dpjax.Laplace(1.0), first, 4)

    def chain(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        record_key, release_key, move_key, wrong_key = jax.random.split(key, 4)
        records = model.sample_records(record_key, parameters, 4)
        released = release.sample(release_key, records)
        move = build_move(model, released, dpjax.imwg(), refresh=True)
        latent = init_latent(released, records)
        for one in jax.random.split(move_key, 2):
            latent = move(one, latent, parameters)
        proposed = init_latent(released, model.sample_records(wrong_key, parameters, 4))
        wrong = decide_refresh(latent, proposed, -jnp.ones_like(latent.log_density) * jnp.inf)
        return (released.value - latent.statistic)[0], (released.value - wrong.statistic)[0]

    right, wrong = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(4), 4_000))
    assert stats.kstest(np.asarray(right), stats.laplace.cdf).pvalue > 1e-4
    assert stats.kstest(np.asarray(wrong), stats.laplace.cdf).pvalue < 1e-4


def test_a_ratio_that_is_not_finite_is_a_rejection() -> None:
    old = Latent({"y": jnp.zeros(2)}, jnp.zeros(1), jnp.zeros(()))
    for records, density in ((jnp.zeros(2), jnp.nan), (jnp.array([0.0, jnp.nan]), 1.0), (jnp.ones(2), jnp.inf)):
        proposed = Latent({"y": records}, jnp.ones(1), jnp.asarray(density))
        assert decide_refresh(old, proposed, jnp.asarray(-1.0)).statistic[0] == 0.0
