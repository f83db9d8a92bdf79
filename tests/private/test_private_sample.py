"""A private run: what it charges is what it asks, it stops within its budget, and it tells nothing else."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import private
from dpjax.private import noise
from dpjax.private.query import Query
from tests.private.cases import AMPLE, BOUND, STARTS, TARGET, WALK, ledger


@dataclass(frozen=True, eq=False)
class Counting:
    """Noise that counts the answers that it gives about something, by the size of the value."""

    seen: list = field(default_factory=list)
    grade: str = "simulation-grade"

    def release(self, key: jax.Array, value: jax.Array, scale: jax.Array) -> jax.Array:
        answer = noise.jax.release(key, value, scale)
        jax.debug.callback(lambda asked, _: self.seen.append(asked.size) if np.any(asked) else None, value, answer)
        return answer

    def query(self, name: str, noise_multiplier: float, **facts) -> Query:
        return noise.jax.query(name, noise_multiplier, **facts)


def hamiltonian(source, **changes) -> private.PrivateKernel:
    settings = {
        "step_size": 0.3,
        "num_leapfrog": 4,
        "gradient_bound": BOUND,
        "ratio_bound": BOUND,
        "tau_g": 50.0,
        "tau_l": 20.0,
    }
    return private.dp_hmc(TARGET, source, **(settings | changes))


def test_every_answer_is_charged() -> None:
    counting, spent = Counting(), ledger()
    result = private.sample(jax.random.key(0), hamiltonian(counting), STARTS, spent, num_iterations=7)
    jax.effects_barrier()
    charged = {query.name: query.count for query in spent.queries}
    assert charged == {"gradient": 7 * 3 * 5, "log-likelihood ratio": 7 * 3}
    assert counting.seen.count(2) == charged["gradient"]
    assert counting.seen.count(1) == charged["log-likelihood ratio"]
    assert len(counting.seen) == sum(charged.values())
    assert result.draws.shape == (3, 7, 2)
    assert result.privacy_spent().num_queries == len(counting.seen)
    assert result.not_private.acceptance_rate.shape == (3,)


def test_a_run_ends_before_the_budget_is_exceeded() -> None:
    kernel = private.dp_penalty(TARGET, noise.jax, proposal_scale=0.5, ratio_bound=BOUND, tau=12.0)
    spent = ledger(3.0)
    total = private.accounting.max_iterations(3.0, 1e-6, 12.0, None, 0)
    result = private.sample(jax.random.key(1), kernel, STARTS, spent)
    assert result.num_iterations == total // 3 > 3
    assert result.draws.shape == (3, total // 3, 2)
    assert 2.0 < result.privacy_spent().epsilon <= 3.0
    assert result.privacy_spent().grade == "simulation-grade"
    with pytest.raises(ValueError, match="expected at most the 0 that"):
        private.sample(jax.random.key(2), kernel, STARTS, spent)


def test_more_iterations_than_the_budget_are_refused_before_any() -> None:
    spent = ledger(0.5)
    with pytest.raises(ValueError, match="Ask for fewer"):
        private.sample(jax.random.key(1), hamiltonian(noise.jax), STARTS, spent, num_iterations=10_000)
    assert spent.queries == ()


def test_thinned_draws_are_those_of_the_whole_run() -> None:
    whole, thinned = (
        private.sample(jax.random.key(3), WALK, STARTS, ledger(AMPLE), num_iterations=40, thin=thin) for thin in (1, 4)
    )
    np.testing.assert_allclose(thinned.draws, whole.draws[:, 3::4], rtol=1e-5)


@pytest.mark.slow
def test_subsampled_queries_are_accounted_for_at_their_rate() -> None:
    kernel = private.dp_sgld(
        TARGET, noise.jax, step_size=0.01, sampling_rate=2 / 7, gradient_bound=BOUND, noise_multiplier=4.0
    )
    assert kernel.queries == (Query("sampled gradient", 4.0, "simulation-grade", 1, 2 / 7),)
    pytest.importorskip("dp_accounting")
    spent = ledger()
    result = private.sample(jax.random.key(4), kernel, STARTS, spent, num_iterations=5)
    assert result.draws.shape == (3, 5, 2)
    assert [(query.count, query.sampling_rate) for query in spent.queries] == [(15, 2 / 7)]
    assert 0 < result.privacy_spent().epsilon < 5


def test_there_is_no_run_without_noise_or_budget() -> None:
    with pytest.raises(ValueError, match="protect nobody"):
        private.sample(jax.random.key(0), private.hmc(TARGET, step_size=0.1, num_leapfrog=2), STARTS, ledger())
    with pytest.raises(TypeError, match="no default budget"):
        private.sample(jax.random.key(0), hamiltonian(noise.jax), STARTS, None)
    with pytest.raises(TypeError, match="typed key"):
        private.sample(0, hamiltonian(noise.jax), STARTS, ledger())


@pytest.mark.parametrize(
    "starts", [jnp.zeros(2), jnp.zeros((3, 4)), {"theta": jnp.zeros((3, 2))}, jnp.full((1, 2), np.nan)]
)
def test_bad_starts_are_refused(starts) -> None:
    with pytest.raises(ValueError, match="positions"):
        private.sample(jax.random.key(0), hamiltonian(noise.jax), starts, ledger(), num_iterations=1)


def test_results_show_nothing_of_the_records() -> None:
    result = private.sample(jax.random.key(1), WALK, STARTS, ledger(AMPLE), num_iterations=40, thin=4)
    assert "clipped" not in repr(result)
    assert set(vars(result)) == {"draws", "not_private", "ledger", "num_iterations", "thin", "final_states"}
