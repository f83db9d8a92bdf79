"""Warnings point at the call from outside of this package, however many of its own calls lie in between."""

import sys
import warnings

__all__ = ["warn_at_the_call"]


def warn_at_the_call(text: str, kind: type[Warning] = UserWarning) -> None:
    """Warn at the call from outside of this package."""
    warnings.warn(text, kind, stacklevel=_calls_below_the_user())


def _calls_below_the_user() -> int:
    """The `stacklevel`, for the function that asks, of the call from outside of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] == __package__.partition(".")[0]:
        level, frame = level + 1, frame.f_back
    return level
