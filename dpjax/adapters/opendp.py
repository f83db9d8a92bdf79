"""Mechanisms and quantiles from OpenDP measurements, which record how they were built; OpenDP is not imported."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_positive_number, check_share, describe, fail
from dpjax.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    PermuteAndFlip,
    RandomizedResponse,
)
from dpjax.release import Release
from dpjax.release.releases.quantiles import quantile

__all__ = ["mechanism_from_opendp", "read_quantile", "selection_from_opendp"]

SupportedMechanism = Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian | RandomizedResponse
Arguments = Mapping[str, Any]

REAL = ("f32", "f64")
WHOLE = tuple(f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64, 128, "size"))
"""The types of numbers."""

MOST_STEPS = 1_000
"""The longest chain of transformations that is followed."""


@names_arguments
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
        If its noise is not supported: post-processed, of bounded support, on a coarse grid, on scores, or composed.

    Notes
    -----
    Checked with OpenDP 0.16. For floats its noise lies on a grid of spacing 2^k, by default the finest possible, which
    is treated as continuous.

    Examples
    --------
    >>> from dpjax.adapters.opendp import mechanism_from_opendp
    >>> mechanism_from_opendp('{"__function__": "make_randomized_response_bool", "__kwargs__": {"prob": 0.75}}')
    RandomizedResponse(keep=0.75, num_categories=2, matrix=None, privacy=None)
    """
    name, arguments = measurement_of(measurement)
    if name not in READERS:
        remedy = "Read selections by selection_from_opendp or read_quantile, and others before they are composed."
        fail("measurement", name, f"one of {sorted(READERS)}", remedy)
    return READERS[name](arguments)


@names_arguments
def selection_from_opendp(measurement: Any, utilities: Callable[[Any], Any]) -> ExponentialMechanism | PermuteAndFlip:
    """The mechanism of an OpenDP measurement that selects the best of several scores.

    Parameters
    ----------
    measurement
        One of ``make_noisy_max`` or ``make_report_noisy_max_gumbel``, alone or after transformations, or its text.
    utilities
        The scores that it was given, as a function of the summed statistic, as in
        `dpjax.mechanisms.ExponentialMechanism`.

    Returns
    -------
    ExponentialMechanism or PermuteAndFlip
        With noise of the measurement's scale on the scores. Its sensitivity is written as 1, and ε as that of scores
        that one record moves by 1.

    Raises
    ------
    TypeError, ValueError
        If it is another measurement, or one that selects the least score.

    Notes
    -----
    Under max divergence ``make_noisy_max`` adds exponential noise, which is permute-and-flip, under zero-concentrated
    divergence Gumbel noise. Checked with OpenDP 0.16.

    Examples
    --------
    >>> from dpjax.adapters.opendp import selection_from_opendp
    >>> import dpjax
    >>> text = '{"__function__": "make_report_noisy_max_gumbel", "__kwargs__": {"scale": 4.0, "optimize": "max"}}'
    >>> selection_from_opendp(text, dpjax.mechanisms.QuantileScores(0.5, 3)).epsilon
    0.5
    """
    name, arguments = measurement_of(measurement)
    if name not in ("make_noisy_max", "make_report_noisy_max_gumbel"):
        remedy = "Read noise on numbers by mechanism_from_opendp, and quantiles by read_quantile."
        fail("measurement", name, "make_noisy_max or make_report_noisy_max_gumbel", remedy)
    if arguments.get("negate") or str(arguments.get("optimize", "max")).lower() != "max":
        remedy = "Build the mechanism with utilities of the other sign, epsilon = 2 / scale and sensitivity = 1."
        fail("measurement", "a selection of the least score", "one of the largest", remedy)
    flips = name == "make_noisy_max" and noise_on_scores(arguments) == "exponential"
    return (PermuteAndFlip if flips else ExponentialMechanism)(utilities, 2 / scale_of(arguments), 1.0)


