"""A run of a batch: that of `dpjax.mcmc.run` with the chains and the tuning of every release.

The chains of some releases, side by side, make a whole chunk before those of others. What they move fits the cache of a
processor, and their loops wait for fewer others to end. An accelerator takes all releases at once.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax.base import Key, Model, Parameters, Records
from dpjax.data_augmentation.parameters import ParameterKernel, Tuning, fit_step_size, fit_to_prior
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.refresh import Rates, RefreshTuning
from dpjax.data_augmentation.summed_out import MarginalLikelihood
from dpjax.mcmc.run import Collect, PosteriorRun, advance_chains, choose_capacity, tune_to_draws
from dpjax.mcmc.step import Chains
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState
from dpjax.release import PrivateRelease
from dpjax.runtime.chunk import Chunk, Steps
from dpjax.runtime.devices import BY_CHAIN, num_devices, over_devices, platform_of
from dpjax.runtime.run import Status

__all__ = ["BatchRun", "CollectOfRelease", "map_groups", "most_together"]

SIDE_BY_SIDE = 96
"""The most chains that a processor advances together."""

CollectOfRelease = Callable[[PrivateRelease, GibbsState], Any]
"""``(release, state) -> pytree``: what to keep beside each draw."""


class WithSums(NamedTuple):
    """A release, and the likelihood of the parameters, which sweeps with the records summed out read."""

    release: PrivateRelease
    likelihood: MarginalLikelihood


OF_RELEASE = ("release", "tuning", "refresh", "chain_keys", "chains")
"""The arguments with leading axis [release], which devices share."""


@partial(jit_model, static_argnames=("plan", "collect", "capacity", "group", "common", "mesh"), ahead=True)
@over_devices(by_chain=OF_RELEASE, made=BY_CHAIN)
def run_batch(
    model: Model,
    plan: SweepPlan,
    collect: CollectOfRelease | None,
    capacity: int,
    mesh: Mesh | None,
    group: int,
    common: tuple[bool, ...],
    *,
    release: PrivateRelease,
    tuning: Tuning | None,
    refresh: RefreshTuning | None,
    rates: Rates | None,
    chain_keys: Key,
    chains: Chains,
    steps: Steps,
) -> Chunk:
    """The chunks of `advance_chains` of every release, leaves [release, ...].

    The rates of sweeps and refreshes are the same for all: what is not due is then not made.
    """
    leaves, structure = jax.tree.flatten(release)

    def run_one(given: dict[str, Any]) -> Chunk:
        own = iter(given.pop("own"))
        parts = [leaf[0] if is_common else next(own) for leaf, is_common in zip(leaves, common, strict=True)]
        own_release: Any = jax.tree.unflatten(structure, parts)
        given_release, own_release = own_release if isinstance(own_release, WithSums) else (own_release, own_release)
        collected = bind(collect, given_release)
        if rates is not None:
            given["refresh"] = given["refresh"]._replace(**rates._asdict())
        return advance_chains(model, plan, collected, capacity, None, release=own_release, steps=steps, **given)

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


@jit_model
def tune_all_to_prior(model: Model, keys: Key) -> Tuning:
    """The tuning of each release [release, ...], fitted to draws from the prior of its own."""
    fitted: Tuning = jax.lax.map(partial(fit_to_prior, model=model), keys)
    return fitted


@jit_model
def tune_all_to_draws(model: Model, parameters: Parameters) -> Tuning:
    """The tuning of each release [release, ...] by its own draws [release, chain, draw, ...]."""
    fitted: Tuning = jax.vmap(lambda draws: tune_to_draws(model, draws))(parameters)
    return fitted


@partial(jit_model, static_argnames=("kernel",))
def fit_step_sizes(
    model: Model, kernel: ParameterKernel, keys: Key, tuning: Tuning, parameters: Parameters, records: Records
) -> Tuning:
    """The tunings [release, ...] with the step sizes of `fit_step_size`."""

    def fit(key: Key, *given: Any) -> Any:
        return fit_step_size(key, model, kernel, *given)

    fitted: Tuning = jax.vmap(fit)(keys, tuning, parameters, records)
    return fitted


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchRun(PosteriorRun):
    """A run of `dpjax.sample_batch`: keys, states and tuning have a leading axis [release].

    Parameters
    ----------
    problem
        That of one of the releases; nothing in its plan is left to the warm-up.
    collect
        A function of release and state.
    releases
        In the form of the latent data, leaves [release, ...].
    mesh
        The devices that share the releases; None for one.
    """

    DRAW_AXIS: ClassVar[int] = 1
    SHARED: ClassVar[tuple[str, ...]] = OF_RELEASE
    PROGRAM: ClassVar[Callable[..., Any]] = staticmethod(run_batch)
    TUNE_TO_PRIOR: ClassVar[Any] = staticmethod(tune_all_to_prior)
    TUNE_TO_DRAWS: ClassVar[Any] = staticmethod(tune_all_to_draws)

    releases: PrivateRelease

    @property
    def swept(self) -> Any:
        """The releases as sweeps read them, leaves [release, ...]."""
        return self.releases

    @cached_property
    def common(self) -> tuple[bool, ...]:
        """Which leaves of the releases are the same for all, such as a scale: programs are faster where they know."""
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(self.swept)]
        return tuple(bool(np.all(leaf == leaf[:1])) for leaf in leaves)

    @cached_property
    def most_draws(self) -> int:
        """How many draws a chunk can hold."""
        chains = self.keys.chains.shape
        states = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((prod(chains), *leaf.shape[2:]), leaf.dtype), self.state_shapes
        )
        return choose_capacity(self.problem.model, bind(self.collect, self.problem.release), states)

    @property
    def most_together(self) -> int:
        """The most releases that a device advances side by side."""
        return most_together(self.keys.chains.shape[1], self.mesh)

    @cached_property
    def group(self) -> int:
        """How many releases of each device are advanced side by side."""
        number = len(self.keys.chains) // num_devices(self.mesh)
        most = min(self.most_together, number)
        return max(size for size in range(1, most + 1) if number % size == 0)

    def static(self, status: Status) -> tuple[Any, ...]:
        """Beside those of a run, how many releases are side by side, and what they have in common."""
        return *super().static(status), self.group, self.common

    def arguments(self, status: Status, length: int) -> dict[str, Any]:
        """Those of a run, with all releases and the rates that they share."""
        shared = {"release": self.swept, "rates": rates_of(status.kernel.refresh)}
        return super().arguments(status, length) | shared

    @cached_property
    def first_refresh(self) -> RefreshTuning | None:
        """The refreshes of each release before any draw is made; None where there are none."""
        number, one = len(self.keys.chains), super().first_refresh
        return jax.tree.map(lambda leaf: jnp.asarray(np.repeat(np.asarray(leaf)[None], number, 0)), one)

    def fit_step(self, segment: int, kernel: ParameterKernel, tuning: Tuning, state: GibbsState) -> Tuning:
        """The tunings [release, ...] with step sizes fitted to states [release, chain, ...]."""
        keys = jax.vmap(partial(jax.random.fold_in, data=segment))(self.keys.step_size)
        return fit_step_sizes(self.problem.model, kernel, keys, tuning, state.parameters, state.latent.records)


def rates_of(refresh: RefreshTuning | None) -> Rates | None:
    """The rates, which all releases have."""
    return None if refresh is None else Rates(refresh.sweeps[0], refresh.refreshes[0], refresh.parts[0])


def most_together(num_chains: int, mesh: Mesh | None = None) -> int:
    """The most releases of so many chains each that a device advances side by side."""
    return max(1, SIDE_BY_SIDE // num_chains) if platform_of(mesh) == "cpu" else sys.maxsize
