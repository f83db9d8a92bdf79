"""The interface of mixture samplers: frozen values that are fitted to a problem, start chains and advance them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mixture.base import Component, Mixing, MixtureInfo, MixtureState, Theta
from dpjax.mixture.problem import MixtureProblem
from dpjax.numerics.linear_algebra import product

__all__ = [
    "FIRST_CAPACITY",
    "MAX_SLOTS",
    "Sampler",
    "Setup",
    "Slots",
    "at_labels",
    "at_slots",
    "step",
    "summarize_clusters",
]

FIRST_CAPACITY = 32
"""Smallest number of slots to begin with; a run adds slots as needed."""

MAX_SLOTS = 2**14
"""Largest number of slots of a chain."""


class Slots(NamedTuple):
    """The number of slots of a chain, and how chains are advanced.

    Attributes
    ----------
    capacity
        The number of slots H for clusters.
    in_turn
        Whether chains are advanced one after another, each at the cost of the slots that it needs, rather than
        together. This is faster on a CPU.
    """

    capacity: int
    in_turn: bool = False


class Sampler:
    """A kernel for labels, records and mixing measure: a frozen, hashable dataclass of the user's choices.

    A custom sampler derives from this class and implements `fit`, `init`, `start` and `step`; the other methods have
    defaults.

    Examples
    --------
    >>> import dpjax
    >>> from dpjax import mixture
    >>> isinstance(mixture.neal8(), dpjax.mixture.Sampler), mixture.conditional(truncation=20).truncation
    (True, 20)
    """

    truncation: int | None = None
    """The number of atoms of a truncated process, else None."""

    def fit(self, problem: MixtureProblem) -> Self:
        """The sampler with the choices that depend on the problem filled in.

        Raises
        ------
        TypeError, ValueError
            If the sampler does not apply to the problem.
        """
        raise NotImplementedError

    def init(
        self, problem: MixtureProblem, slots: Slots, mixing: Mixing, concentration: Array, labels: Array, records: Array
    ) -> MixtureState:
        """The state with these values and the statistics computed from them."""
        raise NotImplementedError

    def start(self, problem: MixtureProblem, slots: Slots, key: Key, labels: Array, records: Array) -> MixtureState:
        """A state with these labels [n] and records [n, ...]; everything else is drawn."""
        raise NotImplementedError

    def step(
        self, problem: MixtureProblem, slots: Slots, key: Key, state: MixtureState
    ) -> tuple[MixtureState, MixtureInfo]:
        """A sweep that leaves p(labels, records, concentration, mixing measure | values) invariant.

        If slots run out, ``info.overflow`` is true and the state must not be used.
        """
        raise NotImplementedError

    def first_capacity(self, problem: MixtureProblem) -> int:
        """Number of slots to begin with."""
        del problem
        return FIRST_CAPACITY

    def truncation_error(self, problem: MixtureProblem, concentration: float) -> float:
        """A bound on the L1 distance between the records' prior and that of the sampler; 0 if it is exact."""
        del problem, concentration
        return 0.0


@dataclass(frozen=True)
class Setup:
    """A sampler fitted to a problem, with the slots of its chains; each has its own compiled program."""

    sampler: Sampler
    slots: Slots

    @classmethod
    def of(cls, sampler: Sampler, problem: MixtureProblem) -> "Setup":
        """The sampler fitted to the problem, with its initial number of slots."""
        fitted = sampler.fit(problem)
        return cls(fitted, Slots(fitted.first_capacity(problem), jax.default_backend() == "cpu"))

    @property
    def capacity(self) -> int:
        """The number of slots."""
        return self.slots.capacity

    @property
    def in_turn(self) -> bool:
        """Whether chains are advanced one after another."""
        return self.slots.in_turn

    def with_capacity(self, capacity: int) -> "Setup":
        """The same with another number of slots."""
        return replace(self, slots=self.slots._replace(capacity=capacity))

    def start(self, problem: MixtureProblem, key: Key, labels: Array, records: Array) -> MixtureState:
        """A state with these labels and records; everything else is drawn."""
        return self.sampler.start(problem, self.slots, key, labels, records)


def step(problem: MixtureProblem, setup: Setup, key: Key, state: MixtureState) -> tuple[MixtureState, MixtureInfo]:
    """A sweep of the sampler of a setup."""
    return setup.sampler.step(problem, setup.slots, key, state)


def summarize_clusters(component: Component, capacity: int, labels: Array, records: Array) -> tuple[Array, Array]:
    """The number of records [H] and the sum of features [H, k] of each slot.

    A product with an indicator matrix is many times faster than scatter-add.
    """
    features = jax.vmap(component.features)(records)
    members = (labels[None, :] == jnp.arange(capacity, dtype=labels.dtype)[:, None]).astype(features.dtype)
    totals = product(members, features)
    return jnp.sum(members, axis=1), totals


def at_labels(theta: Theta, labels: Array) -> Theta:
    """Each record's parameters, leaves [n, ...]."""
    return {name: leaf[labels] for name, leaf in theta.items()}


def at_slots(log_density: Callable[[Array, Theta], Array], given: Array, theta: Theta) -> Array:
    """The log-density [H, n] of each of n values at each slot."""
    return jax.vmap(jax.vmap(log_density, in_axes=(0, None)), in_axes=(None, 0))(given, theta)
