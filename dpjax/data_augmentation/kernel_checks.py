"""Whether a kernel of the latent data is called as it has to be, and one of one's own returns what a sweep needs."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import jax

from dpjax._util.spelling import steps_from
from dpjax._util.validation import fail, is_refusal, name_of, summarize_error
from dpjax.base import ImputationInfo, ImputationKernel, Latent
from dpjax.models.simulation import GibbsState

__all__ = ["builds_kernel", "check_kernel", "is_known"]

RETURNED = "a kernel that returns (latent, info)"
REMEDY = "See dpjax.base.ImputationKernel."


def builds_kernel(build: Callable[..., ImputationKernel]) -> Callable[..., ImputationKernel]:
    """The ``__call__`` of an imputation of dpjax, of whose kernel it is known what it returns.

    The kernel raises unless it is called with a key and a `Latent` state.
    """

    @wraps(build)
    def call(self: Any, model: Any, release: Any) -> ImputationKernel:
        kernel: Any = steps_from("dpjax.impute(...).init", Latent)(build(self, model, release))
        kernel.is_known = True
        return kernel

    return call


def is_known(kernel: ImputationKernel) -> bool:
    """Whether a kernel is one of dpjax, so that it returns what a sweep needs."""
    return getattr(kernel, "is_known", False)


def check_kernel(name: str, kernel: ImputationKernel, state: GibbsState, n: int) -> None:
    """Raise unless a kernel returns a latent state like the one given, and an `ImputationInfo` on n records.

    Parameters
    ----------
    name
        The imputation, in messages.
    state
        The shapes and types of a chain's state.

    Raises
    ------
    ValueError, TypeError
        If it raises an error itself, or returns something else.
    """
    try:
        returned = jax.eval_shape(kernel, jax.eval_shape(jax.random.key, 0), state.latent, state.parameters)
    except Exception as error:  # a user's function may raise anything
        if is_refusal(error):
            raise
        given = f"{name}, whose kernel raised {summarize_error(error)}"
        fail("imputation", given, "a kernel of (rng_key, latent, parameters)", "Its own error is shown above.")
    if not isinstance(returned, tuple) or hasattr(returned, "_fields") or len(returned) != 2:
        given = f"{name}, whose kernel returns {returned_in_words(returned)}"
        fail("imputation", given, RETURNED, REMEDY, error=TypeError)
    latent, info = returned
    check_like(name, latent, state.latent)
    if not isinstance(info, ImputationInfo):
        given = f"{name}, whose kernel returns {name_of(info)} as info"
        fail("imputation", given, "a dpjax.base.ImputationInfo", REMEDY, error=TypeError)
    expected = {"acceptance_rate": (), "accepted": (n,), "num_nonfinite": ()}
    for field, shape in expected.items():
        check_shape(name, f"info.{field}", getattr(info, field), shape)


def check_like(name: str, latent: Any, expected: Any) -> None:
    """Raise unless the latent state has the fields, shapes and types of the one that was given."""
    given_structure, structure = (cast(Any, jax.tree.structure(each)) for each in (latent, expected))
    if given_structure != structure:
        given = f"{name}, whose kernel returns {returned_in_words(latent)} as latent"
        fail("imputation", given, f"{returned_in_words(expected)}, as it is given", REMEDY, error=TypeError)
    pairs = zip(jax.tree.leaves_with_path(latent), jax.tree.leaves(expected), strict=True)
    for (path, leaf), like in pairs:
        field = f"latent{jax.tree_util.keystr(path)}"
        check_shape(name, field, leaf, like.shape)
        if leaf.dtype != like.dtype:
            given = f"{name}, whose kernel returns {field} of type {leaf.dtype}"
            fail("imputation", given, f"type {like.dtype}, as it is given", f"Convert it: .astype({like.dtype}).")


def check_shape(name: str, field: str, value: Any, shape: tuple[int, ...]) -> None:
    """Raise unless a number or an array has a shape."""
    found = getattr(value, "shape", None)
    if found != shape:
        given = f"{name}, whose kernel returns {field} of shape {list(found) if found is not None else name_of(value)}"
        fail("imputation", given, f"shape {list(shape)}", REMEDY)


def returned_in_words(value: Any) -> str:
    """What a function returned: its type, and its fields or its number of entries."""
    if isinstance(value, dict):
        return f"a dict of {', '.join(map(repr, value))}"
    if hasattr(value, "_fields"):
        return f"{type(value).__name__}({', '.join(value._fields)})"
    return f"{len(value)} values" if isinstance(value, tuple) else name_of(value)
