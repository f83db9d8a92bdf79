"""Inspection of a NumPyro model: its layout, and checks that records are independent given the parameters."""

import inspect as signatures
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.dependence import depends_on
from dpjax._util.validation import check_count, fail, is_refusal, name_of, summarize_error
from dpjax.adapters.numpyro import refusals
from dpjax.adapters.numpyro.arguments import as_data, hold_constants, values_of
from dpjax.adapters.numpyro.densities import ModelDensities, identify_program
from dpjax.adapters.numpyro.trace import SiteLayout, draw, is_factor, run, trace_statements
from dpjax.base import Array, Key, Parameters, Records
from dpjax.models.programs import jit_model
from dpjax.numerics import tree_where

DEFAULT_SIZE = 5
"""Number of records for inspecting a model that takes any number."""

NUM_DRAWS = 8
"""Number of prior draws, and of pairs of opposite unconstrained points, at which parameters are tried."""

POINT_SCALE = 2.0
"""Standard deviation of these points."""


def inspect(
    function: Callable[..., Any], records: Sequence[str], n: int | None, arguments: dict[str, Any]
) -> tuple[SiteLayout, bool]:
    """The layout of a NumPyro model, and whether its records are exchangeable.

    Raises
    ------
    TypeError, ValueError
        See `dpjax.from_numpyro`.
    """
    return check_exchangeability(find_layout(function, records, n, arguments))


def find_layout(
    function: Callable[..., Any],
    records: Sequence[str],
    n: int | None,
    arguments: dict[str, Any],
    covariates: Sequence[str] = (),
) -> SiteLayout:
    """The layout of a NumPyro model whose records are taken to be independent, without running it.

    Those of its record fields that are `covariates` may have the names of parameters.
    """
    names = check_names(function, records)
    arguments, takes_size = complete_arguments(function, names, arguments)
    size = choose_size(function, names, arguments) if n is None else check_count("n", n, "Pass a number of records.")
    with_size = {"n": size} if takes_size else {}
    statements = first_run(function, arguments | with_size, takes_size and n is None)
    refusals.check_statements(statements)
    samples = [statement for statement in statements if statement["type"] == "sample"]
    sites = {statement["name"]: statement for statement in samples if not is_factor(statement)}
    known = tuple(name for name in names if name in covariates or (name not in sites and name in arguments))
    plate = refusals.check_record_sites(sites, tuple(name for name in names if name not in known), takes_size)
    fields = tuple(name for name in sites if name in names and name not in known)
    refusals.check_parameters(sites, fields)
    stack = sorted(sites[fields[0]]["cond_indep_stack"], key=lambda frame: frame.dim)
    shape = tuple(frame.size for frame in stack)
    layout = SiteLayout(
        arguments=hold_constants(partial(run_silently, function, with_size), as_data(arguments)),
        function=function,
        takes_size=takes_size,
        size=prod(shape),
        fixed=bool(known) or len(shape) > 1,
        plate=plate.name,
        parameters=tuple(name for name in sites if name not in fields),
        fields=fields,
        known=known,
        shape=shape if len(shape) > 1 else (),
        factors=tuple(statement["name"] for statement in samples if is_factor(statement)),
    )
    if n is not None and layout.size != n:
        given = f"{n}, but the plate {plate.name!r} has {layout.size}"
        fail("n", given, "the size of the plate", "Leave n out, or let the plate take it.")
    refusals.check_known(layout)
    refusals.check_shapes(layout)
    if layout.factors:
        refusals.check_factors(layout, *shapes_of_draws(ModelDensities(layout))[::-1])
    return replace(layout, program=identify_program(layout))


def check_names(function: Any, records: Any) -> tuple[str, ...]:
    """The names of the record fields."""
    if isinstance(function, type) or not callable(function):
        fail("fn", name_of(function), "a NumPyro model, a function", "Pass the function itself.", error=TypeError)
    remedy = 'Pass the names of the record fields, such as records=("x", "y").'
    if isinstance(records, str):
        return (records,)
    if not isinstance(records, Sequence) or not all(isinstance(r, str) for r in records):
        fail("records", repr(records), "a sequence of names", remedy, error=TypeError)
    if not records or len(set(records)) != len(records):
        fail("records", repr(tuple(records)), "one or more different names", remedy)
    return tuple(records)


