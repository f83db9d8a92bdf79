"""The Gamma law cut to (0, c]: its mass in log space, and exact draws, however far in the tail."""

import jax
import jax.numpy as jnp
from jax.scipy.special import gammainc, gammaln

from dpjax.base import Array, Key
from dpjax.models.gamma import propose

__all__ = ["draw_log_cut_gamma", "log_lower_gamma"]


def log_lower_gamma(shape: Array, cut: Array) -> Array:
    """log P(shape, cut), the log of the regularised lower incomplete gamma function, elementwise.

    For cut < shape + 1 by the series x^a e^(-x) / Γ(a + 1) (1 + x / (a + 1) + x² / ((a + 1) (a + 2)) + ...), whose
    logarithm does not underflow; beyond, P is no small number.
    """
    near = cut < shape + 1
    x = jnp.where(near, cut, shape)

    def growing(carry: tuple[Array, Array, Array]) -> Array:
        _, term, total = carry
        return jnp.any(term > jnp.finfo(total.dtype).eps * total)

    def add(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        order, term, total = carry
        term = term * x / (shape + order)
        return order + 1, term, total + term

    one = jnp.ones_like(x)
    total = jax.lax.while_loop(growing, add, (jnp.ones((), x.dtype), one, one))[2]
    series = shape * jnp.log(x) - x - gammaln(shape + 1) + jnp.log(total)
    # Where the series serves, a point at which the other is quick.
    return jnp.where(near, series, jnp.log(gammainc(jnp.where(near, 1, shape), jnp.where(near, 1, cut))))


def draw_log_cut_gamma(key: Key, shape: Array, cut: Array) -> Array:
    """Logarithms of independent Gamma(shape, rate 1) draws given that they are at most `cut`, for shapes of at least 1.

    Where the cut lies above the bulk, draws of the whole law are refused beyond it. Else the log-density is concave and
    rises to the cut: its tangent there gives an exponential proposal (Philippe 1997 has a kindred scheme).

    Parameters
    ----------
    shape, cut : [H]
        The shapes, at least 1, and the cuts, positive.
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
