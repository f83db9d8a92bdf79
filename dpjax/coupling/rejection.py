"""Maximal coupling of two densities by rejection."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from dpjax.base import Array, Key
from dpjax.numerics import take_if
from dpjax.validation import check_function, check_number, fail, is_traced

__all__ = ["maximal", "maximal_records"]

Sampler = Callable[[Key, int], Any]
LogDensity = Callable[[Any], Array]


def maximal(
    key: Key,
    sample_p: Callable[[Key], Any],
    log_p: LogDensity,
    sample_q: Callable[[Key], Any],
    log_q: LogDensity,
    max_trials: float,
) -> tuple[Any, Any, Array]:
    """A pair x ~ p, y ~ q and whether they are the same draw, with P(same) at least 1 − TV(p, q) − 1 / max_trials.

    Parameters
    ----------
    key
        One typed key.
    sample_p
        ``key -> value``, a draw of the first law.
    log_p
        ``value -> []``, its normalised log-density.
    sample_q
        ``key -> value``, a draw of the second law, a pytree of the same structure.
    log_q
        ``value -> []``, its normalised log-density.
    max_trials
        See `maximal_records`.

    Returns
    -------
    x
        The first value.
    y
        The second, a copy of x where they are the same.
    same : [] bool
        The flag by which the two meet.

    Examples
    --------
    >>> import jax
    >>> normal, density = jax.random.normal, jax.scipy.stats.norm.logpdf
    >>> x, y, same = maximal(jax.random.key(1), normal, density, normal, density, max_trials=10)
    >>> bool(same) and float(x) == float(y)
    True
    """
    for name, function in {"sample_p": sample_p, "log_p": log_p, "sample_q": sample_q, "log_q": log_q}.items():
        check_function(name, function, "key -> value" if name.startswith("sample") else "value -> []")
    check_number("max_trials", max_trials)
    if not (is_traced(max_trials) or max_trials > 1):
        fail("max_trials", max_trials, "a number above 1, which may be infinite", "Pass such as 20.")

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

    A draw x ~ p serves both with probability min(1, η q(x) / p(x)), η = 1 − 1 / max_trials; else y is drawn from q
    until a draw passes with probability 1 − min(η, p(y) / q(y)). Thorisson (2000), Section 1.4, is η = 1, whose number
    of trials has no finite variance; with η < 1 it is at most `max_trials` on average where the first draw fails, as
    in Gerber and Lee (2020). One trial is expected for any η. The trials of a round serve all pairs that still wait.

    Parameters
    ----------
    sample_p
        ``(key, num) -> values`` of the first law, with leading axis [num].
    sample_q
        The same of the second law.
    log_p
        ``values -> [num]``, the normalised log-density of the first law.
    log_q
        The same of the second law.
    max_trials
        Above 1; ``inf`` is exactly maximal.
    equal : []
        Whether p and q are known to be the same law: then all pairs are the same.
    exchangeable
        Whether all pairs have the same two laws. Without it trial i of a round is for pair i alone.

    Returns
    -------
    x
        Values of the first law, with leading axis [num].
    y
        Values of the second.
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
        tried = sample_q(trial_key, num)
        passed = log_uniforms(uniform_key, num) >= jnp.minimum(log_eta, log_p(tried) - log_q(tried))
        source, filled = assign(passed, ~done) if exchangeable else (jnp.arange(num), passed & ~done)
        taken = jax.tree.map(lambda leaf: leaf[source], tried)
        return trial + 1, take_if(filled, taken, y), done | filled

    _, y, _ = jax.lax.while_loop(lambda carry: ~jnp.all(carry[2]), one_round, (0, x, same))
    return x, y, same


def log_uniforms(key: Key, num: int) -> Array:
    """Logarithms [num] of uniforms on (0, 1]."""
    return jnp.log1p(-jax.random.uniform(key, (num,), float))


def assign(passed: Array, waiting: Array) -> tuple[Array, Array]:
    """For each pair the trial that it takes [num] and whether it takes one: trials that passed, in order."""
    order = jnp.argsort(~passed, stable=True)
    rank = jnp.cumsum(waiting) - 1
    return order[jnp.maximum(rank, 0)], waiting & (rank < jnp.sum(passed))
