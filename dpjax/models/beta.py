"""Beta records with known shapes or Gamma priors of them."""

import jax
import jax.numpy as jnp
from jax.scipy.special import betaln, xlog1py, xlogy
from jax.typing import ArrayLike

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.models.bijections import scales
from dpjax.models.gamma import draw_log_gamma
from dpjax.models.positive import positive
from dpjax.models.priors import GammaPrior

__all__ = ["beta"]


def beta(a: GammaPrior | ArrayLike, b: GammaPrior | ArrayLike) -> Model:
    """Records ``{"y": []}`` with y of density ∝ y^(a - 1) (1 - y)^(b - 1) on (0, 1).

    Parameters
    ----------
    a, b
        A Gamma prior of the shape ``a`` or ``b`` [], or the known number; a known shape is no parameter.

    Notes
    -----
    There is no exact update of a shape: a kernel on the log scale moves it, through ``summarize`` and
    ``log_likelihood``. Records are drawn strictly inside (0, 1).

    Raises
    ------
    TypeError, ValueError
        If a prior is of another type, or a number is not finite and positive.
    """
    first, second = positive("a", a, GammaPrior, "a"), positive("b", b, GammaPrior, "b")
    bijections = first.bijections | second.bijections

    def sample_prior(key: Key) -> Parameters:
        key_first, key_second = jax.random.split(key)
        return first.sample_prior(key_first) | second.sample_prior(key_second)

    def log_density(parameters: Parameters, records: Records) -> Array:
        value = records["y"]
        shape, other = first.value(parameters), second.value(parameters)
        inside = xlogy(shape - 1, value) + xlog1py(other - 1, -value) - betaln(shape, other)
        return jnp.where((value >= 0) & (value <= 1), inside, -jnp.inf)

    def log_likelihood(parameters: Parameters, summary: Records) -> Array:
        shape, other = first.value(parameters), second.value(parameters)
        terms = (shape - 1) * summary["log"] + (other - 1) * summary["log_rest"]
        return terms - summary["count"] * betaln(shape, other)

    def sample_records(key: Key, parameters: Parameters, n: int) -> Records:
        return {"y": draw_beta(key, first.value(parameters), second.value(parameters), n)}

    return Model(
        sample_prior=sample_prior,
        log_prior=lambda parameters: first.log_prior(parameters) + second.log_prior(parameters),
        sample_records=sample_records,
        log_density=log_density,
        update=None if bijections else lambda key, parameters, records: {},
        **scales(bijections),
        summarize=summarize,
        log_likelihood=log_likelihood,
    )


def draw_beta(key: Key, first: Array, second: Array, n: int) -> Array:
    """Beta(first, second) draws [n], kept off 0 and 1, where rounding would put some of them."""
    shapes = jnp.broadcast_to(jnp.stack([first, second])[:, None], (2, n))
    log_first, log_second = draw_log_gamma(key, shapes)
    limits = jnp.finfo(shapes.dtype)
    return jnp.clip(jax.nn.sigmoid(log_first - log_second), limits.tiny, 1 - limits.epsneg)


def summarize(records: Records) -> Records:
    """The number of records and the sums of log y and log(1 - y)."""
    value = records["y"]
    count = jnp.asarray(value.size, float)
    return {"count": count, "log": jnp.sum(jnp.log(value)), "log_rest": jnp.sum(jnp.log1p(-value))}
