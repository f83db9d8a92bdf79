"""Maximal coupling of two categorical laws with a shared residual."""

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.numerics import select_weight

__all__ = ["categorical", "couple_indices"]


def categorical(key: Key, log_p: Array, log_q: Array) -> tuple[Array, Array, Array]:
    """Indices x ∝ exp(log_p), y ∝ exp(log_q) and whether they are the same; P(same) = Σ min(p, q).

    Parameters
    ----------
    key
        One typed key.
    log_p : [m]
        Log-weights of the first law; ``-inf`` is a weight of zero.
    log_q : [m]
        Those of the second.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> law = jnp.log(jnp.array([0.5, 0.3, 0.2]))
    >>> x, y, same = categorical(jax.random.key(1), law, law)
    >>> bool(same) and int(x) == int(y)
    True
    """
    (x, _), (y, _) = couple_indices(jax.random.uniform(key, (), log_p.dtype), log_p, log_q)
    return x, y, x == y


def couple_indices(
    uniform: Array, log_p: Array, log_q: Array, first_in_line: Array | None = None
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """A maximal coupling of two indices by one uniform: Xiong and Ju (2025), equation (38) and Figure 4.

    With u = min(p, q), v = p − u and ṽ = q − u, a uniform U below Σu selects one index for both; above it, U − Σu
    selects one index in the cumulative sum of v and one in that of ṽ: the residual is shared.

    Parameters
    ----------
    uniform : []
        A draw from the uniform law on [0, 1).
    log_p : [m]
        Log-weights of the first law.
    log_q : [m]
        Those of the second.
    first_in_line : [m] bool
        Entries that come first in the two residual sums, so that they meet each other rather than the rest; None
        keeps the order of the entries, as in the paper. Either order is a maximal coupling.

    Returns
    -------
    (index, log_total), (index, log_total)
        For each law, an index and the logarithm of its total weight.
    """
    (p, log_total_p), (q, log_total_q) = normalize(log_p), normalize(log_q)
    common = jnp.minimum(p, q)
    total = jnp.sum(common)
    together = uniform < total
    # A residual of no mass cannot be selected: then rounding alone has put U above the sum.
    level = jnp.clip((uniform - total) / jnp.where(total < 1, 1 - total, 1.0), 0.0, 1.0)
    inside = uniform / jnp.where(together, total, 1.0)

    def residual(rest: Array) -> tuple[Array, Array]:
        return (rest, level) if first_in_line is None else put_first(rest, first_in_line, level)

    def select(probability: Array) -> Array:
        rest, place = residual(probability - common)
        rest = jnp.where(jnp.sum(rest) > 0, rest, probability)
        return select_weight(jnp.where(together, common, rest), jnp.where(together, inside, place))[0]

    index = select(p)
    return (index, log_total_p), (jnp.where(together, index, select(q)), log_total_q)


def normalize(log_weights: Array) -> tuple[Array, Array]:
    """Probabilities [m] and the log of the total weight []; all zero where no weight is positive."""
    log_total = jax.nn.logsumexp(log_weights)
    return jnp.exp(log_weights - jnp.where(jnp.isfinite(log_total), log_total, 0.0)), log_total


def put_first(rest: Array, first_in_line: Array, level: Array) -> tuple[Array, Array]:
    """The part of residual weights [m] in which the level lies, and the level within it, if some come first."""
    leading = jnp.where(first_in_line, rest, 0.0)
    share = jnp.sum(leading) / jnp.maximum(jnp.sum(rest), jnp.finfo(rest.dtype).tiny)
    inside = level < share
    within = jnp.where(inside, level, level - share) / jnp.maximum(
        jnp.where(inside, share, 1 - share), jnp.finfo(rest.dtype).tiny
    )
    return jnp.where(inside, leading, rest - leading), within
