"""Which kernel moves the parameters given the records."""

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model
from dpjax.numbered import jit_model
from dpjax.parameters.centred import build_log_likelihood
from dpjax.parameters.coordinates import Tuning, build_log_density, to_vector
from dpjax.parameters.kernels import HMC, CoordinateSlice, KernelBuilder, ParameterKernel, parameter_kernel
from dpjax.simulate import draw_position, parameter_shapes

NUM_PROBES = 8
"""Draws from the prior at which gradients are looked at."""


def choose_kernel(model: Model, choice: str | KernelBuilder | ParameterKernel | None) -> ParameterKernel | None:
    """The kernel that a choice stands for; None stands for the model's exact update, else for the default.

    Where there are no parameters there is none to move.

    Raises
    ------
    TypeError, ValueError
        As `parameter_kernel`.
    """
    if choice is None or not parameter_shapes(model):
        return default_kernel(model) if model.update is None and parameter_shapes(model) else None
    return choice if isinstance(choice, ParameterKernel) else parameter_kernel(choice)


def default_kernel(model: Model) -> ParameterKernel:
    """The kernel of a model without an exact update: HMC, or slices where that has nothing to go by.

    Slices along the coordinates are taken for a single parameter, where one is nearly an exact draw, and where some
    gradient is missing, not a number, or zero at all of a few draws from the prior.

    Parameters
    ----------
    model
        The model whose parameters it moves.

    Notes
    -----
    The evidence is one run each at n = 100 on a busy core; see the guide. Effective draws per CPU second of
    HMC, NUTS and coordinate slices: 4,800, 2,000 and 1,100 for a Dirichlet law with three parameters; 3,000, 2,700 and
    590 for a logistic regression with fifteen; 24,000, 21,000 and 20,000 for a regression with three, interweaved. That
    slices fall behind as parameters are added is clear; that HMC beats NUTS is not, beyond its shorter compilation.

    Examples
    --------
    >>> import dpjax
    >>> model = dpjax.models.exponential(dpjax.models.GammaPrior(2.0, 1.0))
    >>> default_kernel(model)
    CoordinateSlice(num_steps=1, width=2.0)
    """
    return HMC() if has_gradients(model) else CoordinateSlice()


def has_gradients(model: Model) -> bool:
    """Whether there are two or more parameters, and gradients that can be followed."""
    if sum(leaf.size for leaf in jax.tree.leaves(parameter_shapes(model))) < 2:
        return False
    try:
        slopes = np.asarray(probe_gradients.quickly(model, jax.random.split(jax.random.key(0), NUM_PROBES)))
    except (NotImplementedError, TypeError, ValueError):  # as JAX puts it where no derivative is defined
        return False
    return bool(np.all(np.isfinite(slopes)) and np.all(np.any(slopes != 0, axis=0)))


@jit_model
def probe_gradients(model: Model, keys: Key) -> Array:
    """Gradients [draw, k] of the log-density on the unconstrained scale, each at a draw from the model."""
    # Known covariates may leave the density no other number of records.
    n = 2 if model.num_records is None else model.num_records

    def gradient(key: Key) -> Array:
        parameters, records = draw_position(key, model, n)
        vector, unravel = to_vector(model, parameters)
        size, dtype = vector.size, vector.dtype
        unit = Tuning(jnp.zeros(size, dtype), jnp.eye(size, dtype=dtype), jnp.ones((), dtype))
        return jax.grad(build_log_density(model, unit, unravel, build_log_likelihood(model, records)))(vector)

    return jax.vmap(gradient)(keys)
