"""The former spelling of `dpjax.mixture.sample`: samplers by name with their options beside, kernels with a base.

Each old name is turned into the value that took its place, with a warning that says how to write it. What did not go
together is refused as it was.
"""

import warnings
from collections.abc import Mapping
from typing import Any

from dpjax.mixture.components.beta import GammaShapes
from dpjax.mixture.components.gaussian import NormalInverseGamma
from dpjax.mixture.components.multivariate import NormalInverseWishart
from dpjax.mixture.components.truncated import TruncatedNormalInverseGamma
from dpjax.mixture.samplers import DEFAULT, SAMPLERS, split_merge
from dpjax.validation import check_count, fail

__all__ = ["translate"]

BASES: dict[str, tuple[type, ...]] = {
    "beta": (GammaShapes,),
    "gaussian": (NormalInverseGamma, NormalInverseWishart, TruncatedNormalInverseGamma),
}
"""The base measures that went with each kernel that had a name."""

OPTIONS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "weights": ("posterior", ("conditional",)),
    "truncation": (None, ("conditional",)),
    "offers": (None, ("conditional",)),
    "auxiliaries": (None, ("neal5", "neal8")),
    "redraw": (True, ("neal5",)),
}
"""What an option was if left out, and the samplers that had it."""

NAMES = ("kernel", "base", *OPTIONS, "split_merge", "launch_scans")


def translate(component: Any, sampler: Any, given: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """The component and the sampler that are meant by what was given beside them, and what else was given.

    Raises
    ------
    TypeError, ValueError
        If the choices do not go together.
    """
    if "kernel" in given or "base" in given:
        component = translate_component(component, given.get("kernel", "gaussian"), given.get("base"))
    if isinstance(sampler, str) or given.keys() & OPTIONS.keys():
        sampler = translate_sampler(sampler, {name: given[name] for name in OPTIONS if name in given})
    if given.keys() & {"split_merge", "launch_scans"}:
        sampler = translate_moves(sampler, given.get("split_merge", 0), given.get("launch_scans", 5))
    return component, sampler, {name: value for name, value in given.items() if name not in NAMES}


def warn(old: str, new: str) -> None:
    """Say what to write in place of what was written in the call of `dpjax.mixture.sample`."""
    warnings.warn(f"{old} of mixture.sample is deprecated: write {new}.", DeprecationWarning, stacklevel=5)


def translate_component(component: Any, kernel: Any, base: Any) -> Any:
    """The component of a kernel's name and its base measure, or the kernel if that was a component itself."""
    if component is not None:
        fail("component", type(component).__name__, "none beside kernel or base", "Pass the component alone.")
    if not isinstance(kernel, str):
        if base is not None:
            fail("base", type(base).__name__, "None beside a component", "A component has a base measure of its own.")
        warn("kernel=", "component=")
        return kernel
    if kernel not in BASES:
        fail("kernel", repr(kernel), f"one of {sorted(BASES)}, or a component", "Pass a base measure as component.")
    if not isinstance(base, BASES[kernel]):
        expected = " or ".join(known.__name__ for known in BASES[kernel])
        given = f"the class {base.__name__}" if isinstance(base, type) else type(base).__name__
        fail("base", given, expected, "Pass the base measure as component; priors have no default.", error=TypeError)
    warn("kernel= and base=", f"component=dpjax.mixture.{type(base).__name__}(...)")
    return base


def translate_sampler(sampler: Any, options: dict[str, Any]) -> Any:
    """The sampler of a name and options."""
    name = "conditional" if sampler is DEFAULT else sampler
    if not isinstance(name, str):
        first = next(iter(options))
        fail(first, options[first], "none beside a sampler", "Pass it to the function that makes the sampler.")
    if name not in SAMPLERS:
        fail("sampler", repr(name), f"one of {list(SAMPLERS)}", "Use sampler=dpjax.mixture.conditional() or another.")
    defaults = {option: default for option, (default, _) in OPTIONS.items()}
    chosen = {option: value for option, value in options.items() if repr(value) != repr(defaults[option])}
    for option in chosen:
        owners = OPTIONS[option][1]
        if name not in owners:
            remedy = f"Leave it out, or use sampler=dpjax.mixture.{owners[0]}()."
            fail(option, "a choice of it", f"none with sampler={name!r}", remedy)
    shown = ", ".join(f"{option}={value!r}" for option, value in chosen.items())
    warn("sampler= by name or with options beside it", f"sampler=dpjax.mixture.{name}({shown})")
    return SAMPLERS[name](**chosen)


def translate_moves(sampler: Any, proposals: Any, launch_scans: Any) -> Any:
    """The sampler with split-merge moves before its sweeps."""
    check_count("split_merge", proposals, "Pass how many proposals a sweep begins with, or 0.", least=0)
    check_count("launch_scans", launch_scans, "Pass how many scans prepare a proposal, or 0.", least=0)
    shown = f"proposals={proposals}, launch_scans={launch_scans}"
    warn("split_merge= and launch_scans=", f"sampler=dpjax.mixture.split_merge(sampler, {shown})")
    return split_merge(sampler, proposals, launch_scans) if proposals else sampler