def complete_arguments(
    function: Callable[..., Any], names: tuple[str, ...], arguments: dict[str, Any]
) -> tuple[dict[str, Any], bool]:
    """The model's arguments, with None for the data, and whether it has an argument ``n``."""
    expected = signatures.signature(function).parameters
    takes_size = "n" in expected
    kinds = (signatures.Parameter.POSITIONAL_OR_KEYWORD, signatures.Parameter.KEYWORD_ONLY)
    required = {
        name for name, one in expected.items() if one.default is signatures.Parameter.empty and one.kind in kinds
    }
    data = {name: None for name in names if name in required and name not in arguments}
    missing = sorted(required - set(arguments) - set(data) - {"n"})
    if missing:
        remedy = "Call it n if it is the number of records; else pass it by keyword, or give it the default None."
        fail(f"fn's argument {missing[0]!r}", "nothing", "a value", remedy, error=TypeError)
    open_ended = any(one.kind is signatures.Parameter.VAR_KEYWORD for one in expected.values())
    unknown = sorted(set(arguments) - set(expected))
    if unknown and not open_ended:
        remedy = "Check its spelling; arguments that are not dpjax's are passed on to the NumPyro model."
        fail(
            f"argument {unknown[0]!r}", "a value", f"one of fn's arguments {sorted(expected)}", remedy, error=TypeError
        )
    return arguments | data, takes_size


def choose_size(function: Callable[..., Any], names: tuple[str, ...], arguments: dict[str, Any]) -> int:
    """The number of records for the inspection: that of the known fields, else the model's default."""
    lengths = [np.shape(arguments[name])[0] for name in names if name in arguments and np.ndim(arguments[name])]
    expected = signatures.signature(function).parameters
    default = expected["n"].default if "n" in expected else None
    return lengths[0] if lengths else default if isinstance(default, int) else DEFAULT_SIZE


def first_run(function: Callable[..., Any], arguments: dict[str, Any], is_default: bool) -> list[dict[str, Any]]:
    """The statements of the model, which is traced without computing; `is_default` says whether its size is ours."""

    def statements_of(key: Key) -> list[dict[str, Any]]:
        values = draw(key)
        return run(
            function, arguments, lambda name, distribution: refusals.draw_or_refuse(name, distribution, values), {}
        )

    try:
        return trace_statements(statements_of)
    except Exception as error:
        if is_refusal(error):
            raise
        if isinstance(error, (TypeError, AttributeError)) and "NoneType" in str(error):
            expected = signatures.signature(function).parameters.items()
            data = [name for name, one in expected if arguments.get(name, one.default) is None]
            refusals.refuse_reading(function, data, error)
        if is_default and any(np.ndim(value) for value in arguments.values() if hasattr(value, "__array__")):
            remedy = "Pass n, the number of records that the arrays among the arguments have."
            given = f"nothing, and fn fails for another number than its arrays have ({summarize_error(error)})"
            fail("n", given, "the number of records to inspect fn with", remedy)
        no_arrays = [name for name, value in arguments.items() if isinstance(value, list) or hasattr(value, "to_numpy")]
        if no_arrays and isinstance(error, (TypeError, IndexError)):
            given = f"a {name_of(arguments[no_arrays[0]])}, with which fn raised {summarize_error(error)}"
            remedy = "Pass numpy.asarray(values) in place of a list or of a column of a data frame."
            fail(f"argument {no_arrays[0]!r}", given, "an array", remedy, error=TypeError)
        if "ncompatible shapes" in str(error):
            given = f"a model whose shapes do not fit each other ({summarize_error(error)})"
            remedy = "If a record has several values, end its distribution with .to_event(1)."
            fail("fn", given, "batch shapes that broadcast to the plates around a site", remedy)
        error.add_note("Raised by the NumPyro model while dpjax inspected it, with every data argument None.")
        raise


def run_silently(function: Callable[..., Any], with_size: dict[str, int], data: dict[str, Any]) -> None:
    """Run the model with the values of these data."""
    run(function, values_of(data) | with_size, draw(jax.random.key(0)), {})


def check_exchangeability(layout: SiteLayout) -> tuple[SiteLayout, bool]:
    """The layout, with its number of records fixed if only one is possible, and whether records are exchangeable."""
    densities = ModelDensities(layout)
    any_size = takes_any_size(densities)
    trials = jax.device_get(run_trials.unoptimized(densities, any_size, jax.random.key(0)))
    refusals.check_independence(trials.mixed, trials.density_of_mixed)
    refusals.check_independence(trials.even, trials.density_of_even)
    alike = [(trials.rolled, trials.density_of_rolled), (trials.first, trials.density_of_first)]
    identically_distributed = all(refusals.same(*pair) for pair in alike) and not layout.known
    exchangeable = identically_distributed and any_size and not depends_on_index(densities)
    return replace(layout, fixed=layout.fixed or not exchangeable), exchangeable


class Trial(NamedTuple):
    """Log-densities [n] of drawn records, which agree pairwise if records are independent or identically distributed.

    Attributes
    ----------
    mixed
        Alternately from two draws of the records.
    density_of_mixed
        Those of records mixed alternately from the two draws.
    even
        Those of the records at even places.
    density_of_even
        The same if the records at odd places are NaN.
    rolled
        Rolled by one place.
    density_of_rolled
        Those of records rolled by one place.
    first
        That of the first record among all.
    density_of_first
        That of the first record alone, if the model takes any number.
    alone
        The first record [1, ...].
    parameters
        The parameters.
    """

    mixed: Array
    density_of_mixed: Array
    even: Array
    density_of_even: Array
    rolled: Array
    density_of_rolled: Array
    first: Array
    density_of_first: Array
    alone: Records
    parameters: Parameters


