"""Check on simulated records that a log-density is a sum of terms of one record each."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from dpjax._util.validation import fail
from dpjax.base import Array, Key

__all__ = ["NUM_TRIALS", "ByRecord", "Densities", "check_by_record"]

NUM_TRIALS = 6
NUM_NUDGES = 4
NUDGE = 4
"""In units of the last place."""
LEAST, MOST = 1e3, 30.0
"""Largest difference of two densities, in units of the last place and in changes by nudged arguments."""


class Densities(NamedTuple):
    """The log-prior [] at parameters and the log-density [m] of each of m records there."""

    prior: Array
    records: Array


class ByRecord(NamedTuple):
    """A model evaluated in two ways.

    Attributes
    ----------
    draw
        ``(key, known) -> (parameters, records)``, made up; the records with all that belongs to one, leading axis [m].
    joint
        ``(parameters, records) -> Densities``, by the model of all records together.
    prior
        ``parameters -> []``, as a run evaluates it.
    likelihood
        ``(parameters, record) -> []``, as a run evaluates it: one record at a time.
    """

    draw: Callable[[Key, Any], tuple[Any, Any]]
    joint: Callable[[Any, Any], Densities]
    prior: Callable[[Any], Array]
    likelihood: Callable[[Any, Any], Array]

    def apart(self, parameters: Any, records: Any) -> Densities:
        """The densities, a record at a time."""
        return Densities(self.prior(parameters), jax.vmap(self.likelihood, (None, 0))(parameters, records))


def check_by_record(model: ByRecord, known: Any, remedy: str) -> bool:
    """Raise if the model is not the same when evaluated record by record; whether there was anything to compare.

    Compared are the prior and each record's density at several draws. Both are computed in floats: how far
    rounding may set them apart is measured by nudging the arguments.

    Parameters
    ----------
    known
        What `draw` is given besides a key, with a leading axis of `NUM_TRIALS`.
    """
    keys = jax.random.split(jax.random.key(0), NUM_TRIALS)
    drawn = jax.device_get(jax.jit(jax.vmap(model.draw))(keys, known))
    joint = jax.jit(jax.vmap(model.joint))
    rng = np.random.default_rng(0)
    nudged = [jax.device_get(joint(*nudge(rng, drawn))) for _ in range(NUM_NUDGES)]
    terms = zip(jax.device_get(joint(*drawn)), jax.device_get(jax.jit(jax.vmap(model.apart))(*drawn)), strict=True)
    compared = [judge(*pair, list(others)) for pair, others in zip(terms, zip(*nudged, strict=True), strict=True)]
    for what, (differ, _) in zip(("the prior", "a record's density"), compared, strict=True):
        if differ:
            given = f"a model in which {what} depends on the other records or on how many there are"
            fail("fn", given, "a prior times one factor for each record, whatever the others are", remedy)
    return all(found for _, found in compared)


def nudge(rng: np.random.Generator, values: Any) -> Any:
    """Real numbers changed by a few units in the last place, at random."""

    def change(leaf: np.ndarray) -> np.ndarray:
        if leaf.dtype.kind != "f":
            return leaf
        units = NUDGE * np.finfo(leaf.dtype).eps * rng.choice([-1.0, 1.0], leaf.shape)
        return leaf * (1 + units.astype(leaf.dtype))

    return jax.tree.map(change, values)


def judge(joint: np.ndarray, apart: np.ndarray, nudged: list[np.ndarray]) -> tuple[bool, bool]:
    """Whether the two differ by more than rounding explains, and whether there was anything to compare."""
    with np.errstate(invalid="ignore", over="ignore"):
        change = np.max(np.abs(np.stack(nudged) - joint), axis=0)
        known = np.isfinite(joint) & np.isfinite(change)
        allowed = LEAST * float(np.finfo(joint.dtype).eps) * (1 + np.abs(joint)) + MOST * change
        differ = ~(np.abs(apart - joint) <= allowed)
    return bool(np.any(known & differ)), bool(np.any(known))
