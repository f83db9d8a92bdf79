"""Checks that the functions of a model fit each other and a release, by shapes."""

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import signature
from dpjax._util.spelling import names_arguments
from dpjax._util.validation import fail, is_refusal, is_traced, name_of, summarize_error
from dpjax.base import MEMBERS, REQUIRED, Model, Records
from dpjax.models.arguments import is_numeric
from dpjax.models.data_sets import check_names_free
from dpjax.models.integer_noise import check_integer_noise
from dpjax.models.losses import check_losses
from dpjax.models.persons import check_persons
from dpjax.models.simulation import position_shapes, some_records
from dpjax.models.unconstrained import mixing
from dpjax.release.base import is_release
from dpjax.release.weights import weights_of
from dpjax.statistics import Cells, Stacked, TotalsOfGroups

__all__ = ["check_fit", "check_model"]

SIZES = (3, 5)
"""Numbers of records to check; two of them, as a wrong shape may equal one of them by chance."""

MIXED = 1e-3
"""By how much of its slope an elementwise map may seem to depend on other numbers, as it is rounded."""

PLAIN = ("count_field", "num_records", "exchangeable", "draws_prior", "noncentred", "mixed")
"""Members of a model that are not functions."""


@names_arguments
def check_model(model: Model) -> None:
    """Raise unless every function of a model returns the shapes that `Model` specifies.

    The functions are traced with `jax.eval_shape`. Only a ``constrain`` without a ``log_jacobian`` is computed, at some
    draws from the prior. `check` compares what the functions return, too.

    Raises
    ------
    TypeError
        If a function does not return a dict if it should.
    ValueError
        If a shape is wrong, a function raises an error, or one of two functions that belong together is missing. If a
        ``constrain`` without a ``log_jacobian`` is not elementwise. If a parameter is called ``"num_records"``, under
        which an unknown number of records is reported.
    """
    if not isinstance(model, Model):
        remedy = "Pass one of dpjax.models, dpjax.from_numpyro(...) or a Model of your own functions."
        fail("model", name_of(model), "a Model", remedy, error=TypeError)
    check_fields(model)
    for name in MEMBERS:
        check_function(name, getattr(model, name) if model.has(name) else None)
    for one, other in (("unconstrain", "constrain"), ("summarize", "log_likelihood")):
        if model.has(one) != model.has(other):
            given, missing = (one, other) if model.has(one) else (other, one)
            fail(f"Model.{missing}", "None", f"a function, because {given} is given", "Give both or neither.")
    key = jax.eval_shape(jax.random.key, 0)
    parameters = trace(model, "sample_prior", key)
    check_dict("sample_prior", parameters, "parameters")
    check_names_free(parameters)
    check_scalar("log_prior", trace(model, "log_prior", parameters))
    for n in SIZES if model.num_records is None else (model.num_records,):
        check_records(model, key, parameters, n)
    check_scales(model, parameters)
    check_field(model, parameters)
    check_conjugate(model, key, parameters)


def check_prior_is_drawn(model: Model) -> None:
    """Raise if the prior is known by its density alone."""
    if not model.draws_prior:
        remedy = "dpjax.sample needs its density alone; else leave out factors and improper distributions."
        fail("model", "a prior that cannot be drawn from", "draws from the prior", remedy)


def check_fields(model: Model) -> None:
    """Raise unless the fields of a model are numbers, or marked as static."""
    expected, remedy = "numbers, or a static field", "Mark what decides on programs: name: int = dpjax.base.static()."
    for path, leaf in jax.tree.leaves_with_path(model):
        if not is_numeric(leaf):
            given = f"{name_of(leaf)} in {jax.tree_util.keystr(path, simple=True, separator='.')}"
            fail("model", given, expected, remedy, error=TypeError)


def check_function(name: str, function: Any) -> None:
    """Raise unless a member of a model is a function, or None if it is optional."""
    if name not in PLAIN and not callable(function) and (function is not None or name in REQUIRED):
        fail(f"Model.{name}", repr(function), "a function", "See dpjax.Model for what it takes.", error=TypeError)


