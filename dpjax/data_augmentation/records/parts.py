"""A systematic scan over some of the records at a time: one part of them after another, around and around.

If the mean and scatter of the latent normals move with the parameters, the records' own moves add little to each step,
and are most of its cost. Which part comes next depends on the number of sweeps made before alone, so that each sweep
leaves p(records | parameters, release) invariant.
"""

from typing import Protocol

import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, ImputationInfo, Key, Latent, Parameters
from dpjax.numerics.arrays import PIECE, Piece

NUM_PARTS = 16
"""Parts that the records are divided into.

On a private regression at ε = 1 a sweep over one of 16 parts took 0.4 of the time of a whole one. It gave 0.9 times as
many effective draws, for 1,000 and for 10,000 records.
"""

MAX_RECORDS = NUM_PARTS * PIECE
"""Largest number of records whose parts are small enough to be proposed at once."""


class PartialKernel(Protocol):
    """A kernel for some of the records: it leaves p(records | parameters, release) invariant."""

    def __call__(
        self, rng_key: Key, latent: Latent, parameters: Parameters, first: Array, number: Array
    ) -> tuple[Latent, ImputationInfo]:
        """The records after proposals to `number` [] parts from the part `first` [] on."""


def size_of_part(n: int) -> int:
    """How many of n records are a part."""
    return -(-n // NUM_PARTS)


def starts_of(n: int) -> np.ndarray:
    """The first record of each part of n [part]; the last part ends with them, and may share some with others."""
    return np.minimum(np.arange(NUM_PARTS) * size_of_part(n), n - size_of_part(n))


def part_of(n: int, index: Array | int) -> Piece:
    """The part of n records with this index."""
    return Piece(jnp.asarray(starts_of(n))[index], size_of_part(n))


def num_proposals(n: int, first: int, number: int) -> np.ndarray:
    """How many of `number` parts from the part `first` on hold each record [n]."""
    visits = np.bincount((first + np.arange(number)) % NUM_PARTS, minlength=NUM_PARTS)
    ends = np.zeros(n + 1, int)
    np.add.at(ends, starts_of(n), visits)
    np.add.at(ends, starts_of(n) + size_of_part(n), -visits)
    return np.cumsum(ends)[:n]
