"""The Gamma distribution on floats, exact for shapes so small that draws accumulate at 0.

All draws in the end cell next to 0 (`dpjax.numerics.ends`) are one number. The density there is its average over the
cell: P(Y < ε) = (rate ε)^shape / Γ(shape + 1) to rounding, as ε is tiny.
"""

from math import log

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from dpjax.base import Array, Key
from dpjax.numerics.ends import lower_end, positive_at, within_lower_end

__all__ = [
    "draw_gamma",
    "draw_log_cut_gamma",
    "draw_log_gamma",
    "gamma_log_density",
    "log_gamma_moments",
    "log_lower_gamma",
    "log_within",
]

TERMS = 8
"""Number of terms of the series in one iteration."""


def draw_gamma(key: Key, shape: Array, rate: Array) -> Array:
    """Independent Gamma(shape, rate) draws, one for each entry [...], above 0 and finite."""
    return positive_at(draw_log_gamma(key, shape) - jnp.log(rate))


def gamma_log_density(value: Array, shape: Array, rate: Array) -> Array:
    """log Gamma(y | shape, rate), elementwise; -inf below 0, and averaged over the cell in the end cell."""
    between = jnp.maximum(value, lower_end(value.dtype))
    inside = shape * jnp.log(rate) - gammaln(shape) + (shape - 1) * jnp.log(between) - rate * between
    density = inside - jnp.where(within_lower_end(value), jnp.log(shape), 0)
    return jnp.where(value >= 0, density, -jnp.inf)


def log_within(key: Key, value: Array, shape: Array) -> Array:
    """The logarithms of values; in the end cell a draw with density ∝ y^(shape - 1) there."""
    low = lower_end(value.dtype)
    log_uniform = jnp.log1p(-jax.random.uniform(key, value.shape, value.dtype))
    return jnp.where(within_lower_end(value), log(low) + log_uniform / shape, jnp.log(jnp.maximum(value, low)))


def draw_log_gamma(key: Key, shape: Array) -> Array:
    """The logarithm of independent Gamma(shape, rate 1) draws, one for each entry of `shape` [...].

    Marsaglia and Tsang (2000): each vectorised round makes a proposal for every entry, of which the first accepted one
    is kept; a round accepts at least 95 %. A shape below 1 is increased by 1 and the draw multiplied by
    uniform^(1 / shape), on the log scale because such draws may be smaller than the smallest float.
    """
    key_rounds, key_boost = jax.random.split(key)
    flat = shape.ravel()  # loops over a short last axis are several times slower
    raised = jnp.where(flat < 1, flat + 1, flat)
    log_boost = jnp.log1p(-jax.random.uniform(key_boost, flat.shape, flat.dtype)) / flat
    return (draw_raised(key_rounds, raised) + jnp.where(flat < 1, log_boost, 0)).reshape(shape.shape)


def draw_raised(key: Key, shape: Array) -> Array:
    """Log-Gamma draws for shapes of at least 1."""
    centre = shape - 1 / 3

    def unfinished(carry: tuple[Key, Array, Array]) -> Array:
        return ~jnp.all(carry[2])

    def one_round(carry: tuple[Key, Array, Array]) -> tuple[Key, Array, Array]:
        key, log_ratio, done = carry
        key, key_proposal = jax.random.split(key)
        proposed, accepted = propose(key_proposal, centre)
        return key, jnp.where(done, log_ratio, proposed), done | accepted

    start = (key, jnp.zeros_like(centre), jnp.zeros(centre.shape, bool))
    return jnp.log(centre) + jax.lax.while_loop(unfinished, one_round, start)[1]


def propose(key: Key, centre: Array) -> tuple[Array, Array]:
    """Log-ratios of proposals to the centre d = shape - 1/3, and which of them are accepted.

    With x standard normal and t = x / sqrt(9 d), the proposal is d (1 + t)³, accepted if
    log u < x²/2 + d (1 - (1 + t)³ + 3 log(1 + t)). The cube is expanded: 1 - (1 + t)³ cancels for large d.
    """
    key_normal, key_uniform = jax.random.split(key)
    normal = jax.random.normal(key_normal, centre.shape, centre.dtype)
    log_uniform = jnp.log1p(-jax.random.uniform(key_uniform, centre.shape, centre.dtype))
    step = normal / jnp.sqrt(9 * centre)
    positive = step > -1
    log_ratio = 3 * jnp.log1p(jnp.where(positive, step, 0))
    log_bound = normal**2 / 2 + centre * (log_ratio - step * (3 + step * (3 + step)))
    return log_ratio, positive & (log_uniform < log_bound)


