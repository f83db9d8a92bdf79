"""Kernels for labels, records and the mixing measure: one file per sampler."""

from collections.abc import Callable

from dpjax.mixture.samplers.base import Sampler
from dpjax.mixture.samplers.conditional import conditional
from dpjax.mixture.samplers.neal2 import neal2
from dpjax.mixture.samplers.neal3 import neal3
from dpjax.mixture.samplers.neal5 import neal5
from dpjax.mixture.samplers.neal8 import neal8

__all__ = ["DEFAULT", "SAMPLERS", "Sampler", "conditional", "neal2", "neal3", "neal5", "neal8"]

SAMPLERS: dict[str, Callable[..., Sampler]] = {
    "conditional": conditional,
    "neal2": neal2,
    "neal3": neal3,
    "neal5": neal5,
    "neal8": neal8,
}
"""The samplers by name, for the remedies of errors."""

DEFAULT = conditional()
"""The default sampler."""
