"""Maximal couplings of categorical, Normal, Bernoulli and general distributions."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_floats, check_function, check_key, check_number, fail
from dpjax.base import Array, Key
from dpjax.numerics import decision_uniforms, select_weight, tree_where
from dpjax.numerics.linear_algebra import product, solve_lower

__all__ = [
    "categorical",
    "common_uniform",
    "couple_indices",
    "maximal",
    "maximal_records",
    "reflect",
    "reflection_maximal",
]


Sampler = Callable[[Key, int], Any]
LogDensity = Callable[[Any], Array]


@names_arguments
def categorical(key: Key, log_p: Array, log_q: Array) -> tuple[Array, Array, Array]:
    """Indices x ∝ exp(log_p), y ∝ exp(log_q) and whether they are the same; P(same) = Σ min(p, q).

    Parameters
    ----------
    key
        One typed key.
    log_p : [m]
        Log-weights of the first distribution; ``-inf`` is a weight of zero.
    log_q : [m]
        Those of the second.

    Examples
    --------
    >>> import dpjax
    >>> import jax, jax.numpy as jnp
    >>> log_p = jnp.log(jnp.array([0.5, 0.3, 0.2]))
    >>> x, y, same = dpjax.coupling.categorical(jax.random.key(1), log_p, log_p)
    >>> bool(same) and int(x) == int(y)
    True
    """
    check_key("key", key)
    for name, value in {"log_p": log_p, "log_q": log_q}.items():
        check_floats(name, value)
        check_shape(name, value, (log_p.size,))
    (x, _), (y, _) = couple_indices(jax.random.uniform(key, (), log_p.dtype), log_p, log_q)
    return x, y, x == y


def couple_indices(
    uniform: Array, log_p: Array, log_q: Array, priority: Array | None = None
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """A maximal coupling of two indices by one uniform: Xiong and Ju (2025), equation (38) and Figure 4.

    Let u = min(p, q), v = p − u and ṽ = q − u. A uniform U below Σu selects one index for both. Above it, U − Σu
    selects one index in the cumulative sum of v and one in that of ṽ: the residual is shared.

    Parameters
    ----------
    uniform : []
        A uniform draw from [0, 1).
    log_p : [m]
        Log-weights of the first distribution.
    log_q : [m]
        Those of the second.
    priority : [m] bool
        Entries that come first in both residual sums, so that they are coupled with each other rather than with the
        rest. None keeps the order of the entries, as in the paper. Either order is a maximal coupling.

    Returns
    -------
    (index, log_total), (index, log_total)
        For each distribution, an index and the logarithm of its total weight.
    """
    (p, log_total_p), (q, log_total_q) = normalize(log_p), normalize(log_q)
    common = jnp.minimum(p, q)
    total = jnp.sum(common)
    is_common = uniform < total
    # If the residual has no mass, U is above the sum only by rounding.
    level = jnp.clip((uniform - total) / jnp.where(total < 1, 1 - total, 1.0), 0.0, 1.0)
    inside = uniform / jnp.where(is_common, total, 1.0)

    def residual(rest: Array) -> tuple[Array, Array]:
        return (rest, level) if priority is None else split_residual(rest, priority, level)

    def select(probability: Array) -> Array:
        rest, place = residual(probability - common)
        rest = jnp.where(jnp.sum(rest) > 0, rest, probability)
        return select_weight(jnp.where(is_common, common, rest), jnp.where(is_common, inside, place))[0]

    index = select(p)
    return (index, log_total_p), (jnp.where(is_common, index, select(q)), log_total_q)


def normalize(log_weights: Array) -> tuple[Array, Array]:
    """Probabilities [m] and the log of the total weight []; all zero if no weight is positive."""
    log_total = jax.nn.logsumexp(log_weights)
    return jnp.exp(log_weights - jnp.where(jnp.isfinite(log_total), log_total, 0.0)), log_total


def split_residual(rest: Array, priority: Array, level: Array) -> tuple[Array, Array]:
    """The residual weights [m] that hold the level, those with priority or the others, and the level within them."""
    leading = jnp.where(priority, rest, 0.0)
    share = jnp.sum(leading) / jnp.maximum(jnp.sum(rest), jnp.finfo(rest.dtype).tiny)
    inside = level < share
    within = jnp.where(inside, level, level - share) / jnp.maximum(
        jnp.where(inside, share, 1 - share), jnp.finfo(rest.dtype).tiny
    )
    return jnp.where(inside, leading, rest - leading), within


@names_arguments
def maximal(
    key: Key,
    sample_p: Callable[[Key], Any],
    log_p: LogDensity,
    sample_q: Callable[[Key], Any],
    log_q: LogDensity,
    max_trials: float,
) -> tuple[Any, Any, Array]:
    """A pair x ~ p, y ~ q and whether they are the same draw; P(same) is at least 1 − TV(p, q) − 1 / max_trials.

    Parameters
    ----------
    key
        One typed key.
    sample_p
        ``key -> value``, a draw from the first distribution.
    log_p
        ``value -> []``, its normalised log-density.
    sample_q
        ``key -> value``, a draw from the second distribution, a pytree of the same structure.
    log_q
        ``value -> []``, its normalised log-density.
    max_trials
        See `maximal_records`.

    Returns
    -------
    x
        The first value.
    y
        The second value, a copy of x if they are the same.
    same : [] bool
        Whether y is a copy of x.

    Examples
    --------
    >>> import dpjax, jax
    >>> normal, density = jax.random.normal, jax.scipy.stats.norm.logpdf
    >>> x, y, same = dpjax.coupling.maximal(jax.random.key(1), normal, density, normal, density, max_trials=10)
    >>> bool(same) and float(x) == float(y)
    True
    """
    check_key("key", key)
    for name, function in {"sample_p": sample_p, "log_p": log_p, "sample_q": sample_q, "log_q": log_q}.items():
        check_function(name, function, "key -> value" if name.startswith("sample") else "value -> []")
    check_number("max_trials", max_trials)
    if not (isinstance(max_trials, float) and max_trials == jnp.inf):
        expected = "a number above 1, which may be infinite"
        check_array("max_trials", max_trials, lambda number: number > 1, expected, "Pass such as 20.")

    def one(sample: Callable[[Key], Any]) -> Sampler:
        return lambda key, num: jax.tree.map(lambda leaf: leaf[None], sample(key))

    def of_one(log_density: LogDensity) -> LogDensity:
        return lambda values: log_density(jax.tree.map(lambda leaf: leaf[0], values))[None]

    x, y, same = maximal_records(key, one(sample_p), of_one(log_p), one(sample_q), of_one(log_q), 1, max_trials)
    return *jax.tree.map(lambda leaf: leaf[0], (x, y)), same[0]


def maximal_records(
    key: Key,
    sample_p: Sampler,
    log_p: LogDensity,
    sample_q: Sampler,
    log_q: LogDensity,
    num: int,
    max_trials: float,
    equal: ArrayLike = False,
    exchangeable: bool = True,
) -> tuple[Any, Any, Array]:
    """Pairs x_i ~ p, y_i ~ q for i = 1, ..., num, independent over i, each coupled maximally up to 1 / max_trials.

    A draw x ~ p is used for both with probability min(1, η q(x) / p(x)), η = 1 − 1 / max_trials. Otherwise y is drawn
    from q until a draw is accepted, with probability 1 − min(η, p(y) / q(y)). η = 1 is the coupling of Thorisson
    (2000), Section 1.4, whose number of trials has infinite variance. With η < 1 it is at most `max_trials` on average
    given that the first draw fails, as in Gerber and Lee (2020). One trial is expected for any η. The trials of a round
    are shared by all pairs without a value.

    Parameters
    ----------
    sample_p
        ``(key, num) -> values``, draws from the first distribution with leading axis [num].
    sample_q
        The same for the second distribution.
    log_p
        ``values -> [num]``, the normalised log-density of the first distribution.
    log_q
        The same for the second distribution.
    max_trials
        Above 1; ``inf`` is exactly maximal.
    equal : []
        Whether p and q are known to be equal: then all pairs are the same.
    exchangeable
        Whether all pairs have the same two distributions. If not, trial i of a round is for pair i alone.

    Returns
    -------
    x
        Draws from the first distribution, with leading axis [num].
    y
        Draws from the second.
    same : [num] bool
        Which pairs are one draw.
    """
    if not max_trials > 1:
        fail("max_trials", max_trials, "a number above 1", "Pass inf for an exactly maximal coupling.")
    log_eta = jnp.log1p(-1 / jnp.asarray(max_trials, float))
    first_key, uniform_key, rest_key = jax.random.split(key, 3)
    x = sample_p(first_key, num)
    common = log_uniforms(uniform_key, num) < log_eta + log_q(x) - log_p(x)
    same = jnp.logical_or(common, equal)

    def one_round(carry: Any) -> Any:
        trial, y, done = carry
        trial_key, uniform_key = jax.random.split(jax.random.fold_in(rest_key, trial))
        trials = sample_q(trial_key, num)
        accepted = log_uniforms(uniform_key, num) >= jnp.minimum(log_eta, log_p(trials) - log_q(trials))
        source, filled = assign(accepted, ~done) if exchangeable else (jnp.arange(num), accepted & ~done)
        taken = jax.tree.map(lambda leaf: leaf[source], trials)
        return trial + 1, tree_where(filled, taken, y), done | filled

    _, y, _ = jax.lax.while_loop(lambda carry: ~jnp.all(carry[2]), one_round, (0, x, same))
    return x, y, same


def log_uniforms(key: Key, num: int) -> Array:
    """Logarithms [num] of uniforms on (0, 1]."""
    return jnp.log1p(-jax.random.uniform(key, (num,), float))


def assign(accepted: Array, waiting: Array) -> tuple[Array, Array]:
    """The trial assigned to each pair [num] and whether there is one: accepted trials go to waiting pairs in order."""
    order = jnp.argsort(~accepted, stable=True)
    rank = jnp.cumsum(waiting) - 1
    return order[jnp.maximum(rank, 0)], waiting & (rank < jnp.sum(accepted))


@names_arguments
def reflection_maximal(key: Key, mean_p: Array, mean_q: Array, factor: Array) -> tuple[Array, Array, Array]:
    """A pair x ~ N(mean_p, L Lᵀ), y ~ N(mean_q, L Lᵀ) [k] and whether they are one draw; P(same) = 1 − TV.

    If they are not, y is the reflection of x, which brings the chains closer: Bou-Rabee, Eberle and Zimmer (2020),
    Section 2.3.2; Jacob, O'Leary and Atchadé (2020), Section 4.1.

    Parameters
    ----------
    key
        One typed key.
    mean_p : [k]
        The mean of the first distribution.
    mean_q : [k]
        The mean of the second.
    factor : [k, k]
        The lower Cholesky factor L of the covariance.

    Examples
    --------
    >>> import dpjax
    >>> import jax, jax.numpy as jnp
    >>> x, y, same = dpjax.coupling.reflection_maximal(jax.random.key(1), jnp.zeros(2), jnp.zeros(2), jnp.eye(2))
    >>> bool(same)
    True
    """
    check_key("key", key)
    for name, value in {"mean_p": mean_p, "mean_q": mean_q, "factor": factor}.items():
        check_floats(name, value)
        check_shape(name, value, (mean_p.size,) * (1 + (name == "factor")))
    normal_key, uniform_key = jax.random.split(key)
    normal = jax.random.normal(normal_key, mean_p.shape, mean_p.dtype)
    return reflect(normal, decision_uniforms(uniform_key, (), mean_p.dtype), mean_p, mean_q, factor)


def reflect(normal: Array, uniform: Array, mean_p: Array, mean_q: Array, factor: Array) -> tuple[Array, Array, Array]:
    """The pair as a function of a standard Normal vector [k] and a uniform []."""
    shift = solve_lower(factor, (mean_p - mean_q)[:, None])[:, 0]
    length = jnp.sum(shift**2)
    # log φ(z + shift) − log φ(z), written so that nothing cancels.
    log_ratio = -jnp.sum(shift * normal) - length / 2
    same = jnp.log(uniform) < log_ratio
    direction = shift / jnp.sqrt(jnp.where(length > 0, length, 1.0))
    reflected = normal - 2 * jnp.sum(direction * normal) * direction
    x = mean_p + product(factor, normal)
    return x, jnp.where(same, x, mean_q + product(factor, reflected)), same


@names_arguments
def common_uniform(uniform: Array, log_p: Array, log_q: Array) -> tuple[Array, Array, Array]:
    """Two events [] of log-probabilities log_p and log_q decided by one uniform, and whether they agree.

    The maximal coupling of two Bernoulli distributions: P(same) = 1 − |p − q|. A NaN probability is read as 0, and one
    above 1 as 1.

    Parameters
    ----------
    uniform
        A uniform draw from [0, 1).
    log_p
        The log-probability of the first event.
    log_q
        That of the second.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> [bool(event) for event in dpjax.coupling.common_uniform(jnp.array(0.4), jnp.log(0.5), jnp.log(0.3))]
    [True, False, False]
    """
    for name, value in {"uniform": uniform, "log_p": log_p, "log_q": log_q}.items():
        check_floats(name, value)
        if value.ndim:  # several uniforms at once
            check_shape(name, value, uniform.shape)
    log_uniform = jnp.log(uniform)
    x, y = log_uniform < log_p, log_uniform < log_q
    return x, y, x == y


def check_shape(argument: str, value: Array, shape: tuple[int, ...]) -> None:
    """Raise unless an array has the shape that follows from the first argument."""
    if value.shape != shape or 0 in shape:
        remedy = "Map the function over more with jax.vmap."
        fail(argument, f"shape {list(value.shape)}", f"shape {list(shape)}, without a 0", remedy)
