"""A private kernel of a user's own, in this one file, runs wherever the shipped ones do."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import private
from tests.private.cases import AMPLE, BOUND, MEAN, STARTS, TARGET, ledger
from tests.private.runs.paid_runs import break_off, shorten_parts

KEY = jax.random.key(5)
TAU = 0.5


class WalkState(NamedTuple):
    position: Any


def cauchy_walk(target: private.Target, source: private.noise.Noise, *, penalty: bool = True) -> private.PrivateKernel:
    """Leaves the posterior invariant where no ratio is clipped: a random walk with Cauchy steps and a noisy test."""

    def build(target: private.Target) -> dpjax.base.SamplingAlgorithm:
        return dpjax.base.SamplingAlgorithm(WalkState, partial(step, target))

    def step(target: private.Target, key: jax.Array, state: WalkState) -> tuple[WalkState, private.KernelInfo]:
        move_key, noise_key, uniform_key = jax.random.split(key, 3)
        here = state.position
        there = here + jax.random.cauchy(move_key, here.shape, here.dtype)
        limit = BOUND * jnp.linalg.norm(there - here)
        ratios = private.clipped_ratios(target, here, there, limit)
        ratio = ratios.released(partial(source.release, noise_key), 2 * TAU)
        variance = (2 * TAU * limit) ** 2 if penalty else 0.0
        difference = ratio + target.log_prior(there) - target.log_prior(here)
        accepted = jnp.log(jax.random.uniform(uniform_key, (), here.dtype)) < difference - variance / 2
        clipped = private.NotPrivate(jnp.full_like(limit, jnp.nan), ratios.clipped / target.num_records)
        return WalkState(jnp.where(accepted, there, here)), private.KernelInfo(accepted, clipped)

    queries = (source.query("log-likelihood ratio", 2 * TAU, dimension=1),)
    return private.make_kernel(target, build, queries)


KERNEL = cauchy_walk(TARGET, private.noise.jax)


def go(kernel=KERNEL, positions=STARTS, spent=None, **options) -> private.PrivateDraws:
    return private.sample(KEY, kernel, positions, spent or ledger(AMPLE), **({"num_iterations": 24} | options))


@pytest.fixture(scope="module")
def whole() -> private.PrivateDraws:
    return go()


@pytest.mark.x64
@pytest.mark.parametrize(("penalty", "is_right"), [(True, True), (False, False)])
def test_exact_draws_stay_exact_and_a_planted_fault_is_found(penalty, is_right):
    """Chains that start at draws of the posterior N(Σx, I) end at draws of it."""
    chains = 4_000
    starts = jnp.asarray(MEAN + np.random.default_rng(1).normal(size=(chains, 2)))
    ends = go(cauchy_walk(TARGET, private.noise.jax, penalty=penalty), starts, num_iterations=20).draws[:, -1]
    squares = np.sum((ends - MEAN) ** 2, axis=1)  # chi-squared with two degrees of freedom: mean 2, variance 4
    assert (abs(squares.mean() - 2) < 5 * 2 / chains**0.5) == is_right
    if is_right:
        assert np.all(abs(ends.mean(axis=0) - MEAN) < 5 / chains**0.5)


def test_it_is_charged_what_it_states_and_no_more():
    spent = ledger(AMPLE)
    result = go(spent=spent)
    assert result.draws.shape == (3, 24, 2)
    assert spent.queries == (private.Query("log-likelihood ratio", 2 * TAU, "simulation-grade", 24 * 3),)
    mu = private.accounting.mu(24 * 3, TAU, None, 0)
    assert spent.privacy_spent().epsilon == pytest.approx(private.accounting.epsilon(1e-6, mu))


def test_it_stops_within_a_budget():
    spent = ledger(100.0)
    assert go(spent=spent, num_iterations=None).num_iterations * 3 == spent.queries[0].count > 0
    assert spent.affordable(KERNEL.queries) < 3


def test_it_goes_on_from_a_checkpoint_and_from_a_result(tmp_path, monkeypatch, whole):
    path, spent = tmp_path / "run.npz", ledger(AMPLE)
    with monkeypatch.context() as patch:
        shorten_parts(patch)
        break_off(patch, KeyboardInterrupt())
        with pytest.warns(UserWarning, match="after 2 of 24"):
            go(spent=spent, checkpoint=path)
    np.testing.assert_array_equal(go(spent=spent, checkpoint=path).draws, whole.draws)
    part = go(num_iterations=2)
    np.testing.assert_array_equal(go(positions=part, spent=part.ledger, num_iterations=22).draws, whole.draws)


def test_it_takes_secure_noise():
    result = go(cauchy_walk(TARGET, private.noise.secure), num_iterations=2)
    assert result.privacy_spent().grade == "secure"


class Nameless(NamedTuple):
    place: Any


def nameless(step):
    return dpjax.base.SamplingAlgorithm(Nameless, step)


def silent(step):
    return dpjax.base.SamplingAlgorithm(WalkState, lambda key, state: (state, None))


def growing(step):
    return dpjax.base.SamplingAlgorithm(
        WalkState, lambda key, state: (WalkState(jnp.append(state.position, 0.0)), step(key, state)[1])
    )


@pytest.mark.parametrize(
    ("broken", "message"),
    [(nameless, "as `position`"), (silent, "private.KernelInfo"), (growing, "Keep structure, shapes and types")],
)
def test_what_does_not_meet_the_contract_is_refused_before_any_charge(broken, message):
    spent = ledger(AMPLE)
    kernel = private.make_kernel(TARGET, lambda target: broken(KERNEL.step), KERNEL.queries)
    with pytest.raises(TypeError, match=message):
        go(kernel, spent=spent)
    assert spent.queries == ()
