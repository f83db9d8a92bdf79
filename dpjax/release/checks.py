"""What is refused when a release is built, and if single precision is not enough."""

from collections.abc import Hashable, Iterator
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_array, describe_array, fail, is_traced, name_of, plain, summarize_error
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array
from dpjax.mechanisms.base import as_mechanism, is_mechanism, parts_of
from dpjax.mechanisms.by_record import record_axes
from dpjax.mechanisms.unknown import numbers_of
from dpjax.statistics.base import RecordStatistic, dimension_of

LARGEST_COUNT = 2**24
"""Single precision holds every whole number up to here."""

COARSEST_SUM = 2.0**-19
"""The ratio of noise scale to value below which a sum's rounding, a few units of 2^-24, reaches 1/16 of the noise."""


RULES = (
    "dpjax.releases.suppressed takes NaN where a count was small, dpjax.releases.thresholded the keys that were "
    "published, and dpjax.Censored a bound in the place of what lies beyond it."
)
"""What takes numbers that were withheld."""


class PrecisionWarning(UserWarning):
    """Single precision is too coarse for the numbers of a release."""


def as_vector(argument: str, value: Any, remedy: str, table: tuple[int, ...] = ()) -> Array:
    """The released value [d] in the default float dtype; one number becomes [1], and a table of this shape a vector."""
    value = plain(value)
    _check_numbers(argument, value, remedy, "Where sums were withheld, name the rule: " + RULES)
    if not is_traced(value) and np.asarray(value).dtype == bool:
        fail(argument, "truth values", "finite numbers", remedy, error=TypeError)
    vector = jnp.atleast_1d(as_type(argument, value, float))
    _check_exact(argument, value, vector)
    if vector.shape == table:
        return vector.ravel()
    if vector.ndim != 1:
        fail(argument, f"shape {list(vector.shape)}", "a vector [d]", remedy)
    return vector


def as_local_values(values: Any, channel: Any, argument: str) -> Array:
    """One released value per record, [n] or [n, k]: whole numbers and truth values are integers, unless with noise."""
    remedy = "Pass one released value per record."
    _check_numbers(argument, values, remedy, "Where values are missing at random, pass dpjax.Microdata. " + RULES)
    array = values if is_traced(values) else np.asarray(values)
    if array.ndim not in (1, 2):
        fail(argument, f"shape {list(array.shape)}", "shape [n] or [n, k]", remedy)
    is_whole = jnp.issubdtype(array.dtype, jnp.integer) or array.dtype == bool
    whole = is_whole and (channel.sums.known or channel._innermost.noise is None)
    return as_type(argument, array, int if whole else float)


def as_type(argument: str, value: Any, kind: type) -> Array:
    """The numbers as an array of JAX's default type of a kind, or an error where it would wrap or become infinite."""
    dtype = jnp.result_type(kind)
    if not is_traced(value):
        ends = jnp.finfo(dtype) if kind is float else jnp.iinfo(dtype)
        low, high = (kind(end) for end in (ends.min, ends.max))
        remedy = "Give them in other units, or call jax.config.update('jax_enable_x64', True) first."
        expected = f"numbers from {low:.3g} to {high:.3g}, the range of {dtype}"
        check_array(argument, value, lambda array: (array >= low) & (array <= high), expected, remedy)
    return jnp.asarray(value, dtype)


def check_is_mechanism(argument: str, mechanism: Any) -> None:
    """Raise unless the mechanism has a log-density."""
    remedy = "Pass a mechanism such as dpjax.Laplace(scale), or an object with log_density, and sample for predictions."
    if numbers := numbers_of(mechanism):
        where = "Noise may be unknown where each record has one value: dpjax.LocalRelease(values, channel, field)"
        remedy = f"{where}, or LocalRelease({{field: (values, channel)}}). On sums and tables it has to be known."
        fail(argument, f"a {name_of(mechanism)} with {numbers}", "known numbers", remedy)
    if not is_mechanism(mechanism):
        fail(argument, name_of(mechanism), "an instance with log_density", remedy, error=TypeError)


def check_mechanism(argument: str, mechanism: Any, shape: tuple[int, ...], n: int | None = None) -> None:
    """Raise unless the mechanism has a log-density, and parameters that fit values of this shape.

    Each of n records may have a parameter of its own.
    """
    check_is_mechanism(argument, mechanism)
    for name, part, part_shape in _named_parts(argument, as_mechanism(mechanism), shape):
        if part._is_opaque and not is_hashable(part):
            remedy = "Register it with dpjax.mechanisms.frozen_pytree, or make it hashable (frozen=True)."
            fail(name, name_of(part), "a pytree or a hashable object", remedy, error=TypeError)
        if not part._is_opaque:
            _check_parameter_shapes(name, part, part_shape, n)


