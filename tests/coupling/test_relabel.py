"""Relabelling keeps the records as a multiset, and aligns common proposals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.coupling.pairs import RecordPair
from dpjax.coupling.relabel import Relabelling, exchange
from dpjax.coupling.sweeps import sweep
from dpjax.data_augmentation.records.placed import SummedTarget, SweepState
from dpjax.exchangeable.sweeps import Innovations, make_placement

N = 5


UNIFORM = models.beta(1.0, 1.0)._replace(
    sample_records=lambda key, parameters, n: {"y": jax.random.uniform(key, (n,), float)}
)


BINS = dpjax.Release(jnp.zeros(3), dpjax.Laplace(0.4), statistics.histogram("y", (0.0, 0.2, 0.6, 1.0)), N)


@pytest.mark.parametrize("relabel", ["within", pytest.param("between", marks=pytest.mark.slow)])
def test_relabelling_keeps_the_multiset_and_aligns_common_proposals(relabel: str) -> None:
    """What differs from equal indices is the order of the second chain alone, and flagged records are equal."""
    keys = jax.random.split(jax.random.key(9), 4)
    records = [UNIFORM.sample_records(key, {}, N) for key in keys[:2]]
    common = UNIFORM.sample_records(keys[2], {}, N)
    proposals = RecordPair(common, common, jnp.ones(N, bool))
    uniforms = jnp.linspace(0.1, 0.9, N)
    start = RecordPair(*records, jnp.zeros(N, bool))
    target = SummedTarget(BINS, N)

    def end(relabelling: Relabelling | None) -> RecordPair:
        placement = make_placement(dpjax.soma(), N)

        def couple(u: jax.Array, key: jax.Array) -> RecordPair:
            return sweep(target, start, proposals, placement, relabelling, Innovations(None, u, u), key)[0]

        return jax.jit(couple)(uniforms, keys[3])

    plain, pair = end(None), end(relabel)
    for one in (plain, pair):
        np.testing.assert_array_equal(one.first["y"][one.same], one.second["y"][one.same])
    assert pair.same.sum() == len(np.intersect1d(pair.first["y"], pair.second["y"]))
    np.testing.assert_array_equal(np.sort(pair.first["y"]), np.sort(plain.first["y"]))


def test_an_exchange_moves_a_record_with_what_it_adds() -> None:
    """A chain whose records are not those that were summed keeps its flags, its sum and its length."""
    state = SweepState(jnp.zeros(1), jnp.zeros(()), jnp.array([[5.0, 6.0, 7.0]]), jnp.array([4, 1, 2]))
    moved = exchange(state, jnp.array(0), jnp.array(2))
    assert (moved.columns.tolist(), moved.source.tolist()) == ([[7.0, 6.0, 5.0]], [2, 1, 4])
