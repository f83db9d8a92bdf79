"""Targets of private runs from NumPyro models and their confidential data."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, fail
from dpjax.adapters.numpyro.densities import ModelDensities
from dpjax.adapters.numpyro.inspection import inspect
from dpjax.adapters.numpyro.trace import SiteLayout
from dpjax.base import Array, Key, Parameters, Records
from dpjax.private.people import UNSAID, Unsaid
from dpjax.private.targets.by_record import NUM_TRIALS, ByRecord, Densities, check_by_record
from dpjax.private.targets.people import split_people
from dpjax.private.targets.target import Target, TargetTerms, build_target, check_records, read_public

__all__ = ["numpyro_target"]

NUM_RECORDS = 8
"""Number of simulated records for checking a model."""


@names_arguments
def numpyro_target(
    fn: Callable[..., Any],
    records: Mapping[str, Any],
    covariates: Mapping[str, Any] | None = None,
    *,
    chunk_size: int | None = None,
    people: str | Unsaid | None = UNSAID,
    max_rows: int | None = None,
    normalise: Callable[[Any], Any] | None = None,
    examples: Mapping[str, Any] | None = None,
    public_arrays: Any = None,
    **arguments: Any,
) -> Target:
    """The posterior of a NumPyro model of one plate of records given all of its data, on the unconstrained scale.

    Parameters
    ----------
    fn
        The NumPyro model, as `dpjax.from_numpyro` takes it. It must not observe its sites.
    records
        The values of every sample site inside the plate, by name, with leading axis [n]. An entry that is not finite
        counts as 0, as in `private.target`.
    covariates
        Arguments of ``fn`` with one entry for each record [n, ...]. They are as confidential as the records.
    chunk_size
        As in `private.target`.
    people
        As in `private.target`; the field is one of `records`, and no site.
    max_rows
        As in `private.target`.
    normalise
        As in `private.target`.
    examples
        Made-up covariates with one entry for each of some records, like `covariates`. The model is tried on them if it
        has no finite density at simulated ones of order 1. **Never the confidential ones**: an error would depend on
        them.
    public_arrays
        As in `private.target`, beside the further arguments: of what the model computes from these, too.
    **arguments
        Further arguments of ``fn``, the same for all records and public.

    Raises
    ------
    TypeError, ValueError
        As `dpjax.from_numpyro` does. If the data are not numbers or of unequal number. If the prior or a record's
        density depends on the other records or on their number, as with covariates that the model standardises.

    Notes
    -----
    A run evaluates the model on one record at a time. That this gives the same model is checked on simulated data.

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> import numpyro
    >>> from numpyro import distributions as dist
    >>> def program(n):
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    ...     with numpyro.plate("records", n):
    ...         numpyro.sample("y", dist.Normal(mean, 2.0))
    >>> dpjax.private.numpyro_target(program, {"y": np.array([1.0, 2.5])}).dimension
    1
    """
    if chunk_size is not None:
        check_count("chunk_size", chunk_size)
    check_named("records", records)
    check_named("covariates", {} if covariates is None else covariates)
    covariates = dict(covariates or {})
    records, rows = split_people(records, people, max_rows, normalise)
    data = {**records, **covariates}
    check_records(data)
    check_examples(examples, covariates)
    public = read_public(public_arrays, arguments)
    # The confidential ones would decide, by an error, what the model makes of their values and their number.
    made_up = simulate_covariates(covariates) if examples is None else first_rows(examples)
    layout, exchangeable = inspect(fn, tuple(data), None, arguments | {name: rows[0] for name, rows in made_up.items()})
    check_record_differences(layout, exchangeable, covariates)
    if layout.shape:
        remedy = "Put them in one plate, and pass the group of each as a covariate."
        fail("fn", f"records in plates of the sizes {list(layout.shape)}", "records in one plate", remedy)
    if not ModelDensities(layout).draws_prior:
        remedy = "State the prior by proper distributions: a factor might read the covariates."
        fail("fn", "a model with factors or improper distributions", "distributions of all parameters", remedy)

    def densities_of(known: Mapping[str, Any], size: int = 1) -> ModelDensities:
        """The densities of `size` records with these covariates."""
        return ModelDensities(replace(layout, arguments=layout.arguments | dict(known), size=size))

    # The prior does not depend on records, but the model needs covariates of the right shapes.
    prior = densities_of(
        {name: jnp.zeros((1, *jnp.shape(value)[1:]), jnp.result_type(value)) for name, value in covariates.items()}
    )

    def density(parameters: Parameters, record: Records) -> Array:
        one = jax.tree.map(lambda leaf: leaf[None], record)
        found = densities_of({name: one[name] for name in covariates}).log_density(parameters, one)
        if found.shape != (1,):
            refuse_record_differences(f"{found.shape} log-densities for one record")
        return found[0]

    def log_prior(unconstrained: Parameters) -> Array:
        return prior.log_prior(prior.constrain(unconstrained)) + prior.log_jacobian(unconstrained)

    def log_likelihood(unconstrained: Parameters, record: Records) -> Array:
        return density(prior.constrain(unconstrained), record)

    check_factorization(densities_of, covariates, prior.log_prior, density, examples)
    start = jax.eval_shape(lambda key: prior.unconstrain(prior.sample_prior(key)), jax.random.key(0))
    terms = TargetTerms(log_likelihood, log_prior, prior.constrain)
    return build_target(terms, data, start, chunk_size, rows, public)


def check_named(argument: str, value: Any) -> None:
    """Raise unless a value is a dict of arrays by name."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        remedy = "Pass the names of the model's sites or arguments with their arrays."
        fail(argument, type(value).__name__, "a dict such as {'y': y}", remedy, error=TypeError)