def check_records(model: Model, key: Any, parameters: Any, n: int) -> None:
    """Check all functions that return or take n records."""
    records = trace(model, "sample_records", key, parameters, n=n)
    check_dict("sample_records", records, "records")
    for name, field in records.items():
        check_leading("sample_records", name, field, n)
    density = trace(model, "log_density", parameters, records)
    if shape_of(density) != (n,):
        remedy = "Return one value for each record; sum over the axes of a record, never over the records."
        mismatch("log_density", f"shape {show(density)} for {n} records", f"shape [{n}]", remedy)
    if model.has("update"):
        check_same("update", trace(model, "update", key, parameters, records), parameters, "the parameters")
    if model.has("update_log_density"):
        check_scalar("update_log_density", trace(model, "update_log_density", parameters, parameters, records))
    if model.has("noncentred"):
        noise = trace(model, "noncentred.noise", key, parameters, records)
        check_same("noncentred.records", trace(model, "noncentred.records", parameters, noise), records, "the records")
    if model.has("summarize"):
        summary = trace(model, "summarize", records)
        check_scalar("log_likelihood", trace(model, "log_likelihood", parameters, summary))
    if model.support is not None:
        check_support("support", trace(model, "support"), records)
    if model.has("mixed"):
        check_mixed(model, parameters, records, n)
    if model.discrete_support is not None:
        check_support("discrete_support", trace(model, "discrete_support"), records)
    check_dict("reported", trace(model, "reported", records), "quantities of the records")


def check_support(name: str, support: Any, records: Records) -> None:
    """Check that the possible values of fields are like those of the records."""
    check_dict(name, support, "records")
    sizes = {shape_of(leaf)[:1] for leaf in jax.tree.leaves(support)}
    if len(sizes) != 1 or () in sizes:
        mismatch(name, show(support), "fields with one leading axis [c]", "List every possible record once.")
    # Known covariates are not listed, nor are continuous fields.
    drawn = {name: field for name, field in records.items() if name in support}
    check_same(name, jax.tree.map(one_record, support), jax.tree.map(one_record, drawn), "one record")


def check_mixed(model: Model, parameters: Any, records: Records, n: int) -> None:
    """Check that scores and levels give the records and one log-probability for each."""
    levels = trace(model, "mixed.levels")
    check_dict("mixed.levels", levels, "discrete fields")
    scores = jax.ShapeDtypeStruct((model.mixed.num_scores, n), jnp.result_type(float))
    listed = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((n, *leaf.shape[1:]), leaf.dtype), levels)
    found = trace(model, "mixed.records", parameters, scores, listed)
    if not isinstance(found, tuple) or len(found) != 2 or shape_of(found[1]) != (n,):
        mismatch("mixed.records", show(found), f"records and log-probabilities [{n}]", "Return a tuple of the two.")
    check_same("mixed.records", found[0], records, "the records")


def check_scales(model: Model, parameters: Any) -> None:
    """Check that the maps to the unconstrained scale and back keep names and shapes."""
    if not model.has("constrain"):
        return
    unconstrained = trace(model, "unconstrain", parameters)
    check_dict("unconstrain", unconstrained, "unconstrained arrays")
    if set(unconstrained) != set(parameters):
        remedy = "Keep every name, also of parameters that need no map."
        mismatch("unconstrain", f"names {sorted(unconstrained)}", f"names {sorted(parameters)}", remedy)
    check_same("constrain", trace(model, "constrain", unconstrained), parameters, "the parameters")
    if model.has("log_jacobian"):
        check_scalar("log_jacobian", trace(model, "log_jacobian", unconstrained))
    else:
        check_elementwise(model, parameters, unconstrained)


def check_elementwise(model: Model, parameters: Any, unconstrained: Any) -> None:
    """Raise unless each number of ``constrain`` depends on its own unconstrained number alone."""
    expected = "a log_jacobian, or a map of each number by itself"
    remedy = "Give Model.log_jacobian, the log |det| of constrain for the coordinates that log_prior refers to."
    for name, leaf in parameters.items():
        if unconstrained[name].size != leaf.size:
            given = f"{leaf.size} numbers of {name!r} by {unconstrained[name].size} unconstrained ones"
            mismatch("constrain", given, expected, remedy)
    numbers = jax.tree.leaves((parameters, unconstrained))
    if is_traced(model) or not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in numbers):
        return
    with jax.ensure_compile_time_eval():
        found = float(mixing.unoptimized(model, jax.random.key(0)))
    if found > MIXED:
        given = f"a map by which a number depends on others, by {found:.2g} of its slope at a draw from the prior"
        mismatch("constrain", given, expected, remedy)


