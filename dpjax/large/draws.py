"""Draws of parameters under the normal law of the sum, before anything is asked about that law."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax.base import Key, Model
from dpjax.large.moments import Source, make_points
from dpjax.large.noise import simulate_variance, smooth
from dpjax.large.run import Draw, Run, Status, begin, make_chunk
from dpjax.large.schedule import make_schedule
from dpjax.large.starts import check_starts, find_starts
from dpjax.release import Release
from dpjax.running.loop import finish
from dpjax.threads import one_blas_thread

__all__ = ["Drawn", "Size", "default_points", "draw"]

DEFAULT_POINTS, DEFAULT_OF_COVARIANCE = 1_024, 216
"""Points of quadrature for all moments, and where the mean is known."""

REFINEMENT = 2
"""How much finer the rule is that the quadrature is compared with."""


class Size(NamedTuple):
    """The numbers of chains, steps of warm-up, draws kept of each chain, and points of quadrature."""

    num_chains: int
    num_warmup: int
    num_samples: int
    num_points: int


def default_points(source: Source) -> int:
    """The number of points: the mean has to be known √n times better than the covariance."""
    return DEFAULT_OF_COVARIANCE if source.declared[0] else DEFAULT_POINTS


class RunKeys(NamedTuple):
    """The parts of the one key of a run; `chains` has one key for each chain [chain]."""

    rules: Key
    noise: Key
    starts: tuple[Key, Key, Key]
    chains: Key
    skewness: Key


@partial(jax.jit, static_argnames="num_chains")
def split_key(key: Key, num_chains: int) -> RunKeys:
    """The keys of a run; chain i has ``fold_in(key, i)`` of one of them."""
    rules, noise, prior, candidates, spread, chains, skewness = jax.random.split(key, 7)
    by_chain = jax.vmap(partial(jax.random.fold_in, chains))(jnp.arange(num_chains))
    return RunKeys(rules, noise, (prior, candidates, spread), by_chain, skewness)


class Drawn(NamedTuple):
    """A run and what it has drawn.

    Attributes
    ----------
    run
        What stays as it is.
    status
        How far it has come.
    finer
        The rule that its quadrature is compared with.
    num_points
        Those of its own.
    key
        For a look at the law of the sum.
    """

    run: Run
    status: Status
    finer: Any
    num_points: int
    key: Key

    @property
    def draws(self) -> Draw:
        """All draws made [chain, draw, ...]."""
        return jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *self.status.draws)


def draw(
    key: Key,
    model: Model,
    release: Release,
    source: Source,
    size: Size,
    progress: bool,
    mesh: Mesh | None,
) -> Drawn:
    """The chains, with no look at how well the normal law holds."""
    release = release.with_mechanism(smooth(release.mechanism))
    keys = split_key(key, size.num_chains)
    rules = [make_points(keys.rules, model, source, size.num_points, refinement) for refinement in (1, REFINEMENT)]
    simulated = simulate_variance(keys.noise, release)
    with one_blas_thread():
        starts = find_starts(keys.starts, model, release, source, rules[0], simulated, size.num_chains)
        check_starts(starts, release)
        settled = (model, release, source, rules[0], simulated, starts.tuning)
        run = Run(*settled, make_schedule(size.num_warmup, size.num_samples), starts.places, keys.chains, mesh)
        status = finish(run.schedule, begin(run), partial(make_chunk, run), None, progress)
    return Drawn(run, status, rules[1], size.num_points, keys.skewness)
