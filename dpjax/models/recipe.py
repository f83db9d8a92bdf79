"""Models whose numbers are data: a program compiled for one prior scale serves every other."""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.jit import light_options, quick_options
from dpjax._util.validation import is_traced
from dpjax.base import Array, Model

__all__ = ["Form", "jit_model", "numbered", "numbered_by", "recipe_of", "with_origin"]

Options = tuple[tuple[str, Any], ...]
"""Arguments that decide what is compiled, by name."""


@dataclass(frozen=True)
class Form:
    """How a model is built from its numbers; compiled programs are found by it.

    Parameters
    ----------
    build
        The function that builds the model.
    structure
        That of its arguments as a pytree.
    rest
        The type and value of every leaf that is no number, and None in the places of numbers.
    """

    build: Callable[..., Model]
    structure: Any
    rest: tuple[tuple[type, Any] | None, ...]

    def __call__(self, numbers: tuple[Array, ...]) -> Model:
        """The model with these numbers, known or traced."""
        given = iter(numbers)
        leaves = [next(given) if entry is None else entry[1] for entry in self.rest]
        arguments, keywords = jax.tree.unflatten(self.structure, leaves)
        return with_recipe(self.build(*arguments, **keywords), self, numbers)


@dataclass(frozen=True, eq=False)
class Origin:
    """The call that gave a model, the functions of that model, and the recipe that it had already.

    Functions are not pickled by their content but by the names under which modules hold them; those within a model have
    none, while the function that built them has.
    """

    module: str
    name: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    functions: tuple[Any, ...]

    def gives(self, model: Model) -> bool:
        """Whether a model is the one meant, and not another made of it by ``_replace``."""
        return all(one is other for one, other in zip(model[:-1], self.functions, strict=True))

    def reduce(self) -> tuple[Any, ...]:
        """What a pickle holds in place of the model."""
        return rebuild, (self.module, self.name, self.arguments, self.keywords)


@dataclass(frozen=True, eq=False)
class Numbered:
    """A form, the numbers [...] that fill it, the functions of the model that they give, and the call that gave it."""

    form: Form
    numbers: tuple[Array, ...]
    functions: tuple[Any, ...]
    origin: Origin | None = None

    def gives(self, model: Model) -> bool:
        """Whether a model is the one meant, and not another made of it by ``_replace``."""
        return all(one is other for one, other in zip(model[:-1], self.functions, strict=True))

    def reduce(self) -> tuple[Any, ...]:
        """What a pickle holds in place of the model."""
        return (Model, self.functions) if self.origin is None else self.origin.reduce()


def with_recipe(model: Model, form: Form, numbers: tuple[Array, ...], origin: Origin | None = None) -> Model:
    """The model with how it was built."""
    return model._replace(recipe=Numbered(form, numbers, model[:-1], origin))


def numbered(build: Callable[..., Model]) -> Callable[..., Model]:
    """A function that builds models, made to hold their numbers apart, so that they are data of compiled programs.

    Numbers are the floats and the arrays of floats among its arguments, also within priors. Programs are then compiled
    once for all models that differ in these alone, such as the ten prior scales of a sensitivity study.

    Parameters
    ----------
    build
        A function of numbers, priors and options that returns a `Model`, also where its numbers are traced: what it
        computes from them has to be JAX's, and which functions the model has may not depend on their values. A model
        for which that is not so is compiled by itself, as one made without this decorator.

    Returns
    -------
    callable
        The function, with the same arguments.
    """

    @wraps(build)
    def make(*arguments: Any, **keywords: Any) -> Model:
        model = build(*arguments, **keywords)
        form, numbers = take_apart(build, arguments, keywords)
        called = with_origin(make, model, *arguments, **keywords)
        shared = is_hashable(form) and is_rebuilt(model, form, numbers)
        return with_recipe(model, form, numbers, called.recipe) if shared else called

    return make


def take_apart(
    build: Callable[..., Model], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Form, tuple[Array, ...]]:
    """The form and the numbers of a model's arguments."""
    leaves, structure = jax.tree.flatten((arguments, keywords))
    form = Form(build, structure, tuple(None if is_number(leaf) else (type(leaf), leaf) for leaf in leaves))
    return form, tuple(jnp.asarray(leaf, float) for leaf in leaves if is_number(leaf))


def numbered_by(build: Callable[..., Model], numbers: tuple[Array, ...]) -> Model:
    """The model that a hashable function builds of such numbers, which programs compiled for it take as data."""
    form, numbers = take_apart(build, numbers, {})
    return form(numbers)


