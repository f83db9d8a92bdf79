"""One turn of the marginal samplers: the weights with which a record joins or opens a cluster, on a grid of draws."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.mixture.process import Process
from dpjax.mixture.samplers.gibbs_labels import Fresh, Seat, SeatTable, take_turn
from dpjax.mixture.samplers.neal3 import Clusters, MarginalSeat, take_turn as take_collapsed

ALPHA, NUMBER = 0.7, 4_000
UNIFORMS = (np.arange(NUMBER) + 0.5) / NUMBER
COUNTS = (2.0, 1.0, 0.0, 3.0, 0.0)


def process(discount: float | None) -> Process:
    return Process(jnp.asarray(ALPHA, float), None if discount is None else jnp.asarray(discount, float))


def weigh(label: int, discount: float | None) -> tuple[np.ndarray, float]:
    """The probabilities [H] of joining each slot, and that of a new cluster, for a record of this slot."""
    d = discount or 0.0
    others = np.array(COUNTS) - np.eye(5)[label]
    total = others.sum() + ALPHA
    return np.where(others > 0, others - d, 0) / total, (ALPHA + d * np.count_nonzero(others)) / total


@pytest.mark.parametrize("discount", [None, 0.6])
@pytest.mark.parametrize(("label", "keeps_own", "size"), [(0, True, 2), (1, True, 2), (1, False, 1)])
def test_a_record_joins_and_opens_by_the_process(label: int, keeps_own: bool, size: int, discount: Any) -> None:
    """Alone in its cluster, it may keep its own parameters in place of one of the new ones."""
    fresh = Fresh({"mean": -1 - jnp.arange(size, dtype=float)}, jnp.zeros(size))
    theta = {"mean": jnp.arange(5.0)}
    table = SeatTable(jnp.array(COUNTS), theta, jnp.array(0), jnp.array(False))

    def density(value: jax.Array, theta: dict[str, jax.Array]) -> jax.Array:
        return jnp.zeros_like(value)

    take = partial(take_turn, density, process(discount), keeps_own, table)
    seats = jax.vmap(lambda uniform: Seat(jnp.zeros(()), jnp.array(label, jnp.int32), uniform, fresh))
    after, labels = jax.jit(jax.vmap(take))(seats(jnp.asarray(UNIFORMS, float)))
    labels = np.asarray(labels)
    means = np.asarray(after.theta["mean"])[np.arange(NUMBER), labels]
    joined, opened = weigh(label, discount)
    # The first empty slot, which is the record's own if it was alone.
    place = 1 if label == 1 else 2
    for slot in np.flatnonzero(joined):
        assert abs(np.mean(means == slot) - joined[slot]) < 1e-3
    of_each = [*([1.0] if label == 1 and keeps_own else [-1.0]), *(-1.0 - np.arange(1, size))]
    for mean in of_each:
        assert abs(np.mean((means == mean) & (labels == place)) - opened / size) < 1e-3


@pytest.mark.parametrize("discount", [None, 0.6])
@pytest.mark.parametrize("label", [0, 1])
def test_without_parameters_too(label: int, discount: float | None) -> None:
    clusters = Clusters(jnp.array(COUNTS), jnp.zeros((5, 1)), jnp.zeros(5), jnp.array(0), jnp.array(False))
    take = partial(take_collapsed, lambda counts, totals: jnp.zeros_like(counts), process(discount), clusters)
    seats = jax.vmap(lambda uniform: MarginalSeat(jnp.zeros(1), jnp.array(label, jnp.int32), uniform))
    _, labels = jax.jit(jax.vmap(take))(seats(jnp.asarray(UNIFORMS, float)))
    joined, opened = weigh(label, discount)
    law = joined + opened * np.eye(5)[1 if label == 1 else 2]
    np.testing.assert_allclose(np.bincount(labels, minlength=5) / NUMBER, law, atol=1e-3)
