"""A private run: what it charges is what it asks, it stops within its budget, and it tells nothing else."""

import re
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import private
from dpjax.private import noise
from dpjax.private.accounting.query import Query
from tests.private.cases import AMPLE, BOUND, STARTS, TARGET, WALK, ledger


@dataclass(frozen=True, eq=False)
class Counting:
    """Noise that counts the answers that it gives about something, by the size of the value."""

    seen: list = field(default_factory=list)
    grade: str = "simulation-grade"

    def release(self, key: jax.Array, value: jax.Array, scale: jax.Array) -> jax.Array:
        answer = noise.jax.release(key, value, scale)
        total = sum(jax.tree.leaves(value))  # kernels ask about the exact sum of two arrays
        jax.debug.callback(lambda asked, _: self.seen.append(asked.size) if np.any(asked) else None, total, answer)
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
    assert set(vars(result)) == {"draws", "not_private", "ledger", "num_iterations", "thin", "final_states", "parts"}


def bounded(theta: jax.Array) -> jax.Array:
    """Uniform on the unit square."""
    return jnp.where(jnp.all(jnp.abs(theta - 0.5) < 0.5), 0.0, -jnp.inf)


def dot(theta: jax.Array, record: jax.Array) -> jax.Array:
    return jnp.dot(theta, record)


@pytest.mark.parametrize(
    ("log_prior", "starts", "chains"),
    [
        (bounded, [[0.5, 0.5], [0.5, 1.5]], "chains [1]"),
        (lambda theta: jnp.log(theta[0]) - theta[1] ** 2, [[-1.0, 0.0], [2.0, 0.0], [-2.0, 0.0]], "chains [0, 2]"),
        (lambda theta: jnp.inf * theta[0] ** 2, [[1.0, 0.0]], "chains [0]"),
    ],
)
def test_starts_outside_the_priors_support_cost_nothing(log_prior, starts, chains) -> None:
    target = private.target(dot, log_prior, TARGET.records[0], jnp.zeros(2))
    kernel = private.dp_penalty(target, noise.jax, proposal_scale=0.1, ratio_bound=BOUND, tau=10.0)
    spent = ledger()
    with pytest.raises(ValueError, match=f"positions: given starts of {re.escape(chains)} at which"):
        private.sample(jax.random.key(0), kernel, jnp.array(starts), spent, num_iterations=4)
    assert spent.queries == ()


ABSURD = [
    {"ratio_bound": 1e6},
    *[pytest.param({name: 1e6}, marks=pytest.mark.slow) for name in ("gradient_bound", "tau_l", "step_size")],
]


@pytest.mark.parametrize("change", ABSURD)
def test_settings_that_let_no_chain_move_cost_nothing(change) -> None:
    kernel = hamiltonian(noise.jax, **({"tau_g": 1.0, "tau_l": 1.0} | change))
    spent = ledger(AMPLE)
    with pytest.raises(ValueError, match=r"kernel: given .*even without records.*Nothing was charged"):
        private.sample(jax.random.key(0), kernel, STARTS, spent, num_iterations=400)
    assert spent.queries == ()


def test_langevin_steps_that_explode_cost_nothing() -> None:
    kernel = private.dp_sgnht(
        TARGET, noise.jax, step_size=1e3, diffusion=1.0, sampling_rate=1.0, gradient_bound=BOUND, noise_multiplier=1.0
    )
    spent = ledger(AMPLE)
    with pytest.raises(ValueError, match="leads out of the finite numbers even without records"):
        private.sample(jax.random.key(0), kernel, STARTS, spent, num_iterations=400)
    assert spent.queries == ()


def test_settings_that_let_chains_move_are_rehearsed_for_nothing() -> None:
    spent = ledger(AMPLE)
    result = private.sample(
        jax.random.key(0), hamiltonian(noise.jax, tau_g=1.0, tau_l=1.0), STARTS, spent, num_iterations=400
    )
    assert np.all(result.not_private.acceptance_rate > 0.05)
    assert spent.queries[1].count == 3 * 400


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_starts_of_any_numbers_are_taken(dtype) -> None:
    starts = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    expected, result = (
        private.sample(jax.random.key(1), WALK, given, ledger(AMPLE), num_iterations=40)
        for given in (jnp.asarray(starts), starts.astype(dtype))
    )
    np.testing.assert_array_equal(result.draws, expected.draws)
