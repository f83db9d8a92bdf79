"""Checks of parameters and records given by the user, and their conversion to the dtypes of the model."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import SHOWN, check_array, check_key, fail, is_traced, name_of
from dpjax.base import Key, Model, Parameters, Records
from dpjax.models.data_sets import check_names_free
from dpjax.models.simulation import Position, draw_position_at, parameter_shapes, position_shapes

__all__ = ["check_derived", "check_parameters", "check_position", "check_prior", "check_start"]


def check_parameters(argument: str, model: Model, parameters: Any, leading: tuple[int, ...] = ()) -> Parameters:
    """The parameters [*leading, ...] in the dtypes of the model.

    Raises
    ------
    TypeError, ValueError
        If their names, shapes or values do not fit the model.
    """
    expected = parameter_shapes(model)
    axes = " [chain, ...]" if leading else ""
    remedy = f"Pass a dict with one array{axes} for each parameter, on its natural scale."
    check_names(argument, parameters, expected, remedy)
    shapes = {name: jax.ShapeDtypeStruct((*leading, *leaf.shape), leaf.dtype) for name, leaf in expected.items()}
    return {name: cast(f"{argument}[{name!r}]", parameters[name], shape, remedy) for name, shape in shapes.items()}


def check_prior(argument: str, model: Model, parameters: Parameters, leading: tuple[int, ...] = ()) -> None:
    """Raise unless the prior has positive density at concrete parameters [*leading, ...]."""
    if is_traced(parameters):
        return
    with jax.ensure_compile_time_eval():  # concrete parameters are checked under jit, too
        chains = parameters if leading else jax.tree.map(lambda leaf: leaf[None], parameters)
        # Without parameters there is no array with an axis of chains.
        densities = jax.vmap(model.log_prior)(chains) if chains else model.log_prior(chains)
        impossible = np.flatnonzero(~np.isfinite(densities)).tolist()
    if impossible:
        given = "parameters of zero prior density" + (f" in chains {impossible}" if leading else "")
        fail(argument, given, "positive prior density", "Start within the support of the prior.")


def check_start(argument: str, model: Model, n: int, parameters: Parameters, records: Any) -> Records:
    """Records [n, ...] in the dtypes of the model.

    Raises
    ------
    TypeError, ValueError
        If their names or shapes do not fit the model, or they have zero density at these parameters.
    """
    expected = position_shapes(model, n).records
    remedy = "Pass a dict with one array [n, ...] for each field, such as model.sample_records draws."
    check_names(argument, records, expected, remedy)
    fitting = {name: cast_tree(f"{argument}[{name!r}]", records[name], leaf, remedy) for name, leaf in expected.items()}
    if not is_traced(parameters, fitting):
        with jax.ensure_compile_time_eval():
            one = jax.tree.map(lambda leaf: leaf[None], (parameters, fitting))
            impossible = np.flatnonzero(~np.isfinite(jax.vmap(model.log_density)(*one)[0]))
        if impossible.size:
            given = f"records of zero density at places {impossible[:SHOWN].tolist()}"
            fail(argument, given, "records that the model can give", "Start within the support of the model.")
    return fitting


def check_position(model: Model, n: int, position: Any, rng_key: Key | None) -> Position:
    """The position in the dtypes of the model, with records drawn if only parameters are given, or an error."""
    if isinstance(position, Position):
        parameters = check_parameters("position.parameters", model, position.parameters)
        check_prior("position.parameters", model, parameters)
        return Position(parameters, check_start("position.records", model, n, parameters, position.records))
    parameters = check_parameters("position", model, position)
    check_prior("position", model, parameters)
    if rng_key is None:
        fail("rng_key", None, "a key, to draw the records", "Call init(parameters, rng_key) or init(Position(...)).")
    check_key("rng_key", rng_key)
    return draw_position_at(rng_key, model, parameters, n)


def check_names(argument: str, given: Any, expected: dict[str, Any], remedy: str) -> None:
    """Raise unless a dict has these names."""
    if not isinstance(given, dict):
        fail(argument, name_of(given), f"a dict of {sorted(expected)}", remedy, error=TypeError)
    if set(given) != set(expected):
        fail(argument, f"a dict of {sorted(map(str, given))}", f"a dict of {sorted(expected)}", remedy)


def cast_tree(argument: str, given: Any, expected: Any, remedy: str) -> Any:
    """One field, which may be a tree of arrays, in the dtypes of the model."""
    structures: list[Any] = [jax.tree.structure(tree) for tree in (given, expected)]
    if structures[0] != structures[1]:
        fail(argument, f"{structures[0]}", f"{structures[1]}, as the model draws", remedy, error=TypeError)
    return jax.tree.map(lambda value, leaf: cast(argument, value, leaf, remedy), given, expected)


def cast(argument: str, value: Any, expected: jax.ShapeDtypeStruct, remedy: str) -> jax.Array:
    """An array of this shape and dtype, or an error if the values do not fit."""
    whole = np.dtype(expected.dtype).kind in "biu"
    wanted = "whole numbers" if whole else "finite numbers"
    check_array(argument, value, lambda array: (array == np.round(array)) | (not whole), wanted, remedy)
    if np.shape(value) != expected.shape:
        fail(argument, f"shape {list(np.shape(value))}", f"shape {list(expected.shape)}", remedy)
    return jnp.asarray(value).astype(expected.dtype)


def check_derived(model: Model) -> None:
    """Raise if a derived quantity has the name of a parameter, or of the number of records."""
    parameters = parameter_shapes(model)
    derived = jax.eval_shape(model.derived, parameters)
    check_names_free(derived)
    both = sorted(set(parameters) & set(derived))
    if both:
        fail("model.derived", f"names {both}, which are parameters", "names of their own", "Rename them.")
