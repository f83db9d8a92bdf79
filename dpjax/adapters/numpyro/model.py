"""Complete-data models from NumPyro models of one plate of records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import Distribution, Normal

from dpjax._util.jit import depends_on, jit_unoptimized
from dpjax._util.validation import fail, is_traced, name_of, summarize
from dpjax.adapters.numpyro.argument_checks import check_arguments
from dpjax.adapters.numpyro.densities import ModelDensities, deterministic
from dpjax.adapters.numpyro.inspection import inspect
from dpjax.adapters.numpyro.mixed import find_mixed
from dpjax.adapters.numpyro.noncentred import derive_noncentred
from dpjax.adapters.numpyro.number import build_number_check, differs
from dpjax.adapters.numpyro.refusals import refuse
from dpjax.adapters.numpyro.shared import build_log_likelihood, is_shared, tally
from dpjax.adapters.numpyro.support import LARGEST_SUMMARY, Support, find_support
from dpjax.adapters.numpyro.trace import Layout, draw, given, trace_statements, unwrap
from dpjax.base import Array, FunctionModel, Key, Model, Parameters, Records
from dpjax.models.checks import check_model
from dpjax.runtime.identity import Reader

__all__ = ["from_numpyro"]

NUM_REMEMBERED = 16
"""How many models are kept, so that a call that is made again finds its compiled programs."""

TOTAL_ERROR = 1e-2
"""Largest error of a total probability, for the largest supports in float32."""


def from_numpyro(fn: Callable[..., Any], records: str | Sequence[str], n: int | None = None, **arguments: Any) -> Model:
    """The complete-data model of a NumPyro model with one plate of records.

    Sample sites outside the plate become the parameters. Deterministic sites outside it that do not depend on the
    records are reported as derived quantities.

    Parameters
    ----------
    fn
        The NumPyro model. An argument ``n`` is the number of records. Arguments for data are not passed: give them the
        default None; those named like a record field are None in any case.
    records
        The names of the record fields: every sample site inside the plate and, where the statistic needs them, those
        of `arguments` that are covariates [n, ...].
    n
        The number of records for inspecting a model that has an argument ``n`` without a default. Pass it where prior,
        deterministic sites or covariates depend on n: a release of another number is then refused.
    **arguments
        Constant arguments of ``fn``, such as public covariates. If records differ by these, the model is one of that
        many records, and ``dpjax.imwg()`` imputes them.

    Returns
    -------
    Model
        Without an exact update, so that a BlackJAX kernel updates the parameters. The non-centred form is derived from
        the record sites; ``describe()`` shows the form of each. A site without one stays centred.

    Raises
    ------
    TypeError, ValueError
        If the model has no such plate, or scales, masks, subsamples or observes sites. If it has a factor, a discrete
        or improper parameter, a record site that is not named, or control flow. If records depend on each other.

    Notes
    -----
    Called again with the same function, arguments, and values of the variables that the function reads, it returns the
    model that it returned before, whose programs are compiled.

    Examples
    --------
    >>> import numpyro
    >>> from numpyro import distributions as dist
    >>> def program(n, y=None):
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    ...     with numpyro.plate("records", n):
    ...         numpyro.sample("y", dist.Normal(mean, 2.0), obs=y)
    >>> from_numpyro(program, records=["y"]).exchangeable
    True
    """
    check_given(fn, arguments)
    content = content_of_call(fn, records, n, arguments)
    if content is None:
        return build_model(fn, records, n, arguments)
    return remembered_model(Call(id(fn), content, (fn, records, n, arguments)))


@dataclass(frozen=True)
class Call:
    """A call of `from_numpyro`, equal to another of the same function while all that it refers to is the same.

    Parameters
    ----------
    address
        That of the function, which is not used again while the call is remembered.
    content
        The hash of the function with all that it reads, and of the other arguments.
    given
        Function, records, number of records and arguments.
    """

    address: int
    content: str
    given: tuple[Any, ...] = field(compare=False)


@lru_cache(maxsize=NUM_REMEMBERED)
def remembered_model(call: Call) -> Model:
    """The model of a call, the same object for equal calls, so that they share programs."""
    return build_model(*call.given)


def content_of_call(fn: Callable[..., Any], records: Any, n: Any, arguments: dict[str, Any]) -> str | None:
    """A hash of what a model is made of, and of the precision; None where a part cannot be hashed by its content."""
    try:
        return Reader("NumPyro model").digest((fn, records, n, arguments, str(jnp.result_type(float))))
    except Exception:  # a user's objects may raise anything
        return None


def build_model(fn: Callable[..., Any], records: Sequence[str], n: int | None, arguments: dict[str, Any]) -> Model:
    """The model of `from_numpyro`, inspected and checked."""
    layout, exchangeable, examples = inspect(fn, records, n, arguments)
    densities = ModelDensities(layout)
    check_arguments(densities)
    quantities, support = find_quantities(densities), find_support(layout)
    summary, log_likelihood = find_summary(densities, support) if exchangeable and not layout.fixed else (None, None)
    free = densities.is_unconstrained()
    has_prior_of_size = differs(densities, examples, layout.size + 1, ModelDensities.log_prior)
    model = FunctionModel(
        sample_prior=densities.sample_prior,
        log_prior=densities.log_prior,
        sample_records=densities.sample_records,
        log_density=densities.log_density,
        noncentred=derive_noncentred(layout),
        unconstrain=None if free else densities.unconstrain,
        constrain=None if free else densities.constrain,
        log_jacobian=None if free else densities.log_jacobian,
        summarize=summary,
        log_likelihood=log_likelihood,
        support=None if support is None else support.list,
        count_field=find_count_field(layout) if support is None else None,
        normal_field=derive_normal_field(layout) if exchangeable else None,
        mixed=find_mixed(layout) if support is None else None,
        derived=partial(densities.derived, quantities) if quantities else None,
        num_records=layout.size if layout.fixed or has_prior_of_size else None,
        exchangeable=exchangeable,
        check_number=build_number_check(densities, quantities, examples),
    )
    check_model(model)
    if support is not None and support.size <= LARGEST_SUMMARY:
        check_total(model)
    return replace(model, recipe=partial(from_numpyro, fn, records, n=n, **arguments))


def check_total(model: Model) -> None:
    """Raise if the probabilities of all possible records do not add up to 1 at draws from the prior."""
    assert model.support is not None
    if model.num_records is not None:
        return  # records are not identically distributed

    def total(key: Key) -> Array:
        return jnp.sum(jnp.exp(model.log_density(model.sample_prior(key), model.support())))  # type: ignore[misc]

    totals = np.asarray(jit_unoptimized(jax.vmap(total))(jax.random.split(jax.random.key(0), 8)))
    off = totals[np.isfinite(totals) & (np.abs(totals - 1) > TOTAL_ERROR)]
    if off.size:
        refuse(
            f"records whose possible values have the total probability {off[0]:.4g}",
            "probabilities that add up to 1",
            "Normalise the distribution of the records: its log_prob is taken as it is.",
        )


def check_given(fn: Any, arguments: dict[str, Any]) -> None:
    """Raise if a distribution is given instead of a model, or a covariate has NaN."""
    if isinstance(fn, Distribution):
        remedy = "Pass a function that draws from it with numpyro.sample."
        fail("fn", name_of(fn), "a NumPyro model, a function", remedy, error=TypeError)
    for name, value in arguments.items():
        array = None if is_traced(value) or not hasattr(value, "__array__") else np.asarray(value)
        if array is not None and array.dtype.kind == "f" and np.any(np.isnan(array)):
            remedy = "Fill in what is missing, or leave these records out."
            fail(name, f"{summarize(array)}, with missing numbers", "numbers", remedy)


def find_summary(
    densities: ModelDensities, support: Support | None
) -> tuple[Callable[[Records], Any], Callable[[Parameters, Any], Array]] | tuple[None, None]:
    """How often each record occurs, and the log-density as a function of that; None for records of other kinds."""
    layout = densities.layout
    if support is not None and support.size <= LARGEST_SUMMARY:
        return support.tally, partial(log_likelihood_of_counts, densities, support)
    if support is None and is_shared(layout):
        return partial(tally, layout.fields[0]), build_log_likelihood(layout, densities.log_density)
    return None, None


def log_likelihood_of_counts(
    densities: ModelDensities, support: Support, parameters: Parameters, counts: Array
) -> Array:
    """The log-density [] of all records from the count of each possible one [c]."""
    density = densities.log_density(parameters, support.list())
    return jnp.sum(jnp.where(counts > 0, counts * density, 0.0))


def find_quantities(densities: ModelDensities) -> tuple[str, ...]:
    """The names of the deterministic sites outside the plate that do not depend on the records."""
    layout = densities.layout
    outside = tuple(
        statement["name"]
        for statement in trace_statements(lambda key: layout.run(layout.size, draw(key)))
        if statement["type"] == "deterministic"
        and layout.plate not in [frame.name for frame in statement["cond_indep_stack"]]
    )

    def value(records: Records, parameters: Parameters, name: str) -> Array:
        statements = layout.run(layout.size, given(parameters | records, draw(jax.random.key(0))))
        return deterministic(statements, (name,))[name]

    key = jax.eval_shape(jax.random.key, 0)
    parameters = jax.eval_shape(densities.sample_prior, key)
    records = jax.eval_shape(
        lambda key, parameters: densities.sample_records(key, parameters, layout.size), key, parameters
    )
    return tuple(name for name in outside if not depends_on(partial(value, name=name), records, parameters))


def derive_normal_field(layout: Layout) -> Callable[[Parameters], tuple[Array, Array]] | None:
    """The mean and standard deviation of the only field as a function of the parameters, if it is Normal."""

    def normal_field(parameters: Parameters) -> tuple[Array, Array]:
        moments: list[Any] = []

        def choose(name: str, distribution: Any) -> Array:
            if name in layout.fields:
                moments.append(distribution)
            return given(parameters, draw(jax.random.key(0)))(name, distribution)

        layout.run(layout.size, choose)
        distribution = unwrap(moments[0])
        return tuple(jnp.ravel(jnp.asarray(moment, float))[0] for moment in (distribution.loc, distribution.scale))  # type: ignore[return-value]

    return normal_field if is_normal(layout) else None


def find_count_field(layout: Layout) -> str | None:
    """The name of the only field, if it is a single integer without an upper bound."""
    found: dict[str, Any] = {}
    layout.trace_fields(lambda name, distribution, value: found.update({name: (distribution, value.dtype)}))
    if len(found) > 1:
        return None
    ((name, (distribution, dtype)),) = found.items()
    is_unbounded = not distribution.event_shape and not distribution.has_enumerate_support
    return name if is_unbounded and jnp.issubdtype(dtype, jnp.integer) else None


def is_normal(layout: Layout) -> bool:
    """Whether the records have one field, a single Normal variable."""
    statements = trace_statements(lambda key: layout.run(layout.size, draw(key)))
    found = [statement["fn"] for statement in statements if statement.get("name") in layout.fields]
    return not layout.known and len(found) == 1 and type(unwrap(found[0])) is Normal and found[0].event_shape == ()
