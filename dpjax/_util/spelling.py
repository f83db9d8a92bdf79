"""Arguments that have two usual names."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from dpjax._util.validation import fail

__all__ = ["takes_num_draws"]

P = ParamSpec("P")
R = TypeVar("R")


def takes_num_draws(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which takes ``num_draws=`` for its argument ``num_samples=``, too."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if "num_draws" in kwargs:
            if "num_samples" in kwargs:
                fail("num_draws", "num_draws and num_samples", "one of them", "Pass num_samples.", error=TypeError)
            kwargs["num_samples"] = kwargs.pop("num_draws")
        return function(*args, **kwargs)

    return call
