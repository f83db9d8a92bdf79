"""One compiled program that advances all chains by any number of draws."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.parameters import Tuning
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.sweep import GibbsInfo, build_sweep
from dpjax.diagnostics.streaming import StreamingSummary
from dpjax.models.recipe import jit_model
from dpjax.models.simulation import GibbsState
from dpjax.posterior.streamed import Digested
from dpjax.release import PrivateRelease
from dpjax.runtime.chunk import CHAIN_AXES, Chunk, make_draws, most_draws, num_bytes
from dpjax.runtime.devices import over_devices, to_host

Collect = Callable[[GibbsState], Any]

MANY_BYTES = 2**22
"""Chains whose latent records take more are advanced one after another: a sweep makes arrays some times as large, and
side by side those of all chains would be held at once."""

__all__ = ["drawn_of", "num_numbers", "numbers_of", "read_digest", "reports_of"]


class Chains(NamedTuple):
    """What the chains carry from step to step.

    Attributes
    ----------
    state
        The states, leading axis [chain].
    accepted
        How many proposals each record has accepted since sampling began, int32 [chain, n]; None where no rates are
        kept.
    """

    state: GibbsState
    accepted: Array | np.ndarray | None


class Draw(NamedTuple):
    """What is kept of a step.

    Attributes
    ----------
    parameters
        The parameters.
    derived
        What the model derives from them.
    reported
        What it reports of the records.
    info
        Reports on the steps since the last draw: rates and flags are averaged, counts summed.
    collected
        What the user's function took from the state.
    """

    parameters: Parameters
    derived: Parameters
    reported: Records
    info: dict[str, Array]
    collected: Any


def advance_chains(
    model: Model,
    plan: SweepPlan,
    collect: Collect | None,
    capacity: int,
    mesh: Mesh | None,
    *,
    release: PrivateRelease,
    tuning: Tuning | None,
    chain_keys: Key,
    chains: Chains,
    start: Array,
    length: Array,
    thin: Array,
) -> Chunk:
    """Advance all chains by ``length * thin`` steps of the posterior's kernel and keep every ``thin``-th.

    See `make_draws`, whose states are here `Chains` and whose draws are `Draw`.

    Parameters
    ----------
    mesh
        The devices that share the chains, for `over_devices`; nothing here depends on it.
    """
    sweep = build_sweep(model, release, plan)

    def step(key: Key, chain: Chains) -> tuple[Chains, dict[str, Array]]:
        state, info = sweep.move(key, chain.state, tuning)
        if chain.accepted is None:
            return Chains(state, None), {}
        accepted = chain.accepted + info.imputation.accepted.astype(chain.accepted.dtype)
        return Chains(state, accepted), report(info)

    def complete(key: Key, chain: Chains, total: dict[str, Array]) -> tuple[Chains, dict[str, Array]]:
        state, num_nonfinite = sweep.complete(key, chain.state)
        counts = {} if chain.accepted is None else {"num_nonfinite": total["num_nonfinite"] + num_nonfinite}
        return chain._replace(state=state), total | counts

    def keep(chain: Chains, total: dict[str, Array]) -> Draw:
        info = {name: leaf / thin.astype(leaf.dtype) if is_rate(leaf) else leaf for name, leaf in total.items()}
        derived = {} if model.derived is None else model.derived(chain.state.parameters)
        reported = {} if model.reported is None else model.reported(chain.state.latent.records)
        collected = None if collect is None else collect(chain.state)
        return Draw(chain.state.parameters, derived, reported, info, collected)

    return make_draws(
        step,
        keep,
        chain_keys=chain_keys,
        states=chains,
        start=start,
        length=length,
        thin=thin,
        capacity=capacity,
        complete=complete,
        in_turn=num_bytes(chains.state.latent.records) > MANY_BYTES * chain_keys.shape[0],
    )


run_chunk = jit_model(
    over_devices(
        by_chain=("chain_keys", "chains"),
        arrays=("release", "tuning", "start", "length", "thin"),
        made=CHAIN_AXES,
    )(advance_chains),
    static_argnames=("plan", "collect", "capacity", "mesh"),
)
"""The compiled program of `advance_chains`."""


def report(info: GibbsInfo) -> dict[str, Array]:
    """The scalar reports on a chain's step by name; counts [n] are carried, and other arrays are not kept."""
    kept = {"acceptance_rate": info.imputation.acceptance_rate, "num_nonfinite": info.num_nonfinite}
    for path, leaf in jax.tree.leaves_with_path({"centred": info.centred, "interweaving": info.interweaving}):
        if jnp.ndim(leaf) == 0:
            # A BlackJAX kernel with a fixed number of steps reports it as a plain number.
            kept[jax.tree_util.keystr(path, simple=True, separator="_")] = jnp.asarray(leaf)
    # A trajectory that diverged has no energy, and the checker of numbers that are none takes its report for a fault.
    kept = {
        name: jnp.where(jnp.isnan(leaf), jnp.inf, leaf) if "energy" in name else leaf for name, leaf in kept.items()
    }
    # The share of steps is the average of a flag.
    return {name: leaf.astype(float) if leaf.dtype == bool else leaf for name, leaf in kept.items()}


def is_rate(leaf: Array) -> bool:
    """Whether a report is averaged over steps; counts are summed."""
    return jnp.issubdtype(leaf.dtype, jnp.floating)


def choose_capacity(model: Model, collect: Collect | None, state: GibbsState) -> int:
    """How many draws of all chains fit the memory for one chunk; `state` is [chain, ...]."""

    def kept(state: GibbsState) -> Any:
        derived = None if model.derived is None else model.derived(state.parameters)
        reported = None if model.reported is None else model.reported(state.latent.records)
        return state.parameters, derived, reported, None if collect is None else collect(state)

    return most_draws(jax.eval_shape(jax.vmap(kept), state))


def drawn_of(draws: Draw) -> dict[str, Any]:
    """What is kept under its name of each draw."""
    return {**draws.parameters, **draws.derived, **draws.reported}


def numbers_of(draws: Draw, length: int) -> np.ndarray:
    """The first `length` of the buffers [draw, chain, ...] as rows of numbers [draw, chain, k]."""
    leaves = [to_host(leaf)[:length] for leaf in [*drawn_of(draws).values(), *draws.info.values()]]
    return np.concatenate([leaf.reshape(*leaf.shape[:2], -1).astype(float) for leaf in leaves], axis=2)


def num_numbers(draws: Draw) -> int:
    """How many numbers there are in a row."""
    return sum(prod(leaf.shape[2:]) for leaf in [*drawn_of(draws).values(), *draws.info.values()])


def read_digest(draws: Draw, digest: StreamingSummary) -> Digested:
    """The digest with the names and shapes of what the arrays [chain, draw, ...] would hold."""
    drawn, reports = ({name: leaf.shape[2:] for name, leaf in part.items()} for part in (drawn_of(draws), draws.info))
    return Digested(drawn, reports, digest)


def reports_of(draws: Draw, digested: Digested) -> dict[str, np.ndarray]:
    """The reports over all draws [chain, 1]: rates are averaged, counts summed."""

    def read(name: str, like: Any) -> np.ndarray:
        means = digested.report(name)
        is_rate = like.dtype.kind == "f"
        return (means if is_rate else np.round(means * digested.digest.number)).astype(like.dtype)

    return {name: read(name, leaf) for name, leaf in draws.info.items()}
