"""The perfect-start test: chains started in the posterior stay in it at every noise; without −σ²/2 they do not."""

import sys
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.private import noise
from dpjax.private.kernels.base import build_answer
from dpjax.private.kernels.decision import DecisionTest
from dpjax.private.kernels.hmc import HMCSettings, metric
from dpjax.private.kernels.penalty import PenaltyTest, exact
from dpjax.private.kernels.random_walk import WalkInnovations, WalkSettings, WalkState, walk_core
from dpjax.private.kernels.schedules import as_schedule
from tests.private.cases import BOUND, MEAN, tilted
from tests.tools.perfect_start import REJECT, corrected

TAUS = (0.1, 0.5, 1.0)
"""With moves of about 1.4 the noise of a log ratio has a standard deviation of about 0.3, 1.4 and 2.8."""
TARGET = tilted()
BUILD = partial(build_answer, noise.jax)


def walk(components: str, guided: bool, test: type = PenaltyTest) -> Callable:
    module = sys.modules["dpjax.private.kernels.random_walk"]
    return lambda tau: module.build(WalkSettings(jnp.asarray(1.0), components, guided, test(BOUND, tau)), BUILD, TARGET)


def hamiltonian(tau: jax.Array, step_size: float = 0.4, scale: np.ndarray | None = None, test: type = PenaltyTest):
    module = sys.modules["dpjax.private.kernels.hmc"]
    settings = HMCSettings(as_schedule(step_size), 3, metric(1.0, 2), BOUND, tau, test(BOUND, tau), scale)
    return module.build(settings, BUILD, TARGET)


SCALE = np.array([[0.6, 0.3], [-0.2, 0.5]])
"""It shortens every vector, so that no record is clipped."""


KERNELS = {
    "walk": walk("all", False),
    "guided walk": walk("all", True),
    "one component, guided": walk("one", True),
    "hmc": hamiltonian,
    "hmc on another scale": partial(hamiltonian, step_size=0.7, scale=SCALE),
    "walk, decisions": walk("all", False, DecisionTest),
    "hmc, decisions": partial(hamiltonian, test=DecisionTest),
}


def run(kernel_of: Callable, num_chains: int = 3_000, num_steps: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Positions [taus, chains, 2] of perfectly started chains after some steps, and acceptance rates [taus]."""

    def chain(tau: jax.Array, key: jax.Array) -> tuple:
        kernel = kernel_of(tau)
        start_key, run_key = jax.random.split(key)
        normals = jax.random.normal(start_key, (4,))
        state = kernel.init(jnp.asarray(MEAN) + normals[:2])
        if isinstance(state, WalkState):  # its stationary law has directions of either sign
            state = state._replace(direction=jnp.sign(normals[2:]))

        def step(state, index):
            return kernel.step(jax.random.fold_in(run_key, index), state)

        state, info = jax.lax.scan(step, state, jnp.arange(num_steps))
        return state.position, jnp.mean(info.is_accepted)

    over_chains = jax.vmap(chain, (None, 0))
    keys = jax.random.split(jax.random.key(21), (len(TAUS), num_chains))
    positions, accepted = jax.jit(jax.vmap(over_chains))(jnp.asarray(TAUS), keys)
    return np.asarray(positions), np.asarray(accepted).mean(axis=1)


def p_values(positions: np.ndarray) -> list[float]:
    """For each level of noise the p-value that both coordinates and their product follow the posterior."""
    found = []
    for level in positions - MEAN:
        both = [stats.kstest(column, stats.norm.cdf).pvalue for column in level.T]
        found.append(corrected([*both, stats.kstest((level**2).sum(axis=1), stats.chi2(2).cdf).pvalue]))
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("walk", marks=pytest.mark.keys),
        pytest.param("guided walk", marks=pytest.mark.slow),
        *list(KERNELS)[2:],
    ],
)
def test_the_posterior_is_invariant_at_three_levels_of_noise(name: str) -> None:
    positions, accepted = run(KERNELS[name])
    assert min(p_values(positions)) > REJECT
    assert accepted[0] > accepted[1] > accepted[2] > 0.03


@pytest.mark.parametrize("name", ["walk", pytest.param("hmc", marks=pytest.mark.slow)])
def test_without_the_penalty_it_is_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: the noisy ratio is tested as if it were exact."""
    module = sys.modules["dpjax.private.kernels.penalty"]
    monkeypatch.setattr(module, "accepts", lambda log_uniform, difference, variance: log_uniform < difference)
    assert max(p_values(run(KERNELS[name])[0])[1:]) < REJECT


@pytest.mark.parametrize("name", ["walk, decisions", pytest.param("hmc, decisions", marks=pytest.mark.slow)])
def test_a_decision_that_is_the_sign_of_a_noisy_ratio_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: Φ(r/σ − x) for ratios of both signs, whose error is small only if noise is large."""
    module = sys.modules["dpjax.private.kernels.decision"]
    monkeypatch.setattr(module, "probit", lambda ratio, deviation: ratio - module.edge(deviation))
    assert p_values(run(KERNELS[name])[0])[0] < REJECT


@pytest.mark.parametrize(("log_uniform", "turned"), [(-1e3, 1.0), (1e3, -1.0)])
def test_a_guided_walk_turns_where_it_is_rejected(log_uniform: float, turned: float) -> None:
    """The coordinates that were to move, and no others: walks that turn elsewhere are slower, and hardly wrong."""
    settings = WalkSettings(jnp.asarray(0.1), "one", True, PenaltyTest(BOUND, 0.0))
    innovations = WalkInnovations(jnp.array([-0.3, 2.0]), jnp.array(1), jnp.array(log_uniform))
    start, direction = jnp.array([0.5, 0.1]), jnp.array([1.0, -1.0])
    end, after, info = walk_core(TARGET, settings, exact, start, direction, innovations)
    np.testing.assert_array_equal(after, [1.0, -turned])
    np.testing.assert_allclose(end, [0.5, -0.1 if info.is_accepted else 0.1], rtol=1e-6)
