"""The posterior of a mixture as a BlackJAX sampling algorithm, for custom loops."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.jit import in_full_precision
from dpjax._util.spelling import names_arguments, steps_from
from dpjax._util.validation import check_count, check_key, fail, is_traced
from dpjax.base import Array, Key, SamplingAlgorithm
from dpjax.mechanisms.base import Mechanism
from dpjax.mixture.base import Component, MixtureInfo, MixtureState
from dpjax.mixture.inputs import WITH_VALUES, check_sampler, make_problem
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.samplers import DEFAULT
from dpjax.mixture.samplers.base import Sampler, Setup, Slots
from dpjax.mixture.starts import start_records
from dpjax.models import GammaPrior

__all__ = ["MixturePosition", "gibbs"]


class MixturePosition(NamedTuple):
    """The start of a chain: the clusters of the records, as labels [n] in 0..capacity - 1, and the records [n, ...].

    Attributes
    ----------
    labels
        The clusters of the records [n], in 0..capacity - 1.
    records
        The records [n, ...].

    Examples
    --------
    >>> import dpjax, jax
    >>> from dpjax import mixture
    >>> component = mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=2.0, scale=1.0)
    >>> values = jax.numpy.array([-2.0, -1.7, 1.5, 2.0])
    >>> algorithm = mixture.gibbs(values, None, component=component, concentration=1.0)
    >>> position = dpjax.mixture.MixturePosition(jax.numpy.array([0, 0, 1, 1]), values)
    >>> state = algorithm.init(position, jax.random.key(1))
    >>> [float(count) for count in state.counts[:3]]
    [2.0, 2.0, 0.0]
    """

    labels: Array
    records: Array


@names_arguments
def gibbs(
    values: Any,
    channel: Mechanism | Any | Literal["with the values"] | None = WITH_VALUES,
    *,
    component: Component,
    concentration: float | GammaPrior,
    discount: float = 0.0,
    sampler: Sampler = DEFAULT,
    capacity: int | None = None,
) -> SamplingAlgorithm:
    """A BlackJAX sampling algorithm that leaves p(labels, records, concentration, mixing measure | values) invariant.

    The algorithm of `sample`, with a fixed number of slots. If a sweep needs more slots, the state does not change and
    ``info.overflow`` is true. A chain that overflows does not draw from the posterior: give it more slots.

    Parameters
    ----------
    values
        As in `sample`.
    channel
        As in `sample`.
    component
        As in `sample`.
    concentration
        As in `sample`.
    discount
        As in `sample`.
    sampler
        As in `sample`.
    capacity
        The number of slots for clusters; by default that with which `sample` begins, at least 32. The cost of a sweep
        is proportional to it.

    Returns
    -------
    SamplingAlgorithm
        ``init(position, rng_key)`` takes a `MixturePosition`, or labels [n] alone, and then draws the records; the rest
        of the `MixtureState` is drawn. ``step(rng_key, state)`` makes one sweep and returns the state and a
        `MixtureInfo`. Both work under ``jit``, ``vmap`` and ``scan``.

    Raises
    ------
    TypeError, ValueError
        If the arguments are not compatible; at ``init``, if labels or records are unusable.

    Examples
    --------
    >>> import dpjax, jax, jax.numpy as jnp
    >>> from dpjax import mixture
    >>> component = mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=2.0, scale=1.0)
    >>> values = [-2.1, -1.8, 2.2]
    >>> algorithm = dpjax.mixture.gibbs(values, channel=dpjax.Gaussian(0.5), component=component, concentration=1.0)
    >>> start = mixture.MixturePosition(jnp.array([0, 0, 1]), jnp.array(values))
    >>> jax.eval_shape(algorithm.init, start, jax.random.key(1)).records.shape
    (3,)
    """
    problem = make_problem(values, channel, component, concentration, discount)
    setup = choose_setup(check_sampler(sampler), problem, capacity)

    @names_arguments
    @in_full_precision
    def init(position: MixturePosition | Array, rng_key: Key) -> MixtureState:
        check_key("rng_key", rng_key)
        record_key, state_key = jax.random.split(rng_key)
        labels = check_labels(position.labels if isinstance(position, MixturePosition) else position, problem, setup)
        records = start_records(problem, record_key)
        if isinstance(position, MixturePosition):
            records = check_records(position.records, records)
        return setup.start(problem, state_key, labels, records)

    @steps_from("init", MixtureState)
    @in_full_precision
    def step(rng_key: Key, state: MixtureState) -> tuple[MixtureState, MixtureInfo]:
        moved, info = setup.sampler.step(problem, setup.slots, rng_key, state)
        return jax.tree.map(lambda new, old: jnp.where(info.overflow, old, new), moved, state), info

    return SamplingAlgorithm(init, step)


def choose_setup(sampler: Sampler, problem: MixtureProblem, capacity: int | None) -> Setup:
    """The sampler with a fixed number of slots, for chains that may be advanced side by side."""
    fitted = sampler.fit(problem)
    if capacity is None:
        return Setup(fitted, Slots(fitted.first_capacity(problem)))
    check_count("capacity", capacity, "Pass how many clusters there is room for.", least=2)
    if fitted.truncation not in (None, capacity):
        fail("capacity", capacity, f"{fitted.truncation}, where the process is truncated", "Leave it out.")
    return Setup(fitted, Slots(capacity))


def check_labels(labels: Any, problem: MixtureProblem, setup: Setup) -> Array:
    """Labels [n] of existing slots, or an error."""
    remedy = "Pass the cluster of each record, for instance jnp.zeros(n, int)."
    dtype = jnp.result_type(labels) if is_traced(labels) else np.asarray(labels).dtype
    if not jnp.issubdtype(dtype, jnp.integer):
        fail("position", f"labels of {dtype}", "whole numbers", remedy, error=TypeError)
    if np.shape(labels) != (problem.n,):
        fail("position", f"labels of shape {list(np.shape(labels))}", f"shape {[problem.n]}", remedy)
    if not is_traced(labels) and not np.all((np.asarray(labels) >= 0) & (np.asarray(labels) < setup.capacity)):
        given = f"labels from {np.min(labels)} to {np.max(labels)}"
        fail("position", given, f"0..{setup.capacity - 1}", "Number the clusters from 0, or pass a larger capacity.")
    return jnp.asarray(labels, jnp.int32)


def check_records(records: Any, like: Array) -> Array:
    """Records of the right shape, or an error."""
    if np.shape(records) != like.shape:
        given, expected = f"records of shape {list(np.shape(records))}", f"shape {list(like.shape)}"
        fail("position", given, expected, "Pass one record a row, or labels alone.")
    return jnp.asarray(records, like.dtype)
