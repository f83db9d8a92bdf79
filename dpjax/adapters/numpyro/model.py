"""A NumPyro model of one plate of records, as a complete-data model of dpjax."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import Distribution, Normal

from dpjax._util.jit import depends_on, jit_quickly
from dpjax._util.validation import fail, is_traced, summarize
from dpjax.adapters.numpyro.argument_checks import check_arguments
from dpjax.adapters.numpyro.inspection import inspect
from dpjax.adapters.numpyro.laws import Laws, deterministic
from dpjax.adapters.numpyro.noncentred import derive_noncentred
from dpjax.adapters.numpyro.refusals import refuse, same
from dpjax.adapters.numpyro.support import LARGEST_SUMMARY, Support, find_support
from dpjax.adapters.numpyro.visit import Layout, draw, given, unwrap, watch
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.models.checks import check_model
from dpjax.models.recipe import with_origin

__all__ = ["from_numpyro"]


def from_numpyro(fn: Callable[..., Any], records: Sequence[str], n: int | None = None, **arguments: Any) -> Model:
    """The complete-data model that a NumPyro model of one plate of records states.

    Sample sites outside the plate become the parameters, under their names. Deterministic sites outside it that do
    not depend on the records are reported as derived quantities.

    Parameters
    ----------
    fn
        The NumPyro model. If it has an argument ``n``, that is given the number of records. Arguments for data are
        left out: give them the default None; those with the name of a record field get None in any case.
    records
        The names of the record fields: every sample site inside the plate and, where the statistic needs them, those
        of `arguments` that are covariates [n, ...].
    n
        A number of records to look at the model with, where it has an argument ``n`` without a default. A model whose
        prior depends on it describes that many records.
    **arguments
        Further arguments of ``fn`` that never change, such as covariates known to the public. Where these give each
        record a law of its own, the model describes that many records, and ``dpjax.imwg()`` imputes them.

    Returns
    -------
    Model
        It has no exact update: a BlackJAX kernel moves the parameters. The non-centred form is derived from the
        record sites, and ``describe()`` says which form each has; a site without one stays centred.

    Raises
    ------
    TypeError, ValueError
        If the model has no such plate, scales, masks or subsamples it, observes a site, holds a factor, a discrete or
        improper parameter, a record site that is not named, control flow, or records that depend on each other.
    """
    check_given(fn, arguments)
    layout, exchangeable = inspect(fn, records, n, arguments)
    laws = Laws(layout)
    check_arguments(laws)
    quantities, support = find_quantities(laws), find_support(layout)
    counted = support is not None and support.size <= LARGEST_SUMMARY and exchangeable and not layout.fixed
    free = laws.is_unconstrained()
    model = Model(
        sample_prior=laws.sample_prior,
        log_prior=laws.log_prior,
        sample_records=laws.sample_records,
        log_density=laws.log_density,
        noncentred=derive_noncentred(layout),
        unconstrain=None if free else laws.unconstrain,
        constrain=None if free else laws.constrain,
        log_jacobian=None if free else laws.log_jacobian,
        summarize=support.tally if support is not None and counted else None,
        log_likelihood=partial(log_likelihood_of_counts, laws, support) if support is not None and counted else None,
        support=None if support is None else support.list,
        count_field=find_count_field(layout) if support is None else None,
        normal_field=derive_normal_field(layout) if exchangeable else None,
        derived=partial(laws.derived, quantities) if quantities else None,
        num_records=layout.size if layout.fixed or has_prior_of_size(laws) else None,
        exchangeable=exchangeable,
    )
    check_model(model)
    if support is not None and support.size <= LARGEST_SUMMARY:
        check_total(model)
    return with_origin(from_numpyro, model, fn, records, n=n, **arguments)


TOTAL_ERROR = 1e-2
"""Of a total probability in float32, over the largest supports."""


def check_total(model: Model) -> None:
    """Refuse records of finitely many values whose probabilities do not add up to 1 at draws from the prior."""
    assert model.support is not None
    if model.num_records is not None:
        return  # records of laws of their own

    def total(key: Key) -> Array:
        return jnp.sum(jnp.exp(model.log_density(model.sample_prior(key), model.support())))  # type: ignore[misc]

    totals = np.asarray(jit_quickly(jax.vmap(total))(jax.random.split(jax.random.key(0), 8)))
    off = totals[np.isfinite(totals) & (np.abs(totals - 1) > TOTAL_ERROR)]
    if off.size:
        refuse(
            f"records whose possible values have the total probability {off[0]:.4g}",
            "probabilities that add up to 1",
            "Normalise the distribution of the records: its log_prob is taken as it is.",
        )


def check_given(fn: Any, arguments: dict[str, Any]) -> None:
    """Raise if a law stands in the place of a model, or a covariate is missing."""
    if isinstance(fn, Distribution):
        remedy = "Pass a function that draws from it with numpyro.sample."
        fail("fn", type(fn).__name__, "a NumPyro model, a function", remedy, error=TypeError)
    for name, value in arguments.items():
        array = None if is_traced(value) or not hasattr(value, "__array__") else np.asarray(value)
        if array is not None and array.dtype.kind == "f" and np.any(np.isnan(array)):
            remedy = "Fill in what is missing, or leave these records out."
            fail(name, f"{summarize(array)}, with missing numbers", "numbers", remedy)


def log_likelihood_of_counts(laws: Laws, support: Support, parameters: Parameters, counts: Array) -> Array:
    """The log-density [] of all records from how often each possible one occurs [c]."""
    density = laws.log_density(parameters, support.list())
    return jnp.sum(jnp.where(counts > 0, counts * density, 0.0))


def has_prior_of_size(laws: Laws) -> bool:
    """Whether the prior depends on the number of records."""
    layout = laws.layout
    sizes = [Laws(layout._replace(size=size)) for size in (layout.size, layout.size + 1)]
    shapes = jax.eval_shape(laws.sample_prior, jax.random.key(0))
    programs = [jax.make_jaxpr(one.log_prior)(shapes) for one in sizes]
    if len({str(program) + repr(program.consts) for program in programs}) == 1:
        return False  # without a computation
    densities = jit_quickly(lambda parameters: [one.log_prior(parameters) for one in sizes])
    return not same(*densities(jit_quickly(laws.sample_prior)(jax.random.key(0))))


def find_quantities(laws: Laws) -> tuple[str, ...]:
    """The names of the deterministic sites outside the records' plate that no record touches."""
    layout = laws.layout
    outside = tuple(
        statement["name"]
        for statement in watch(lambda key: layout.run(layout.size, draw(key)))
        if statement["type"] == "deterministic"
        and layout.plate not in [frame.name for frame in statement["cond_indep_stack"]]
    )

    def value(records: Records, parameters: Parameters, name: str) -> Array:
        statements = layout.run(layout.size, given(parameters | records, draw(jax.random.key(0))))
        return deterministic(statements, (name,))[name]

    key = jax.eval_shape(jax.random.key, 0)
    parameters = jax.eval_shape(laws.sample_prior, key)
    records = jax.eval_shape(lambda key, parameters: laws.sample_records(key, parameters, layout.size), key, parameters)
    return tuple(name for name in outside if not depends_on(partial(value, name=name), records, parameters))


