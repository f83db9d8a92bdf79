"""Compiled functions of a model: its numbers are arguments, and its structure decides what is compiled."""

import inspect
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.host import on_devices, on_host
from dpjax._util.jit import ahead_options, host_options, in_full_precision, light_options, quick_options
from dpjax._util.validation import is_traced
from dpjax.base import Array

__all__ = ["as_number", "jit_model"]

Options = tuple[tuple[str, Any], ...]
"""Static arguments by name."""


class jit_model:
    """`jax.jit` of a function that takes a `model`: compiled once for all models of one structure.

    Parameters
    ----------
    function
        A function with an argument ``model``.
    static_argnames
        Its other arguments that decide what is compiled.
    ahead
        Whether it is compiled while other programs run, for `compiling`.
    optimized
        Whether it is compiled with all of XLA's optimisation, as where it runs for long.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnames: tuple[str, ...] = (),
        *,
        ahead: bool = False,
        optimized: bool = False,
    ) -> None:
        self.signature, self.static_argnames = inspect.signature(function), static_argnames
        self.ahead, self.optimized = ahead, optimized

        @in_full_precision
        def compiled(structure: Any, options: Options, numbers: list[Array], others: dict[str, Any]) -> Any:
            return function(model=jax.tree.unflatten(structure, numbers), **dict(options), **others)

        # The name of the program in profiles and in JAX's messages.
        compiled.__name__ = function.__name__
        self.compiled = compiled
        self.jitted: Any = jax.jit(compiled, static_argnums=(0, 1))
        wraps(function)(self)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the compiled function."""
        bound = self.bind(*arguments, **keywords)
        if is_traced(*bound[2:]):
            return self.jitted(*bound)
        with on_devices():
            return self.light(*bound)

    def unoptimized(self, *arguments: Any, **keywords: Any) -> Any:
        """Call a program compiled with little optimisation, on the host: for functions that run once."""
        return self.call_on_host(self.bind(*arguments, **keywords), "quick")

    def on_host(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the compiled function on the host: for functions that run once, and longer than they compile."""
        return self.call_on_host(self.bind(*arguments, **keywords), "hosted")

    def call_on_host(self, bound: tuple[Any, ...], program: str) -> Any:
        """Call one of the programs, or the function if it becomes a part of another program."""
        if is_traced(*bound[2:]):
            return self.jitted(*bound)
        with on_host():
            return getattr(self, program)(*bound)

    # Compiler options apply to whole programs, and depend on the devices, which JAX should not start on import.
    @cached_property
    def light(self) -> Any:
        """The compiled function for calls outside of other programs."""
        options = {} if self.optimized else ahead_options() if self.ahead else light_options()
        return jax.jit(self.compiled, static_argnums=(0, 1), compiler_options=options)

    @cached_property
    def quick(self) -> Any:
        """The compiled function for `unoptimized`."""
        return jax.jit(self.compiled, static_argnums=(0, 1), compiler_options=quick_options())

    @cached_property
    def hosted(self) -> Any:
        """The compiled function for `on_host`."""
        return jax.jit(self.compiled, static_argnums=(0, 1), compiler_options=host_options())

    def eval_shape(self, *arguments: Any, **keywords: Any) -> Any:
        """The shapes and dtypes of the function's result."""
        return self.jitted.eval_shape(*self.bind(*arguments, **keywords))

    def lower(self, *arguments: Any, **keywords: Any) -> Any:
        """The lowered program for these arguments; arrays may be shapes."""
        return self.light.lower(*self.bind(*arguments, **keywords))

    def clear_cache(self) -> None:
        """Remove the compiled programs from memory."""
        for program in (self.jitted, self.light, self.quick, self.hosted):
            program.clear_cache()

    def bind(self, *arguments: Any, **keywords: Any) -> tuple[Any, Options, list[Array], Any]:
        """The arguments of the compiled function: the static ones, the model's numbers, and the others."""
        others = self.signature.bind(*arguments, **keywords).arguments
        numbers, structure = jax.tree.flatten(others.pop("model"))
        options = tuple((name, others.pop(name)) for name in self.static_argnames if name in others)
        with on_host():
            return structure, options, list(map(as_number, numbers)), others


def as_number(leaf: Any) -> Array:
    """A number of a model as an array, in the default float dtype unless it is an array of whole numbers."""
    is_float = isinstance(leaf, (int, float)) or jnp.issubdtype(leaf.dtype, jnp.floating)
    return jnp.asarray(leaf, float if is_float else None)
