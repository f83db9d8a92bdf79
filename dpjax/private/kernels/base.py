"""The contract of the private kernels, and what they report."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from dpjax.base import Array, Key, SamplingAlgorithm
from dpjax.private.accounting.query import Query
from dpjax.private.kernels.penalty import Release
from dpjax.private.noise import Noise
from dpjax.private.targets.target import Target

__all__ = ["Info", "NotPrivate", "PrivateKernel", "build_release", "ravel", "start_iteration"]


class NotPrivate(NamedTuple):
    """Diagnostics for the data holder's eyes: computed from the records without noise, so that showing them leaks.

    clipped_gradients
        The fraction of the records' gradients that were clipped [], NaN without gradients.
    clipped_ratios
        The fraction of the records' log-likelihood ratios that were clipped [], NaN without ratios.
    """

    clipped_gradients: Array
    clipped_ratios: Array


class Info(NamedTuple):
    """What one iteration reports.

    is_accepted
        Whether the proposal was accepted []; a function of noisy answers, and seen in the draws anyway. True for
        algorithms without a test.
    not_private
        Diagnostics that must not be published.
    """

    is_accepted: Array
    not_private: NotPrivate


class PrivateKernel(NamedTuple):
    """A kernel in BlackJAX's form, with what each of its iterations asks of the records.

    init
        ``position -> state``.
    step
        ``(key, state) -> (state, info)``, pure, for `jax.jit` and `jax.vmap`. It makes the queries of one iteration,
        charged to no one: `sample` charges them to a ledger.
    queries
        The noisy queries of one iteration of one chain; none where there is no noise and no privacy.
    target, build
        The target, and ``target -> SamplingAlgorithm(init, step)``, so that a program can take the records as an
        argument in the place of a constant.
    """

    init: Callable[..., Any]
    step: Callable[..., Any]
    queries: tuple[Query, ...]
    target: Target
    build: Callable[[Target], SamplingAlgorithm]


def make_kernel(
    target: Target, build: Callable[[Target], SamplingAlgorithm], queries: tuple[Query, ...]
) -> PrivateKernel:
    """The kernel that `build` makes of a target."""
    init, step = build(target)
    return PrivateKernel(init, step, queries, target, build)


def build_release(noise: Noise, key: Key) -> Release:
    """Answers with noise from a source; the index of a query within an iteration chooses its key."""
    return lambda index, value, scale: noise.release(jax.random.fold_in(key, index), value, scale)


def ravel(position: Any) -> Array:
    """The parameters as a vector [d]."""
    return ravel_pytree(position)[0]


def start_iteration() -> Array:
    """The number [] of the first iteration."""
    return jnp.zeros((), jnp.int32)
