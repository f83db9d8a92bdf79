"""A NumPyro model with its confidential data, as the target of a private run."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.adapters.numpyro.inspection import inspect
from dpjax.adapters.numpyro.laws import Laws
from dpjax.base import Array, Parameters
from dpjax.private.target import CHUNK_SIZE, Target, Terms, build_target, check_records

__all__ = ["private_target"]


def private_target(
    fn: Callable[..., Any],
    records: Mapping[str, Any],
    covariates: Mapping[str, Any] | None = None,
    *,
    chunk_size: int = CHUNK_SIZE,
    **arguments: Any,
) -> Target:
    """The posterior of a NumPyro model of one plate of records given all of its data, on the unconstrained scale.

    Parameters
    ----------
    fn
        The NumPyro model, as `dpjax.from_numpyro` takes it. It must not observe its sites: the data come here.
    records
        The values of every sample site inside the plate, by name, with leading axis [n].
    covariates
        Arguments of ``fn`` with one entry for each record [n, ...]. They are as confidential as the records.
    chunk_size
        How many records' gradients are held at once.
    arguments
        Further arguments of ``fn``, the same for all records and public.

    Raises
    ------
    TypeError, ValueError
        As `dpjax.from_numpyro` does, or if the data are not finite or of unequal number.
    """
    covariates = dict(covariates or {})
    data = {**records, **covariates}
    check_records(data)
    layout, _ = inspect(fn, tuple(data), None, arguments | covariates)

    def laws_of(one: dict[str, Any]) -> Laws:
        """The laws of a single record with these covariates."""
        return Laws(layout._replace(arguments=layout.arguments | one, size=1))

    # The prior knows of no record; the model still wants covariates of some shape.
    prior = laws_of(
        {name: jnp.zeros((1, *jnp.shape(value)[1:]), jnp.result_type(value)) for name, value in covariates.items()}
    )

    def log_prior(unconstrained: Parameters) -> Array:
        return prior.log_prior(prior.constrain(unconstrained)) + prior.log_jacobian(unconstrained)

    def log_likelihood(unconstrained: Parameters, record: dict[str, Any]) -> Array:
        one = jax.tree.map(lambda leaf: leaf[None], record)
        laws = laws_of({name: one[name] for name in covariates})
        return laws.log_density(prior.constrain(unconstrained), one)[0]

    start = jax.eval_shape(lambda key: prior.unconstrain(prior.sample_prior(key)), jax.random.key(0))
    return build_target(Terms(log_likelihood, log_prior, prior.constrain), data, start, chunk_size)
