"""Remarks on a maximum-likelihood estimate: missing precision, flat directions, and boundaries."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from dpjax._util.warn import warn_at_the_call
from dpjax.diagnostics.frames import Labels
from dpjax.diagnostics.summary import entry_names
from dpjax.likelihood.confirm import NearbyDerivatives
from dpjax.likelihood.newton import LEAST_GAP, Optimum, jackknife
from dpjax.likelihood.surface import Surface

__all__ = ["find_remarks", "row_names", "warn_of"]

DOUBT = 2.0
"""How many Monte Carlo errors an eigenvalue of the information is above zero at least."""

STEEP = -0.5
"""The slope of the log-likelihood a standard error away, per standard error, below which it is flat on no account."""


def find_remarks(
    surface: Surface, fitted: Optimum, looks: NearbyDerivatives, labels: Labels | None = None
) -> tuple[str, ...]:
    """Remarks on a fit, and on what is seen away from it; entries have the names of `labels`."""
    remarks = list(surface.remarks(fitted.vectors[0]))
    if not fitted.settled[0] and surface.is_exact:
        remarks.append("Newton's steps did not end at a maximum: pass `initial` parameters near it.")
    elif not fitted.settled[0]:
        text = f"The Monte Carlo error of the estimate is {fitted.errors[0]:.2g} standard errors, or that of the"
        text = f"{text} standard errors is too large, after {fitted.num_steps} sweeps of each chain"
        remarks.append(f"{text}: pass more num_steps or num_chains.")
    if fitted.num_nonfinite:
        remarks.append(f"{fitted.num_nonfinite} derivatives were not finite and left out: check the model's records.")
    flat = list(find_flat(surface, fitted, looks, labels))
    remarks += [f"The likelihood tells next to nothing of {name}: its standard error means nothing." for name in flat]
    return (*remarks, *find_boundaries(surface, fitted, looks, flat, labels))


def warn_of(remarks: tuple[str, ...]) -> None:
    """Warn whoever called `maximum_likelihood`."""
    for remark in remarks:
        warn_at_the_call(remark)


def find_flat(surface: Surface, fitted: Optimum, looks: NearbyDerivatives, labels: Labels | None) -> Iterator[str]:
    """What changes most along each direction whose information is not above zero beyond its Monte Carlo error.

    If the likelihood falls to one side, the other is towards a boundary.
    """
    shares = fitted.solution.shares[0]
    doubt = jackknife(fitted.replicates[1].shares)[0]
    for place, direction in enumerate(fitted.solution.steps[0]):
        if shares[place] <= max(DOUBT * doubt[place], LEAST_GAP) and np.all(looks.slopes[place] > STEEP):
            yield name_direction(surface, fitted, direction, labels)


def find_boundaries(
    surface: Surface, fitted: Optimum, looks: NearbyDerivatives, flat: Any, labels: Labels | None
) -> Iterator[str]:
    """Along which directions the likelihood hardly falls, a standard error away from the estimate."""
    said = set(flat)
    for step in looks.steps[looks.at_boundary]:
        name = name_direction(surface, fitted, step, labels)
        if name not in said:
            said.add(name)
            yield (
                f"The likelihood hardly falls a standard error away from the estimate, as {name} changes: it is "
                "at a boundary or drifts towards one, as where data are separated. Wald intervals fail there; see "
                "method='profile'."
            )


def name_direction(surface: Surface, fitted: Optimum, direction: np.ndarray, labels: Labels | None) -> str:
    """The number that changes most along a direction, in its standard errors."""
    _, slopes = surface.natural(fitted.vectors[0])
    spread = np.sqrt(np.einsum("pi,ij,pj->p", slopes, fitted.solution.covariance[0], slopes))
    change = np.abs(slopes @ direction) / np.where(spread > 0, spread, np.inf)
    return row_names(surface, len(spread), labels)[int(np.argmax(change))]


def row_names(surface: Surface, size: int, labels: Labels | None = None) -> tuple[str, ...]:
    """The names of all numbers [p], by those of levels where these are known."""
    named = surface.unravel(np.zeros(size))
    return tuple(row for name, leaf in named.items() for row in entry_names(name, {"": leaf}, labels))