def recipe_of(model: Model) -> Numbered | None:
    """How a model was built of its numbers; None where that is not known."""
    recipe = model.recipe
    return recipe if isinstance(recipe, Numbered) and recipe.gives(model) else None


def is_hashable(form: Form) -> bool:
    """Whether every argument can be compared with another."""
    try:
        hash(form)
    except TypeError:
        return False
    return True


def is_number(leaf: Any) -> bool:
    """Whether a leaf is a float or an array of floats."""
    kinds = (np.ndarray, np.generic, jax.Array)
    return isinstance(leaf, float) or (isinstance(leaf, kinds) and jnp.issubdtype(leaf.dtype, jnp.floating))


def is_rebuilt(model: Model, form: Form, numbers: tuple[Array, ...]) -> bool:
    """Whether the model can be built from traced numbers, and then has the same functions."""
    rebuilt: list[Model] = []
    try:
        jax.eval_shape(lambda numbers: rebuilt.append(form(numbers)), numbers)
    except Exception:  # whatever a function of the user's own may raise
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
    """

    def __init__(self, function: Callable[..., Any], static_argnames: tuple[str, ...] = ()) -> None:
        self.signature, self.static_argnames = inspect.signature(function), static_argnames

        def compiled(form: Form | Model, options: Options, numbers: tuple[Array, ...], others: dict[str, Any]) -> Any:
            model = form(numbers) if isinstance(form, Form) else form
            return function(model=model, **dict(options), **others)

        # The name under which the program is found in profiles, and told by JAX's messages.
        compiled.__name__ = function.__name__
        self.compiled = compiled
        self.jitted: Any = jax.jit(compiled, static_argnums=(0, 1))
        wraps(function)(self)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """What the function returns."""
        arranged = self.arrange(*arguments, **keywords)
        return self.jitted(*arranged) if is_traced(*arranged[2:]) else self.light(*arranged)

    def quickly(self, *arguments: Any, **keywords: Any) -> Any:
        """What the function returns, by a program that is compiled quickly: for functions that run once, and soon."""
        arranged = self.arrange(*arguments, **keywords)
        return self.jitted(*arranged) if is_traced(*arranged[2:]) else self.quick(*arranged)

    # Options are for whole programs, and which there are is known only once JAX has its devices.
    @cached_property
    def light(self) -> Any:
        """The compiled function of calls that are no part of another program."""
        return jax.jit(self.compiled, static_argnums=(0, 1), compiler_options=light_options())

    @cached_property
    def quick(self) -> Any:
        """The compiled function of `quickly`."""
        return jax.jit(self.compiled, static_argnums=(0, 1), compiler_options=quick_options())

    def eval_shape(self, *arguments: Any, **keywords: Any) -> Any:
        """The shapes and types of what the function returns."""
        return self.jitted.eval_shape(*self.arrange(*arguments, **keywords))

    def lower(self, *arguments: Any, **keywords: Any) -> Any:
        """The program for such arguments, not compiled yet; arrays may be shapes."""
        return self.light.lower(*self.arrange(*arguments, **keywords))

    def clear_cache(self) -> None:
        """Forget the programs compiled so far."""
        for program in (self.jitted, self.light, self.quick):
            program.clear_cache()

    def arrange(self, *arguments: Any, **keywords: Any) -> tuple[Form | Model, Options, tuple[Array, ...], Any]:
        """The arguments of the compiled function: what it is compiled for, the model's numbers, and the others."""
        others = self.signature.bind(*arguments, **keywords).arguments
        form, numbers = split(others.pop("model"))
        options = tuple((name, others.pop(name)) for name in self.static_argnames if name in others)
        return form, options, numbers, others


def split(model: Model) -> tuple[Form | Model, tuple[Array, ...]]:
    """What decides the program, and the numbers it is run with."""
    recipe = recipe_of(model)
    return (model, ()) if recipe is None else (recipe.form, recipe.numbers)


def with_origin(build: Callable[..., Model], model: Model, *arguments: Any, **keywords: Any) -> Model:
    """The model, which knows that it was built by a function, under the name that its module has for it."""
    return model._replace(recipe=Origin(build.__module__, build.__qualname__, arguments, keywords, model[:-1]))


def rebuild(module: str, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Model:
    """The model of a pickle, built anew."""
    build: Any = reduce(getattr, name.split("."), importlib.import_module(module))
    model: Model = build(*arguments, **keywords)
    return model
