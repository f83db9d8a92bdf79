"""Where a model comes from, so that it can be pickled: the function that built it and what it was given."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from dpjax.base import Model

__all__ = ["Origin", "with_origin"]


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


def with_origin(build: Callable[..., Model], model: Model, *arguments: Any, **keywords: Any) -> Model:
    """The model, which knows that it was built by a function, under the name that its module has for it."""
    return model._replace(recipe=Origin(build.__module__, build.__qualname__, arguments, keywords, model[:-1]))


def rebuild(module: str, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Model:
    """The model of a pickle, built anew."""
    build: Any = reduce(getattr, name.split("."), importlib.import_module(module))
    model: Model = build(*arguments, **keywords)
    return model
