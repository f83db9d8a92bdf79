"""A run of a batch: that of `dpjax.mcmc.run` with the chains and the tuning of every release.

The chains of some releases, side by side, make a whole chunk before those of others. What they move fits the cache of a
processor, and their loops wait for fewer others to end. An accelerator takes all releases at once.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.parameters import ParameterKernel, Tuning, fit_step_size
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.problem import Problem
from dpjax.data_augmentation.records.unknown_number import check_room
from dpjax.data_augmentation.refresh import Rates, RefreshTuning
from dpjax.mcmc.run import (
    Chains,
    Collect,
    Kernel,
    RunKeys,
    adapt,
    adapt_kernel,
    advance_chains,
    choose_capacity,
    first_refresh,
)
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState
from dpjax.release import PrivateRelease
from dpjax.runtime.chunk import Chunk
from dpjax.runtime.devices import BY_CHAIN, num_devices, over_devices, platform_of
from dpjax.runtime.run import Run, Status

__all__ = ["BatchRun", "CollectOfRelease", "map_groups", "most_together"]

SIDE_BY_SIDE = 96
"""The most chains that a processor advances together."""

CollectOfRelease = Callable[[PrivateRelease, GibbsState], Any]
"""``(release, state) -> pytree``: what to keep beside each draw."""


OF_RELEASE = ("releases", "tuning", "refresh", "chain_keys", "chains")
"""The arguments with leading axis [release], which devices share."""


@partial(jit_model, static_argnames=("plan", "collect", "capacity", "group", "common", "mesh"), ahead=True)
@over_devices(by_chain=OF_RELEASE, arrays=("rates", "start", "length", "thin"), made=BY_CHAIN)
def run_batch(
    model: Model,
    plan: SweepPlan,
    collect: CollectOfRelease | None,
    capacity: int,
    group: int,
    common: tuple[bool, ...],
    mesh: Mesh | None,
    *,
    releases: PrivateRelease,
    tuning: Tuning | None,
    refresh: RefreshTuning | None,
    rates: Rates | None,
    chain_keys: Key,
    chains: Chains,
    start: Array,
    length: Array,
    thin: Array,
) -> Chunk:
    """The chunks of `advance_chains` of every release, leaves [release, ...].

    The rates of sweeps and refreshes are the same for all: what is not due is then not made.
    """
    numbers: dict[str, Any] = {"start": start, "length": length, "thin": thin}
    leaves, structure = jax.tree.flatten(releases)

    def run_one(given: dict[str, Any]) -> Chunk:
        own = iter(given.pop("own"))
        parts = [leaf[0] if is_common else next(own) for leaf, is_common in zip(leaves, common, strict=True)]
        release = jax.tree.unflatten(structure, parts)
        collected = bind(collect, release)
        if rates is not None:
            given["refresh"] = given["refresh"]._replace(**rates._asdict())
        return advance_chains(model, plan, collected, capacity, None, release=release, **given, **numbers)

    own = [leaf for leaf, is_common in zip(leaves, common, strict=True) if not is_common]
    given = {"own": own, "tuning": tuning, "refresh": refresh, "chain_keys": chain_keys, "chains": chains}
    chunks: Chunk = map_groups(run_one, given, group)
    return chunks


def map_groups(function: Callable[[Any], Any], trees: Any, group: int) -> Any:
    """A function of one release for all [release, ...], so many of which are side by side.

    As `jax.lax.map` by batches that divide the number, but also for empty arrays, such as a local release's sums.
    """
    number = len(jax.tree.leaves(trees)[0])
    parts = jax.tree.map(lambda leaf: leaf.reshape(number // group, group, *leaf.shape[1:]), trees)
    made = jax.lax.map(jax.vmap(function), parts)
    return jax.tree.map(lambda leaf: leaf.reshape(number, *leaf.shape[2:]), made)


def bind(collect: CollectOfRelease | None, release: PrivateRelease) -> Collect | None:
    """What to keep of a state under this release."""
    return None if collect is None else partial(collect, release)


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchRun(Run):
    """A run of `dpjax.sample_batch`.

    Parameters
    ----------
    problem
        That of the first release.
    releases
        In the form of the latent data, leaves [release, ...].
    keys
        Those of the run of each release, leaves [release, ...].
    mesh
        The devices that share the releases; None for one.
    reports
        Whether acceptance rates and other reports are kept; without them the program is smaller.
    """

    DRAW_AXIS: ClassVar[int] = 1
    SHARED: ClassVar[tuple[str, ...]] = OF_RELEASE
    PROGRAM: ClassVar[Callable[..., Any]] = staticmethod(run_batch)

    problem: Problem
    releases: PrivateRelease
    collect: CollectOfRelease | None
    keys: RunKeys
    reports: bool = True

    @cached_property
    def common(self) -> tuple[bool, ...]:
        """Which leaves of the releases are the same for all, such as a scale: programs are faster where they know."""
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(self.releases)]
        return tuple(bool(np.all(leaf == leaf[:1])) for leaf in leaves)

    @cached_property
    def state_shapes(self) -> GibbsState:
        """The shapes [release, chain, ...] and types of the chains' states."""
        return self.problem.state_shapes(self.keys.chains.shape)

    @cached_property
    def most_draws(self) -> int:
        """How many draws a chunk can hold."""
        chains = self.keys.chains.shape
        states = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((prod(chains), *leaf.shape[2:]), leaf.dtype), self.state_shapes
        )
        return choose_capacity(self.problem.model, bind(self.collect, self.problem.release), states)

    @cached_property
    def group(self) -> int:
        """How many releases of each device are advanced side by side."""
        number = len(self.keys.chains) // num_devices(self.mesh)
        most = min(most_together(self.keys.chains.shape[1], self.mesh), number)
        return max(size for size in range(1, most + 1) if number % size == 0)

    def capacity(self, status: Status) -> int:
        """How many draws a chunk can hold, whatever the tuning."""
        return self.most_draws

    def static(self, status: Status) -> tuple[Any, ...]:
        """Model, plan, what is collected, capacity, groups, what releases have in common, and devices."""
        fixed = self.most_draws, self.group, self.common, self.mesh
        return self.problem.model, self.problem.plan, self.collect, *fixed

    def arguments(self, status: Status, length: int) -> dict[str, Any]:
        """Releases, tuning, keys and chains, and the numbers of the chunk."""
        return {
            "releases": self.releases,
            "tuning": status.kernel.tuning,
            "refresh": status.kernel.refresh,
            "rates": rates_of(status.kernel.refresh),
            "chain_keys": self.keys.chains,
            "chains": status.chains,
            **self.numbers(status, length),
        }

    @cached_property
    def first_refresh(self) -> RefreshTuning | None:
        """The refreshes of each release before any draw is made; None where there are none."""
        number, one = len(self.keys.chains), first_refresh(self.problem)
        return jax.tree.map(lambda leaf: jnp.asarray(np.repeat(np.asarray(leaf)[None], number, 0)), one)

    def open(self, states: GibbsState, tuning: Tuning | None) -> Status:
        """The status before the first step, with chains at the given starts, to which the step sizes are fitted."""
        kernel = Kernel(self.problem.plan, adapt_step_sizes(self, 0, tuning, states), self.first_refresh)
        return self.open_segment(0, kernel, states)

    def open_segment(self, segment: int, kernel: Kernel, states: GibbsState) -> Status:
        """The status at the start of a segment, with empty arrays for its draws."""
        status = self.before_draws(segment, kernel, states)
        return status._replace(draws=self.allocate(status, self.schedule[segment].draws))

    def before_draws(self, segment: int, kernel: Kernel, states: GibbsState) -> Status:
        """The status at the start of a segment, without room for draws; tuning and states may be shapes."""
        accepted = np.zeros((*self.keys.chains.shape, self.problem.release.n), np.int32) if self.reports else None
        return Status(segment, 0, kernel, Chains(states, accepted))

    def lower_first(self, tuning: Tuning | None) -> Any:
        """The program of the first chunk, not compiled yet, from the shapes of the tuning."""
        kernel = Kernel(self.problem.plan, tuning, self.first_refresh)
        return self.lower(self.before_draws(0, kernel, self.state_shapes))

    def close_segment(self, status: Status) -> Status:
        """Adapt to the segment's draws where the schedule says so, and open the next segment."""
        check_room(self.releases, status.draws.reported)
        kernel = adapt_kernel(self, status, adapt_all, adapt_step_sizes)
        return self.open_segment(status.segment + 1, kernel, status.chains.state)