@partial(jit_model, static_argnames=("any_size",))
def run_trials(model: ModelDensities, any_size: bool, key: Key) -> Trial:
    """Trials [draw, n] at draws from the prior, and at points and their opposites on the unconstrained scale."""
    signs = jnp.repeat(jnp.asarray([0, 1, -1]), NUM_DRAWS)
    numbers = jnp.tile(jnp.arange(NUM_DRAWS), 3)

    def one(draw: tuple[Array, Array, Key]) -> Trial:
        sign, number, record_key = draw
        # Opposite points share a key.
        prior_key, point_key = jax.random.split(jax.random.fold_in(point_keys, number))
        drawn = model.sample_prior(prior_key)
        point = jax.tree.map(
            lambda leaf: sign.astype(leaf.dtype) * leaf, draw_points(point_key, model.unconstrain(drawn))
        )
        return run_trial(model, any_size, record_key, tree_where(sign == 0, drawn, model.constrain(point)))

    point_keys, record_keys = jax.random.split(key)
    # A loop compiles each distribution once.
    return jax.lax.map(one, (signs, numbers, jax.random.split(record_keys, 3 * NUM_DRAWS)))


def draw_points(key: Key, like: Parameters) -> Parameters:
    """Normal draws of the shapes of unconstrained parameters."""
    leaves, structure = jax.tree.flatten(like)
    keys = [jax.random.fold_in(key, index) for index in range(len(leaves))]
    draws = [
        POINT_SCALE * jax.random.normal(one, leaf.shape, leaf.dtype) for one, leaf in zip(keys, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, draws)


def run_trial(densities: ModelDensities, any_size: bool, key: Key, parameters: Parameters) -> Trial:
    """The trial at these parameters, of two draws of the records."""
    n = densities.layout.size
    two = jax.lax.map(lambda key: densities.sample_records(key, parameters, n), jax.random.split(key))
    is_even = jnp.arange(n) % 2 == 0

    def variants(field: Array) -> Array:
        with_nan = jnp.full_like(field[0], jnp.nan) if jnp.issubdtype(field.dtype, jnp.floating) else field[0]
        mixed, rolled = tree_where(is_even, field[0], field[1]), jnp.roll(field[0], 1, axis=0)
        return jnp.concatenate([field, jnp.stack([mixed, tree_where(is_even, field[0], with_nan), rolled])])

    one, other, density_of_mixed, density_with_nan, density_of_rolled = jax.lax.map(
        lambda records: densities.log_density(parameters, records), jax.tree.map(variants, two)
    )
    alone = jax.tree.map(lambda field: field[0, :1], two)
    return Trial(
        mixed=tree_where(is_even, one, other),
        density_of_mixed=density_of_mixed,
        even=one[::2],
        density_of_even=density_with_nan[::2],
        rolled=jnp.roll(one, 1),
        density_of_rolled=density_of_rolled,
        first=one[:1],
        density_of_first=densities.log_density(parameters, alone) if any_size else one[:1],
        alone=alone,
        parameters=parameters,
    )


def depends_on_index(densities: ModelDensities) -> bool:
    """Whether the density of a record depends on its index in the plate, as with covariates by index."""
    n = densities.layout.size
    parameters, records = shapes_of_draws(densities)
    place = jax.ShapeDtypeStruct((n,), jnp.result_type(int))

    def density(place: Array, parameters: Parameters, records: Records) -> Array:
        return densities.log_density(parameters, records, place)

    return depends_on(density, place, parameters, records)


def shapes_of_draws(densities: ModelDensities) -> tuple[Parameters, Records]:
    """The shapes of parameters and records."""

    def drawn(key: Key) -> tuple[Parameters, Records]:
        prior_key, record_key = jax.random.split(key)
        parameters = densities.sample_prior(prior_key)
        return parameters, densities.sample_records(record_key, parameters, densities.layout.size)

    shapes: tuple[Parameters, Records] = jax.eval_shape(drawn, jax.random.key(0))
    return shapes


def takes_any_size(densities: ModelDensities) -> bool:
    """Whether the model gives as many records and densities for other sizes of the plate."""

    def trace(n: int) -> Any:
        def density(key: Key) -> Array:
            prior_key, record_key = jax.random.split(key)
            parameters = densities.sample_prior(prior_key)
            return densities.log_density(parameters, densities.sample_records(record_key, parameters, n))

        return jax.eval_shape(density, jax.random.key(0))

    try:
        return all(trace(n).shape == (n,) for n in (1, densities.layout.size + 1))
    except Exception:  # any error means that the model does not take this size
        return False