@names_arguments
def read_quantile(value: float, measurement: Any, *, field: str, n: Any) -> Release:
    """The release of OpenDP's ``make_private_quantile``: `dpjax.releases.quantile` of its candidates.

    Parameters
    ----------
    value
        The published quantile, one of the candidates.
    measurement
        The measurement, alone or after transformations, which are not read; or its text.
    field
        The record field [].
    n
        The public number of records, as in `dpjax.Release`.

    Returns
    -------
    Release
        As that of `dpjax.releases.quantile`. Its ε is that of one record more or less.

    Raises
    ------
    TypeError, ValueError
        If it is another measurement, or the value is no candidate.

    Notes
    -----
    Noise of the measurement's scale is added to −|(1 − α) #(x < c) − α #(x > c)|: exponential noise under max
    divergence, Gumbel noise under zero-concentrated divergence. Checked with OpenDP 0.16.

    Examples
    --------
    >>> from dpjax.adapters.opendp import read_quantile
    >>> text = '''{"__function__": "make_private_quantile", "__kwargs__": {
    ... "output_measure": {"__function__": "max_divergence", "__kwargs__": {}},
    ... "candidates": [20, 40, 60], "alpha": 0.5, "scale": 2.0}}'''
    >>> read_quantile(40, text, field="age", n=100).mechanism.family
    'exponential'
    """
    name, arguments = measurement_of(measurement)
    if name != "make_private_quantile":
        remedy = "Of a selection among scores of your own, see selection_from_opendp."
        fail("measurement", name, "make_private_quantile", remedy)
    alpha = take(arguments, "alpha")
    check_share("measurement.alpha", alpha)
    moved = max(alpha, 1 - alpha)
    drawn = {"noise": noise_on_scores(arguments), "epsilon": 2 * moved / scale_of(arguments), "sensitivity": moved}
    return quantile(value, alpha, candidates=take(arguments, "candidates"), field=field, n=n, **drawn)


def noise_on_scores(arguments: Arguments) -> Literal["exponential", "gumbel"]:
    """The noise that selections add under a privacy measure."""
    return "gumbel" if is_concentrated(arguments) else "exponential"


def is_concentrated(arguments: Arguments) -> bool:
    """Whether noise is for zero-concentrated divergence; an error unless it is for that or max divergence."""
    measure = take(arguments, "output_measure")
    words = str(take(measure, "__function__") if isinstance(measure, Mapping) else measure)
    if words in ("ZeroConcentratedDivergence", "zero_concentrated_divergence"):
        return True
    if words in ("MaxDivergence", "max_divergence"):
        return False
    expected = "noise for max or zero-concentrated divergence"
    return fail("measurement", f"noise for {words}", expected, "Pass a mechanism of dpjax.")


def measurement_of(built: Any) -> tuple[str, Arguments]:
    """The name and the arguments of a measurement, after whatever transformations."""
    for _ in range(MOST_STEPS):
        name, arguments = constructor_of(built)
        if name != "make_chain_mt":
            return name, arguments
        built = take(arguments, "measurement1")
    return fail("measurement", f"more than {MOST_STEPS} steps", "the noise after fewer", "Pass the noise alone.")


def take(arguments: Arguments, name: str) -> Any:
    """An argument of a constructor, or an error if it was not recorded."""
    if name not in arguments:
        remedy = "Pass a measurement, or all of the text of opendp.mod.serialize(measurement)."
        fail("measurement", f"one built with {describe(sorted(map(str, arguments)))}", f"also {name!r}", remedy)
    return arguments[name]


def scale_of(arguments: Arguments) -> float:
    """The scale of the noise."""
    scale = take(arguments, "scale")
    check_positive_number("measurement.scale", scale, "Pass a measurement that adds noise.")
    return float(scale)