def is_hashable(value: Any) -> bool:
    """Whether a value can be hashed, with all that it holds."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def check_sampler(argument: str, mechanism: Any) -> None:
    """Raise unless values can be drawn from the mechanism."""
    if not mechanism._can_sample:
        given, remedy = f"{name_of(mechanism)}, which has no `sample`", "Give it sample(key, statistic), or do without."
        fail(argument, given, "a mechanism that releases and predictions can be drawn from", remedy, error=TypeError)


def check_summed(mechanism: Any, value: Array, total: jax.ShapeDtypeStruct) -> None:
    """Raise unless the mechanism releases such a value given such a summed statistic."""
    if mechanism._is_categorical:
        remedy = "It releases one category per record: use LocalRelease(values, channel)."
        fail("mechanism", name_of(mechanism), "a mechanism for one summed value", remedy, error=TypeError)
    if any(part.sums.within for part, _ in mechanism.parts or ((mechanism, None),)):
        remedy = (
            "Counts below a limit are dpjax.releases.suppressed, rounded ones mechanisms.Coarsened, and values of "
            "single records a dpjax.LocalRelease."
        )
        given = f"{name_of(mechanism)} of sums without noise"
        fail("mechanism", given, "noise, or a rule for counts", remedy, error=TypeError)
    shapes = _evaluated_shapes(mechanism, value, total)
    if shapes != ((), value.shape):
        found = ["no array" if shape is None else f"shape {list(shape)}" for shape in shapes]
        given = f"log_density of {found[0]} and sample of {found[1]}"
        fail("mechanism", given, f"shapes [] and {list(value.shape)}", "Sum the log-density over coordinates.")


def check_number(n: Any, mechanism: Any, statistic: Any) -> None:
    """Raise unless n is the number of records that each mechanism is of, if its distribution is that of one number."""
    if getattr(statistic, "is_of_whole_data", False):
        return
    for part, _ in mechanism.parts or ((mechanism, None),):
        own = part.sums.num_records
        if own is None or is_traced(own):
            continue
        if np.ndim(own):
            given = f"one sum, by {name_of(part._innermost)} of n = {describe_array(own)}"
            remedy = "Pass one count for each unit to dpjax.LocalRelease, or one n."
            fail("mechanism", given, "the number of all records", remedy)
        if own != n:
            remedy = "Pass the number of records that the value is of, to the mechanism and as n."
            fail("n", repr(n), f"{own}, as {name_of(part._innermost)} has", remedy)


def check_value(argument: str, value: Array, mechanism: Any) -> None:
    """Raise unless the mechanism can release such values: whole ones under integer noise, and what else it says."""
    if mechanism.parts is not None:
        for part, where in parts_of(mechanism, value.shape[-1]):
            check_value(f"{argument}[{where.start}:{where.stop}]", value[..., where], part)
        return
    if mechanism.integer_noise:
        expected = "whole numbers, which may be negative"
        remedy = "Undo any rescaling (multiply a mean by n), or use Laplace or Gaussian for values that are not counts."
        check_array(argument, value, lambda array: array == np.round(array), expected, remedy)
    for layer in mechanism._layers:
        layer.check_value(argument, value)


def check_statistic(statistic: Any, mechanism: Any, value: Array) -> jax.ShapeDtypeStruct:
    """The shape of the summed statistic, or an error unless it is a hashable function of a dimension that fits."""
    remedy = "Pass one of dpjax.statistics or a function record -> [d]."
    if isinstance(statistic, type) or not callable(statistic):
        fail("statistic", name_of(statistic), "a function of one record", remedy, error=TypeError)
    if not isinstance(statistic, Hashable):
        remedy = "Programs are compiled for a statistic: make it a function or a frozen dataclass."
        fail("statistic", name_of(statistic), "a hashable function of one record", remedy, error=TypeError)
    dimension = dimension_of(statistic)
    size = mechanism._drawn_size
    if size is not None:
        return _check_drawn(statistic, mechanism, size, value)
    if dimension is not None and (dimension,) != value.shape:
        remedy = f"The statistic has {dimension} coordinates: pass all of them, in its order."
        fail("value", f"shape {list(value.shape)}", f"shape [{dimension}]", remedy)
    return jax.ShapeDtypeStruct(value.shape, value.dtype)


def _check_drawn(statistic: Any, mechanism: Any, size: int, value: Array) -> jax.ShapeDtypeStruct:
    """The same for a mechanism that draws a number of values of its own given the statistic."""
    dimension = dimension_of(statistic)
    if value.shape != (size,):
        remedy = "Pass all values that the mechanism drew."
        fail("value", f"shape {list(value.shape)}", f"shape [{size}]", remedy)
    if dimension is None:
        remedy = "Pass one of dpjax.statistics, such as dpjax.statistics.histogram(field, edges)."
        fail("statistic", name_of(statistic), "a statistic that has a dimension", remedy)
    for layer in mechanism._layers:
        layer._check_drawn("value", value, dimension)
    return jax.ShapeDtypeStruct((dimension,), value.dtype)


def warn_where_coarse(value: Array, mechanism: Any, n: int, statistic: Any = None) -> None:
    """Warn, at the user's call, if single precision cannot follow single records or the noise."""
    if value.dtype != jnp.float32 or is_traced(value):
        return
    largest = max(float(np.max(np.abs(value))), n)
    if largest > LARGEST_COUNT:
        problems: Iterator[str | None] = iter([f"counts up to {largest:.3g}, beyond the 2^24 whole numbers of float32"])
    else:
        parts = parts_of(mechanism, value.shape[-1])
        problems = (_coarseness(value[..., where], part, n, statistic) for part, where in parts)
    _warn_of_first(problems)


