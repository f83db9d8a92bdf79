"""The checkpoint of a private run: all draws that were charged, continued only by the same run."""

import hashlib
import secrets
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key
from dpjax.private.accounting.ledger import Ledger
from dpjax.private.kernels.base import PrivateKernel, ravel
from dpjax.private.runs.run import PrivateStatus, to_device
from dpjax.private.targets.target import Target
from dpjax.runtime.checkpoint import CheckpointFile
from dpjax.runtime.fingerprint import identify_parts

__all__ = ["Checkpoint", "make_fingerprint"]

Fingerprint = dict[str, Any]


class Checkpoint(CheckpointFile):
    """The file of one private run, **as confidential as the records**: it holds diagnostics and a hash of them.

    Attributes
    ----------
    run
        The run's own mark, by which a ledger knows it.
    """

    REMEDY = "Pass another path, or move the file away."
    SECRET = MappingProxyType(
        {name: name for name in ("key", "positions", "code of kernel", "code of target")}
        | dict.fromkeys(("records", "target"), "what is confidential")
    )

    def __init__(self, path: Path, fingerprint: Fingerprint) -> None:
        super().__init__(path, fingerprint)
        self.run = secrets.token_hex(8)

    def save(self, total: int, status: PrivateStatus) -> None:
        """Write what was charged; whatever happens, the file holds it or what it held before.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        leaves = jax.tree.leaves((status.states, status.draws, status.totals))
        arrays = {f"leaf{number}": np.asarray(leaf) for number, leaf in enumerate(leaves)}
        progress = {"done": status.done, "total": total, "run": self.run, "parts": dict(status.parts)}
        self.write(progress, arrays)

    def load(self, start: PrivateStatus) -> tuple[PrivateStatus, int] | None:
        """The status in the file and the run's total of iterations; None if there is no file.

        Parameters
        ----------
        start
            The start that the run would otherwise have, for the structure, types and shapes.

        Raises
        ------
        ValueError
            If the file is no checkpoint, or that of another run; the message lists what differs.
        """
        found: tuple[PrivateStatus, int] | None = self.take_up(partial(self.fill, start))
        return found

    def fill(
        self, start: PrivateStatus, progress: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> tuple[PrivateStatus, int]:
        """The saved status, of the structure of `start`."""
        done, total, run, parts = (progress.get(name) for name in ("done", "total", "run", "parts"))
        if not isinstance(run, str) or not isinstance(parts, dict):
            return self.refuse("without the marks of its run")
        if not (isinstance(done, int) and isinstance(total, int) and start.done <= done <= total):
            return self.refuse("which counts its iterations wrongly")
        if sum(parts.values()) != done or min(parts.values(), default=0) < 0:
            return self.refuse("whose parts are not all of it")
        drawn = (done - start.done) // self.fingerprint["thin"]
        longer = jax.tree.map(partial(with_more, drawn), start.draws)
        tree = (start.states, longer, start.totals)
        leaves = [arrays.get(f"leaf{number}") for number in range(len(jax.tree.leaves(tree)))]
        for saved, leaf in zip(leaves, jax.tree.leaves(tree), strict=True):
            if saved is None or (saved.shape, saved.dtype) != (leaf.shape, leaf.dtype):
                self.refuse("whose arrays are not those of this run")
        states, draws, totals = jax.tree.unflatten(jax.tree.structure(tree), leaves)
        self.run = run
        return PrivateStatus(to_device(states), draws, totals, done, parts), total


def with_more(number: int, leaf: np.ndarray) -> np.ndarray:
    """Room [chains, draws + number, ...] for draws [chains, draws, ...] and further ones."""
    return np.empty((leaf.shape[0], leaf.shape[1] + number, *leaf.shape[2:]), leaf.dtype)


def make_fingerprint(
    key: Key, kernel: PrivateKernel, start: PrivateStatus, ledger: Ledger, num_iterations: int | None, thin: int
) -> Fingerprint:
    """Everything that determines the draws of a run, under the user's names."""
    position = jax.tree.map(lambda leaf: leaf[0], start.states.position)
    target = kernel.target
    return {
        "key": digest(jax.random.key_data(key)),
        "key implementation": str(jax.random.key_impl(key)),
        "num_iterations": num_iterations,
        "thin": thin,
        "positions": digest(start.states),
        "budget": str(ledger.budget),
        "queries": repr(kernel.queries),
        "records": digest((target.records, target.count)),
        "target": digest(probe(target, ravel(position))),
        # The settings of a kernel and what its functions hold, which its values at one point do not tell.
        **identify_parts({"kernel": kernel.build, "target": tuple(target.terms)}),
    }


@jax.jit
def probe(target: Target, vector: Array) -> Array:
    """The log-densities of the prior and of a made-up record at a vector, in place of the functions themselves.

    At one of the records it would say whether a guess of that one is right.
    """
    record = jax.tree.map(lambda leaf: jnp.ones(leaf.shape[2:], leaf.dtype), target.records)
    return jnp.stack([target.log_prior(vector), target.log_likelihood(vector, record)])


def digest(tree: Any) -> str:
    """A short hash of the arrays in a tree, with their types and shapes."""
    hashed = hashlib.sha256(str(jax.tree.structure(tree)).encode())
    for leaf in jax.tree.leaves(tree):
        array = np.asarray(leaf)
        hashed.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return hashed.hexdigest()[:16]
