"""Mechanisms from OpenDP measurements, which record how they were built; OpenDP itself is not imported."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from dpjax._util.validation import fail
from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, RandomizedResponse

__all__ = ["mechanism_from_opendp"]

SupportedMechanism = Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian | RandomizedResponse
Arguments = Mapping[str, Any]

SHOWN = 60
"""Number of characters of a text that an error shows."""


def mechanism_from_opendp(measurement: Any) -> SupportedMechanism:
    """The mechanism of an OpenDP measurement, from its constructor and arguments.

    Parameters
    ----------
    measurement
        A measurement of OpenDP, alone or after transformations (``space >> count >> laplace``), or the text
        from ``opendp.mod.serialize``. Noise on integers gives the discrete mechanisms.

    Returns
    -------
    Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian or RandomizedResponse
        The noise alone. State the statistic yourself: transformations are not read.

    Raises
    ------
    TypeError
        If it is not a measurement that records how it was built.
    ValueError
        If its noise is not supported: post-processed, of bounded support, on a coarse grid, of the exponential
        mechanism, or composed.

    Notes
    -----
    Checked with OpenDP 0.16. For floats its noise lies on a grid of spacing 2^k, by default the finest possible, which
    is treated as continuous.

    Examples
    --------
    >>> mechanism_from_opendp('{"__function__": "make_randomized_response_bool", "__kwargs__": {"prob": 0.75}}')
    RandomizedResponse(keep=0.75, num_categories=2, matrix=None, privacy=None)
    """
    name, arguments = constructor_of(measurement)
    if name == "make_chain_mt":
        return mechanism_from_opendp(arguments["measurement1"])
    if name not in READERS:
        remedy = "Pass a mechanism of dpjax, or the measurement before post-processing and composition."
        fail("measurement", name, f"one of {sorted(READERS)}", remedy)
    return READERS[name](arguments)


def constructor_of(built: Any) -> tuple[str, Arguments]:
    """The name and the arguments of the constructor of an OpenDP object or its text."""
    described = getattr(built, "__opendp_dict__", None) or built
    if isinstance(described, str):
        described = parse(described)
    if not (isinstance(described, Mapping) and {"__function__", "__kwargs__"} <= described.keys()):
        remedy = "Pass a measurement, or the text of opendp.mod.serialize(measurement)."
        fail("measurement", repr(built)[:SHOWN], "a measurement of OpenDP", remedy, error=TypeError)
    return described["__function__"], described["__kwargs__"]


def parse(text: str) -> Any:
    """The parsed JSON text, None if it is not JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None


def is_whole(arguments: Arguments) -> bool:
    """Whether noise is added to integers; a grid chosen by the user is refused."""
    if arguments.get("k") is not None:
        remedy = "Leave k out: the noise then lies on the finest grid."
        fail("measurement", f"noise on a grid of spacing 2^{arguments['k']}", "noise on the finest grid", remedy)
    return number_type(arguments["input_domain"]) not in ("f32", "f64")


def number_type(domain: Any) -> str:
    """The Rust type of the numbers in a domain, from the object or else from its constructor."""
    if hasattr(domain, "carrier_type"):
        return str(domain.carrier_type).removeprefix("Vec<").removesuffix(">")
    _, arguments = constructor_of(domain)
    return number_type(arguments["atom_domain"]) if "atom_domain" in arguments else str(arguments["T"])


def read_laplace(arguments: Arguments) -> SupportedMechanism:
    """Laplace noise, discrete on integers."""
    return (DiscreteLaplace if is_whole(arguments) else Laplace)(arguments["scale"])


def read_gaussian(arguments: Arguments) -> SupportedMechanism:
    """Gaussian noise, discrete on integers."""
    return (DiscreteGaussian if is_whole(arguments) else Gaussian)(arguments["scale"])


def read_geometric(arguments: Arguments) -> SupportedMechanism:
    """Geometric noise without bounds."""
    if arguments.get("bounds") is not None:
        remedy = "Take make_laplace, or make_geometric without bounds."
        fail("measurement", f"geometric noise within {arguments['bounds']}", "noise without bounds", remedy)
    return DiscreteLaplace(arguments["scale"])


def read_noise(arguments: Arguments) -> SupportedMechanism:
    """The noise that belongs to a privacy measure."""
    measure = str(arguments["output_measure"])
    if "ZeroConcentratedDivergence" in measure or "zero_concentrated_divergence" in measure:
        return read_gaussian(arguments)
    if "MaxDivergence" in measure or "max_divergence" in measure:
        return read_laplace(arguments)
    return fail(
        "measurement",
        f"noise for {measure}",
        "noise for max or zero-concentrated divergence",
        "Pass a mechanism of dpjax.",
    )


def read_response(arguments: Arguments) -> SupportedMechanism:
    """Randomized response among categories, numbered in their order."""
    return RandomizedResponse(keep=arguments["prob"], num_categories=len(arguments["categories"]))


def read_response_bool(arguments: Arguments) -> SupportedMechanism:
    """Randomized response of yes and no."""
    return RandomizedResponse(keep=arguments["prob"], num_categories=2)


READERS: dict[str, Callable[[Arguments], SupportedMechanism]] = {
    "make_gaussian": read_gaussian,
    "make_geometric": read_geometric,
    "make_laplace": read_laplace,
    "make_noise": read_noise,
    "make_randomized_response": read_response,
    "make_randomized_response_bool": read_response_bool,
}
