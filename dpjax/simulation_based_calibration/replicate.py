"""Replicates: true parameters and records with releases of them, and the ranks of the truth among draws."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.compilation import jit_quickly
from dpjax.numbered import jit_model
from dpjax.release import PrivateRelease
from dpjax.simulate import draw_position
from dpjax.states import GibbsState, Position, init_state

__all__ = ["LOG_DENSITY", "Quantities", "Ranked", "Replicates", "judge", "simulate"]

LOG_DENSITY = "log_density"
"""The name of the log-density of the release given the records, which is always ranked."""

Quantities = Callable[[Parameters, Records, PrivateRelease], dict[str, Any]]


class Replicates(NamedTuple):
    """What replicates report, by name, each [replicate, ...].

    Attributes
    ----------
    ranks
        How many draws are below the truth.
    autocorrelation
        The correlation of neighbouring draws.
    """

    ranks: dict[str, Array]
    autocorrelation: dict[str, Array]


@dataclass(frozen=True)
class Ranked:
    """What is ranked of a state, computed alike for the truth and for draws; equal where the quantities are."""

    quantities: Quantities | None

    def __call__(self, release: PrivateRelease, state: GibbsState) -> dict[str, Array]:
        """Parameters, quantities and log-density by name."""
        parameters, records = position = Position(state.parameters, state.latent.records)
        more = {} if self.quantities is None else self.quantities(parameters, records, release)
        # What a chain carries of the release is summed from step to step, and may be off by rounding.
        log_density = init_state(release, position).latent.log_density
        return {**parameters, **jax.tree.map(jnp.asarray, more), LOG_DENSITY: log_density}


@partial(jit_model, static_argnames=("ranked",))
def simulate(
    model: Model, ranked: Ranked, key: Key, template: PrivateRelease, numbers: Array
) -> tuple[PrivateRelease, dict[str, Array]]:
    """Releases of records from the model, parameters from the prior, and what is ranked of them, [replicate, ...].

    Replicate k uses ``fold_in(key, k)``, and the mechanism, statistic and n of the template.
    """

    def one(number: Array) -> tuple[PrivateRelease, dict[str, Array]]:
        truth_key, release_key = jax.random.split(jax.random.fold_in(key, number))
        truth = draw_position(truth_key, model, template.n)
        release = template.sample(release_key, truth.records)
        return release, ranked(release, init_state(release, truth))

    simulated: tuple[PrivateRelease, dict[str, Array]] = jax.vmap(one)(numbers)
    return simulated


@jit_quickly
def judge(key: Key, numbers: Array, draws: dict[str, Array], truths: dict[str, Array]) -> Replicates:
    """The reports on draws [replicate, draw, ...]; replicate k uses ``fold_in(key, k)``."""

    def one(number: Array, draws: dict[str, Array], truth: dict[str, Array]) -> Replicates:
        ranks = rank(jax.random.fold_in(key, number), draws, truth)
        return Replicates(ranks, jax.tree.map(autocorrelation, draws))

    return jax.vmap(one)(numbers, draws, truths)


def rank(key: Key, draws: dict[str, Array], truth: dict[str, Array]) -> dict[str, Array]:
    """How many draws [draw, ...] are below the truth [...]; among equal ones its place is drawn at random."""
    ranks = {}
    for index, (name, leaf) in enumerate(draws.items()):
        below = jnp.sum(leaf < truth[name][None], axis=0)
        equal = jnp.sum(leaf == truth[name][None], axis=0)
        ranks[name] = below + jax.random.randint(jax.random.fold_in(key, index), equal.shape, 0, equal + 1)
    return ranks


def autocorrelation(draws: Array) -> Array:
    """The correlation [...] of neighbouring draws [draw, ...]; 0 for constant ones."""
    centred = draws.astype(float) - jnp.mean(draws.astype(float), axis=0, keepdims=True)
    variance = jnp.sum(centred**2, axis=0)
    return jnp.sum(centred[1:] * centred[:-1], axis=0) / jnp.where(variance > 0, variance, 1.0)
