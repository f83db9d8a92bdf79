"""Runs with a discount: what a discount of 0 leaves as it was, slots that are added, and what truncation costs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import mixture
from dpjax.mixture.inputs import make_problem
from dpjax.mixture.process import Process
from dpjax.mixture.run import run_chunk
from dpjax.mixture.samplers.base import Setup, Slots
from dpjax.mixture.samplers.conditional import Conditional
from dpjax.mixture.samplers.neal5 import Neal5
from dpjax.models import GammaPrior
from tests.mixture.crp import number_of_clusters
from tests.mixture.perfect import BASE as PERFECT_BASE, NOISE, p_value, run
from tests.tools.perfect_start import REJECT

VALUES = np.array([-1.4, -1.0, 0.1, 0.6, 2.0, 2.3])
BASE = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
CHANNEL = dpjax.Laplace(NOISE)


def draw(**options: Any) -> mixture.MixturePosterior:
    settings = {"component": BASE, "concentration": 0.3, "collect": ("labels",), "progress": False}
    settings |= {"num_chains": 2, "num_warmup": 0, "num_samples": 40}
    return mixture.sample(jax.random.key(3), VALUES, CHANNEL, **(settings | options))


def problem(discount: float, n: int = 6, concentration: float = 0.3) -> Any:
    return make_problem(np.linspace(-1, 1, n), CHANNEL, BASE, concentration, discount)


def test_no_discount_is_a_dirichlet_process() -> None:
    """It has the same leaves, and so the same programs; other discounts share one."""
    plain = jax.tree.structure(problem(0.0))
    assert problem(0.0).discount is None
    assert problem(np.float32(0)).discount is None
    assert jax.tree.structure(problem(0.2)) == jax.tree.structure(problem(0.7)) != plain


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [mixture.neal8(), mixture.conditional()], ids=repr)
def test_slots_are_added_for_a_heavy_tail(sampler: mixture.Sampler) -> None:
    """The 32 slots of a Dirichlet process are too few. The conditional sampler lists even smaller atoms."""
    marginal = sampler == mixture.neal8()
    found = draw(discount=0.5 if marginal else 0.25, sampler=sampler)
    assert found.mixing.weights.shape[2] > 32
    assert not marginal or np.all(found.mixing.remainder < 0.01)
    total = found.mixing.weights.sum(axis=-1) + found.mixing.remainder
    np.testing.assert_allclose(total, 1, rtol=1e-4)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(found.mixing))
    labels = [[len(set(row)) for row in chain] for chain in found.collected["labels"]]
    np.testing.assert_array_equal(labels, found.draws["num_clusters"])


def test_discounts_share_a_program() -> None:
    few = draw(discount=0.02, num_samples=20)
    programs = run_chunk._cache_size()
    more = draw(discount=0.08, num_samples=20)
    assert run_chunk._cache_size() == programs
    assert few.draws["num_clusters"].mean() != more.draws["num_clusters"].mean()


def test_laws_without_data() -> None:
    """The mean number of clusters, and the mean of what atoms leave: exact, and by sticks."""
    for alpha, discount, n in [(0.6, 0.25, 9), (2.0, 0.7, 30)]:
        process = Process(jnp.array(alpha), jnp.array(discount))
        law = number_of_clusters(n, alpha, discount)
        assert process.mean_clusters(n) == pytest.approx(law @ np.arange(1, n + 1), rel=1e-4)
        generator, places = np.random.default_rng(2), np.arange(1, 8)
        sticks = generator.beta(1 - discount, alpha + discount * places, (40_000, 7))
        left = np.prod(1 - sticks, axis=1)
        assert abs(process.mean_remainder(7) - left.mean()) < 5 * left.std() / 200
        assert process.mean_clusters(n) < process.slots_for(n, 1e-2) < np.inf
    assert Process(jnp.array(2.0)).mean_remainder(7) == pytest.approx((2 / 3) ** 7, rel=1e-4)


def test_the_bound_of_a_truncation_holds() -> None:
    """Two records are together with probability (1 - d) / (α + 1), unless both are beyond: those that are, are one."""
    sampler = mixture.conditional(truncation=6)
    for discount, alpha in [(0.0, 3.0), (0.4, 0.5)]:
        generator, places = np.random.default_rng(3), np.arange(1, 6)
        left = np.prod(1 - generator.beta(1 - discount, alpha + discount * places, (100_000, 5)), axis=1)
        # P(both in the last atom) is E[r²], of which so much would be two clusters.
        apart = np.mean(left**2) * (alpha + 6 * discount - discount) / (alpha + 5 * discount + 1)
        assert 2 * apart < sampler.truncation_error(problem(discount, 2, alpha), alpha) <= 2
    assert mixture.conditional().truncation_error(problem(0.4), 0.5) == 0
    assert mixture.conditional(truncation=200).truncation_error(problem(0.9), 0.5) == 2.0


PRIOR, DISCOUNT = GammaPrior(6.0, 10.0), 0.2
SETUPS = {
    "conditional": Setup(Conditional(proposals=0), Slots(20)),
    "sticks": Setup(Conditional("stick", proposals=0), Slots(20)),
    "neal 5": Setup(Neal5(), Slots(20)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SETUPS)
def test_the_joint_law_is_invariant_with_a_learned_concentration(name: str) -> None:
    """Sweeps that believe in nearly no discount, or in a larger one, drift away."""
    ends = run(jax.random.key(24), SETUPS[name], PRIOR, CHANNEL, discount=DISCOUNT)
    assert p_value(ends, PRIOR, discount=DISCOUNT) > REJECT
    for wrong in (1e-3, 3 * DISCOUNT):
        believed = (CHANNEL, PRIOR, PERFECT_BASE, wrong)
        ends = run(jax.random.key(24), SETUPS[name], PRIOR, CHANNEL, discount=DISCOUNT, believed=believed)
        assert p_value(ends, PRIOR, discount=DISCOUNT) < REJECT
