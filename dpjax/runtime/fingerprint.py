"""What identifies a run: named values by which a checkpoint is refused to any other run."""

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax
import numpy as np

from dpjax.base import Array, Key
from dpjax.runtime.chunk import Segment
from dpjax.runtime.identity import identify

__all__ = [
    "Plain",
    "identify_arrays",
    "identify_key",
    "identify_keys",
    "identify_parts",
    "identify_run",
    "named_leaves",
    "plain_values",
    "restore",
]

Plain = str | int | float | bool | None
SIGNIFICANT_DIGITS = 5


def identify_run(key: Key, num_chains: int, sampling: Segment) -> dict[str, Plain]:
    """The versions, the key and the numbers of a run, of which `sampling` is the last segment."""
    return {
        **identify_key(key),
        "num_chains": num_chains,
        "num_warmup": sampling.start,
        "num_samples": sampling.draws,
        "thin": sampling.thin,
    }


def identify_key(key: Key) -> dict[str, Plain]:
    """The key of a run, and the versions that decide what comes of it."""
    return {
        "dpjax version": installed_version(),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "key implementation": str(jax.random.key_impl(key)),
        "key": digest(jax.random.key_data(key)),
    }


def identify_keys(keys: Key) -> tuple[str, ...]:
    """A text for each of the keys [chain], the same for the same key only."""
    kind = jax.random.key_impl(keys)
    return tuple(f"{kind} {row.tobytes().hex()}" for row in np.asarray(jax.random.key_data(keys)))


def identify_parts(parts: dict[str, Any]) -> dict[str, Plain]:
    """The plain ones of named functions and objects, and the content hashes of the others."""
    plain = {name: part for name, part in parts.items() if isinstance(part, Plain)}
    return plain | {f"code of {name}": identify(name, part) for name, part in parts.items() if name not in plain}


def identify_arrays(trees: dict[str, Any], *, rounded: bool = False) -> dict[str, Plain]:
    """What `digest` says of each array in named trees."""
    leaves = {name: leaf for root, tree in trees.items() for name, leaf in named_leaves(root, tree).items()}
    return {name: digest(leaf, rounded=rounded) for name, leaf in leaves.items()}


def digest(leaf: Array, *, rounded: bool = False) -> str:
    """The type, shape and a short hash of an array; of its first digits, if the last may vary between machines."""
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
        yield name, value if isinstance(value, Plain) else name_type(value)
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


def name_type(function: Any) -> Plain:
    """The name of a function, or of an object's type; None stays None."""
    return None if function is None else getattr(function, "__qualname__", type(function).__name__)


def installed_version() -> str:
    """The version of dpjax."""
    try:
        return version("dpjax")
    except PackageNotFoundError:  # run from a folder of sources
        return "unknown"
