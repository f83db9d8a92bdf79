"""What a coupled kernel is made of."""

from collections.abc import Callable
from typing import Any, NamedTuple

from dpjax.base import Array, Key

__all__ = ["CoupledKernel"]


class CoupledKernel(NamedTuple):
    """A Markov kernel of pairs, each chain of which moves by one and the same kernel.

    Attributes
    ----------
    sample_start
        ``key -> position``, a draw of a chain's start.
    join
        ``(position, position, met) -> pair``; where met [], the second is a copy of the first.
    step
        ``(rng_key, pair) -> (pair, info)``. Once met, pairs stay together.
    met
        ``pair -> [] bool``, read off flags.
    first
        ``pair -> position`` of the first chain.
    second
        ``pair -> position`` of the second.
    """

    sample_start: Callable[[Key], Any]
    join: Callable[[Any, Any, Array], Any]
    step: Callable[[Key, Any], tuple[Any, Any]]
    met: Callable[[Any], Array]
    first: Callable[[Any], Any]
    second: Callable[[Any], Any]
