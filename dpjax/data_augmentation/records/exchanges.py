"""Counts whose totals are known: the records of each total exchange some of their counts, in pairs.

A total of areas may be published as it is beside counts of the areas that were rounded, suppressed or perturbed. A
record alone cannot change its count then. All records whose counts enter the same totals are matched at random, and
each pair moves a number from one to the other. That number is drawn exactly within a random window around 0.
"""

from functools import reduce
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail, is_traced
from dpjax.base import Array, ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters, Records
from dpjax.data_augmentation.records.local import WINDOW, count_doublings
from dpjax.models.simulation import init_latent, position_shapes
from dpjax.numerics import proper_density
from dpjax.release import Microdata, PrivateRelease, Release

__all__ = ["build_exchange_kernel", "has_known_totals", "slopes_of", "with_known_totals"]

MAX_DOUBLINGS = 12
"""Largest exponent of the strides of windows, which are powers of two, where nothing was released of the counts."""

FAR = 7
"""A count at which a total is compared with what it is at 0 and 1."""

REMEDY = "Give the totals noise of a small scale, such as dpjax.Gaussian(0.5), or leave them out."


def has_known_totals(release: PrivateRelease) -> TypeGuard[Microdata]:
    """Whether a sum over the records is known beside what was released of each of them."""
    return bool(release.fields) and release.summed is not None and release.summed.mechanism.sums.known


def build_exchange_kernel(model: Model, release: Microdata, hidden: set[str]) -> ImputationKernel:
    """A kernel that leaves p(records | parameters, release) invariant where totals of a count are known.

    Parameters
    ----------
    hidden
        The fields that are not wholly known.

    Raises
    ------
    ValueError
        If more than a count is hidden, or the totals are not sums of counts in which each record has a part.
    """
    name = counted_field(model, hidden)
    summed = release.summed
    assert summed is not None
    check_linear(model, release, summed, name)
    spans = [jnp.max(count_doublings(part)) for part in release.noisy_parts(name).values()]
    doublings = reduce(jnp.maximum, spans) if spans else jnp.array(MAX_DOUBLINGS)

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        match_key, first_key, stride_key, offset_key, choice_key = jax.random.split(rng_key, 5)
        records = latent.records
        present = records[name]
        partner, sign = match(match_key, slopes_of(summed, records, name), first_key)
        stride = 2 ** jax.random.randint(stride_key, (), 0, doublings + 1, present.dtype)
        offset = of_first(sign, partner, jax.random.randint(offset_key, present.shape, 0, WINDOW, present.dtype))

        def moved(place: Array) -> Array:
            return present + sign.astype(present.dtype) * stride * (place - offset)

        def log_weights(place: Array) -> Array:
            changed = records | {name: moved(place)}
            own = proper_density(model.log_density(parameters, changed) + release.log_densities(changed))
            return own + own[partner]

        weights = jax.vmap(log_weights)(jnp.arange(WINDOW, dtype=present.dtype))
        chosen = of_first(sign, partner, jax.random.categorical(choice_key, weights, axis=0).astype(present.dtype))
        drawn = init_latent(release, records | {name: moved(chosen)})
        return drawn, ImputationInfo(jnp.ones(()), jnp.ones(release.n, int), jnp.array(0))

    return step


def counted_field(model: Model, hidden: set[str]) -> str:
    """The one field that is hidden, if it is a count, or an error."""
    shapes = position_shapes(model, model.num_records or 1).records
    if len(hidden) == 1:
        (name,) = hidden
        if jnp.issubdtype(shapes[name].dtype, jnp.integer) and shapes[name].ndim == 1:
            return name
    given = f"imwg(...) with known totals beside records of which {sorted(hidden)} are hidden"
    return fail("imputation", given, "one hidden field of whole numbers", REMEDY)


def slopes_of(summed: Release, records: Records, name: str) -> Array:
    """What one more of a count adds to each total [d, n]."""
    at = [summed.contributions(records | {name: jnp.full_like(records[name], count)}) for count in (0, 1)]
    return at[1] - at[0]


def check_linear(model: Model, release: Microdata, summed: Release, name: str) -> None:
    """Raise unless each record adds a multiple of its count, and each to some total."""
    if is_traced(release):
        return
    key = jax.random.key(0)
    records = release.hold(model.sample_records(key, model.sample_prior(key), release.n))
    far = {count: records | {name: jnp.full_like(records[name], count)} for count in (0, FAR)}
    slopes = np.asarray(slopes_of(summed, records, name))
    difference = np.asarray(summed.contributions(far[FAR]) - summed.contributions(far[0]))
    if release.num_others or not np.allclose(difference, FAR * slopes) or np.any(np.all(slopes == 0, axis=0)):
        given = f"imwg(...) with known totals that are no sums of {name!r} in which each record has a part"
        fail("imputation", given, "totals of counts, such as those of the groups that all units are in", REMEDY)


def match(key: Key, slopes: Array, first_key: Key) -> tuple[Array, Array]:
    """For each record [n] another one of the same totals, and 1 for the first of a pair, -1 for the second.

    Records without another one are matched with themselves, and have 0.
    """
    n = slopes.shape[1]
    order = jnp.lexsort((jax.random.uniform(key, (n,)), *slopes))
    rank = jnp.zeros(n, int).at[order].set(jnp.arange(n))
    place = rank + jax.random.randint(first_key, (), 0, 2)
    sign = 1 - 2 * (place % 2)
    other = rank + sign
    partner = order[jnp.clip(other, 0, n - 1)]
    paired = (other >= 0) & (other < n) & jnp.all(slopes == slopes[:, partner], axis=0)
    return jnp.where(paired, partner, jnp.arange(n)), jnp.where(paired, sign, 0)


def of_first(sign: Array, partner: Array, numbers: Array) -> Array:
    """Numbers [n] that both records of a pair have from the first of them."""
    return jnp.where(sign < 0, numbers[partner], numbers)


def with_known_totals(release: Microdata, name: str, ends: tuple[Array, Array], records: Records) -> Records:
    """The records [n] with counts changed within their ends [n] until the totals are as released, if that can be.

    Each record takes its share of what the smallest of its totals lacks, and what is left then goes to one after
    another.
    """
    summed = release.summed
    assert summed is not None
    slopes = slopes_of(summed, records, name)
    own = jnp.argmin(jnp.where(slopes != 0, jnp.sum(slopes != 0, axis=1, keepdims=True), slopes.shape[1] + 1), axis=0)
    slope = jnp.take_along_axis(slopes, own[None], axis=0)[0]
    least, most = jnp.maximum(ends[0], 0.0), ends[1]
    counts = records[name].astype(slope.dtype)

    def lacking(counts: Array) -> Array:
        contributions = summed.contributions(records | {name: counts.astype(records[name].dtype)})
        return summed.value - jnp.sum(contributions, axis=1)

    weight = (counts + 1) * jnp.abs(slope)
    shares = weight / jax.ops.segment_sum(weight, own, slopes.shape[0])[own]
    spread = jnp.trunc(shares * lacking(counts)[own] / slope)
    counts = jnp.clip(counts + spread, jnp.minimum(least, counts), jnp.maximum(most, counts))

    def settle(rest: Array, record: Any) -> tuple[Array, Array]:
        count, low, high, place, slope, column = record
        moved = jnp.clip(count + jnp.trunc(rest[place] / slope), jnp.minimum(low, count), jnp.maximum(high, count))
        return rest - column * (moved - count), moved

    given = (counts, least, most, own, slope, slopes.T)
    _, counts = jax.lax.scan(settle, lacking(counts), given)
    return records | {name: counts.astype(records[name].dtype)}