def warn_where_coarse_locally(values: Array, channel: Any) -> None:
    """Warn, at the user's call, if single precision rounds values [n] or [n, k] coarsely against the noise."""
    if values.dtype != jnp.float32 or is_traced(values):
        return
    parts = [(channel, slice(None))] if values.ndim == 1 else parts_of(channel, values.shape[-1])
    _warn_of_first(_coarseness(values[..., where], part, n=1) for part, where in parts)


def _warn_of_first(problems: Iterator[str | None]) -> None:
    """Warn of the first problem of single precision, at the user's call."""
    problem = next(filter(None, problems), None)
    if problem:
        text = f"The release has {problem}. Call jax.config.update('jax_enable_x64', True) first."
        warn_at_the_call(text, PrecisionWarning)


def fail_on_record(statistic: Any, fields: dict[str, Any], error: Exception) -> NoReturn:
    """Raise for a user's statistic that cannot take a record of these fields."""
    described = ", ".join(f"{name}: {field.dtype}{list(field.shape)}" for name, field in sorted(fields.items()))
    is_absent = isinstance(error, KeyError)
    problem = f"no field {error}" if is_absent else summarize_error(error)
    covariates = " To make a covariate a field, name it in `records` of from_numpyro, or in `fields` of a formula."
    remedy = f"One record has {described}.{covariates * is_absent}"
    fail("statistic", f"{name_of(statistic)}, which found {problem}", "a function of one record of the model", remedy)


def one_record(records: Any) -> dict[str, jax.ShapeDtypeStruct]:
    """The shapes of one of several records, or an error unless they are a dict of arrays with rows."""
    remedy = "Pass a dict with one array for each field, of leading axis [m]."
    if not isinstance(records, dict):
        fail("records", type(records).__name__, "a dict of fields", remedy, error=TypeError)
    for name, leaf in records.items():
        if not getattr(leaf, "shape", ()):
            fail(f"records[{name!r}]", name_of(leaf), "an array with one row for each record", remedy, error=TypeError)
    return {name: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for name, leaf in records.items()}


def check_contribution(result: Any, total: Any) -> None:
    """Raise unless what a statistic returned has the shape of its sum, in a type whose numbers that type can hold."""
    expected = f"{total.dtype}{list(total.shape)}, as the value"
    if not isinstance(result, jax.ShapeDtypeStruct):
        fail("statistic", f"a result {type(result).__name__}", expected, "Return one array: jnp.stack numbers.")
    if result.shape != total.shape or not _holds(total.dtype, result.dtype):
        remedy = "Return a vector of integers or floats: jnp.stack numbers."
        fail("statistic", f"a result {result.dtype}{list(result.shape)}", expected, remedy)


def _check_numbers(argument: str, value: Any, remedy: str, of_gaps: str) -> None:
    """Raise unless there are finite numbers, with a remedy of its own where some are NaN."""
    if is_traced(value):
        return
    try:
        array = value if np.ma.is_masked(value) else np.asarray(value)
    except Exception:  # whatever the array of another library may raise
        fail(argument, repr(value), "numbers in one regular array", "Give every row the same length.", error=TypeError)
    if array.dtype.kind == "f" and np.any(np.isnan(array)):
        remedy = of_gaps
    check_array(argument, array, lambda array: array.size > 0, "finite numbers, at least one", remedy)


