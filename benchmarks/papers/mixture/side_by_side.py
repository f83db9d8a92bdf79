"""Many chains of one sampler as one program, on a CPU or an accelerator: of all data sets and all ε of one size.

Of a sweep only running figures are kept, and of every hundredth the density.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.mixture.problems import BASE, CONCENTRATION
from dpjax import mixture

CAPACITY = 64
"""Slots of each chain; a sweep that needs more leaves the state as it is, and is counted."""

THIN = 100
"""Sweeps of a block, at the end of which the density is kept."""

BLOCKS = 5
"""Blocks of one call."""

WARMUP = 0.2
"""The share of the sweeps that is thrown away."""


class Chains(NamedTuple):
    """What chains are of: values [chain, n], scales of the noise [chain], keys [chain] and first clusters [chain]."""

    values: jax.Array
    scales: jax.Array
    keys: jax.Array
    groups: jax.Array


class Block(NamedTuple):
    """What is kept of the sweeps of a block: of each chain, or with a leading axis of blocks.

    Attributes
    ----------
    clusters
        The number of clusters after each sweep [THIN].
    acceptance
        The mean acceptance rate [].
    overflows
        How many sweeps needed more slots [].
    density
        That of the last mixture at the grid [points].
    """

    clusters: Any
    acceptance: Any
    overflows: Any
    density: Any


def algorithm(sampler: mixture.Sampler, values: jax.Array, scale: jax.Array) -> Any:
    """The sampler behind Laplace noise."""
    options = {"component": BASE, "concentration": CONCENTRATION, "capacity": CAPACITY}
    return mixture.gibbs(values, dpjax.Laplace(scale), sampler=sampler, **options)


@partial(jax.jit, static_argnames="sampler")
def begin(sampler: mixture.Sampler, chains: Chains) -> mixture.MixtureState:
    """States [chain, ...] with clusters of neighbours."""

    def one(values: jax.Array, scale: jax.Array, key: jax.Array, number: jax.Array) -> Any:
        n = values.shape[0]
        labels = jnp.argsort(jnp.argsort(values)) * jnp.minimum(number, n) // n
        return algorithm(sampler, values, scale).init(labels, jax.random.fold_in(key, 0))

    return jax.vmap(one)(*chains)


@partial(jax.jit, static_argnames=("sampler", "blocks"), donate_argnames="states")
def advance(
    sampler: mixture.Sampler, blocks: int, grid: jax.Array, chains: Chains, states: mixture.MixtureState, first: int
) -> tuple[mixture.MixtureState, Block]:
    """The states after so many blocks and those [chain, block, ...]; `first` sweeps were made before."""

    def one(values: jax.Array, scale: jax.Array, key: jax.Array, groups: jax.Array, state: Any) -> Any:
        del groups
        step = algorithm(sampler, values, scale).step

        def sweep(state: Any, number: jax.Array) -> Any:
            state, info = step(jax.random.fold_in(key, number), state)
            clusters = jnp.sum(state.counts > 0).astype(jnp.uint8)
            return state, (clusters, info.acceptance_rate, info.overflow)

        def block(state: Any, number: jax.Array) -> Any:
            state, (clusters, rate, overflow) = jax.lax.scan(sweep, state, number + jnp.arange(THIN))
            return state, Block(clusters, jnp.mean(rate), jnp.sum(overflow), density(state.mixing, grid))

        return jax.lax.scan(block, state, first + 1 + THIN * jnp.arange(blocks))

    return jax.vmap(one)(*chains, states)


def density(mixing: mixture.Mixing, grid: jax.Array) -> jax.Array:
    """The density [points] of a mixture, without the mass beyond its slots."""
    theta = {name: leaf[:, None] for name, leaf in mixing.theta.items()}
    weights = mixing.weights / jnp.sum(mixing.weights)
    return jnp.sum(weights[:, None] * jnp.exp(BASE.log_density(grid, theta)), axis=0)


@dataclass(eq=False)
class Run:
    """Chains that go on as long as there is time, and what is kept of them, on the host."""

    sampler: mixture.Sampler
    grid: np.ndarray
    chains: Chains
    states: Any = None
    program: Any = None
    sweeps: int = 0
    seconds: float = 0.0
    blocks: tuple[Block, ...] = ()

    def compile(self) -> None:
        """Draw the starts, and compile the program of a call."""
        self.states = begin(self.sampler, self.chains)
        self.program = advance.lower(self.sampler, BLOCKS, *self.arguments).compile()

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Of the next call."""
        return jnp.asarray(self.grid, float), self.chains, self.states, jnp.asarray(self.sweeps)

    def go_on(self) -> None:
        """Make a call's sweeps."""
        self.states, made = self.program(*self.arguments)
        self.blocks += (jax.tree.map(np.asarray, made),)
        self.sweeps += BLOCKS * THIN

    def kept(self) -> Block:
        """Leaves [chain, block, ...] after the warm-up."""
        found: Block = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *self.blocks)
        return Block(*(leaf[:, int(WARMUP * leaf.shape[1]) :] for leaf in found))
