"""Moves whose cells are drawn while a sweep runs: the sums that they touch are looked up there and then."""

import jax.numpy as jnp
import numpy as np

from dpjax.base import Array
from dpjax.tables.directions import Directions, Touched
from dpjax.tables.moves import Law, Move, Plan
from dpjax.tables.sums import CellSums

__all__ = ["plan_at", "template"]


def template(law: Law, signs: tuple[int, ...], number: int, width: int) -> Move:
    """So many moves of any cells, which gain and lose by these signs and may touch any sum of theirs."""
    shape = (1, 1, number)

    def touched(sums: CellSums) -> Touched:
        slots = (*shape, len(signs) * sums.index.shape[1])
        # The cells that gain may all add to one sum.
        reach = signs.count(1) if sums.is_tally else len(signs) * np.max(np.abs(sums.weight))
        return Touched(np.zeros(slots, np.int32), np.full(slots, reach))

    gammas, noisy = (tuple(touched(factor.sums) for factor in factors) for factors in (law.gammas, law.noisy))
    cells = np.zeros((*shape, len(signs)), np.int32)
    return Move(Directions(cells, signs, np.ones(shape, bool)), gammas, noisy, width)


def plan_at(law: Law, signs: tuple[int, ...], cells: Array, real: Array) -> Plan:
    """The plan of moves of given cells [move, a]; those that are not real stay as they are."""
    gammas = (net_change(each.sums, signs, cells) for each in law.gammas)
    return Plan(
        cells,
        real,
        tuple((index, weight.astype(int)) for index, weight in gammas),
        tuple(net_change(each.sums, signs, cells) for each in law.noisy),
    )


def net_change(sums: CellSums, signs: tuple[int, ...], cells: Array) -> tuple[Array, Array]:
    """Places and weights [move, k] of what cells [move, a] change; a sum of several has one weight that is not 0."""
    index, weight = jnp.asarray(sums.index)[cells], jnp.asarray(sums.weight, float)[cells]
    weight = jnp.where(index < 0, 0.0, weight * jnp.asarray(signs, float)[None, :, None])
    index, weight = index.reshape(len(cells), -1), weight.reshape(len(cells), -1)
    same = index[:, :, None] == index[:, None, :]
    is_first = ~jnp.any(same & np.tri(index.shape[1], k=-1, dtype=bool)[None], axis=2)
    merged = jnp.sum(jnp.where(same, weight[:, None, :], 0.0), axis=2)
    return jnp.maximum(index, 0), jnp.where(is_first, merged, 0.0)
