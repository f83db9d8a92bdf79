"""Moves of counts along integer directions, each an exact draw from the conditional distribution on a random window.

Along a direction the counts of some cells grow by δ and those of others fall by it. A window of W + 1 values is placed
at random, so that each offset of the current one is equally likely. Then δ is drawn from its conditional distribution
among the W + 1. Old and new value have the same windows with the same probability, so the move leaves the target
invariant, without rejections. The target is

    π(c) ∝ exp(Σ_k c_k log p_k) Π_f Π_q Γ(S_fq + a_fq)^{g_fq} · η(s | A c),

where the S_f are sums of counts: the cells themselves with Γ(c_k + 1)^{-1}, and those of `ConjugateCounts`. Ratios of
gamma functions over a window are running products, so that no gamma function is computed and nothing large cancels.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array
from dpjax.data_augmentation.counts.directions import ChangedSums, Directions
from dpjax.data_augmentation.counts.sums import CellSums
from dpjax.mechanisms.base import at_coordinates
from dpjax.numerics import proper_density
from dpjax.numerics.linear_algebra import product
from dpjax.numerics.loops import scan_short

__all__ = ["CountState", "GammaFactor", "Move", "NoisySums", "Proposals", "move_all", "spread", "state_at"]

MAX_PRODUCT = 4
"""Largest number of counts multiplied before a logarithm is taken: four of 2^31 are within float32."""

SHORT = 65
"""Largest length of rows whose running sums are computed by a matrix product."""


class GammaFactor(NamedTuple):
    """The factor Π_q Γ(S_q + shift_q)^sign_q of the sums S of counts."""

    sums: CellSums
    shift: Any
    sign: np.ndarray


class NoisySums(NamedTuple):
    """The factor η(value | S) of the sums S of counts: a product over sums, or a mechanism that reads them together."""

    sums: CellSums
    value: Array
    mechanism: Any


class Move(NamedTuple):
    """Directions of one kind, the sums of each factor that they touch, and the width W of their windows."""

    directions: Directions
    gammas: tuple[ChangedSums, ...]
    noisy: tuple[ChangedSums, ...]
    width: int


class Proposals(NamedTuple):
    """The random numbers of one kind of move: its order [], and offsets of windows and uniforms [batch, move]."""

    order: Array
    offset: Array
    uniform: Array


class CountState(NamedTuple):
    """Counts [c], and the sums of each factor."""

    counts: Array
    gammas: tuple[Array, ...]
    noisy: tuple[Array, ...]


class CountTarget(NamedTuple):
    """The factors of the counts' target, and the cells' log-probabilities [c] unless parameters are integrated out."""

    log_probability: Array | None
    gammas: tuple[GammaFactor, ...]
    noisy: tuple[NoisySums, ...]


def state_at(target: CountTarget, counts: Array) -> CountState:
    """The state at given counts [c]."""
    return CountState(
        counts,
        tuple(factor.sums.total(counts) for factor in target.gammas),
        tuple(factor.sums.total(counts).astype(factor.value.dtype) for factor in target.noisy),
    )


def move_all(target: CountTarget, move: Move, state: CountState, proposals: Proposals) -> tuple[CountState, Array]:
    """The state after one order of moves, as a function of their random numbers, and how many moves changed it []."""
    steps = jax.tree.map(lambda array: jnp.asarray(array)[proposals.order], all_batches(move))

    def advance_batch(state: CountState, step: Any) -> tuple[CountState, Array]:
        batch, offset, uniform = step
        return move_batch(target, move, batch, state, offset, uniform)

    if move.directions.real.shape[1] == 1:
        steps, offset, uniform = jax.tree.map(lambda array: array[0], (steps, proposals.offset, proposals.uniform))
        return advance_batch(state, (steps, offset, uniform))
    state, changed = scan_short(advance_batch, state, (steps, proposals.offset, proposals.uniform))
    return state, jnp.sum(changed)


class MoveBatch(NamedTuple):
    """The cells [move, a] of a batch of moves, which moves are real, and places and weights of their sums [move, k]."""

    cells: Any
    real: Any
    gammas: tuple[tuple[Any, Any], ...]
    noisy: tuple[tuple[Any, Any], ...]


def all_batches(move: Move) -> MoveBatch:
    """The batches of all orders, with leading axes [order, batch]."""
    return MoveBatch(
        move.directions.cells,
        move.directions.real,
        tuple((touched.index, touched.weight.astype(np.int32)) for touched in move.gammas),
        tuple((touched.index, touched.weight) for touched in move.noisy),
    )


def move_batch(
    target: CountTarget, move: Move, batch: MoveBatch, state: CountState, offset: Array, uniform: Array
) -> tuple[CountState, Array]:
    """The state after moves that touch no sum in common."""
    below = window_start(move, batch, state, offset)
    state, delta = draw_place(move, batch, state, below, log_weights(target, move, batch, state, below), uniform)
    return state, jnp.sum(delta != 0)


def window_start(move: Move, batch: MoveBatch, state: CountState, offset: Array) -> Array:
    """How far below the present value [move] windows begin; each is as likely from any value that it holds."""
    # The remainder comes first, so that counts near the largest whole number do not wrap around.
    return (state.counts[batch.cells[:, 0]] % (move.width + 1) + offset) % (move.width + 1)


def draw_place(
    move: Move, batch: MoveBatch, state: CountState, below: Array, log_weight: Array, uniform: Array
) -> tuple[CountState, Array]:
    """The state at places drawn from windows by their log-weights [move, W + 1], and how far each moved [move]."""
    # A state of density zero, from which nothing can be chosen, does not change.
    stays = ~batch.real | ~jnp.any(log_weight > -jnp.inf, axis=1)
    delta = jnp.where(stays, 0, choose_steps(log_weight, uniform) - below)
    return apply_moves(batch, move.directions.signs, state, delta), delta


def log_weights(target: CountTarget, move: Move, batch: MoveBatch, state: CountState, below: Array) -> Array:
    """The log-density [move, W + 1] over windows that begin `below` [move] the present value, up to a constant."""
    signs = jnp.asarray(move.directions.signs, state.counts.dtype)
    steps = jnp.arange(move.width + 1, dtype=state.counts.dtype)[None] - below[:, None]
    there = state.counts[batch.cells][..., None] + signs[None, :, None] * steps[:, None]
    log_weight = anchor(log_ratios(target, move, batch, state, steps), below)
    for factor, touched, (index, weight), sums in zip(target.noisy, move.noisy, batch.noisy, state.noisy, strict=True):
        if touched.is_any:
            log_weight += log_noise(factor, index, weight, sums, steps)
    # Cells of probability 0, whose logarithm `log_ratios` leaves out, are empty.
    inside = jnp.all((there == 0) | ((there > 0) & is_possible(target, batch.cells)[..., None]), axis=1)
    return jnp.where(inside, proper_density(log_weight), -jnp.inf)


def is_possible(target: CountTarget, cells: Array) -> Array:
    """Whether records can be in the cells [...], given the parameters; always if these are integrated out."""
    if target.log_probability is None:
        return jnp.ones(cells.shape, bool)
    return target.log_probability[cells] > -jnp.inf


def spread(target: CountTarget, move: Move, state: CountState) -> Array:
    """The conditional standard deviations [batch, move] of the moves of the first order, around the state."""
    steps = jnp.arange(move.width + 1, dtype=float)

    def conditional_sd(batch: MoveBatch) -> Array:
        below = jnp.full(len(batch.real), move.width // 2, state.counts.dtype)
        weight = jax.nn.softmax(log_weights(target, move, batch, state, below), axis=1)
        mean = product(weight, steps)
        return jnp.sqrt(jnp.sum(weight * (steps[None] - mean[:, None]) ** 2, axis=1))

    return jax.lax.map(conditional_sd, jax.tree.map(lambda array: jnp.asarray(array)[0], all_batches(move)))


def log_ratios(target: CountTarget, move: Move, batch: MoveBatch, state: CountState, steps: Array) -> Array:
    """log π(δ + 1) − log π(δ) [move, W] over the windows, without the noise; 0 where no records can be."""
    now = steps[:, :-1]
    products = Products(now.shape)
    for factor, touched, (index, weight), sums in zip(
        target.gammas, move.gammas, batch.gammas, state.gammas, strict=True
    ):
        reach = int(np.max(np.abs(touched.weight), initial=0))
        for slot in range(index.shape[1]):
            place, gain = index[:, slot], weight[:, slot].astype(now.dtype)
            base, shift = sums[place], jnp.asarray(factor.shift, products.dtype)[place]
            sign = jnp.asarray(factor.sign, now.dtype)[place] * jnp.sign(gain)
            for unit in range(reach):
                lift = jnp.where(gain > 0, unit, -1 - unit)
                argument = (base[:, None] + gain[:, None] * now + lift[:, None]).astype(products.dtype) + shift[:, None]
                products.put(argument, jnp.where(unit < jnp.abs(gain), sign, 0)[:, None])
    total = products.log()
    if target.log_probability is not None:
        signs = jnp.asarray(move.directions.signs, total.dtype)
        total += jnp.sum(signs[None] * target.log_probability[batch.cells], axis=1, keepdims=True)
    return jnp.where(jnp.isfinite(total), total, 0.0)


class Products:
    """The logarithm of a product of powers ±1, with few logarithms taken."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.dtype = jnp.result_type(float)
        self.above, self.below, self.held = jnp.ones(shape, self.dtype), jnp.ones(shape, self.dtype), 0
        self.total = jnp.zeros(shape, self.dtype)

    def put(self, factor: Array, sign: Array) -> None:
        """Multiply by a factor to the power `sign`, −1, 0 or 1."""
        self.above = jnp.where(sign > 0, self.above * factor, self.above)
        self.below = jnp.where(sign < 0, self.below * factor, self.below)
        self.held += 1
        if self.held == MAX_PRODUCT:
            self.total = self.log()
            self.above, self.below, self.held = jnp.ones_like(self.above), jnp.ones_like(self.below), 0

    def log(self) -> Array:
        """The logarithm so far; NaN or infinite where a factor is not positive."""
        return self.total + jnp.log(self.above / self.below) if self.held else self.total


