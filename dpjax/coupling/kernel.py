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