def derive_normal_field(layout: Layout) -> Callable[[Parameters], tuple[Array, Array]] | None:
    """The mean and standard deviation of the one field, if that is Normal for all parameters."""

    def normal_field(parameters: Parameters) -> tuple[Array, Array]:
        moments: list[Any] = []

        def choose(name: str, law: Any) -> Array:
            if name in layout.fields:
                moments.append(law)
            return given(parameters, draw(jax.random.key(0)))(name, law)

        layout.run(layout.size, choose)
        law = unwrap(moments[0])
        return tuple(jnp.ravel(jnp.asarray(moment, float))[0] for moment in (law.loc, law.scale))  # type: ignore[return-value]

    return normal_field if is_normal(layout) else None


def find_count_field(layout: Layout) -> str | None:
    """The name of the one field, if that is a single whole number without an upper bound."""
    laws: dict[str, Any] = {}
    layout.watch_fields(lambda name, law, value: laws.update({name: (law, value.dtype)}))
    if len(laws) > 1:
        return None
    ((name, (law, kind)),) = laws.items()
    endless = not law.event_shape and not law.has_enumerate_support
    return name if endless and jnp.issubdtype(kind, jnp.integer) else None


def is_normal(layout: Layout) -> bool:
    """Whether the records have one field, a single Normal number."""
    statements = watch(lambda key: layout.run(layout.size, draw(key)))
    laws = [statement["fn"] for statement in statements if statement.get("name") in layout.fields]
    return not layout.known and len(laws) == 1 and type(unwrap(laws[0])) is Normal and laws[0].event_shape == ()