def anchor(ratios: Array, below: Array) -> Array:
    """Log-weights [move, W + 1] from their differences [move, W], 0 at the present value."""
    running = jnp.pad(running_sums(ratios), ((0, 0), (1, 0)))
    return running - jnp.take_along_axis(running, below[:, None], axis=1)


def running_sums(rows: Array) -> Array:
    """The running sums of rows [m, w]; of short ones by a product with a triangle of ones, the fastest way on a CPU."""
    width = rows.shape[1]
    if width > SHORT:
        return jnp.cumsum(rows, axis=1)
    return product(rows, jnp.triu(jnp.ones((width, width), rows.dtype)))


def log_noise(factor: NoisySums, index: Array, weight: Array, sums: Array, steps: Array) -> Array:
    """The log-density [move, W + 1] of the values of the sums that a move touches, or of all that are read together."""
    known = factor.mechanism
    if not (known.noise is not None or known._is_elementwise):
        return log_noise_together(factor, index, weight, sums, steps)
    gained = weight.astype(sums.dtype)[:, :, None] * steps[:, None].astype(sums.dtype)
    value, there = factor.value[index][..., None], sums[index][..., None] + gained
    mechanism = at_coordinates(factor.mechanism, index)
    noise = mechanism.noise
    terms = mechanism.log_density_terms(value, there) if noise is None else noise.log_density(value - there)
    # A place without a sum has weight 0, and does not distinguish values.
    return jnp.sum(jnp.where(weight[..., None] != 0, terms, 0.0), axis=1)


