"""Draws as rows of numbers, for a digest, and what a digest of such rows tells of them."""

from math import prod
from typing import Any

import numpy as np

from dpjax.digest import Digest
from dpjax.digested import Digested
from dpjax.running.devices import to_host
from dpjax.sampling.chunks import Draw

__all__ = ["drawn_of", "num_numbers", "numbers_of", "read_digest", "reports_of"]


def drawn_of(draws: Draw) -> dict[str, Any]:
    """What is kept under its name of each draw."""
    return {**draws.parameters, **draws.derived, **draws.reported}


def numbers_of(draws: Draw, length: int) -> np.ndarray:
    """The first `length` of the buffers [draw, chain, ...] as rows of numbers [draw, chain, k]."""
    leaves = [to_host(leaf)[:length] for leaf in [*drawn_of(draws).values(), *draws.info.values()]]
    return np.concatenate([leaf.reshape(*leaf.shape[:2], -1).astype(float) for leaf in leaves], axis=2)


def num_numbers(draws: Draw) -> int:
    """How many numbers there are in a row."""
    return sum(prod(leaf.shape[2:]) for leaf in [*drawn_of(draws).values(), *draws.info.values()])


def read_digest(draws: Draw, digest: Digest) -> Digested:
    """The digest with the names and shapes of what the arrays [chain, draw, ...] would hold."""
    drawn, reports = ({name: leaf.shape[2:] for name, leaf in part.items()} for part in (drawn_of(draws), draws.info))
    return Digested(drawn, reports, digest)


def reports_of(draws: Draw, digested: Digested) -> dict[str, np.ndarray]:
    """The reports over all draws [chain, 1]: rates are averaged, counts summed."""

    def read(name: str, like: Any) -> np.ndarray:
        means = digested.report(name)
        is_rate = like.dtype.kind == "f"
        return (means if is_rate else np.round(means * digested.digest.number)).astype(like.dtype)

    return {name: read(name, leaf) for name, leaf in draws.info.items()}
