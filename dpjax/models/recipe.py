"""Models whose numbers are arguments of compiled programs, and the recipes by which models are rebuilt."""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.jit import ahead_options, in_full_precision, light_options, quick_options
from dpjax._util.validation import check_function, is_traced
from dpjax.base import Array, Model

__all__ = ["Form", "jit_model", "numbered", "numbered_by", "recipe_of", "with_origin"]

Options = tuple[tuple[str, Any], ...]
"""Static arguments by name."""


@dataclass(frozen=True)
class Form:
    """How a model is built from its numbers; a static argument of compiled programs.

    Parameters
    ----------
    build
        The function that builds the model.
    structure
        The pytree structure of its arguments.
    rest
        The type and value of every leaf that is not a number, and None for numbers.
    """

    build: Callable[..., Model]
    structure: Any
    rest: tuple[tuple[type, Any] | None, ...]

    def __call__(self, numbers: tuple[Array, ...]) -> Model:
        """The model with these numbers, concrete or traced."""
        given = iter(numbers)
        leaves = [next(given) if entry is None else entry[1] for entry in self.rest]
        arguments, keywords = jax.tree.unflatten(self.structure, leaves)
        return with_recipe(self.build(*arguments, **keywords), self, numbers)


@dataclass(frozen=True, eq=False)
class Origin:
    """The call that built a model, and the functions of that model.

    Functions are pickled by their qualified names. The functions of a model have none that can be imported, but the
    function that built the model has.
    """

    module: str
    name: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    functions: tuple[Any, ...]

    def matches(self, model: Model) -> bool:
        """Whether a model is the one built, and not a copy changed by ``_replace``."""
        return all(one is other for one, other in zip(model[:-1], self.functions, strict=True))

    def reduce(self) -> tuple[Any, ...]:
        """The pickle of the model, as for ``__reduce__``."""
        return rebuild, (self.module, self.name, self.arguments, self.keywords)


@dataclass(frozen=True, eq=False)
class Numbered:
    """A form, its numbers [...], the functions of the model, and the call that built it."""

    form: Form
    numbers: tuple[Array, ...]
    functions: tuple[Any, ...]
    origin: Origin | None = None

    def matches(self, model: Model) -> bool:
        """Whether a model is the one built, and not a copy changed by ``_replace``."""
        return all(one is other for one, other in zip(model[:-1], self.functions, strict=True))

    def reduce(self) -> tuple[Any, ...]:
        """The pickle of the model, as for ``__reduce__``."""
        return (Model, self.functions) if self.origin is None else self.origin.reduce()


def with_recipe(model: Model, form: Form, numbers: tuple[Array, ...], origin: Origin | None = None) -> Model:
    """The model with its recipe."""
    return model._replace(recipe=Numbered(form, numbers, model[:-1], origin))


def numbered(build: Callable[..., Model]) -> Callable[..., Model]:
    """A decorator of functions that build models, which makes their numbers arguments of compiled programs.

    Numbers are the floats and the arrays of floats among its arguments, also within priors. Programs are compiled once
    for all models that differ only in these, such as the prior scales of a sensitivity study.

    Parameters
    ----------
    build
        A function of numbers, priors and options that returns a `Model`, also if its numbers are traced: it computes
        with JAX, and which functions the model has does not depend on their values. Other models are compiled for
        each set of numbers, as without this decorator.

    Returns
    -------
    callable
        The function, with the same arguments.

    Examples
    --------
    >>> import dpjax
    >>> @dpjax.models.numbered
    ... def centred(scale):
    ...     return dpjax.models.normal(dpjax.models.NormalPrior(0.0, scale), variance=1.0)
    >>> centred(2.0).exchangeable
    True
    """
    check_function("build", build, "that returns a Model")

    @wraps(build)
    def make(*arguments: Any, **keywords: Any) -> Model:
        model = build(*arguments, **keywords)
        form, numbers = separate_numbers(build, arguments, keywords)
        called = with_origin(make, model, *arguments, **keywords)
        shared = is_hashable(form) and can_rebuild(model, form, numbers)
        return with_recipe(model, form, numbers, called.recipe) if shared else called

    return make


def separate_numbers(
    build: Callable[..., Model], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Form, tuple[Array, ...]]:
    """The form and the numbers of a model's arguments."""
    leaves, structure = jax.tree.flatten((arguments, keywords))
    form = Form(build, structure, tuple(None if is_number(leaf) else (type(leaf), leaf) for leaf in leaves))
    return form, tuple(jnp.asarray(leaf, float) for leaf in leaves if is_number(leaf))


def numbered_by(build: Callable[..., Model], numbers: tuple[Array, ...]) -> Model:
    """The model that a hashable function builds from numbers, which are arguments of compiled programs."""
    form, numbers = separate_numbers(build, numbers, {})
    return form(numbers)


