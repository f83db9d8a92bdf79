"""Records summed out beside totals of their groups: the distribution of each sum is a convolution along its records.

Given the parameters, p(released values of a group, its total) = Σ_s P(s) η(total | s). P(s) is the sum of
Π_i f(x_i) η(v_i | x_i) over all numbers x_i of the records with the sum s. The records are added up in pairs, these in
pairs of pairs, and so on. So the work is that of adding one after another, in a few steps that run over all groups. The
same tree, from its root down, draws the numbers of the records: given the sum of two, one of them.

All sums are of positive numbers, computed on the scale of probabilities and not of logarithms. They are accurate
wherever they do not vanish. A total far from what the records would add up to has no probability in floats. So each
record's distribution is first tilted by e^{λx} to where it agrees with the total, and the result is tilted back. That
is exact for any λ.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp

from dpjax._util.pytree import static
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.summed_out.terms import Listed, Terms, Windows
from dpjax.numerics.convolution import convolve, cut, piece
from dpjax.numerics.selection import select_index, select_indices, select_weight

__all__ = ["GroupedTerms", "count_products"]

MOST_TILTS, MOST_CHANGE = 10, 20.0
"""Most steps of the search for λ, and the largest of them."""

CLOSE = 0.25
"""By how many standard deviations the mean sum may be off where the search for λ ends: any λ is good, near the best."""

PRODUCTS_A_NUMBER = 64
"""Products of convolutions that take about as long as the density of one number."""

LEAST_SLOPE = 0.05
"""Least slope of the log-odds of the mean in λ that a step assumes."""


class GroupedTerms(Terms):
    """Records whose hidden numbers are summed over, beside totals of groups of them.

    The groups are side by side and have as many *leaves* each: records with more than one possible number, and padding.

    Attributes
    ----------
    records
        The records by themselves.
    fixed
        The place [m] of a record's number in its list where only one is possible, else -1.
    alone
        The records [k] in no group that have several possible numbers.
    group
        The group of each record [m]; -1 for those in none.
    first
        A record [group] of each group, in whose place the density of the group stands.
    leaf
        The record of each leaf [group, leaf]; m for padding.
    place
        The place of the leaf's first number in the list of its record [group, leaf].
    size_of_leaf
        How many numbers each leaf has [group, leaf].
    starts
        For each level of the tree, from the leaves up: at which of their possible sums those of pairs of nodes begin
        [group, pair].
    root
        At which of the possible sums of all leaves those of the group begin [group].
    log_total
        The log-density [group, s] of what was released of the group, for these sums.
    log_largest
        The largest that it can be, whatever the sum [group].
    constant
        The log-density [] of what was released of no group.
    widths
        How many numbers the nodes of each level have, and to how many of them those of the second child add.
    """

    known: Records
    records: Listed | Windows
    fixed: Array
    alone: Array
    group: Array
    first: Array
    leaf: Array
    place: Array
    size_of_leaf: Array
    starts: tuple[Array, ...]
    root: Array
    log_total: Array
    log_largest: Array
    constant: Array
    widths: tuple[tuple[int, int], ...] = static()

    @property
    def is_approximate(self) -> bool:
        """Whether the numbers of the records leave something out."""
        return self.records.is_approximate

    @property
    def hidden_field(self) -> str | None:
        """That of the records."""
        return self.records.hidden_field

    @property
    def size(self) -> int:
        """The numbers of all records, and as many as the products of the convolutions take the time of."""
        products = len(self.leaf) * count_products(self.leaf.shape[1], self.widths)
        return self.records.size + products // PRODUCTS_A_NUMBER

    @property
    def is_limited(self) -> bool:
        """See `Terms`: totals limit the numbers."""
        return True

    def build(self, model: Model) -> Callable[[Parameters], Array]:
        """See `Terms`: the density of a group stands in the place of its first record."""
        weigh = self.records.build_weights(model)

        def log_density(parameters: Parameters) -> Array:
            weights = weigh(parameters)
            return self._of_records(weights).at[self.first].add(self._of_groups(weights)).at[0].add(self.constant)

        return log_density

    def _of_records(self, weights: Array) -> Array:
        """The log-density [m] of what was released of each record that is no leaf, given its weights [w, m]."""
        only = jnp.take_along_axis(weights, jnp.maximum(self.fixed, 0)[None], axis=0)[0]
        found = jnp.where(self.fixed >= 0, only, 0)
        if not len(self.alone):
            return found
        return found.at[self.alone].set(self.records.add_up(weights)[self.alone])

    def _of_groups(self, weights: Array) -> Array:
        """The log-density [group] of what was released of the leaves of each group and of its total."""
        return jax.vmap(lambda tree: logsumexp(tree.log_weights))(self._plant(weights))

    def _plant(self, weights: Array) -> "Tree":
        """The trees of all groups, given the weights [w, m]."""
        width = self.widths[0][0]
        columns = jnp.pad(weights, ((0, 0), (0, 1))).T[self.leaf]
        taken = jax.vmap(jax.vmap(lambda column, first: cut(column, first, width)))(columns, self.place)
        places = jnp.arange(width, dtype=self.place.dtype)[None, None]
        leaves = jnp.where(places < self.size_of_leaf[..., None], taken, -jnp.inf)
        grow = partial(grow_tree, self.widths[1:])
        return jax.vmap(grow)(leaves, self.starts, self.root, self.log_total)

    def left_out(self, model: Model, parameters: Parameters) -> Array:
        """See `Terms`: a bound for each record of a group, of what its numbers leave out of the group's density.

        What they leave out is a sum over the numbers of record i that are not summed over, and all numbers of the
        others. It is at most ε_i Z_1 ... Z_k max η. There Z_j is the density of what was released of record j by
        itself, and ε_i what is left out of that of record i. The last factor is the largest density of the total,
        whatever the sum. The Z_j are at most 1 + ε_j times their own sums.
        """
        weights = self.records.build_weights(model)(parameters)
        own, alone = self.records.left_out(model, parameters), self.records.add_up(weights)
        num_groups, inside = len(self.first), jnp.where(self.group >= 0, self.group, len(self.first))
        together = jax.ops.segment_sum(alone + jnp.log1p(own), inside, num_groups + 1)[:num_groups]
        of_leaves = (
            self._of_groups(weights)
            + jax.ops.segment_sum(jnp.where(self.fixed >= 0, alone, 0), inside, num_groups + 1)[:num_groups]
        )
        log_odds = jnp.append(together + self.log_largest - of_leaves, 0.0)
        return jnp.where(own > 0, jnp.exp(jnp.log(own) + log_odds[inside]), 0)

    def draw(self, key: Key, model: Model, parameters: Parameters, rows: Array) -> Records:
        """See `Terms`; each record has a row of its own."""
        alone_key, group_key, fill_key = jax.random.split(key, 3)
        weights = self.records.build_weights(model)(parameters)
        places, _ = select_indices(weights, jax.random.uniform(alone_key, weights.shape[1:]))
        uniforms = jax.random.uniform(group_key, (len(self.leaf), 2 * self.leaf.shape[1] + len(self.widths)))
        drawn = jax.vmap(climb_down)(self._plant(weights), self.starts, uniforms)
        places = places.at[self.leaf].set((self.place + drawn).astype(places.dtype), mode="drop")
        return self.records.fill(fill_key, model, parameters, places, rows)


class Tree(NamedTuple):
    """The distributions of the sums of leaves, tilted and scaled.

    Attributes
    ----------
    levels
        The weights [node, number] of the sums of the leaves under each node, from the leaves up.
    log_weights
        The log-density [s] of each sum at the root, with what was released of it and of the leaves.
    """

    levels: tuple[Array, ...]
    log_weights: Array


def grow_tree(
    widths: tuple[tuple[int, int], ...], leaves: Array, starts: tuple[Array, ...], root: Array, log_total: Array
) -> Tree:
    """The tree of one group, given the log-weights [leaf, number] of its leaves; see `GroupedTerms`."""
    sums = (root + jnp.arange(len(log_total))).astype(leaves.dtype)
    tilt = jax.lax.stop_gradient(find_tilt(*jax.lax.stop_gradient((leaves, sums, log_total))))
    nodes, log_scale = scale(leaves + tilt * jnp.arange(leaves.shape[1], dtype=leaves.dtype)[None])
    levels = [nodes]
    for start, (width, second) in zip(starts, widths, strict=True):
        one, other = halves(nodes)
        convolved = jax.vmap(convolve, in_axes=(0, 0, 0, None))(one, other[:, :second], start, width)
        # Divided by their largest weight, so that products of many do not vanish.
        peak = jax.lax.stop_gradient(jnp.max(convolved, axis=1))
        peak = jnp.where(peak > 0, peak, 1)
        nodes, log_scale = convolved / peak[:, None], log_scale + jnp.sum(jnp.log(peak))
        levels.append(nodes)
    weights = nodes[0]
    log_sums = jnp.where(weights > 0, jnp.log(jnp.where(weights > 0, weights, 1)), -jnp.inf)
    return Tree(tuple(levels), log_sums + log_scale - tilt * sums + log_total)


def scale(log_weights: Array) -> tuple[Array, Array]:
    """Weights [leaf, number] whose largest is 1, and the logarithm [] of what they were divided by."""
    peaks = jax.lax.stop_gradient(jnp.max(log_weights, axis=1))
    peaks = jnp.where(jnp.isfinite(peaks), peaks, 0)
    return jnp.exp(log_weights - peaks[:, None]), jnp.sum(peaks)


def halves(nodes: Array) -> tuple[Array, Array]:
    """The nodes [node, number] in two halves, with the number 0 in place of one that is missing."""
    if len(nodes) % 2:
        nodes = jnp.concatenate([nodes, jnp.zeros_like(nodes[:1]).at[0, 0].set(1)])
    half = len(nodes) // 2
    return nodes[:half], nodes[half:]


def find_tilt(leaves: Array, sums: Array, log_total: Array) -> Array:
    """About the λ [] for which the mean sum under weights e^{λ x} is where sums and total agree best.

    Newton's method on the log-odds of the mean within its range, in which it is nearly linear in λ. The sum to be
    reached is, in each step, the best one if the sum were Normal with its present mean and variance.
    """
    places = jnp.arange(leaves.shape[1], dtype=leaves.dtype)[None]
    last = jnp.max(jnp.where(leaves > -jnp.inf, places, 0), axis=1)
    end = jnp.sum(last)

    tiny = jnp.finfo(leaves.dtype).tiny

    def step(search: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        tilt, _, number = search
        weights = scale(leaves + tilt * places)[0]
        shares = weights / jnp.maximum(jnp.sum(weights, axis=1, keepdims=True), tiny)
        means = jnp.sum(shares * places, axis=1)
        variance = jnp.sum(shares * (places - means[:, None]) ** 2)
        # Each by its own sum of positive numbers: near the ends of the range their ratio matters.
        below, above = jnp.sum(means), jnp.sum(shares * jnp.maximum(last[:, None] - places, 0))
        fit = log_total - tilt * sums - (sums - below) ** 2 / (2 * jnp.maximum(variance, 0.25))
        aim = jnp.clip(sums[jnp.argmax(fit)], 0, end)
        below, above = jnp.maximum(below, tiny), jnp.maximum(above, tiny)
        missing = jnp.log((aim + 0.25) / (end - aim + 0.25)) - jnp.log(below) + jnp.log(above)
        change = missing / jnp.maximum(variance / below + variance / above, LEAST_SLOPE)
        moved = tilt + jnp.clip(change, -MOST_CHANGE, MOST_CHANGE)
        return jnp.where(jnp.isfinite(moved), moved, tilt), jnp.abs(change) * jnp.sqrt(variance), number + 1

    def wanted(search: tuple[Array, Array, Array]) -> Array:
        return (search[1] > CLOSE) & (search[2] < MOST_TILTS)

    nothing = jnp.zeros((), leaves.dtype)
    return jax.lax.while_loop(wanted, step, (nothing, nothing + jnp.inf, jnp.array(0)))[0]


def climb_down(tree: Tree, starts: tuple[Array, ...], uniforms: Array) -> Array:
    """The place [leaf] of each leaf's number, drawn given what was released of the leaves and of their total."""
    found = select_index(tree.log_weights, uniforms[0])[0][None]
    used = 1
    for nodes, start in zip(tree.levels[-2::-1], starts[::-1], strict=True):
        one, other = halves(nodes)
        count = len(one)

        def draw(one: Array, other: Array, at: Array, uniform: Array) -> tuple[Array, Array]:
            of_one = piece(one, at - len(other) + 1, len(other))[::-1]
            second = select_weight(of_one * other, uniform)[0]
            return at - second, second

        pair = jax.vmap(draw)(one, other, start + found, uniforms[used : used + count])
        found, used = jnp.concatenate(pair)[: len(nodes)], used + count
    return found


def count_products(leaves: int, widths: tuple[tuple[int, int], ...]) -> int:
    """The products of which the sums of one group are made."""
    total, nodes = 0, leaves
    for width, second in widths[1:]:
        nodes = -(-nodes // 2)
        total += nodes * width * second
    return total
