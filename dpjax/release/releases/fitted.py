"""Coefficients that were fitted to the records under differential privacy."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, fail
from dpjax.mechanisms.objective import ObjectivePerturbation, check_linear_term
from dpjax.release import Release
from dpjax.statistics.base import as_floats
from dpjax.statistics.losses import FittedDerivatives, Loss, check_loss

__all__ = ["objective_perturbation"]


@names_arguments
def objective_perturbation(coefficients: Any, loss: Loss, *, noise: Any, regularization: Any, n: Any) -> Release:
    """The release of coefficients θ that minimise Σ ℓ(θ; x) + Σ λ θ² / 2 + bᵀ θ, where b is a draw of noise.

    Parameters
    ----------
    coefficients : [d]
        The published coefficients.
    loss
        The function ``(coefficients [d], record) -> []`` ℓ of one record: convex, and twice differentiable by JAX. One
        of `dpjax.statistics.Logistic`, `Squared` and `Huber`, or any of your own. Build it once.
    noise
        The distribution of b: `dpjax.mechanisms.VectorLaplace`, `dpjax.mechanisms.KNormLinf` or `dpjax.Gaussian`.
    regularization : [] or [d]
        The penalty λ, or that of each coefficient; 0 for an intercept that is not penalised. If the objective is a mean
        over n records, n times its penalty.
    n
        The public number of records, as in `dpjax.Release`.

    Returns
    -------
    Release
        Of the sums of the gradient and Hessian at the coefficients, by `dpjax.mechanisms.ObjectivePerturbation`.
        Coefficients, penalties and noise scale are data: releases of one loss, n and number of coefficients share their
        programs, and `dpjax.sample_batch` takes them together. Another release cannot be drawn from it: to fit
        coefficients takes the records, not their sums.

    Raises
    ------
    TypeError, ValueError
        If the coefficients are not finite, the loss is no hashable function, a penalty is negative or not one for each
        coefficient, or the noise is of another kind. When a model is given: if the loss of its records is not one
        finite number or not convex. If the sum of its Hessians with the penalties is never positive definite.

    Notes
    -----
    An optimiser that stopped where the gradient of its objective was r, in place of 0, gives coefficients as if b had
    been b − r. The log-density of that differs by at most |r| / β for `VectorLaplace`, max |r| / β for
    `KNormLinf`, and (|b| |r| + |r|² / 2) / σ² for `Gaussian`; how r changes with the coefficients is left out.

    Examples
    --------
    >>> import dpjax
    >>> release = dpjax.releases.objective_perturbation(
    ...     [0.1, 0.8],
    ...     dpjax.statistics.Logistic(norm=1.0),
    ...     noise=dpjax.mechanisms.VectorLaplace(4.0),
    ...     regularization=[0.0, 2.0],
    ...     n=500,
    ... )
    >>> release.statistic.dimension
    5
    """
    check_loss(loss)
    value = jnp.asarray(as_floats("coefficients", coefficients), jnp.result_type(float))
    size = len(value)
    remedy = "Pass the factor of θ² / 2: one number, or one for each coefficient; 0 for one without penalty."
    check_array("regularization", regularization, lambda array: array >= 0, "finite numbers of at least 0", remedy)
    if np.shape(regularization) not in ((), (size,)):
        given = f"shape {list(np.shape(regularization))}"
        fail("regularization", given, f"shape [] or [{size}], one for each coefficient", remedy)
    check_linear_term("noise", noise)
    penalty = jnp.broadcast_to(jnp.asarray(regularization, jnp.result_type(float)), (size,))
    scale = np.shape(getattr(noise, "scale", 0.0))
    if scale not in ((), (size,)):
        fail("noise.scale", f"shape {list(scale)}", f"shape [] or [{size}]", "Give one scale, or one a coefficient.")
    return Release(value, ObjectivePerturbation(noise, penalty), FittedDerivatives(loss, size), n)