def log_lower_gamma(shape: Array, cut: Array) -> Array:
    """log P(shape, cut), the log of the regularised lower incomplete gamma function, elementwise.

    By the series x^a e^(-x) / Γ(a + 1) (1 + x / (a + 1) + x² / ((a + 1) (a + 2)) + ...), whose logarithm does not
    underflow. From a + √(2 a t) + t on, P is 1 but for e^(-t) (Boucheron, Lugosi and Massart 2013, section 2.4), and t
    is chosen such that this is rounding.
    """
    reach = -log(jnp.finfo(cut.dtype).eps)
    inside = cut < shape + jnp.sqrt(2 * reach * shape) + reach
    x = jnp.where(inside, cut, shape / 2)  # elsewhere a point that needs few terms

    def growing(carry: tuple[Array, Array, Array]) -> Array:
        _, term, total = carry
        return jnp.any(term > jnp.finfo(total.dtype).eps * total)

    def add(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        order, term, total = carry
        # An iteration of the loop costs many times as much as a term.
        for step in range(TERMS):
            term = term * x / (shape + (order + step))
            total = total + term
        return order + TERMS, term, total

    one = jnp.ones_like(x)
    total = jax.lax.while_loop(growing, add, (jnp.ones((), x.dtype), one, one))[2]
    series = shape * jnp.log(x) - x - gammaln(shape + 1) + jnp.log(total)
    return jnp.where(inside, jnp.minimum(series, 0), 0)


def draw_log_cut_gamma(key: Key, shape: Array, cut: Array) -> Array:
    """Logarithms of independent Gamma(shape, rate 1) draws given that they are at most `cut`, for shapes of at least 1.

    If the cut lies above the bulk, untruncated draws beyond it are rejected. Otherwise the log-density is concave and
    increasing up to the cut, and its tangent there gives an exponential proposal, similar to Philippe (1997).

    Parameters
    ----------
    shape : [H]
        The shapes, at least 1.
    cut : [H]
        The cuts, positive.
    """
    centre = shape - 1 / 3
    tail = cut < shape - jnp.sqrt(shape) / 2
    slope = jnp.where(tail, (shape - 1) / cut - 1, 1)
    # A line flatter than the tangent is a bound as well; a slope of zero would be divided by.
    slope = jnp.where(jnp.abs(slope) < 1e-4, slope - 3e-4, slope)

    def from_tail(key: Key) -> tuple[Array, Array]:
        key_step, key_accept = jax.random.split(key)
        # An exponential step down from the cut, truncated at zero.
        uniform = jax.random.uniform(key_step, shape.shape, shape.dtype)
        step = -jnp.log1p(uniform * jnp.expm1(-slope * cut)) / slope
        log_ratio = jnp.log1p(-step / cut)
        log_accept = (shape - 1) * log_ratio + step * (1 + slope)
        accept = jnp.log1p(-jax.random.uniform(key_accept, shape.shape, shape.dtype)) < log_accept
        return jnp.log(cut) + log_ratio, accept & (step < cut)

    def from_bulk(key: Key) -> tuple[Array, Array]:
        log_ratio, accept = propose(key, centre)
        log_value = jnp.log(centre) + log_ratio
        return log_value, accept & (log_value <= jnp.log(cut))

    def unfinished(carry: tuple[Array, Array, Array]) -> Array:
        return ~jnp.all(carry[2])

    def one_round(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        number, held, done = carry
        key_tail, key_bulk = jax.random.split(jax.random.fold_in(key, number))
        proposals, accepts = jax.tree.map(lambda a, b: jnp.where(tail, a, b), from_tail(key_tail), from_bulk(key_bulk))
        return number + 1, jnp.where(done, held, proposals), done | accepts

    start = (jnp.array(0), jnp.zeros_like(centre), jnp.zeros(centre.shape, bool))
    return jax.lax.while_loop(unfinished, one_round, start)[1]


def log_gamma_moments(shape: Array) -> tuple[Array, Array]:
    """Approximate mean and standard deviation of the logarithm of a Gamma variable, elementwise."""
    return jnp.log(shape) - 1 / (2 * shape), jnp.sqrt(1 / shape + 1 / (2 * shape**2))