def recipe_of(model: Model) -> Numbered | None:
    """The recipe of a model built from its numbers; None if it has none."""
    recipe = model.recipe
    return recipe if isinstance(recipe, Numbered) and recipe.matches(model) else None


def is_hashable(form: Form) -> bool:
    """Whether a form is hashable."""
    try:
        hash(form)
    except TypeError:
        return False
    return True


def is_number(leaf: Any) -> bool:
    """Whether a leaf is a float or an array of floats."""
    kinds = (np.ndarray, np.generic, jax.Array)
    return isinstance(leaf, float) or (isinstance(leaf, kinds) and jnp.issubdtype(leaf.dtype, jnp.floating))


def can_rebuild(model: Model, form: Form, numbers: tuple[Array, ...]) -> bool:
    """Whether the model can be built from traced numbers, and then has the same functions."""
    rebuilt: list[Model] = []
    try:
        jax.eval_shape(lambda numbers: rebuilt.append(form(numbers)), numbers)
    except Exception:  # a user's function may raise anything
        return False
    return all((one is None) == (other is None) for one, other in zip(model[:-1], rebuilt[0][:-1], strict=True))


class jit_model:
    """`jax.jit` of a function that takes a `model`: compiled once for all numbers of a `Form`.

    Parameters
    ----------
    function
        A function with an argument ``model``.
    static_argnames
        Its other arguments that decide what is compiled.
    ahead
        Whether it is compiled while other programs run, for `compiling`.
    """

    def __init__(
        self, function: Callable[..., Any], static_argnames: tuple[str, ...] = (), *, ahead: bool = False
    ) -> None:
        self.signature, self.static_argnames, self.ahead = inspect.signature(function), static_argnames, ahead

        @in_full_precision
        def compiled(form: Form | Model, options: Options, numbers: tuple[Array, ...], others: dict[str, Any]) -> Any:
            model = form(numbers) if isinstance(form, Form) else form
            return function(model=model, **dict(options), **others)

        # The name of the program in profiles and in JAX's messages.
        compiled.__name__ = function.__name__
        self.compiled = compiled
        self.jitted: Any = jax.jit(compiled, static_argnums=(0, 1))
        wraps(function)(self)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the compiled function."""
        bound = self.bind(*arguments, **keywords)
        return self.jitted(*bound) if is_traced(*bound[2:]) else self.light(*bound)

    def quickly(self, *arguments: Any, **keywords: Any) -> Any:
        """Call a program compiled with little optimisation: for functions that run once."""
        bound = self.bind(*arguments, **keywords)
        return self.jitted(*bound) if is_traced(*bound[2:]) else self.quick(*bound)

    # Compiler options apply to whole programs, and depend on the devices, which JAX should not start on import.
    @cached_property
    def light(self) -> Any:
        """The compiled function for calls outside of other programs."""
        options = ahead_options() if self.ahead else light_options()
        return jax.jit(self.compiled, static_argnums=(0, 1), compiler_options=options)

    @cached_property
    def quick(self) -> Any:
        """The compiled function for `quickly`."""
        return jax.jit(self.compiled, static_argnums=(0, 1), compiler_options=quick_options())

    def eval_shape(self, *arguments: Any, **keywords: Any) -> Any:
        """The shapes and dtypes of the function's result."""
        return self.jitted.eval_shape(*self.bind(*arguments, **keywords))

    def lower(self, *arguments: Any, **keywords: Any) -> Any:
        """The lowered program for these arguments; arrays may be shapes."""
        return self.light.lower(*self.bind(*arguments, **keywords))

    def clear_cache(self) -> None:
        """Remove the compiled programs from memory."""
        for program in (self.jitted, self.light, self.quick):
            program.clear_cache()

    def bind(self, *arguments: Any, **keywords: Any) -> tuple[Form | Model, Options, tuple[Array, ...], Any]:
        """The arguments of the compiled function: the static ones, the model's numbers, and the others."""
        others = self.signature.bind(*arguments, **keywords).arguments
        form, numbers = split(others.pop("model"))
        options = tuple((name, others.pop(name)) for name in self.static_argnames if name in others)
        return form, options, numbers, others


def split(model: Model) -> tuple[Form | Model, tuple[Array, ...]]:
    """The static part of a model, and its numbers."""
    recipe = recipe_of(model)
    return (model, ()) if recipe is None else (recipe.form, recipe.numbers)


def with_origin(build: Callable[..., Model], model: Model, *arguments: Any, **keywords: Any) -> Model:
    """The model with the call that built it, by the qualified name of the function."""
    return model._replace(recipe=Origin(build.__module__, build.__qualname__, arguments, keywords, model[:-1]))


def rebuild(module: str, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Model:
    """The model of a pickle, rebuilt."""
    build: Any = reduce(getattr, name.split("."), importlib.import_module(module))
    model: Model = build(*arguments, **keywords)
    return model