def check_examples(examples: Any, covariates: Mapping[str, Any]) -> None:
    """Raise unless made-up covariates, if there are any, have the names and shapes of the others."""
    if examples is None:
        return
    check_named("examples", examples)
    given, expected = (
        {name: jnp.shape(value)[1:] for name, value in values.items()} for values in (examples, covariates)
    )
    if given != expected or any(len(value) == 0 for value in examples.values()):
        fail("examples", f"shapes {given}", f"those of the covariates, {expected}", "Make up such covariates.")


def check_factorization(
    densities_of: Callable[..., ModelDensities],
    covariates: Mapping[str, Any],
    prior: Callable[[Parameters], Array],
    density: Callable[[Parameters, Records], Array],
    examples: Mapping[str, Any] | None,
) -> None:
    """Raise unless the joint density is the prior times the densities of single records."""

    def joint(parameters: Parameters, records: Records) -> Densities:
        densities = densities_of({name: records[name] for name in covariates}, NUM_RECORDS)
        return Densities(densities.log_prior(parameters), densities.log_density(parameters, records))

    def draw(key: Key, known: Records) -> tuple[Parameters, Records]:
        prior_key, record_key = jax.random.split(key)
        densities = densities_of(known, NUM_RECORDS)
        parameters = densities.sample_prior(prior_key)
        return parameters, densities.sample_records(record_key, parameters, NUM_RECORDS) | known

    remedy = (
        "Compute what it needs of all records beforehand, from public numbers, and pass that as a further argument."
        " Examples are a public centre and scale of a covariate, and a public size of the study."
    )
    model = ByRecord(draw, joint, prior, density)
    if check_by_record(model, simulate_covariates(covariates), remedy):
        return
    # Simulated covariates may be out of the model's range, and an error must not depend on those of the records.
    if examples is not None and check_by_record(model, first_rows(examples), remedy):
        return
    given = "a model without a finite density at draws from its prior"
    remedy = "Give it a prior of which draws are plausible, or pass made-up covariates in its range as examples=."
    fail("fn", given, "one that can be evaluated there", remedy)


def simulate_covariates(covariates: Mapping[str, Any]) -> Records:
    """Simulated covariates [trials, m, ...] of the given types: floats of both signs or positive, integers 0 or 1."""
    rng = np.random.default_rng(1)
    values = {}
    for name, value in covariates.items():
        shape, dtype = (NUM_TRIALS, NUM_RECORDS, *jnp.shape(value)[1:]), jnp.result_type(value)
        if jnp.issubdtype(dtype, jnp.floating):
            numbers = rng.normal(size=shape)
            numbers[::2] = rng.uniform(0.1, 1.0, shape)[::2]
            values[name] = jnp.asarray(numbers, dtype)
        else:
            values[name] = jnp.asarray(rng.integers(0, 2, shape), dtype)
    return values


def first_rows(covariates: Mapping[str, Any]) -> Records:
    """The first covariates [trials, m, ...], repeated if there are fewer."""

    def rows(value: Any) -> Array:
        array = jnp.asarray(value)
        first = array[jnp.arange(NUM_RECORDS) % len(array)]
        return jnp.broadcast_to(first[None], (NUM_TRIALS, *first.shape))

    return {name: rows(value) for name, value in covariates.items()}


def check_record_differences(layout: SiteLayout, exchangeable: bool, covariates: Mapping[str, Any]) -> None:
    """Raise if records are not identically distributed given their covariates."""
    if not covariates and (layout.fixed or not exchangeable):
        refuse_record_differences(f"records that are not exchangeable, or a plate of exactly {layout.size} of them")


def refuse_record_differences(given: str) -> None:
    """Raise for a model that holds an array with one entry per record."""
    remedy = "Make it an argument of fn and pass it in `covariates`."
    fail("fn", f"a model with {given}", "one whose records differ only in their fields and covariates", remedy)
