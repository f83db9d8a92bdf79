"""The fingerprint of a run: named values by which a checkpoint is refused to any other run."""

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model
from dpjax.numbered import jit_model
from dpjax.release import PrivateRelease
from dpjax.running.identity import identify
from dpjax.sampling.run import Run
from dpjax.simulate import draw_state

Plain = str | int | float | bool | None
SIGNIFICANT_DIGITS = 5


def make_fingerprint(key: Key, run: Run, initial: Any) -> dict[str, Plain]:
    """All that decides the draws of a run, under names that a user knows."""
    exact = {"key": jax.random.key_data(key), "release": run.release, "initial": initial}
    probed = probe(run.model, run.release)
    steps = run.schedule[-1]
    return {
        "dpjax version": installed_version(),
        "num_chains": int(run.chain_keys.shape[0]),
        "num_warmup": steps.start,
        "num_samples": steps.draws,
        "thin": steps.thin,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "key implementation": str(jax.random.key_impl(key)),
        "release": f"{type(run.release).__name__} of n = {run.release.n}",
        **{f"plan.{name}": value for name, value in plain_values(run.plan).items()},
        **dict(identities(run)),
        **{name: digest(leaf) for root, tree in exact.items() for name, leaf in named_leaves(root, tree).items()},
        **{name: digest(leaf, rounded=True) for name, leaf in named_leaves("model", probed).items()},
    }


def identities(run: Run) -> Iterator[tuple[str, Plain]]:
    """The content hashes of a run's functions and objects by name; released values are compared as arrays."""
    model = run.model._replace(recipe=None)  # it builds the functions that are compared themselves
    parts = {**dict(parts_of("model", model)), **dict(parts_of("plan", run.plan)), "collect": run.collect}
    parts |= {f"release.{field.name}": getattr(run.release, field.name) for field in fields(run.release)}
    for name, part in parts.items():
        if isinstance(part, Plain):
            yield name, part
        elif name not in ("release.value", "release.values"):
            yield f"code of {name}", identify(name, part)


def parts_of(root: str, noun: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a dataclass or a NamedTuple by their paths, such as ``model.noncentred.records``."""
    names = noun._fields if hasattr(noun, "_fields") else [field.name for field in fields(noun)]
    for name in names:
        part = getattr(noun, name)
        yield from parts_of(f"{root}.{name}", part) if hasattr(part, "_fields") else [(f"{root}.{name}", part)]


@jit_model
def probe(model: Model, release: PrivateRelease) -> dict[str, Any]:
    """Values of the model's functions and of the statistic at one fixed draw, in place of the functions themselves."""
    parameters, latent = draw_state(jax.random.key(0), model, release)
    return {
        "parameters": parameters,
        "log_prior": model.log_prior(parameters),
        "log_density": jnp.sum(model.log_density(parameters, latent.records)),
        "statistic": latent.statistic,
    }


def digest(leaf: Array, *, rounded: bool = False) -> str:
    """The type, shape and a short hash of an array; of its first digits, where the last may vary between machines."""
    array = np.asarray(leaf)
    content = array.tobytes()
    if rounded:
        content = " ".join(f"{value:.{SIGNIFICANT_DIGITS}g}" for value in array.ravel().tolist()).encode()
    return f"{array.dtype}{list(array.shape)} {hashlib.sha256(content).hexdigest()[:12]}"


def named_leaves(root: str, tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their paths, such as ``release.mechanism.scale``."""
    keys = [
        (jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in jax.tree.leaves_with_path(tree)
    ]
    return {f"{root}.{key}" if key else root: leaf for key, leaf in keys}


def plain_values(noun: Any) -> dict[str, Plain]:
    """The plain values in nested dataclasses by their paths, such as ``imputation.attempts``."""
    return dict(walk(noun))


def walk(noun: Any, root: str = "") -> Iterator[tuple[str, Plain]]:
    """The paths and values of `plain_values`; what is not plain is named."""
    for field in fields(noun):
        value, name = getattr(noun, field.name), root + field.name
        yield name, value if isinstance(value, Plain) else describe(value)
        if is_dataclass(value):
            yield from walk(value, name + ".")


def restore(noun: Any, values: dict[str, Plain], root: str = "") -> Any:
    """The dataclass with its plain values replaced by those of `plain_values`."""
    changes = {}
    for field in fields(noun):
        value, name = getattr(noun, field.name), root + field.name
        if is_dataclass(value):
            changes[field.name] = restore(value, values, name + ".")
        elif isinstance(value, Plain):
            changes[field.name] = values[name]
    return replace(noun, **changes)


def describe(function: Any) -> Plain:
    """The name of a function, or of an object's type; None stays None."""
    return None if function is None else getattr(function, "__qualname__", type(function).__name__)


def installed_version() -> str:
    """The version of dpjax."""
    try:
        return version("dpjax")
    except PackageNotFoundError:  # run from a folder of sources
        return "unknown"