def rates_of(refresh: RefreshTuning | None) -> Rates | None:
    """The rates, which all releases have."""
    return None if refresh is None else Rates(refresh.sweeps[0], refresh.refreshes[0], refresh.parts[0])


def most_together(num_chains: int, mesh: Mesh | None = None) -> int:
    """The most releases of so many chains each that a device advances side by side."""
    return max(1, SIDE_BY_SIDE // num_chains) if platform_of(mesh) == "cpu" else sys.maxsize


@jit_model
def adapt_all(model: Model, parameters: Parameters) -> Tuning:
    """The tuning of each release [release, ...] by its own draws [release, chain, draw, ...]."""
    fitted: Tuning = jax.vmap(lambda draws: adapt(model, draws))(parameters)
    return fitted


def adapt_step_sizes(run: BatchRun, segment: int, tuning: Tuning | None, states: GibbsState) -> Tuning | None:
    """The tuning of a segment, with step sizes fitted to where the chains are, states [release, chain, ...]."""
    kernel = run.problem.plan.parameter_kernel
    if tuning is None or kernel is None:
        return tuning
    keys = jax.vmap(partial(jax.random.fold_in, data=segment))(run.keys.step_size)
    return fit_step_sizes(run.problem.model, kernel, keys, tuning, states.parameters, states.latent.records)


@partial(jit_model, static_argnames=("kernel",))
def fit_step_sizes(
    model: Model, kernel: ParameterKernel, keys: Key, tuning: Tuning, parameters: Parameters, records: Records
) -> Tuning:
    """The tunings [release, ...] with the step sizes of `fit_step_size`."""

    def fit(key: Key, *given: Any) -> Any:
        return fit_step_size(key, model, kernel, *given)

    fitted: Tuning = jax.vmap(fit)(keys, tuning, parameters, records)
    return fitted
