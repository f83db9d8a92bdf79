"""Mechanisms from Tumult Analytics' descriptions of the noise of a query; that library itself is not imported."""

from collections.abc import Mapping
from typing import Any

from dpjax._util.validation import fail
from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from dpjax.release import mechanism_from_published

__all__ = ["mechanism_from_tumult"]

CONVENTIONS = {
    "LAPLACE": "laplace_scale",
    "GEOMETRIC": "discrete_laplace_scale",
    "GAUSSIAN": "gaussian_variance",
    "DISCRETE_GAUSSIAN": "discrete_gaussian_squared_scale",
}
"""Its names of noise as conventions of dpjax. The parameter of geometric noise is the scale 1 / ε, not e^(−ε)."""


def mechanism_from_tumult(noise: Mapping[str, Any]) -> Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian:
    """The mechanism of one aggregate of a query.

    Parameters
    ----------
    noise
        ``{"noise_mechanism": ..., "noise_parameter": ...}``, as listed by a session of Tumult Analytics for a
        query; the mechanism is the member of its enumeration, or the member's name.

    Raises
    ------
    TypeError
        If it is not such a mapping.
    ValueError
        If the mechanism is not supported, such as the exponential mechanism, or the parameter is not positive.

    Examples
    --------
    >>> mechanism_from_tumult({"noise_mechanism": "GEOMETRIC", "noise_parameter": 2})
    DiscreteLaplace(scale=2.0, privacy=None)
    """
    if not (isinstance(noise, Mapping) and {"noise_mechanism", "noise_parameter"} <= noise.keys()):
        expected = "a mapping with noise_mechanism and noise_parameter"
        fail("noise", repr(noise), expected, "Pass one entry of the list that the session gives.", error=TypeError)
    name = getattr(noise["noise_mechanism"], "name", noise["noise_mechanism"])
    if name not in CONVENTIONS:
        remedy = "Only noise that is added to a sum can be read."
        fail("noise_mechanism", repr(name), f"one of {sorted(CONVENTIONS)}", remedy)
    return mechanism_from_published(CONVENTIONS[name], noise["noise_parameter"])