def _check_exact(argument: str, value: Any, vector: Array) -> None:
    """Raise if double precision does not hold the whole numbers given; of single precision the user is warned."""
    whole = None if is_traced(value, vector) or vector.dtype != jnp.float64 else np.atleast_1d(np.asarray(value))
    if whole is not None and whole.dtype.kind in "iu" and np.any(np.asarray(vector).astype(whole.dtype) != whole):
        fail(argument, describe_array(whole), "whole numbers up to 2^53", "Release counts in larger units.")


def _coarseness(value: Array, mechanism: Any, n: int, statistic: Any = None) -> str | None:
    """What is wrong with single precision for these values, if anything."""
    if is_traced(mechanism):
        return None
    found = mechanism._noise_and_sum(np.asarray(value), n, _radius(statistic))
    if found is None or found[0] >= COARSEST_SUM * found[1]:
        return None
    return f"noise of scale {found[0]:.3g} on numbers up to {found[1]:.3g}, which float32 rounds too coarsely"


def _radius(statistic: Any) -> float | None:
    """The largest Euclidean norm of what one record adds, if a statistic has one."""
    try:
        return statistic.radius(2) if isinstance(statistic, RecordStatistic) else None
    except (TypeError, ValueError):
        return None


def _named_parts(argument: str, mechanism: Any, shape: tuple[int, ...]) -> Iterator[tuple[str, Any, tuple[int, ...]]]:
    """The parts of a mechanism with what errors call them and the shapes of their values."""
    parts = mechanism.parts
    if parts is None:
        yield argument, mechanism, shape
        return
    sizes = [size for _, size in parts]
    if shape != (sum(sizes),):
        given, expected = f"parts of {sizes} coordinates", f"parts that release values of shape {list(shape)}"
        fail(argument, given, expected, "Pass the number of coordinates that each mechanism releases.")
    for place, (part, size) in enumerate(parts):
        yield f"{argument}.mechanisms[{place}]", part, (size,)


def _check_parameter_shapes(argument: str, mechanism: Any, shape: tuple[int, ...], n: int | None) -> None:
    axes = [None if n is None else axis for axis in record_axes(mechanism, len(shape))]
    for (path, leaf), axis in zip(jax.tree_util.tree_leaves_with_path(mechanism), axes, strict=True):
        given = jnp.shape(leaf)
        of_one = given if axis is None else given[1:]
        is_noise = mechanism._innermost.noise is not None
        if (is_noise and of_one not in ((), shape)) or (axis is not None and given[0] != n):
            possible = [(), shape] if is_noise else [of_one]
            possible += [] if n is None else [(n, *possible[-1])]
            expected = " or ".join(str(list(each)) for each in dict.fromkeys(possible))
            remedy = f"Give one, or one for each {'coordinate' if n is None else 'record'}."
            name = f"{argument}{jax.tree_util.keystr(path)}"
            fail(name, f"shape {list(given)}", f"shape {expected}", remedy)


def _evaluated_shapes(
    mechanism: Any, value: Array, total: jax.ShapeDtypeStruct
) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    like = jax.ShapeDtypeStruct(value.shape, value.dtype)
    key = jax.eval_shape(jax.random.key, 0)
    try:
        density = jax.eval_shape(lambda given, total: mechanism.log_density(given, total), like, total)
        sample = like
        if mechanism._can_sample:
            sample = jax.eval_shape(lambda one_key, given: mechanism.sample(one_key, given), key, total)
    except Exception as error:  # whatever a mechanism of the user's own may raise
        given = (
            f"{name_of(mechanism)}, which failed on values of shape {list(value.shape)} with {summarize_error(error)}"
        )
        fail("mechanism", given, "a mechanism for such values", "Check the shapes of its parameters.")
    return getattr(density, "shape", None), getattr(sample, "shape", None)


def _holds(wide: Any, narrow: Any) -> bool:
    """Whether a float type holds the numbers of another, or whole numbers as far as it goes."""
    if jnp.issubdtype(narrow, jnp.floating):
        return bool(narrow.itemsize <= wide.itemsize)
    return bool(jnp.issubdtype(narrow, jnp.integer) or jnp.issubdtype(narrow, jnp.bool_))
