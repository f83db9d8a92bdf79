"""Mean and covariance of one record's contribution to the released sum."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.clt.number import reference_number
from dpjax.models.record_noise import num_rows, records_at
from dpjax.models.simulation import parameter_shapes
from dpjax.numerics.linear_algebra import product
from dpjax.numerics.quadrature import Rule, make_rule
from dpjax.release import Release

__all__ = ["Moments", "Source", "build_missing", "build_moments", "is_small", "make_points"]

Moments = Callable[[Parameters], tuple[Array, Array]]
"""``parameters -> (offset [d], covariance [d, d])``: the mean of a record's contribution less value / n, and its
covariance; for records that are not identically distributed, their averages."""

FEW_PRODUCTS = 2**17
"""Of two coordinates at one point: with more, the time that a program takes counts, and not that of compiling it."""

ROUNDING = 32.0
"""Rounding of the probability that counts up to a bound have, in roots of the precision: 5e-7, or 0.01 in float32."""

Weighed = Callable[[Parameters], tuple[Array, Array]]
"""``parameters -> (contributions [d, m], weights [m] or [])``."""


class Source(NamedTuple):
    """The source of the moments; hashable, since programs are compiled for it.

    Attributes
    ----------
    declared
        Whether the model gives the mean, and whether it gives the covariance.
    points
        The points over which the rest is summed. ``"support"`` is every possible record, and ``"counts"`` the whole
        numbers from 0 on. ``"scores"`` are points of the latent normals. ``"mixed"`` are points of the latent normals
        of continuous fields, with all levels of the discrete ones at each. None if the model gives both.
    """

    declared: tuple[bool, bool]
    points: str | None

    @property
    def is_exact(self) -> bool:
        """Whether the moments have no quadrature error."""
        return self.points in (None, "support")


def make_points(key: Key, model: Model, source: Source, num_points: int, refinement: int = 1) -> Any:
    """The points over which moments are summed, unless the model lists them; see `build_moments` and `make_rule`."""
    if source.points in ("scores", "mixed"):
        dim = num_rows(model) if source.points == "scores" else model.mixed.num_scores
        return make_rule(jax.random.fold_in(key, refinement), dim, num_points, refinement)
    return jnp.arange(refinement**2 * num_points) if source.points == "counts" else None


def is_small(model: Model, release: Release, source: Source, rule: Any) -> bool:
    """Whether some hundred moments take less time to compute by a program compiled quickly than that one saves."""
    num_points = 1 if source.is_exact else len(jax.tree.leaves(rule)[-1])
    num_points *= model.domain.size if source.points in ("support", "mixed") else 1
    return num_points * (1 if model.exchangeable else release.n) * release.value.size**2 <= FEW_PRODUCTS


def build_moments(model: Model, release: Release, source: Source, rule: Any) -> Moments:
    """The moments of a model's records under a release's statistic.

    Parameters
    ----------
    rule
        A `Rule` for scores, also those of mixed records, whole numbers [q] for counts, else None.

    Notes
    -----
    All sums are over contributions less value / n, which is near their mean wherever the posterior has mass. So no
    digits are lost of the difference between value / n and mean, which is √n times smaller than their standard
    deviation. If n is unknown, `reference_number` is in its place.

    The probability of counts beyond the last point is given to that point. This is right for a statistic that is
    clamped below it. For any other the moments are far from those of a finer rule, by which `measure_errors` finds it.
    """
    centre = release.value / reference_number(release)
    summed = None if source.points is None else build_sums(model, release, source, rule)
    if summed is not None and not source.declared[0]:
        return summed

    def moments(parameters: Parameters) -> tuple[Array, Array]:
        found = model.statistic_moments(parameters, release.statistic)
        assert found is not None
        mean, covariance = found
        if covariance is None:
            assert summed is not None
            covariance = summed(parameters)[1]
        return mean - centre, covariance

    return moments


def build_sums(model: Model, release: Release, source: Source, rule: Any) -> Moments:
    """The moments as weighted sums over points."""
    if model.exchangeable:
        weigh = build_points(model, release, source, rule)
        centre = release.value / reference_number(release)
        return lambda parameters: weighted_moments(*weigh(parameters), centre)
    return build_averages(model, release, source, rule)


def weighted_moments(contributions: Array, weights: Array, centre: Array) -> tuple[Array, Array]:
    """The mean [d] less a centre [d], and the covariance [d, d], of contributions [d, q] with weights [q]."""
    deviations = contributions - centre[:, None]
    offset = product(deviations, weights)
    spread = deviations - offset[:, None]
    return offset, product(spread * weights[None], spread.T)


def build_points(model: Model, release: Release, source: Source, rule: Any) -> Weighed:
    """The contributions and weights of all points at once, for identically distributed records."""
    if source.points == "scores":

        def at_scores(parameters: Parameters) -> tuple[Array, Array]:
            records = records_at(model, parameters, rule.points)
            return release.contributions(records), rule.weights

        return at_scores
    if source.points == "mixed":
        points = pair_points(model, rule)
        return lambda parameters: weigh_pairs(model, release, parameters, points)
    records = listed_records(model, source, rule)
    contributions = release.contributions(records)  # independent of the parameters: computed once, outside the loops

    def at_records(parameters: Parameters) -> tuple[Array, Array]:
        weights = jnp.exp(model.log_density(parameters, records))
        return contributions, weights.at[-1].add(beyond(jnp.sum(weights))) if source.points == "counts" else weights

    return at_records


def beyond(total: Array) -> Array:
    """The probability beyond the points, which have this one in total; what may be rounding is none."""
    return jnp.maximum(1 - total - ROUNDING * jnp.sqrt(jnp.finfo(total.dtype).eps), 0)


class FieldPairs(NamedTuple):
    """Points of the scores of continuous fields, each with every combination of the levels of the discrete ones.

    Attributes
    ----------
    points
        The scores [k, m].
    weights
        The weights [m] of the points, without the probability of the levels.
    levels
        The levels, leading axis [m].
    """

    points: Array
    weights: Array
    levels: Records


def pair_points(model: Model, rule: Rule) -> FieldPairs:
    """All pairs of a point of the rule and a combination of levels."""
    domain, number = model.domain, rule.weights.size
    tiled = jax.tree.map(lambda leaf: jnp.tile(leaf, (number, *[1] * (leaf.ndim - 1))), domain())
    return FieldPairs(jnp.repeat(rule.points, domain.size, axis=1), jnp.repeat(rule.weights, domain.size), tiled)


def weigh_pairs(model: Model, release: Release, parameters: Parameters, pairs: FieldPairs) -> tuple[Array, Array]:
    """The contributions [d, m] and weights [m] of the records at all pairs."""
    records, log_probability = model.mixed.records(parameters, pairs.points, pairs.levels)
    return release.contributions(records), pairs.weights * jnp.exp(log_probability)


def build_averages(model: Model, release: Release, source: Source, rule: Any) -> Moments:
    """The averages over records that are not identically distributed: a loop over points, vectorised over records.

    With s = Σ_i t_i, the mean of s / n is the average of the means and n times its covariance that of the covariances.
    """
    n, centre = release.n, (release.value / release.n)[:, None]

    def weigh(parameters: Parameters, point: Any) -> tuple[Array, Array]:
        if source.points == "scores":
            nodes = jnp.broadcast_to(point.points[:, None], (point.points.shape[0], n))
            records = records_at(model, parameters, nodes)
            return release.contributions(records), jnp.broadcast_to(point.weights, (n,))
        if source.points == "mixed":
            alike = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (n, *leaf.shape)), point)
            return weigh_pairs(model, release, parameters, alike._replace(points=alike.points.T))
        records = known_fields(model, n) | jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (n, *leaf.shape)), point)
        return release.contributions(records), jnp.exp(model.log_density(parameters, records))

    points = loop_points(model, source, rule)

    def moments(parameters: Parameters) -> tuple[Array, Array]:
        @jax.checkpoint
        def add(sums: tuple[Array, ...], point: Any) -> tuple[tuple[Array, ...], None]:
            contributions, weights = weigh(parameters, point)
            deviations = contributions - centre
            weighted = deviations * weights[None]
            return (sums[0] + weighted, sums[1] + product(weighted, deviations.T), sums[2] + weights), None

        size, dtype = release.value.size, release.value.dtype
        nothing = jnp.zeros((size, n), dtype), jnp.zeros((size, size), dtype), jnp.zeros(n, dtype)
        (offsets, squares, totals), _ = jax.lax.scan(add, nothing, points)
        if source.points == "counts":
            deviations = weigh(parameters, jax.tree.map(lambda leaf: leaf[-1], points))[0] - centre
            rest = deviations * beyond(totals)[None]
            offsets, squares = offsets + rest, squares + product(rest, deviations.T)
        return jnp.mean(offsets, axis=1), (squares - product(offsets, offsets.T)) / n

    return moments


def build_missing(model: Model, n: int, counts: Array) -> Callable[[Parameters], Array]:
    """The probability [] that records have at none of these counts [q], averaged over n if they differ."""
    field = model.count_field
    assert field is not None
    if model.exchangeable:
        return lambda parameters: 1 - jnp.sum(jnp.exp(model.log_density(parameters, {field: counts})))
    fields = known_fields(model, n)

    def missing(parameters: Parameters) -> Array:
        def share(count: Array) -> Array:
            return jnp.mean(jnp.exp(model.log_density(parameters, fields | {field: jnp.full(n, count)})))

        return 1 - jnp.sum(jax.lax.map(share, counts))

    return missing


def loop_points(model: Model, source: Source, rule: Any) -> Any:
    """The points of a loop, with one leading axis."""
    if source.points == "scores":
        return Rule(rule.points.T, rule.weights)
    if source.points == "mixed":
        pairs = pair_points(model, rule)
        return pairs._replace(points=pairs.points.T)
    return listed_records(model, source, rule)


def listed_records(model: Model, source: Source, rule: Any) -> Records:
    """The records that are summed over [q]: all possible ones, or the counts up to a bound."""
    if source.points == "support":
        return model.domain()
    assert model.count_field is not None
    return {model.count_field: rule}


def known_fields(model: Model, n: int) -> Records:
    """The fields of n records that are fixed, such as known covariates."""
    shapes = parameter_shapes(model)
    parameters = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, leaf.dtype), shapes)
    domain = model.domain
    drawn = set(domain.fields) if domain.is_finite else {model.count_field}
    records = model.sample_records(jax.random.key(0), parameters, n)
    return {name: field for name, field in records.items() if name not in drawn}
