"""The Gamma law cut to (0, c]: its mass in log space, and exact draws, however far in the tail."""

from math import log

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from dpjax.base import Array, Key
from dpjax.numerics.gamma import propose

__all__ = ["draw_log_cut_gamma", "log_lower_gamma"]

TERMS = 8
"""Terms of the series in one round."""


def log_lower_gamma(shape: Array, cut: Array) -> Array:
    """log P(shape, cut), the log of the regularised lower incomplete gamma function, elementwise.

    By the series x^a e^(-x) / Γ(a + 1) (1 + x / (a + 1) + x² / ((a + 1) (a + 2)) + ...), whose logarithm does not
    underflow; from a + √(2 a t) + t on, P is 1 but for e^(-t) (Boucheron, Lugosi and Massart 2013, section 2.4), and t
    is chosen such that this is rounding.
    """
    reach = -log(jnp.finfo(cut.dtype).eps)
    inside = cut < shape + jnp.sqrt(2 * reach * shape) + reach
    x = jnp.where(inside, cut, shape / 2)  # beyond, a point that takes few terms

    def growing(carry: tuple[Array, Array, Array]) -> Array:
        _, term, total = carry
        return jnp.any(term > jnp.finfo(total.dtype).eps * total)

    def add(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        order, term, total = carry
        # A round of the loop costs many times what a term does.
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

    Where the cut lies above the bulk, draws of the whole law are refused beyond it. Else the log-density is concave and
    rises to the cut: its tangent there gives an exponential proposal (Philippe 1997 has a kindred scheme).

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
    # A flatter line than the tangent lies above the density too; a slope of zero would divide by it.
    slope = jnp.where(jnp.abs(slope) < 1e-4, slope - 3e-4, slope)

    def from_tail(key: Key) -> tuple[Array, Array]:
        key_step, key_accept = jax.random.split(key)
        # An exponential step down from the cut, itself cut at zero.
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
        offers, accepts = jax.tree.map(lambda a, b: jnp.where(tail, a, b), from_tail(key_tail), from_bulk(key_bulk))
        return number + 1, jnp.where(done, held, offers), done | accepts

    start = (jnp.array(0), jnp.zeros_like(centre), jnp.zeros(centre.shape, bool))
    return jax.lax.while_loop(unfinished, one_round, start)[1]
