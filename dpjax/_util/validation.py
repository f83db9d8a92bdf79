"""Checks of user input: every message names the argument, what was given, what was expected and the remedy."""

import os
import reprlib
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import jax
import numpy as np

from dpjax._util.files import no_file, open_regular

SHOWN = 6
"""Number of entries of an array that a message shows."""

LARGEST_COUNT = 2**62
"""A bound on counts that no run reaches; what is computed from them stays within the range of floats."""

LARGEST_NUMBER = 1e100
"""The end of the numbers whose products and squares are floats."""

DEFINE_ONCE = "Define it once, as a function or a frozen dataclass: programs are compiled for it."


def fail(argument: str, given: object, expected: str, remedy: str, *, error: type[Exception] = ValueError) -> NoReturn:
    """Raise `error` with the message layout of dpjax."""
    raise error(f"{argument}: given {given}; expected {expected}. {remedy}")


class Obstacle(NamedTuple):
    """What is in the way of a choice: the parts of an error, and an answer where another choice is then made."""

    argument: str
    given: str
    expected: str
    remedy: str
    error: type[Exception] = ValueError

    def refuse(self) -> NoReturn:
        """Raise the error."""
        fail(self.argument, self.given, self.expected, self.remedy, error=self.error)


def check_free(obstacle: Obstacle | None) -> None:
    """Raise if there is an obstacle."""
    if obstacle is not None:
        obstacle.refuse()


def is_refusal(error: BaseException) -> bool:
    """Whether an error was raised by `fail`, so that its message is meant for the user."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code is fail.__code__


def is_traced(*values: Any) -> bool:
    """Whether a value is abstract, because a program is being traced, and cannot be checked."""
    try:
        return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))
    except ValueError:  # a dict whose names cannot be sorted, such as 1 and "a", is nothing that JAX traces
        return False


def leaves_of(argument: str, tree: Any, remedy: str) -> list[Any]:
    """The leaves of a pytree, None among them, or an error if names in a dict, such as 1 and "a", have no order."""
    try:
        return jax.tree.leaves(tree, is_leaf=lambda leaf: leaf is None)
    except ValueError:
        return fail(argument, describe(tree), "a pytree named by texts", remedy)


def is_tracing() -> bool:
    """Whether a program is being traced, so that what is computed is abstract, whatever it is computed from."""
    return is_traced(jax.numpy.zeros(()))


def check_array(argument: str, value: Any, accept: Callable[[np.ndarray], Any], expected: str, remedy: str) -> None:
    """Raise unless every entry of `value` is a finite number that satisfies `accept`; traced values pass."""
    if is_traced(value):
        return
    array = read_numbers(argument, value, expected, remedy)
    if not (np.all(np.isfinite(array)) and np.all(accept(array))):
        fail(argument, describe_array(array) + locate(~np.isfinite(array)), expected, remedy)


def read_numbers(argument: str, value: Any, expected: str, remedy: str) -> np.ndarray:
    """The numbers of a concrete `value`, or an error if it holds anything else."""
    if isinstance(value, (bool, np.bool_)):
        fail(argument, f"{value} of type bool", expected, remedy, error=TypeError)
    for number in jax.tree.leaves(value) if isinstance(value, (list, tuple)) else ():
        if hasattr(number, "refuse"):  # a number that is not known, of which an array would be known
            number.refuse()
    if np.ma.is_masked(value):
        fail(argument, "an array with masked entries", expected, "Leave them out: masks are ignored.")
    try:
        array = np.asarray(value)
    except Exception as error:  # whatever the array of another library may raise
        is_key = isinstance(value, jax.Array) and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key)
        given = "rows of unequal length" if isinstance(value, (list, tuple)) else summarize_error(error)
        fail(argument, "PRNG keys" if is_key else given, expected, remedy)
    if array.dtype.kind in "biuf" and array.dtype.char != "g":  # JAX has no longer type than float64
        return array
    is_array = isinstance(value, (str, list, tuple)) or hasattr(value, "__array__")
    given = f"an array of {array.dtype}" if is_array else f"{describe(value)} of type {type(value).__name__}"
    return fail(argument, given, expected, remedy, error=TypeError)


def is_gap(value: Any) -> bool:
    """Whether a value of a column is missing: None, NaN, or what pandas has in their places."""
    if value is None or type(value).__name__ == "NAType":  # NA does not tell whether it equals itself
        return True
    differs = value != value
    return isinstance(differs, (bool, np.bool_)) and bool(differs)


def check_no_gaps(argument: str, names: Any, remedy: str) -> None:
    """Raise if a name is missing among several."""
    if gaps := [place for place, name in enumerate(names) if is_gap(name)]:
        fail(argument, f"no name in place {gaps[0]}", "a name in each", remedy)


def plain(value: Any) -> Any:
    """Numbers that are objects, such as decimals or those beside None, as an array with NaN for None; others stay."""
    try:
        array = np.asarray(value)
    except Exception:  # traced or ragged ones, of which later checks say what is wrong
        return value
    entries = array.ravel().tolist() if array.dtype == object and not np.ma.is_masked(value) else []
    known = [entry for entry in entries if not is_gap(entry)]
    if not known or not all(isinstance(entry, (Real, Decimal)) for entry in known):
        return value
    whole = len(known) == len(entries) and all(isinstance(entry, Integral) for entry in known)
    kind = (bool if all(isinstance(entry, bool) for entry in known) else int) if whole else float
    try:
        numbers = np.array([np.nan if is_gap(entry) else kind(entry) for entry in entries], kind)
    except OverflowError:
        return value
    return numbers.reshape(array.shape)


def check_floats(argument: str, value: Any) -> None:
    """Raise unless `value` is an array of floats, traced or not."""
    is_array = isinstance(value, (jax.Array, np.ndarray)) and not isinstance(value, np.ma.MaskedArray)
    if not (is_array and jax.numpy.issubdtype(value.dtype, np.floating) and value.dtype.char != "g"):
        fail(argument, describe(value), "an array of floats", "Pass a floating JAX array.", error=TypeError)


def check_positive(argument: str, value: Any, remedy: str = "Pass a number above zero.") -> None:
    """Raise unless every entry of `value` is finite and positive."""
    check_array(argument, value, lambda array: array > 0, "finite numbers above 0", remedy)


def check_positive_floats(argument: str, value: Any, remedy: str = "Pass a number above zero.") -> None:
    """Raise unless every entry of `value` is positive, and neither 0 nor ∞ in JAX's default float type."""
    check_positive(argument, value, remedy)
    if np.size(value) == 0:
        fail(argument, "no number", "at least one", remedy)
    check_float(argument, value)