def log_noise_together(factor: NoisySums, index: Array, weight: Array, sums: Array, steps: Array) -> Array:
    """The log-density [move, W + 1] of a value that depends on all its sums [d] together."""
    gained = jnp.zeros((len(index), sums.size), sums.dtype)
    gained = gained.at[jnp.arange(len(index))[:, None], index].add(weight.astype(sums.dtype))
    there = sums[None, None] + gained[:, None] * steps[..., None].astype(sums.dtype)
    density = jax.vmap(jax.vmap(factor.mechanism.log_density, in_axes=(None, 0)), in_axes=(None, 0))
    return density(factor.value, there)


def choose_steps(log_weight: Array, uniform: Array) -> Array:
    """Places [move] in windows [move, W + 1], drawn in proportion to their weights by one uniform each."""
    weight = jnp.exp(log_weight - jnp.max(log_weight, axis=1, keepdims=True))
    running = running_sums(weight)
    total = running[:, -1:]
    # The target is kept below the total by more than the sums are rounded, so that some place of weight is beyond it.
    target = jnp.minimum(uniform[:, None], 1 - 8 * jnp.finfo(total.dtype).eps) * total
    return jnp.argmax((running > target) & (weight > 0), axis=1)


def apply_moves(batch: MoveBatch, signs: tuple[int, ...], state: CountState, delta: Array) -> CountState:
    """The state after moves by `delta` [move] along their directions."""
    delta = delta.astype(state.counts.dtype)[:, None]
    counts = state.counts.at[batch.cells].add(delta * jnp.asarray(signs, delta.dtype)[None])
    gammas = tuple(
        sums.at[index].add(delta.astype(sums.dtype) * weight.astype(sums.dtype))
        for sums, (index, weight) in zip(state.gammas, batch.gammas, strict=True)
    )
    noisy = tuple(
        sums.at[index].add(delta.astype(sums.dtype) * weight.astype(sums.dtype))
        for sums, (index, weight) in zip(state.noisy, batch.noisy, strict=True)
    )
    return CountState(counts, gammas, noisy)
