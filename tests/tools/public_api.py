"""Every public name and signature, one a line; ``python -m tests.tools.public_api`` writes them to the file."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Unpack, get_args, get_origin

import dpjax
from dpjax.adapters import census, diffprivlib, dppack, opendp, pageviews, pipelinedp, private_pgm, tumult
from dpjax.private import accounting, events, noise

FILE = Path(__file__).parents[1] / "public_api.txt"

MODULES = {
    "dpjax": dpjax,
    "dpjax.adapters.census": census,
    "dpjax.adapters.diffprivlib": diffprivlib,
    "dpjax.adapters.dppack": dppack,
    "dpjax.adapters.opendp": opendp,
    "dpjax.adapters.pageviews": pageviews,
    "dpjax.adapters.pipelinedp": pipelinedp,
    "dpjax.adapters.private_pgm": private_pgm,
    "dpjax.adapters.tumult": tumult,
    "dpjax.coupling": dpjax.coupling,
    "dpjax.coupling.theory": dpjax.coupling.theory,
    "dpjax.diagnostics": dpjax.diagnostics,
    "dpjax.exchangeable": dpjax.exchangeable,
    "dpjax.mixture": dpjax.mixture,
    "dpjax.models": dpjax.models,
    "dpjax.plot": dpjax.plot,
    "dpjax.private": dpjax.private,
    "dpjax.private.accounting": accounting,
    "dpjax.private.events": events,
    "dpjax.private.noise": noise,
    "dpjax.releases": dpjax.releases,
    "dpjax.statistics": dpjax.statistics,
}


PARTS = {
    "dpjax.adapters.numpyro": ["MarkovChain", "NormalChain", "unknown"],
    "dpjax.clt": ["normal_sum"],
    "dpjax.comparison": ["compare"],
    "dpjax.data_augmentation": ["least_squares", "parameter_kernel"],
    "dpjax.data_augmentation.summed_out": ["summed_out"],
    "dpjax.likelihood": ["MaximumLikelihood", "likelihood_ratio_test"],
    "dpjax.mechanisms": [
        *("AddedNoise", "CellKeys", "Censored", "ExponentialMechanism", "HaarWavelet", "Independent"),
        *("KNormLinf", "LocalChannel", "Mechanism", "MultivariateGaussian", "PermuteAndFlip", "PossibleSums"),
        *(
            "PrimarySuppression",
            "Privacy",
            "Promised",
            "RandomRounding",
            "ReportNoisyMax",
            "Rounded",
            "SmoothedHistogram",
        ),
        *("Staircase", "Tails", "Truncated", "Tulap", "VectorLaplace", "gaussian_scale", "laplace_scale", "zcdp_scale"),
    ],
    "dpjax.posterior": ["Posterior", "sample_prior_predictive"],
    "dpjax.posterior.synthetic": ["combine_synthetic"],
    "dpjax.release": ["OwnRelease", "mechanism_from_published"],
    "dpjax.runtime": ["enable_compilation_cache"],
    "dpjax.sampler_tests": ["invariance_test", "sbc"],
}
"""Modules of which some names are public."""


def public_names() -> Iterator[tuple[str, Any]]:
    """Every public name by its path, with what it names; no modules."""
    whole = {path: sorted(module.__all__) for path, module in MODULES.items()}
    for path, names in sorted((whole | PARTS).items()):
        for name in names:
            value = getattr(import_module(path) if path in PARTS else MODULES[path], name)
            if not isinstance(value, ModuleType):
                yield f"{path}.{name}", value


def default_of(parameter: inspect.Parameter) -> str:
    """A default as it is written, where that is a number, a word or nothing."""
    if parameter.default is parameter.empty:
        return ""
    return f"={parameter.default!r}" if isinstance(parameter.default, str | int | float | None) else "=..."


def is_called(value: Any) -> bool:
    """Whether it is one of dpjax's functions or classes that are called: no contract, exception or name of JAX's."""
    if not callable(value) or not (getattr(value, "__module__", None) or "").startswith("dpjax"):
        return False
    return not (inspect.isclass(value) and (getattr(value, "_is_protocol", False) or issubclass(value, Exception)))


def options_of(parameter: inspect.Parameter) -> list[str]:
    """The keywords that ``**options: Unpack[...]`` stands for."""
    if parameter.kind is not inspect.Parameter.VAR_KEYWORD or get_origin(parameter.annotation) is not Unpack:
        return []
    (options,) = get_args(parameter.annotation)
    return list(options.__annotations__)


def signature_of(value: Any) -> str:
    """Names, kinds and defaults of the parameters, without their types."""
    if not is_called(value):
        return ""
    parameters = list(inspect.signature(value).parameters.values())
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    shown = [
        options_of(one) or [f"{stars.get(one.kind, '')}{one.name}{default_of(one)}"]
        for one in parameters
        if one.name != "self"
    ]
    listed = [name for names in shown for name in names]
    keywords = [one.kind for one in parameters if one.name != "self"]
    first = next((place for place, kind in enumerate(keywords) if kind is inspect.Parameter.KEYWORD_ONLY), None)
    if first is not None and inspect.Parameter.VAR_POSITIONAL not in keywords:
        listed.insert(first, "*")
    return f"({', '.join(listed)})"


def members(owner: type) -> dict[str, str]:
    """The lines of the public methods and properties that dpjax wrote for a class, by name."""
    found: dict[str, str] = {}
    for name, member in inspect.getmembers(owner):
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            found[name] = name
        elif inspect.isroutine(member) and is_called(member):
            found[name] = name + signature_of(member)
    return found


def own_members(owner: type, public: set[Any]) -> list[str]:
    """The members that no public base of a class has as they are: what is inherited is listed at the base."""
    inherited = [members(base) for base in owner.__mro__[1:] if base in public]
    return [line for name, line in members(owner).items() if all(line != known.get(name) for known in inherited)]


def lines() -> list[str]:
    """The interface as text, each class once."""
    found: list[str] = []
    names = list(public_names())
    classes = {value for _, value in names if inspect.isclass(value) and value.__module__.startswith("dpjax")}
    listed: set[Any] = set()
    for path, value in names:
        found.append(path + signature_of(value))
        if inspect.isclass(value) and value in classes - listed:
            listed.add(value)
            found += [f"{path}.{member}" for member in own_members(value, classes)]
    return found


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n")
