"""Whole numbers behind a channel: each record has a window of candidates, drawn so that it says nothing of the record.

Candidates are c + s (k - u) for k = 0, ..., W - 1, with an offset u uniform in 0..W - 1 and a stride s drawn without
looking at c. Had the record been any other of the candidates, the same window would have been as likely; so given the
windows the records have their density restricted to them, from which a draw is exact and never rejected, and out of
which they can be summed while the parameters move. Nothing is cut off: over sweeps the windows reach every number.
"""

from typing import NamedTuple, TypeGuard

import jax
import jax.numpy as jnp

from dpjax.base import Array, ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters, Records
from dpjax.mechanisms.base import can_sample
from dpjax.mechanisms.spread import draws_of, width_by_density
from dpjax.numerics import proper_density
from dpjax.release import LocalRelease, PrivateRelease
from dpjax.states import init_latent

WINDOW = 16
"""Candidates of a record. With noise of scale 3 the sweeps of a Poisson regression gained nothing from more."""

MAX_DOUBLINGS = 20
"""The strides are the powers of two up to two to this."""

NOISE_DRAWS = 64
NOISE_WIDTHS = 6


class Windows(NamedTuple):
    """Candidates [W, n] of the records, and the log-density [W, n] of the released values given each."""

    candidates: Array
    log_channel: Array


def has_windows(release: PrivateRelease, model: Model) -> TypeGuard[LocalRelease]:
    """Whether the release shows whole numbers through a channel, one for each record."""
    return isinstance(release, LocalRelease) and model.count_field is not None and model.count_field == release.field


def draw_windows(key: Key, release: LocalRelease, records: Records, doublings: Array) -> Windows:
    """Windows around the records; all have one stride, a power of two up to `doublings`, such as `count_doublings`."""
    offset_key, stride_key = jax.random.split(key)
    values = records[release.field]
    stride = 2 ** jax.random.randint(stride_key, (), 0, doublings + 1, values.dtype)
    offsets = jax.random.randint(offset_key, values.shape, 0, WINDOW, values.dtype)
    candidates = values[None] + stride * (jnp.arange(WINDOW, dtype=values.dtype)[:, None] - offsets[None])
    log_channel = jax.vmap(lambda row: release.log_densities(records | {release.field: row}))(candidates)
    return Windows(candidates, log_channel)


def count_doublings(release: LocalRelease) -> Array:
    """How often 1 must be doubled [] for windows of that stride to span some deviations of the channel's noise."""
    if can_sample(release.channel):
        width = jnp.std(draws_of(release.channel, jax.random.key(0), release.values[0], NOISE_DRAWS))
    else:
        width = width_by_density(release.channel, release.values[0])
    wanted = jnp.log2(NOISE_WIDTHS * width / WINDOW)
    return jnp.clip(jnp.ceil(jnp.nan_to_num(wanted)), 0, MAX_DOUBLINGS).astype(int)


def log_weights(
    model: Model, release: LocalRelease, windows: Windows, parameters: Parameters, records: Records
) -> Array:
    """The log-density [W, n] of each candidate and of the value released for it, given the parameters.

    Where that is not a number the candidate is impossible.
    """

    def log_density(row: Array) -> Array:
        return model.log_density(parameters, records | {release.field: row})

    return proper_density(jax.vmap(log_density)(windows.candidates) + windows.log_channel)


def choose_candidates(key: Key, windows: Windows, weights: Array) -> Array:
    """One candidate [n] for each record, with probabilities proportional to exp(weights)."""
    chosen = jax.random.categorical(key, weights, axis=0)
    return jnp.take_along_axis(windows.candidates, chosen[None], axis=0)[0]


def build_window_kernel(model: Model, release: LocalRelease) -> ImputationKernel:
    """Exact draws of all records within windows: they leave p(records | parameters, release) invariant."""
    doublings = count_doublings(release)

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        window_key, choice_key = jax.random.split(rng_key)
        windows = draw_windows(window_key, release, latent.records, doublings)
        weights = log_weights(model, release, windows, parameters, latent.records)
        drawn = latent.records | {release.field: choose_candidates(choice_key, windows, weights)}
        return init_latent(release, drawn), ImputationInfo(jnp.ones(()), jnp.ones(release.n, int), jnp.array(0))

    return step