def check_field(model: Model, parameters: Any) -> None:
    """Check the functions `normal_field`, `binomial_field` and `derived`."""
    expected = {"normal_field": "(mean [], standard deviation [])", "binomial_field": "(trials [], probability [])"}
    for member in filter(model.has, expected):
        numbers = trace(model, member, parameters)
        shapes = [shape_of(number) for number in numbers] if isinstance(numbers, tuple) else []
        if shapes not in ([()] * 2, [(model.num_records,)] * 2):
            mismatch(member, show(numbers), expected[member], "Return a tuple of two numbers.")
    check_dict("derived", trace(model, "derived", parameters), "derived quantities")


def check_conjugate(model: Model, key: Any, parameters: Any) -> None:
    """Check the sums of counts, and the update and density of the parameters given these."""
    if not model.has("conjugate"):
        return
    domain = model.domain
    if not domain.is_finite:
        expected, remedy = "a function, because conjugate is given", "List the possible records."
        fail("Model.support", "None", expected, remedy)
    conjugate = model.conjugate
    index, shift, sign = trace_function("conjugate", lambda: conjugate()[:3])
    if index.ndim != 2 or index.shape[0] != domain.size or not jnp.issubdtype(index.dtype, jnp.integer):
        given, expected = f"places {show(index)}", f"integers [{domain.size}, m]"
        mismatch("conjugate", given, expected, "List the sums of each possible record.")
    if shift.ndim != 1 or shift.shape != sign.shape:
        given, expected = f"shift {show(shift)}, sign {show(sign)}", "shift and sign of one shape [q]"
        mismatch("conjugate", given, expected, "Give one shift and one sign for each sum.")
    sums = jax.ShapeDtypeStruct(shift.shape, index.dtype)
    update = trace_function("conjugate.update", lambda key, sums: conjugate().update(key, sums), key, sums)
    check_same("conjugate.update", update, parameters, "the parameters")
    density = trace_function(
        "conjugate.log_density", lambda parameters, sums: conjugate().log_density(parameters, sums), parameters, sums
    )
    check_scalar("conjugate.log_density", density)


def trace(model: Model, name: str, *values: Any, **static: Any) -> Any:
    """The shapes that a function of the model returns for values of these shapes."""
    return trace_function(name, partial(attrgetter(name)(model), **static), *values)


def trace_function(name: str, function: Callable[..., Any], *values: Any) -> Any:
    """The shapes that a function of this name returns for values of these shapes."""
    try:
        return jax.eval_shape(function, *values)
    except Exception as error:  # a user's function may raise anything
        if is_refusal(error):
            raise
        given = f"a function that raised {summarize_error(error)}"
        expected = f"one of arguments {', '.join(show(value) for value in values) or 'none'}"
        remedy = "The error that it raised is shown above, with its place."
        return fail(f"Model.{name}", given, expected, remedy)


def mismatch(name: str, given: str, expected: str, remedy: str) -> NoReturn:
    """Raise for a wrong return value of a function of the model."""
    fail(f"Model.{name}", given, expected, remedy)


def check_dict(name: str, value: Any, what: str) -> None:
    """Raise unless a function returned a dict."""
    if not isinstance(value, dict):
        expected, remedy = f"a dict of {what}", "Return a dict of named arrays."
        fail(f"Model.{name}", name_of(value), expected, remedy, error=TypeError)


def check_scalar(name: str, value: Any) -> None:
    """Raise unless a function returned a single number."""
    if shape_of(value) != ():
        mismatch(name, show(value), "a single number, shape []", "Sum the log-density over all entries.")


def check_leading(name: str, field: str, value: Any, n: int) -> None:
    """Raise unless every array of a field has the leading axis n."""
    for leaf in jax.tree.leaves(value):
        if leaf.shape[:1] != (n,):
            expected = f"a leading axis of {n}, one entry for each record"
            mismatch(name, f"field {field!r} of shape {list(leaf.shape)}", expected, "Draw n records.")


def check_same(name: str, value: Any, wanted: Any, what: str) -> None:
    """Raise unless two trees have the same structure, shapes and dtypes."""
    if signature(value) != signature(wanted):
        mismatch(name, show(value), f"the names, shapes and dtypes of {what}, {show(wanted)}", "Return the same.")


def one_record(field: Any) -> Any:
    """The shape of a field without its leading axis."""
    return jax.ShapeDtypeStruct(field.shape[1:], field.dtype)


def shape_of(value: Any) -> Any:
    """The shape of an array, None for anything else."""
    return getattr(value, "shape", None)


