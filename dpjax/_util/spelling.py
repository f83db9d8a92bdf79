"""Arguments that have two usual names; constructors, functions and steps that say what their arguments are called."""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, Self, TypeVar

from dpjax._util.validation import check_key, fail, name_of
from dpjax._util.words import quantity

__all__ = [
    "NamesArguments",
    "check_names",
    "names_arguments",
    "names_methods",
    "nearest",
    "steps_from",
    "takes_num_draws",
]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def takes_num_draws(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which takes ``num_draws=`` for its argument ``num_samples=``, too, and names what it lacks."""
    parameters = tuple(inspect.signature(function).parameters.values())

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if "num_draws" in kwargs:
            if "num_samples" in kwargs:
                fail("num_draws", "num_draws and num_samples", "one of them", "Pass num_samples.", error=TypeError)
            kwargs["num_samples"] = kwargs.pop("num_draws")
        check_names(function.__name__, parameters, len(args), set(kwargs))
        return function(*args, **kwargs)

    return call


OTHER_NAMES = {"sigma": "scale", "sd": "scale", "std": "scale", "b": "scale", "eps": "epsilon"}
OTHER_NAMES |= dict.fromkeys(("seed", "rng", "rng_key", "random_seed", "random_state"), "key")
OTHER_NAMES |= dict.fromkeys(("draws", "num_draws", "num_iterations"), "num_samples")
OTHER_NAMES |= dict.fromkeys(("tune", "warmup", "burn_in"), "num_warmup")
"""Usual names of arguments that have another one here, and look nothing like it."""

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class NamesArguments:
    """A class whose constructor names arguments that it lacks, and those that are missing."""

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """An instance, or a `TypeError` for names that do not fit the constructor."""
        if arguments or options:  # copies are made without any
            check_names(cls.__name__, parameters_of(cls), len(arguments), set(options))  # type: ignore[arg-type]
        return super().__new__(cls)


def names_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which names arguments that it lacks, and those that are missing; ``__new__`` as its class."""
    callee = function.__qualname__.split(".")[-2] if function.__name__ == "__new__" else function.__name__
    parameters = tuple(inspect.signature(function).parameters.values())
    bound = int(parameters[:1] != () and parameters[0].name in ("self", "cls"))

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        check_names(callee, parameters[bound:], len(args) - bound, set(kwargs))
        return function(*args, **kwargs)

    return call


def names_methods(cls: type[T]) -> type[T]:
    """A class whose methods of its own name arguments that they lack, and those that are missing."""
    for name, method in list(vars(cls).items()):
        if name.startswith("_") or (hasattr(method, "__wrapped__") and inspect.isfunction(method)):
            continue
        if isinstance(method, (classmethod, staticmethod)):
            setattr(cls, name, type(method)(names_arguments(method.__func__)))
        elif inspect.isfunction(method):
            setattr(cls, name, names_arguments(method))
    return cls


def steps_from(source: str, kind: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator of ``step(rng_key, state, ...)``: it raises unless these are a key and a state of this type.

    Parameters
    ----------
    source
        What makes the first state, for the error.
    kind
        The type of states.
    """

    def decorate(step: Callable[P, R]) -> Callable[P, R]:
        names = tuple(inspect.signature(step).parameters)

        @wraps(step)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            given = dict(zip(names, args, strict=False)) | kwargs
            key, state = (given[name] for name in names[:2])
            if isinstance(key, kind):
                remedy = f"Call step({', '.join(names)}), in this order."
                fail(names[0], name_of(key), "one typed key", remedy, error=TypeError)
            check_key(names[0], key)
            if not isinstance(state, kind):
                expected = f"the {kind.__name__} that {source} or the last step made"
                fail(names[1], name_of(state), expected, "Pass the state alone, without an info.", error=TypeError)
            return step(*args, **kwargs)

        return names_arguments(call)

    return decorate


@cache
def parameters_of(cls: type) -> tuple[inspect.Parameter, ...]:
    """The parameters of a class's constructor."""
    return tuple(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]


def check_names(callee: str, parameters: tuple[inspect.Parameter, ...], number: int, given: set[str]) -> None:
    """Raise unless a function of these parameters takes so many arguments by their place, and others by these names."""
    expected = [one for one in parameters if one.kind in NAMED]
    names = [one.name for one in expected]
    is_open = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
    if (unknown := sorted(given - set(names))) and not is_open:
        meant = nearest(unknown[0], names)
        remedy = f"Write {meant}." if meant else f"See help({callee})."
        fail(unknown[0], "a value", f"one of {callee}'s arguments: {', '.join(names)}", remedy, error=TypeError)
    places = [one.name for one in parameters if one.kind in PLACED]
    if number > len(places) and not any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters):
        given_places = f"{quantity(number, 'argument')} by {'its' if number == 1 else 'their'} place"
        few = f"at most {len(places)}: {', '.join(places)}" if places else f"names: {', '.join(names) or 'none'}"
        remedy = "Name the others." if len(names) > len(places) else f"See help({callee})."
        fail(callee, given_places, few, remedy, error=TypeError)
    by_place = places[:number]
    if twice := [name for name in by_place if name in given]:
        fail(
            twice[0],
            "two values, by its place and by its name",
            "one",
            f"{callee} takes {', '.join(names)}.",
            error=TypeError,
        )
    missing = [one.name for one in expected if one.default is one.empty and one.name not in {*by_place, *given}]
    if missing:
        fail(missing[0], "nothing", "a value", f"{callee} takes {', '.join(names)}.", error=TypeError)


def nearest(name: str, names: list[str]) -> str | None:
    """The one of `names` that was probably meant, if any."""
    from difflib import get_close_matches  # for an error alone

    usual = OTHER_NAMES.get(name.lower())
    return usual if usual in names else next(iter(get_close_matches(name, names, 1)), None)
