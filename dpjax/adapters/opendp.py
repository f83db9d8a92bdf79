"""Mechanisms from measurements of OpenDP, which say how they were built; that library itself is not needed."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from dpjax._util.validation import fail
from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, RandomizedResponse

__all__ = ["mechanism_from_opendp"]

Found = Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian | RandomizedResponse
Arguments = Mapping[str, Any]

SHOWN = 60
"""Letters of a text that an error shows."""


def mechanism_from_opendp(measurement: Any) -> Found:
    """The mechanism of an OpenDP measurement, by the constructor and the arguments that it was built with.

    Parameters
    ----------
    measurement
        A measurement of OpenDP, alone or after transformations (``space >> count >> laplace``), or the text that
        ``opendp.mod.serialize`` makes of one. Noise on whole numbers gives the discrete mechanisms.

    Returns
    -------
    Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian or RandomizedResponse
        The noise alone. What was summed is yours to say, as a statistic: a transformation is a program.

    Raises
    ------
    TypeError
        If it is no measurement that says how it was built.
    ValueError
        If its noise is of a kind that is not known here: post-processed, of bounded support, on a coarse grid, a choice
        of the exponential mechanism, or composed.

    Notes
    -----
    Checked with OpenDP 0.16. On floating-point numbers its noise lives on a grid of spacing 2^k, by default the finest
    there is, which is taken for real.

    Examples
    --------
    >>> mechanism_from_opendp('{"__function__": "make_randomized_response_bool", "__kwargs__": {"prob": 0.75}}')
    RandomizedResponse(keep=0.75, num_categories=2, matrix=None, privacy=None)
    """
    name, arguments = constructor_of(measurement)
    if name == "make_chain_mt":
        return mechanism_from_opendp(arguments["measurement1"])
    if name not in READERS:
        remedy = "Give the noise by hand, or release what comes before post-processing and composition."
        fail("measurement", name, f"one of {sorted(READERS)}", remedy)
    return READERS[name](arguments)


def constructor_of(built: Any) -> tuple[str, Arguments]:
    """The name of the constructor of an object or text of OpenDP, and its arguments."""
    described = getattr(built, "__opendp_dict__", None) or built
    if isinstance(described, str):
        described = parse(described)
    if not (isinstance(described, Mapping) and {"__function__", "__kwargs__"} <= described.keys()):
        remedy = "Pass a measurement, or the text of opendp.mod.serialize(measurement)."
        fail("measurement", repr(built)[:SHOWN], "a measurement of OpenDP", remedy, error=TypeError)
    return described["__function__"], described["__kwargs__"]


def parse(text: str) -> Any:
    """What a text holds, None if it is no JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None


def is_whole(arguments: Arguments) -> bool:
    """Whether noise is added to whole numbers; a number on a grid of one's own choice is neither."""
    if arguments.get("k") is not None:
        remedy = "Leave k out: the noise then lives on the finest grid."
        fail("measurement", f"noise on a grid of spacing 2^{arguments['k']}", "noise on the finest grid", remedy)
    return number_type(arguments["input_domain"]) not in ("f32", "f64")


def number_type(domain: Any) -> str:
    """The type of the numbers in a domain, as Rust calls it: of an object what it says, else what it was built with."""
    if hasattr(domain, "carrier_type"):
        return str(domain.carrier_type).removeprefix("Vec<").removesuffix(">")
    _, arguments = constructor_of(domain)
    return number_type(arguments["atom_domain"]) if "atom_domain" in arguments else str(arguments["T"])


def read_laplace(arguments: Arguments) -> Found:
    """Laplace noise, geometric on whole numbers."""
    return (DiscreteLaplace if is_whole(arguments) else Laplace)(arguments["scale"])


def read_gaussian(arguments: Arguments) -> Found:
    """Gaussian noise, discrete on whole numbers."""
    return (DiscreteGaussian if is_whole(arguments) else Gaussian)(arguments["scale"])


def read_geometric(arguments: Arguments) -> Found:
    """Geometric noise without bounds."""
    if arguments.get("bounds") is not None:
        remedy = "Take make_laplace, or make_geometric without bounds."
        fail("measurement", f"geometric noise within {arguments['bounds']}", "noise without bounds", remedy)
    return DiscreteLaplace(arguments["scale"])


def read_noise(arguments: Arguments) -> Found:
    """The noise that goes with a measure of privacy."""
    measure = str(arguments["output_measure"])
    if "ZeroConcentratedDivergence" in measure or "zero_concentrated_divergence" in measure:
        return read_gaussian(arguments)
    if "MaxDivergence" in measure or "max_divergence" in measure:
        return read_laplace(arguments)
    return fail("measurement", f"noise for {measure}", "noise for max or zero-concentrated divergence", "Say its law.")


def read_response(arguments: Arguments) -> Found:
    """Randomized response among categories, numbered as they were listed."""
    return RandomizedResponse(keep=arguments["prob"], num_categories=len(arguments["categories"]))


def read_response_bool(arguments: Arguments) -> Found:
    """Randomized response of yes and no."""
    return RandomizedResponse(keep=arguments["prob"], num_categories=2)


READERS: dict[str, Callable[[Arguments], Found]] = {
    "make_gaussian": read_gaussian,
    "make_geometric": read_geometric,
    "make_laplace": read_laplace,
    "make_noise": read_noise,
    "make_randomized_response": read_response,
    "make_randomized_response_bool": read_response_bool,
}
