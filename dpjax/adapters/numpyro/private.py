"""A NumPyro model with its confidential data, as the target of a private run."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail, is_traced
from dpjax.adapters.numpyro.inspection import inspect
from dpjax.adapters.numpyro.laws import Laws
from dpjax.adapters.numpyro.visit import Layout
from dpjax.base import Array, Key, Parameters, Records
from dpjax.private.targets.by_record import NUM_TRIALS, ByRecord, Densities, check_by_record
from dpjax.private.targets.target import CHUNK_SIZE, Target, Terms, build_target, check_records

__all__ = ["private_target"]

MADE_UP = 8
"""Records on which a model is looked at."""


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
    **arguments
        Further arguments of ``fn``, the same for all records and public.

    Raises
    ------
    TypeError, ValueError
        As `dpjax.from_numpyro` does; if the data are not finite or of unequal number; or if the prior or a record's
        density depends on the other records or on their number, as with covariates that the model standardises.

    Notes
    -----
    A run evaluates the model on one record at a time. That this is the same model is found out on made-up data.
    """
    check_named("records", records)
    check_named("covariates", covariates or {})
    covariates = dict(covariates or {})
    data = {**records, **covariates}
    check_records(data)
    layout, exchangeable = inspect(fn, tuple(data), None, arguments | covariates)
    check_own_laws(layout, exchangeable, covariates)

    def laws_of(known: Mapping[str, Any], size: int = 1) -> Laws:
        """The laws of records with these covariates."""
        return Laws(layout._replace(arguments=layout.arguments | dict(known), size=size))

    # The prior knows of no record; the model still wants covariates of some shape.
    prior = laws_of(
        {name: jnp.zeros((1, *jnp.shape(value)[1:]), jnp.result_type(value)) for name, value in covariates.items()}
    )

    def density(parameters: Parameters, record: Records) -> Array:
        one = jax.tree.map(lambda leaf: leaf[None], record)
        found = laws_of({name: one[name] for name in covariates}).log_density(parameters, one)
        if found.shape != (1,):
            refuse_own_laws(f"{found.shape} log-densities for one record")
        return found[0]

    def log_prior(unconstrained: Parameters) -> Array:
        return prior.log_prior(prior.constrain(unconstrained)) + prior.log_jacobian(unconstrained)

    def log_likelihood(unconstrained: Parameters, record: Records) -> Array:
        return density(prior.constrain(unconstrained), record)

    check_readings(laws_of, covariates, prior.log_prior, density)
    start = jax.eval_shape(lambda key: prior.unconstrain(prior.sample_prior(key)), jax.random.key(0))
    return build_target(Terms(log_likelihood, log_prior, prior.constrain), data, start, chunk_size)


def check_named(argument: str, value: Any) -> None:
    """Raise unless a value is a dict of arrays by name."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        remedy = "Pass the names of the model's sites or arguments with their arrays."
        fail(argument, type(value).__name__, "a dict such as {'y': y}", remedy, error=TypeError)


def check_readings(
    laws_of: Callable[..., Laws],
    covariates: Mapping[str, Any],
    prior: Callable[[Parameters], Array],
    density: Callable[[Parameters, Records], Array],
) -> None:
    """Raise unless the model of all records is the prior times that of one record at a time."""

    def joint(parameters: Parameters, records: Records) -> Densities:
        laws = laws_of({name: records[name] for name in covariates}, MADE_UP)
        return Densities(laws.log_prior(parameters), laws.log_density(parameters, records))

    def draw(key: Key, known: Records) -> tuple[Parameters, Records]:
        prior_key, record_key = jax.random.split(key)
        laws = laws_of(known, MADE_UP)
        parameters = laws.sample_prior(prior_key)
        return parameters, laws.sample_records(record_key, parameters, MADE_UP) | known

    remedy = (
        "Compute what it needs of all records beforehand, from public numbers, and pass that as a further argument: a"
        " public centre and scale of a covariate, a public size of the study."
    )
    model = ByRecord(draw, joint, prior, density)
    if check_by_record(model, made_up(covariates), remedy):
        return
    # Made-up covariates may be out of the range of the model's.
    if not is_traced(covariates) and check_by_record(model, first_rows(covariates), remedy):
        return
    given = "a model without a finite density at draws from its prior"
    fail("fn", given, "one that can be evaluated there", "Give it a prior of which draws are plausible.")


def made_up(covariates: Mapping[str, Any]) -> Records:
    """Covariates [trials, m, ...] of the given types: real ones of both signs or positive, whole ones 0 or 1."""
    rng = np.random.default_rng(1)
    values = {}
    for name, value in covariates.items():
        shape, dtype = (NUM_TRIALS, MADE_UP, *jnp.shape(value)[1:]), jnp.result_type(value)
        if jnp.issubdtype(dtype, jnp.floating):
            numbers = rng.normal(size=shape)
            numbers[::2] = rng.uniform(0.1, 1.0, shape)[::2]
            values[name] = jnp.asarray(numbers, dtype)
        else:
            values[name] = jnp.asarray(rng.integers(0, 2, shape), dtype)
    return values


def first_rows(covariates: Mapping[str, Any]) -> Records:
    """The first records' covariates [trials, m, ...], over and over if there are fewer."""

    def rows(value: Any) -> Array:
        array = jnp.asarray(value)
        first = array[jnp.arange(MADE_UP) % len(array)]
        return jnp.broadcast_to(first[None], (NUM_TRIALS, *first.shape))

    return {name: rows(value) for name, value in covariates.items()}


def check_own_laws(layout: Layout, exchangeable: bool, covariates: Mapping[str, Any]) -> None:
    """Raise if records have laws of their own by anything but covariates."""
    if not covariates and (layout.fixed or not exchangeable):
        refuse_own_laws(f"records that differ in their laws, or a plate that takes {layout.size} of them only")


def refuse_own_laws(given: str) -> None:
    """Raise for an argument, or a value that the model holds, with an entry for each record."""
    remedy = "Make it an argument of fn and pass it in `covariates`."
    fail("fn", f"a model with {given}", "one in which all that differs between records is a record's", remedy)
