"""How `dpjax.mixture.sample` goes about its run, beside how many draws it makes: the keywords that few calls need."""

import os
from collections.abc import Mapping
from typing import Any, TypedDict

from dpjax.mixture.draws import Collect
from dpjax.running.devices import Devices
from dpjax.sampling.until import Until

__all__ = ["RunOptions", "choose_options"]


class RunOptions(TypedDict, total=False):
    """The options, which `dpjax.mixture.sample` explains."""

    thin: int
    collect: Collect | str | tuple[str, ...] | None
    progress: bool
    checkpoint: str | os.PathLike[str] | None
    until: Until | None
    devices: Devices


DEFAULTS = RunOptions(thin=1, collect=None, progress=True, checkpoint=None, until=None, devices=None)


def choose_options(given: Mapping[str, Any]) -> RunOptions:
    """The options given, and the others as they are if left out.

    Raises
    ------
    TypeError
        If there is no such option.
    """
    for name in given:
        if name not in DEFAULTS:
            raise TypeError(f"sample() got an unexpected keyword argument {name!r}")
    return RunOptions(**{**DEFAULTS, **given})  # type: ignore[typeddict-item]
