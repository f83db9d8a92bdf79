"""A check that losses of fitted coefficients are finite and convex on records of the model."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail, is_traced, name_of
from dpjax.base import Array, Model, Records
from dpjax.mechanisms import ObjectivePerturbation
from dpjax.mechanisms.base import parts_of
from dpjax.mechanisms.composite import Padded
from dpjax.models.integer_noise import draw_records
from dpjax.numerics.triangles import full_matrix
from dpjax.release import Release
from dpjax.statistics import Stacked
from dpjax.statistics.base import statistic_at
from dpjax.statistics.losses import Derivatives

NUM_PARAMETERS, NUM_RECORDS = 16, 64
"""Number of draws from the prior, and of records for each."""

ROUNDING = 1e-5
"""The share of its largest eigenvalue by which the smallest of a convex loss may be below 0."""


def check_losses(model: Model, release: Release) -> None:
    """Raise if coefficients were fitted by a loss that is not finite or not convex on records drawn from the model."""
    sums = release.statistic
    statistics = sums.statistics if isinstance(sums, Stacked) else (sums,)
    mechanisms = [mechanism for mechanism, _ in parts_of(release.mechanism, len(release.value))]
    if not any(isinstance(statistic, Derivatives) for statistic in statistics):
        return
    records = draw_records(model, NUM_PARAMETERS, NUM_RECORDS, jax.random.key(0))
    if is_traced(records, release.value):
        return
    for place, statistic in enumerate(statistics):
        if isinstance(statistic, Derivatives):
            found = derivatives(statistic, release.value, records)
            check_derivatives(statistic, found)
            if len(mechanisms) == len(statistics):
                check_curvature(mechanisms[place], found)


@partial(jax.jit, static_argnames="statistic")
def derivatives(statistic: Derivatives, value: Array, records: Records) -> Array:
    """The derivatives [m, q] of the loss of each of m records, if this value was released."""
    return jax.vmap(statistic_at(statistic, value))(records)


def check_derivatives(statistic: Derivatives, found: Any) -> None:
    """Raise unless derivatives [m, q] of the loss of records are finite, and their Hessians are not negative."""
    name, d = name_of(statistic.loss), statistic.num_coefficients
    if not np.all(np.isfinite(found)):
        given = f"{name}, of which a derivative is not finite at the coefficients"
        fail("loss", given, "finite derivatives on all records of the model", "Check its formula and the units.")
    eigenvalues = np.linalg.eigvalsh(np.asarray(jax.vmap(lambda row: full_matrix(row, d))(found[:, d:])))
    if np.any(eigenvalues[:, 0] < -ROUNDING * (1 + np.abs(eigenvalues[:, -1]))):
        remedy = "The density of a minimiser is known where it is the only one."
        fail("loss", f"{name}, whose Hessian is negative for a record of the model", "a convex loss", remedy)


def check_curvature(mechanism: Any, found: Any) -> None:
    """Raise unless the Hessians [m, q] of many records and the penalties are positive definite together."""
    fitted = mechanism.drawn if isinstance(mechanism, Padded) else mechanism
    if not isinstance(fitted, ObjectivePerturbation) or is_traced(fitted.regularization):
        return
    d = fitted.value_size
    curvature = full_matrix(jnp.sum(found[:, d:], axis=0), d) + jnp.diag(fitted.regularization)
    eigenvalues = np.linalg.eigvalsh(np.asarray(curvature))
    if eigenvalues[0] <= ROUNDING * eigenvalues[-1] / len(found):
        given = "penalties under which some direction of the coefficients has no curvature, whatever the records"
        remedy = "Pass the penalties of the fit, or leave out coefficients that nothing determines."
        fail("regularization", given, "a sum of Hessians and penalties that is positive definite", remedy)