def check_float(argument: str, value: Any) -> None:
    """Raise unless JAX's default float type holds every entry of a positive `value`, with all its digits."""
    if is_traced(value):
        return
    limits = jax.numpy.finfo(jax.numpy.result_type(float))
    low, high = float(limits.tiny), float(limits.max)
    expected = f"numbers from {low:.2g} to {high:.2g}, the range of {limits.dtype}"
    check_array(argument, value, lambda array: (array >= low) & (array <= high), expected, "Give it in other units.")


def check_positive_number(argument: str, value: Any, remedy: str = "Pass a number above zero.") -> None:
    """Raise unless `value` is one finite number above 0."""
    check_number(argument, value)
    check_positive(argument, value, remedy)


def check_moderate(argument: str, value: Any) -> None:
    """Raise unless `value` is one positive number whose products and squares are floats."""
    check_number(argument, value)
    low, high = 1 / LARGEST_NUMBER, LARGEST_NUMBER
    expected = f"a number from {low:g} to {high:g}"
    check_array(argument, value, lambda array: (array >= low) & (array <= high), expected, "Choose other units.")


def check_share(argument: str, value: Any, remedy: str = "Pass a share, such as 0.95.") -> None:
    """Raise unless `value` is one number strictly between 0 and 1."""
    check_number(argument, value)
    check_array(argument, value, lambda array: (array > 0) & (array < 1), "a number in (0, 1)", remedy)


def check_number(argument: str, value: Any) -> None:
    """Raise if a value is None, or a list or array of several numbers."""
    several = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    if value is None or several or getattr(value, "ndim", 0) != 0:
        given = "None" if value is None else shape_of(value)
        fail(argument, given, "one number", "Pass a single number.", error=TypeError if value is None else ValueError)


def check_count(
    argument: str,
    value: Any,
    remedy: str = "Pass a whole number of at least 1.",
    *,
    least: int = 1,
    most: int = LARGEST_COUNT,
) -> int:
    """Return `value` as an int, or raise unless it is a whole number from `least` to `most`."""
    if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, Integral):
        given = f"{describe(value)} of type {type(value).__name__}"
        fail(argument, given, f"a whole number >= {least}", remedy, error=TypeError)
    if value < least:
        fail(argument, describe(value), f"a whole number >= {least}", remedy)
    if int(value) > most:
        fail(argument, describe(value), f"a whole number <= {most}", remedy)
    return int(value)


