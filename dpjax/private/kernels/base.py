"""The interface of the private kernels, and their reports."""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
from jax.flatten_util import ravel_pytree

from dpjax._util.pytree import shapes_of, signature
from dpjax._util.spelling import names_arguments, steps_from
from dpjax._util.validation import check_function, describe, fail
from dpjax.base import Array, Key, SamplingAlgorithm
from dpjax.private.accounting.query import Query, check_queries
from dpjax.private.arguments import check_target
from dpjax.private.kernels.penalty import Answer
from dpjax.private.noise import Noise
from dpjax.private.targets.target import Target, check_position

__all__ = [
    "KernelInfo",
    "KernelState",
    "NotPrivate",
    "PrivateKernel",
    "build_answer",
    "check_contract",
    "make_kernel",
    "ravel",
]


class NotPrivate(NamedTuple):
    """Diagnostics for the data holder's eyes: computed from the records without noise, so that showing them leaks.

    Attributes
    ----------
    clipped_gradients
        The fraction of the records' gradients that were clipped [], NaN without gradients.
    clipped_ratios
        The fraction of the records' log-likelihood ratios that were clipped [], NaN without ratios.

    Examples
    --------
    >>> import dpjax
    >>> report = dpjax.private.NotPrivate(clipped_gradients=0.02, clipped_ratios=0.01)
    >>> max(report)
    0.02
    """

    clipped_gradients: Array
    clipped_ratios: Array


class KernelInfo(NamedTuple):
    """The report of one iteration.

    Attributes
    ----------
    is_accepted
        Whether the proposal was accepted []; a function of noisy answers, and seen in the draws anyway. True for
        algorithms without a test.
    not_private
        Diagnostics that must not be published.

    Examples
    --------
    >>> from dpjax.private import KernelInfo
    >>> import jax.numpy as jnp
    >>> from dpjax.private import NotPrivate
    >>> info = KernelInfo(jnp.array(True), NotPrivate(clipped_gradients=jnp.array(0.0), clipped_ratios=jnp.array(0.1)))
    >>> bool(info.is_accepted)
    True
    """

    is_accepted: Array
    not_private: NotPrivate


@runtime_checkable
class KernelState(Protocol):
    """The state of a private kernel: a pytree, such as a NamedTuple."""

    @property
    def position(self) -> Any:
        """The unconstrained parameters, of which draws are made."""


class PrivateKernel(NamedTuple):
    """A kernel in BlackJAX's form, with the queries of each of its iterations; `make_kernel` builds one.

    Attributes
    ----------
    init
        ``position -> state``, a `KernelState`. It must not read the records: starting is charged to no one.
    step
        ``(key, state) -> (state, KernelInfo)``, pure, for `jax.jit` and `jax.vmap`. It makes the queries of one
        iteration, charged to no one: `sample` charges them to a ledger.
    queries
        The noisy queries of one iteration of one chain; none if there is no noise and no privacy.
    target
        The target.
    build
        ``target -> SamplingAlgorithm(init, step)``, so that a program can take the records as an argument in the place
        of a constant.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from dpjax import private
    >>> records = {"y": jnp.array([0.2, -0.4, 1.1, 0.3])}
    >>> target = private.target(
    ...     lambda theta, record: -0.5 * (record["y"] - theta) ** 2,
    ...     lambda theta: -0.5 * theta**2,
    ...     records,
    ...     position=jnp.zeros(()),
    ... )
    >>> kernel = private.rwmh(target, proposal_scale=0.5)
    >>> state = kernel.init(jnp.zeros(()))
    >>> kernel.queries, float(state.position)
    ((), 0.0)
    """

    init: Callable[..., Any]
    step: Callable[..., Any]
    queries: tuple[Query, ...]
    target: Target
    build: Callable[[Target], SamplingAlgorithm]

    def __repr__(self) -> str:
        """Public information only: settings may depend on the number of records."""
        return f"PrivateKernel(queries={self.queries}, target={self.target})"


