"""Parameters that a prior puts beyond the floats: priors say so, and forms that cannot hold them are left out."""

import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax.base import Array
from dpjax.validation import is_traced

__all__ = ["may_vanish", "warn_of_underflow"]

RARE = 1e-6
"""A chance so small that neither starts nor the tuning of a kernel will meet the event."""

COMMON = 1e-3
"""A part of a prior that is worth a warning."""


def chance_of_zero(shape: Any) -> np.ndarray:
    """About how much of a Gamma, Beta or Dirichlet law with small shapes lies below the smallest float."""
    limits = jnp.finfo(jnp.zeros((), float).dtype)
    return np.exp(np.asarray(shape, np.float64) * np.log(float(limits.tiny)))


def may_vanish(concentration: Array) -> bool:
    """Whether some probability of a Dirichlet law with this known concentration may well be rounded to 0."""
    return not is_traced(concentration) and bool(np.max(chance_of_zero(concentration)) > RARE)


def warn_of_underflow(argument: str, shape: Any) -> None:
    """Warn if a known shape puts a part of the prior where there are no floats."""
    if is_traced(shape) or np.size(shape) == 0:
        return
    least, chance = np.min(np.asarray(shape)), np.max(chance_of_zero(shape))
    if chance > COMMON:
        kind = jnp.zeros((), float).dtype
        remedy = "Pass a larger shape" + (
            "." if kind == jnp.float64 else ", or use 64-bit floats: jax.config.update('jax_enable_x64', True)."
        )
        warnings.warn(
            f"{argument}: given {least:g}; about {chance:.1%} of this prior lies beyond the range of {kind}. Its draws "
            f"are rounded to the end of that range, and the posterior is that of the prior cut there. {remedy}",
            stacklevel=5,
        )
