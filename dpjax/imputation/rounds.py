"""Decisions on the offers of a systematic scan, many side by side: for accelerators, where every step costs the same.

Whether offer i is accepted depends on the offers before it that were. Within a window of neighbouring offers all are
first taken for accepted. Each *round* decides on all of them at once, given what those before them did in the round
before: the first decision is right in the first round, the second in the second, and so on. When a round changes no
decision, all are those of the scan in turn, which takes at most as many rounds as the window has offers.

Where the statistics are whole numbers the sums are exact, and so are the decisions. Otherwise the two forms add in
another order, so that their sums differ in the last bits, and a decision where the uniform is that close to its bound.
"""

from math import isqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array
from dpjax.imputation.offers import Decisions, accept
from dpjax.release import Release

__all__ = ["WINDOW", "decide_in_rounds", "default_window"]

WINDOW = 256
"""The offers of a window. Of a regression by Laplace noise they take 1.4 rounds at ε = 0.1, 2.3 at 1 and 9 at 5."""


class Round(NamedTuple):
    """The rounds made [], the decisions [window] of the last, and whether it changed any []."""

    number: Array
    accepted: Array
    broken: Array
    changed: Array


def default_window() -> int:
    """How many offers are decided on side by side where nothing is said: 1 on a CPU, which gains nothing by it."""
    return 1 if jax.default_backend() == "cpu" else WINDOW


def decide_in_rounds(release: Release, residual: Array, changes: Array, log_uniforms: Array, window: int) -> Decisions:
    """The decisions on offers that change the sum by the columns of changes [d, offers], `window` at a time.

    Parameters
    ----------
    residual : [d]
        The residual before the first offer.
    log_uniforms : [offers]
        Each offer is accepted if this is below the log of its acceptance ratio.
    window
        How many offers are decided on side by side; the last window may hold fewer, and no window more than all.
    """
    d, count = changes.shape
    width = min(window, count)
    spare = -count % width
    columns = jnp.pad(changes, ((0, 0), (0, spare))).reshape(d, -1, width).swapaxes(0, 1)
    # No ratio is above an infinite bound: the spare places of the last window accept nothing.
    bounds = jnp.pad(log_uniforms, (0, spare), constant_values=jnp.inf).reshape(-1, width)

    def decide(residual: Array, offers: tuple[Array, Array]) -> tuple[Array, Round]:
        last = decide_window(release, residual, *offers)
        return residual - jnp.sum(jnp.where(last.accepted[None], offers[0], 0), axis=1), last

    residual, last = jax.lax.scan(decide, residual, (columns, bounds))
    accepted, broken = (bits.reshape(-1)[:count] for bits in (last.accepted, last.broken))
    return Decisions(residual, release.log_density_at(residual), accepted, broken, jnp.sum(last.number))


def decide_window(release: Release, residual: Array, changes: Array, log_uniforms: Array) -> Round:
    """The last round of a window of offers that change the sum by changes [d, window]."""
    width = log_uniforms.shape[0]

    def decide(given: Round) -> Round:
        before = residual[:, None] - sum_before(jnp.where(given.accepted[None], changes, 0))
        log_densities = release.log_densities_at(before)
        accepted, broken = accept(release.log_densities_at(before - changes), log_densities, log_uniforms)
        return Round(given.number + 1, accepted, broken, jnp.any(accepted != given.accepted))

    start = Round(jnp.array(0), jnp.ones(width, bool), jnp.zeros(width, bool), jnp.array(True))
    return jax.lax.while_loop(is_unfinished, decide, start)


def is_unfinished(last: Round) -> Array:
    """Whether decisions may still change []: after as many rounds as there are offers none does."""
    return last.changed & (last.number < last.accepted.shape[0])


def sum_before(columns: Array) -> Array:
    """The sum [d, window] of the columns [d, window] before each: of the groups before its own, and within that.

    By masks and not a running sum: few steps of an accelerator, in which no number that is none reaches what is before
    it. In two levels, because the work of one grows with the square of the window.
    """
    d, width = columns.shape
    side = isqrt(width - 1) + 1
    groups = jnp.pad(columns, ((0, 0), (0, -width % side))).reshape(d, -1, side)
    sums = earlier_sums(jnp.sum(groups, axis=2))[:, :, None] + earlier_sums(groups)
    return sums.reshape(d, -1)[:, :width]


def earlier_sums(values: Array) -> Array:
    """At each place of the last axis the sum of what is before it [..., m]."""
    places = jnp.arange(values.shape[-1])
    earlier = jnp.broadcast_to(places[:, None] < places[None, :], (*values.shape, values.shape[-1]))
    return jnp.sum(jnp.where(earlier, values[..., None], 0), axis=-2)