@names_arguments
def make_kernel(
    target: Target, build: Callable[[Target], SamplingAlgorithm], queries: tuple[Query, ...]
) -> PrivateKernel:
    """The kernel that `build` makes of a target: for algorithms of your own.

    You must guarantee what an accountant cannot check. `step` reads the records through noisy sums only, and these are
    the stated queries. It makes all of them in every iteration, wherever the chain is.

    Parameters
    ----------
    target
        The posterior.
    build
        ``target -> SamplingAlgorithm(init, step)``, as in `PrivateKernel`. It must take the records from the target
        that it is given. Programs are compiled for it: build the kernel once.
    queries
        What one `step` asks of the records: as `Noise.query` of the source states it, whose `Noise.release` answers.

    Examples
    --------
    >>> import dpjax
    >>> import jax, jax.numpy as jnp
    >>> from dpjax import private
    >>> def density(mean, y):
    ...     return -((y - mean) ** 2) / 2
    >>> data = jnp.array([0.0, 1.0, 9.0])
    >>> target = private.target(density, lambda mean: -(mean**2) / 2, data, jnp.zeros(()))
    >>> kernel = private.rwmh(target, proposal_scale=0.5)
    >>> dpjax.private.make_kernel(target, kernel.build, kernel.queries).queries
    ()
    """
    check_target("target", target)
    check_function("build", build, "target -> SamplingAlgorithm(init, step)")
    queries = check_queries(queries, least=0)
    built = build(target)
    if not isinstance(built, tuple) or len(built) != 2 or not all(map(callable, built)):
        remedy = "Return both functions, as BlackJAX does."
        fail(
            "build",
            f"a function that returns {describe(built)}",
            "one that returns (init, step)",
            remedy,
            error=TypeError,
        )
    init, step = built
    return PrivateKernel(starts_at(target, init), steps_from("init", KernelState)(step), queries, target, build)


def starts_at(target: Target, init: Callable[..., Any]) -> Callable[..., Any]:
    """``init(position, ...)``, which raises unless it is given parameters like those of the target."""
    expected = shapes_of(position_of(target))

    @names_arguments
    @wraps(init)
    def call(position: Any, *others: Any, **options: Any) -> Any:
        check_position(position)
        if (given := shapes_of(position)) != expected:
            remedy = "Pass the unconstrained parameters of one chain; for several, jax.vmap(kernel.init)."
            fail("position", f"shapes {given}", f"{expected}, as in the target", remedy)
        return init(position, *others, **options)

    return call


def position_of(target: Target) -> Any:
    """The shapes and types of the parameters of one chain."""
    return jax.eval_shape(target.unravel, jax.ShapeDtypeStruct((target.dimension,), target.dtype))


def check_contract(kernel: PrivateKernel) -> None:
    """Raise unless a kernel's states have a position of the target's parameters, and its steps keep their form."""
    target = kernel.target
    position = position_of(target)
    state = jax.eval_shape(lambda at: kernel.init(at), position)
    if not isinstance(state, KernelState) or signature(state.position) != signature(position):
        expected = "a state with the parameters, unconstrained, as `position`"
        fail("kernel", f"init that returns {state}", expected, "Return a NamedTuple with that field.", error=TypeError)
    moved, info = jax.eval_shape(kernel.step, jax.eval_shape(lambda: jax.random.key(0)), state)
    if signature(moved) != signature(state) or not isinstance(info, KernelInfo):
        given, expected = f"a step that returns {(moved, info)}", f"a state like {state} and a private.KernelInfo"
        fail("kernel", given, expected, "Keep structure, shapes and types from step to step.", error=TypeError)


def build_answer(noise: Noise, key: Key) -> Answer:
    """Answers with noise from a source; the index of a query within an iteration chooses its key."""
    return lambda index, value, scale: noise.release(jax.random.fold_in(key, index), value, scale)


def ravel(position: Any) -> Array:
    """The parameters as a vector [d]."""
    return ravel_pytree(position)[0]