def check_choice(argument: str, value: Any, choices: Collection[Any], remedy: str) -> None:
    """Raise unless `value` is one of a few texts, or of what else they are."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value not in choices:
        expected = " or ".join(map(repr, choices)) if len(choices) < 3 else f"one of {sorted(choices)}"
        fail(argument, describe(value), expected, remedy)


def check_flag(argument: str, value: Any, remedy: str = "Pass True or False.") -> None:
    """Raise unless `value` is True or False."""
    if not isinstance(value, bool):
        fail(argument, describe(value), "True or False", remedy, error=TypeError)


def check_text(argument: str, value: Any, remedy: str) -> None:
    """Raise unless `value` is a text."""
    if not isinstance(value, str):
        fail(argument, f"{describe(value)} of type {type(value).__name__}", "a text", remedy, error=TypeError)


def check_path(argument: str, value: Any, remedy: str = "Pass the path of a file.") -> Path:
    """The path of a regular file, which need not exist, or an error: as of another type, a folder or a pipe."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        fail(argument, describe(value), "a path", remedy, error=TypeError)
    path = Path(value)
    try:
        special = no_file(path)
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, names that no file can have
        fail(argument, f"{str(path)!r} ({error})", "a file in an existing folder", remedy)
    if special:
        fail(argument, special, "a regular file, or a name that is free", remedy)
    return path


def check_destination(argument: str, value: Any, remedy: str) -> Path:
    """The path, without links, of a file that is written, or an error unless it is one, or is free in some folder."""
    path = check_path(argument, value, remedy).resolve()
    if not path.parent.is_dir():
        fail(argument, repr(str(path)), "a file in an existing folder", remedy)
    return path


@contextmanager
def reading(argument: str, value: Any, remedy: str) -> Iterator[BinaryIO]:
    """A file that is open to be read; one that cannot be opened is an error of the system's type."""
    path = check_path(argument, value, remedy)
    try:
        file = open_regular(path)
    except OSError as error:
        fail(
            argument,
            f"{str(path)!r}, which cannot be opened ({error.strerror or error})",
            "a file",
            remedy,
            error=type(error),
        )
    with file:
        yield file


def check_function(argument: str, value: Any, what: str) -> None:
    """Raise unless `value` can be called and is not a class; `what` describes the expected function."""
    if isinstance(value, type) or not callable(value):
        fail(argument, name_of(value), f"a function {what}", "Pass the function itself.", error=TypeError)


def check_hashable_function(argument: str, value: Any, expected: str, remedy: str = DEFINE_ONCE) -> None:
    """Raise unless `value` can be called and hashed, so that a program compiled for it is reused."""
    if isinstance(value, type) or not (callable(value) and isinstance(value, Hashable)):
        given = f"the class {value.__name__}" if isinstance(value, type) else describe(value)
        fail(argument, given, expected, remedy, error=TypeError)


def check_instance(argument: str, value: Any, kind: type, remedy: str) -> None:
    """Raise unless `value` is of this type."""
    if not isinstance(value, kind):
        given = f"the class {value.__name__}" if isinstance(value, type) else name_of(value)
        fail(argument, given, f"a {kind.__name__}", remedy, error=TypeError)


def check_key(argument: str, key: Any) -> None:
    """Raise unless `key` is one typed JAX key."""
    typed = isinstance(key, jax.Array) and jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key)
    if not typed or key.shape != ():
        given = f"an array of {key.dtype} with shape {key.shape}" if hasattr(key, "dtype") else describe(key)
        fail(argument, given, "one typed key", "Pass jax.random.key(seed) with a seed of your own.", error=TypeError)


def check_generator(rng: Any) -> None:
    """Raise unless `rng` is a generator of random numbers."""
    check_instance("rng", rng, np.random.Generator, "Pass np.random.default_rng(seed) with a seed of your own.")


def locate(bad: np.ndarray) -> str:
    """The place of the first bad entry as text, if the text of the array does not show it."""
    places = np.flatnonzero(bad)
    return f", not finite at place {places[0]}" if places.size and places[0] >= SHOWN else ""


def shape_of(value: Any) -> str:
    """The shape of an array or of lists as text, if they have one."""
    try:
        return f"shape {list(np.shape(value))}"
    except ValueError:
        return "rows of unequal length"


def describe(value: Any) -> str:
    """A short text for any value in a message."""
    is_long = isinstance(value, int) and value.bit_length() > 4 * 64
    return f"a whole number of {value.bit_length()} bits" if is_long else reprlib.repr(value)


def name_of(value: Any) -> str:
    """A value in an error message: a text or a number itself, else the name of the function, the class or the type."""
    is_plain = value is None or isinstance(value, (str, bool, int, float))
    return describe(value) if is_plain else getattr(value, "__name__", type(value).__name__)


def summarize_error(error: Exception) -> str:
    """The type and first line of an error."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def describe_array(array: np.ndarray) -> str:
    """A short text for an array in a message."""
    return (
        repr(array.item()) if array.size == 1 else f"{array.dtype}{list(array.shape)} {array.ravel()[:SHOWN].tolist()}"
    )
