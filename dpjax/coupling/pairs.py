"""Pairs of chains: the kernel that moves them, and their records before, within and after a sweep."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import shapes_of
from dpjax._util.spelling import names_arguments, steps_from
from dpjax._util.validation import check_instance, check_key, fail, name_of
from dpjax.base import Array, Key, Records
from dpjax.data_augmentation.records.placed import ExchangeableTarget, SweepState, start_sweep
from dpjax.numerics import tree_where

__all__ = [
    "CoupledKernel",
    "CoupledSweepState",
    "RecordPair",
    "checked",
    "is_place",
    "records_after",
    "start_pair",
    "synchronize",
]


class CoupledKernel(NamedTuple):
    """A Markov kernel of pairs, under which each chain moves by the same kernel.

    Attributes
    ----------
    sample_start
        ``key -> position``, a draw of a chain's initial position.
    join
        ``(position, position, met) -> pair``; if met [], the second is a copy of the first.
    step
        ``(rng_key, pair) -> (pair, info)``. Pairs that have met stay equal.
    met
        ``pair -> [] bool``, whether the chains have met, by their flags.
    first
        ``pair -> position`` of the first chain.
    second
        ``pair -> position`` of the second chain.

    Examples
    --------
    >>> import dpjax
    >>> import jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> kernel = dpjax.coupling.coupled_gibbs(model, release)
    >>> start_key, step_key = jax.random.split(jax.random.key(1))
    >>> starts = [jax.jit(kernel.sample_start)(key) for key in jax.random.split(start_key)]
    >>> pair, _ = jax.jit(kernel.step)(step_key, kernel.join(*starts, False))
    >>> jax.numpy.shape(kernel.met(pair)), kernel.first(pair).records["y"].shape
    ((), (10,))
    """

    sample_start: Callable[[Key], Any]
    join: Callable[[Any, Any, Array], Any]
    step: Callable[[Key, Any], tuple[Any, Any]]
    met: Callable[[Any], Array]
    first: Callable[[Any], Any]
    second: Callable[[Any], Any]


def checked(kernel: CoupledKernel, kind: type) -> CoupledKernel:
    """The kernel of pairs of this type; its functions raise unless their arguments are of the kinds that they take."""
    draw, make, move, *readers = kernel

    @names_arguments
    def sample_start(key: Key) -> Any:
        check_key("key", key)
        return draw(key)

    @names_arguments
    def join(first: Any, second: Any, met: Array) -> Any:
        like = jax.eval_shape(draw, jax.eval_shape(jax.random.key, 0))
        check_position("first", first, like)
        check_position("second", second, like)
        check_met(met)
        return make(first, second, met)

    def of_pair(name: str, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(pair: Any) -> Any:
            check_instance("pair", pair, kind, "Pass what join or the last step made.")
            return read(pair)

        call.__name__ = name
        return names_arguments(call)

    named = map(of_pair, ("met", "first", "second"), readers)
    return CoupledKernel(sample_start, join, steps_from("join", kind)(move), *named)


def check_met(met: Any) -> None:
    """Raise unless it is one flag."""
    if not isinstance(met, bool) and (getattr(met, "dtype", None) != np.bool_ or met.shape != ()):
        given = f"{name_of(met)} of shape {list(met.shape)}" if hasattr(met, "shape") else name_of(met)
        remedy = "Pass whether the chains have met."
        fail("met", given, "True or False, or an array [] of bools", remedy, error=TypeError)


def check_position(argument: str, position: Any, like: Any) -> None:
    """Raise unless a position has the structure and the shapes of those that are drawn."""
    if (given := shapes_of(position)) != (expected := shapes_of(like)):
        kinds: list[Any] = [jax.tree.structure(tree) for tree in (position, like)]
        error = ValueError if kinds[0] == kinds[1] else TypeError
        remedy = "Call join(first, second, met), with positions such as sample_start draws."
        given = f"{name_of(position)} of shapes {given}"
        fail(argument, given, f"{expected}, as sample_start draws", remedy, error=error)


class RecordPair(NamedTuple):
    """Records or proposals of two chains, leading axes [n], and flags [n] of those that are the same.

    A flagged record of the second chain is a copy of the first chain's. Values are never compared for equality, because
    a compiler may compute one value twice with different last bits.
    """

    first: Records
    second: Records
    same: Array


class CoupledSweepState(NamedTuple):
    """Both chains within a sweep and the flags [n] of the places where they agree."""

    first: SweepState
    second: SweepState
    same: Array


def start_pair(target: ExchangeableTarget, pair: RecordPair) -> CoupledSweepState:
    """Both chains at the start of a sweep, with their summaries recomputed."""
    columns, places = target.columns(pair.first), jnp.arange(target.n)
    first = start_sweep(target, columns)._replace(source=places)
    second = start_sweep(target, jnp.where(pair.same, columns, target.columns(pair.second)))._replace(source=places)
    return synchronize(CoupledSweepState(first, second, pair.same))


def synchronize(states: CoupledSweepState) -> CoupledSweepState:
    """Both chains, with the second's summary and weight copied from the first if all records are the same."""
    first, second, same = states
    met = jnp.all(same)
    summary = jnp.where(met, first.summary, second.summary)
    log_weight = jnp.where(met, first.log_weight, second.log_weight)
    return CoupledSweepState(first, second._replace(summary=summary, log_weight=log_weight), same)


def records_after(states: CoupledSweepState, pair: RecordPair, proposals: RecordPair) -> RecordPair:
    """The records after a sweep; flagged ones of the second chain are copies of the first chain's."""
    first = gather_records(states.first, pair.first, proposals.first)
    second = gather_records(states.second, pair.second, proposals.second)
    return RecordPair(first, tree_where(states.same, first, second), states.same)


def is_place(places: Array, place: Array) -> Array:
    """The mask [n] of one place [] in an array [n]."""
    return jnp.arange(places.shape[0]) == place


def gather_records(state: SweepState, records: Records, proposals: Records) -> Records:
    """The records of a chain after a sweep, from those at its start and the proposals."""
    return jax.tree.map(lambda kept, new: jnp.concatenate([kept, new])[state.source], records, proposals)
