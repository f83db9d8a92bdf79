"""Beta records with known shapes or Gamma priors of the shapes."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.models.bijections import scales
from dpjax.models.distributions import accept_distributions
from dpjax.models.priors import GammaPrior, positive
from dpjax.models.recipe import numbered
from dpjax.numerics.dirichlet import beta_features, beta_log_density, beta_log_likelihood, draw_beta

__all__ = ["beta"]


@accept_distributions
@numbered
def beta(a: GammaPrior | ArrayLike, b: GammaPrior | ArrayLike) -> Model:
    """Records ``{"y": []}`` with y of density ∝ y^(a - 1) (1 - y)^(b - 1) on (0, 1).

    Parameters
    ----------
    a
        The first shape [], which is then not a parameter, or its Gamma prior.
    b
        The second shape, likewise.

    Raises
    ------
    TypeError, ValueError
        If a prior is of another type, or a number is not finite and positive.

    Notes
    -----
    There is no exact update of the shapes: a kernel on the log scale updates them, through ``summarize`` and
    ``log_likelihood``. Nor is there a non-centred form: if the release says little about the shapes, chains mix slowly,
    and the same model written in NumPyro, which has such a form, mixes faster.

    Records are drawn strictly inside (0, 1). Those closer to 0 than 4 times the smallest float, or closer to 1 than 64
    units of rounding, are represented by one number, and the density there is its average over that cell. So the
    posterior is exact for arbitrarily small shapes.

    Examples
    --------
    >>> import dpjax
    >>> model = beta(dpjax.models.GammaPrior(2.0, 1.0), 1.5)
    """
    first, second = positive("a", a, GammaPrior, "a"), positive("b", b, GammaPrior, "b")
    bijections = first.bijections | second.bijections

    def sample_prior(key: Key) -> Parameters:
        key_first, key_second = jax.random.split(key)
        return first.sample_prior(key_first) | second.sample_prior(key_second)

    def log_density(parameters: Parameters, records: Records) -> Array:
        return beta_log_density(records["y"], first.value(parameters), second.value(parameters))

    def log_likelihood(parameters: Parameters, summary: Records) -> Array:
        return beta_log_likelihood(
            first.value(parameters), second.value(parameters), summary["count"], summary["features"]
        )

    def sample_records(key: Key, parameters: Parameters, n: int) -> Records:
        shapes = jnp.stack([first.value(parameters), second.value(parameters)])
        return {"y": draw_beta(key, *jnp.broadcast_to(shapes[:, None], (2, n)))}

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


def summarize(records: Records) -> Records:
    """The number of records and the sums of the features of the Beta density."""
    value = records["y"]
    return {"count": jnp.asarray(value.size, float), "features": tuple(map(jnp.sum, beta_features(value)))}
