"""Sampling of any density of exchangeable records."""

import warnings
from typing import Any

from dpjax.exchangeable.samplers import ExchangeableState, imwg, soma

__all__ = ["ExchangeableState", "imwg", "soma"]


def __getattr__(name: str) -> Any:
    """The former name of `dpjax.coupling.coupled_exchangeable`."""
    if name != "coupled":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dpjax.coupling import coupled_exchangeable

    said = "dpjax.exchangeable.coupled is now dpjax.coupling.coupled_exchangeable."
    warnings.warn(said, DeprecationWarning, stacklevel=2)
    return coupled_exchangeable