def show(value: Any) -> str:
    """A tree of shapes as text."""
    return str(jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", value))


def check_fit(model: Model, release: Any) -> None:
    """Raise unless the model's functions fit each other, and its records fit what was released.

    Raises
    ------
    TypeError, ValueError
        If model and release are swapped, or a function of the model has a wrong shape. If the statistic or the channel
        does not accept the records, or the numbers of records differ, or those of the persons in each unit. If a table
        has categories that no record of the model takes, or integer noise is added to real numbers. If coefficients
        were fitted by a loss that is not convex on its records. If the model has survey weights beside a sum.
    """
    if not is_release(release):
        fail("release", name_of(release), "a Release or LocalRelease", "Pass (model, release).", error=TypeError)
    check_model(model)
    release.check_records(position_shapes(model, 1).records)
    if model.num_records not in (None, release.n):
        expected, remedy = f"n = {model.num_records}, as the model has", "Give the model the covariates of all records."
        fail("release", f"a release of n = {release.n} records", expected, remedy)
    model.check_number(release.n)
    weights_of(model, release)
    if release.summed is not None:
        check_categories(model, release.summed.statistic)
        check_groups(model, release)
        check_losses(model, release.summed)
    for part in release.parts:
        check_level_names(model, part)
        check_channel(model, part)
    check_persons(model, release)
    check_integer_noise(model, release)


def check_categories(model: Model, statistic: Any) -> None:
    """Raise if a table has categories that no record of the model takes; additional values of records are allowed."""
    domain = model.domain
    support = domain()
    for part in statistic.statistics if isinstance(statistic, Stacked) else (statistic,):
        if isinstance(part, Cells) and not is_traced(support):
            check_table(support, part, domain.empty)


def check_groups(model: Model, release: Any) -> None:
    """Raise if totals of groups have no names though the model's groups do, or a record is in none of the groups."""
    statistic, names = release.summed.statistic, model.level_names
    for part in statistic.statistics if isinstance(statistic, Stacked) else (statistic,):
        if not isinstance(part, TotalsOfGroups) or is_traced((model, release)):
            continue
        if part.levels is None and part.by in names:
            given = f"totals by {part.by!r} without names, of which the model has {list(names[part.by])}"
            remedy = f"Pass levels=model.level_names[{part.by!r}] to group_totals, and the totals by name."
            fail("release", given, "totals by the names of their groups", remedy)
        groups = np.asarray(some_records.unoptimized(model, release.n)[part.by])
        if np.any((groups < 0) | (groups >= part.num_groups)):
            given = f"a record of group {groups[(groups < 0) | (groups >= part.num_groups)][0]} of {part.by!r}"
            remedy = "Number the groups 0, 1, ..., and pass as many levels."
            fail("release", given, f"groups 0 to {part.num_groups - 1}, as its totals have", remedy)


def check_level_names(model: Model, release: Any) -> None:
    """Raise if model and release have different names for the levels of a field, or the same ones in another order."""
    released = release.level_names
    for field, names in model.level_names.items():
        if released.get(field, names) != names:
            given, expected = f"levels {list(released[field])} of {field!r}", f"{list(names)}, as the model has"
            fail("release", given, expected, "Give both the same names in the same order.")


def check_channel(model: Model, release: Any) -> None:
    """Raise if records have categories that their channel does not know, and which it would make impossible."""
    size = release.mechanism.sums.categories
    support = {} if size is None else model.domain()
    if size is None or release.field not in support or is_traced(support):
        return
    values = np.asarray(support[release.field])
    unknown = values[(values < 0) | (values >= size)]
    if unknown.size:
        given = f"a channel of {size} categories of {release.field!r}, without {unknown[0]} of the model's records"
        remedy = "Give the channel all categories of the model, also those that nobody reported."
        fail("release", given, "every value of the records among its categories 0, 1, ...", remedy)


def check_table(support: Records, table: Cells, stated: dict[str, list[int]]) -> None:
    """Raise if a category of a table is not among the values of its field, nor stated to be empty."""
    for name, size in zip(table.field, table.num_categories, strict=True):
        missing = np.setdiff1d(np.arange(size), support[name]) if name in support else np.array([])
        missing = np.setdiff1d(missing, stated.get(name, []))
        if missing.size:
            given = f"a table of {size} categories of {name!r}, of which no record of the model takes {missing[0]}"
            remedy = "Give the model a value for each; leave out of the table what is known to be empty."
            fail("release", given, "categories that are values of the records", remedy)