def constructor_of(built: Any) -> tuple[str, Arguments]:
    """The name and the arguments of the constructor of an OpenDP object or its text."""
    described = getattr(built, "__opendp_dict__", None) or built
    if isinstance(described, str):
        described = parse(described)
    if not (isinstance(described, Mapping) and {"__function__", "__kwargs__"} <= described.keys()):
        remedy = "Pass a measurement, or the text of opendp.mod.serialize(measurement)."
        fail("measurement", describe(built), "a measurement of OpenDP", remedy, error=TypeError)
    name, arguments = described["__function__"], described["__kwargs__"]
    if not (isinstance(name, str) and isinstance(arguments, Mapping)):
        remedy = "Pass the text as opendp.mod.serialize wrote it."
        fail("measurement", describe(described), "the name of a constructor, and its arguments", remedy)
    return name, arguments


def parse(text: str) -> Any:
    """The parsed JSON text, None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # no JSON, numbers of thousands of digits, or nested without end
        return None


def is_whole(arguments: Arguments) -> bool:
    """Whether noise is added to integers; a grid chosen by the user is refused."""
    if arguments.get("k") is not None:
        remedy = "Leave k out: the noise then lies on the finest grid."
        fail("measurement", f"noise on a grid of spacing 2^{arguments['k']}", "noise on the finest grid", remedy)
    return not is_real(take(arguments, "input_domain"))


def number_type(domain: Any) -> str:
    """The Rust type of the numbers in a domain, from the object or else from its constructor."""
    if hasattr(domain, "carrier_type"):
        return str(domain.carrier_type).removeprefix("Vec<").removesuffix(">")
    _, arguments = constructor_of(domain)
    if "atom_domain" in arguments:
        _, arguments = constructor_of(arguments["atom_domain"])
    return str(take(arguments, "T"))


def is_real(domain: Any) -> bool:
    """Whether the numbers in a domain are floats; an error if they are no numbers."""
    kind = number_type(domain)
    if kind not in REAL and kind not in WHOLE:
        fail("measurement", f"noise on the type {kind}", f"one of {[*REAL, *WHOLE]}", "Pass a measurement on numbers.")
    return kind in REAL


def read_laplace(arguments: Arguments) -> SupportedMechanism:
    """Laplace noise, discrete on integers."""
    return (DiscreteLaplace if is_whole(arguments) else Laplace)(scale_of(arguments))


def read_gaussian(arguments: Arguments) -> SupportedMechanism:
    """Gaussian noise, discrete on integers."""
    return (DiscreteGaussian if is_whole(arguments) else Gaussian)(scale_of(arguments))


def read_geometric(arguments: Arguments) -> SupportedMechanism:
    """Geometric noise without bounds."""
    if arguments.get("bounds") is not None:
        remedy = "Take make_laplace, or make_geometric without bounds."
        fail("measurement", f"geometric noise within {arguments['bounds']}", "noise without bounds", remedy)
    return DiscreteLaplace(scale_of(arguments))


def read_noise(arguments: Arguments) -> SupportedMechanism:
    """The noise that belongs to a privacy measure."""
    return read_gaussian(arguments) if is_concentrated(arguments) else read_laplace(arguments)


def read_response(arguments: Arguments) -> SupportedMechanism:
    """Randomized response among categories, numbered in their order."""
    categories = take(arguments, "categories")
    if not isinstance(categories, (list, tuple)) or len(set(map(repr, categories))) < len(categories):
        remedy = "Pass the measurement as it was built."
        fail("measurement.categories", describe(categories), "a list of categories that differ", remedy)
    return RandomizedResponse(keep=take(arguments, "prob"), num_categories=len(categories))


def read_response_bool(arguments: Arguments) -> SupportedMechanism:
    """Randomized response of yes and no."""
    return RandomizedResponse(keep=take(arguments, "prob"), num_categories=2)


READERS: dict[str, Callable[[Arguments], SupportedMechanism]] = {
    "make_gaussian": read_gaussian,
    "make_geometric": read_geometric,
    "make_laplace": read_laplace,
    "make_noise": read_noise,
    "make_randomized_response": read_response,
    "make_randomized_response_bool": read_response_bool,
}
