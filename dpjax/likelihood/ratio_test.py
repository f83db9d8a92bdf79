"""The likelihood-ratio test of nested models."""

from dataclasses import dataclass, fields
from typing import Any

import jax
import numpy as np
import scipy

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_instance, fail
from dpjax.likelihood.result import MaximumLikelihood
from dpjax.release import PrivateRelease
from dpjax.runtime.identity import identify

__all__ = ["LikelihoodRatioTest", "likelihood_ratio_test"]


@dataclass(frozen=True, eq=False)
class LikelihoodRatioTest:
    """The likelihood-ratio test of a restricted model within a full one.

    Parameters
    ----------
    statistic
        Twice the difference of the log-likelihoods.
    degrees
        How many parameters fewer the restricted model has.
    p_value
        The probability that a χ² variable of so many degrees exceeds the statistic.
    mcse_statistic
        The Monte Carlo error of the statistic.
    mcse_p_value
        That of the p-value: half of the distance between those a standard error of the statistic apart.

    Examples
    --------
    >>> from dpjax.likelihood.ratio_test import LikelihoodRatioTest
    >>> print(LikelihoodRatioTest(4.2, 1, 0.04, 0.05, 0.001))
    likelihood-ratio statistic 4.2 (Monte Carlo error 0.05), degrees of freedom 1, p-value 0.04 (0.001)
    """

    statistic: float
    degrees: int
    p_value: float
    mcse_statistic: float
    mcse_p_value: float

    def __str__(self) -> str:
        figures = f"{self.statistic:.3g} (Monte Carlo error {self.mcse_statistic:.2g})"
        return (
            f"likelihood-ratio statistic {figures}, degrees of freedom {self.degrees}, "
            f"p-value {self.p_value:.3g} ({self.mcse_p_value:.1g})"
        )


@names_arguments
def likelihood_ratio_test(full: MaximumLikelihood, restricted: MaximumLikelihood) -> LikelihoodRatioTest:
    """The likelihood-ratio test of a restricted model, fitted to the same release as a full one that contains it.

    Parameters
    ----------
    full
        The fit of the larger model.
    restricted
        The fit of the smaller one. That it is a special case of the larger cannot be checked.

    Raises
    ------
    TypeError, ValueError
        If these are no fits, not by one method to one release, or the restricted model has no fewer parameters.

    Notes
    -----
    The p-value is that of large samples, with the restricted parameters in the interior of what the full model allows.

    Examples
    --------
    >>> import dpjax, jax
    >>> prior, variance = dpjax.models.NormalPrior(0.0, 5.0), dpjax.models.InverseGammaPrior(3.0, 6.0)
    >>> def sums(record):
    ...     return jax.numpy.stack([record["y"], record["y"] ** 2])
    >>> release = dpjax.Release([60.0, 180.0], dpjax.Gaussian(8.0), sums, n=50)
    >>> models = dpjax.models.normal(prior, variance), dpjax.models.normal(prior, 4.0)
    >>> fits = [dpjax.maximum_likelihood(jax.random.key(1), model, release, progress=False) for model in models]
    >>> dpjax.likelihood.likelihood_ratio_test(*fits).degrees
    1
    """
    for name, fit in (("full", full), ("restricted", restricted)):
        check_instance(name, fit, MaximumLikelihood, "Pass what dpjax.maximum_likelihood returns.")
    check_alike(full, restricted)
    degrees = full.num_parameters - restricted.num_parameters
    if degrees < 1:
        given = f"{restricted.num_parameters} parameters, and {full.num_parameters} of the full model"
        fail("restricted", given, "fewer parameters than the full model", "Exchange the two, if it is the other way.")
    statistic = 2 * (full.log_likelihood - restricted.log_likelihood)
    error = 2 * float(np.hypot(full.log_likelihood_error, restricted.log_likelihood_error))
    low, high = (float(scipy.stats.chi2.sf(max(statistic + sign * error, 0.0), degrees)) for sign in (1, -1))
    return LikelihoodRatioTest(
        statistic, degrees, float(scipy.stats.chi2.sf(max(statistic, 0), degrees)), error, (high - low) / 2
    )


def check_alike(full: MaximumLikelihood, restricted: MaximumLikelihood) -> None:
    """Raise unless both fits are by one method to one release."""
    others = differences(full.fitted.release, restricted.fitted.release)
    if others:
        given = f"a fit to another release, which differs in {', '.join(others)}"
        fail("restricted", given, "one to that of the full model", "Fit both to one release.")
    kinds = type(full.fitted.surface), type(restricted.fitted.surface)
    if kinds[0] is not kinds[1]:
        given = f"a fit by {restricted.method}, where that of the full model is by {full.method}"
        fail("restricted", given, "fits by one method", "Pass method= to both.")


def differences(release: PrivateRelease, other: PrivateRelease) -> list[str]:
    """What two releases differ in, such as their mechanisms."""
    if type(release) is not type(other):
        return ["kind"]
    names = [field.name for field in fields(release)]
    return [name for name in names if not is_same(getattr(release, name), getattr(other, name))]


def is_same(part: Any, other: Any) -> bool:
    """Whether two parts of releases have the same numbers, or the same content if they are functions."""
    structures: list[Any] = [jax.tree.structure(tree) for tree in (part, other)]
    if structures[0] == structures[1] and all(map(np.array_equal, jax.tree.leaves(part), jax.tree.leaves(other))):
        return True
    try:
        return identify("release", part) == identify("release", other)
    except TypeError:  # what cannot be compared by its content is another object
        return False
