"""A systematic scan over some of the records at a time: one part of them after another, around and around.

If the mean and scatter of the latent normals move with the parameters, the records' own moves add little to each step,
and are most of its cost. Which part comes next depends on the number of sweeps made before alone, so that each sweep
leaves p(records | parameters, release) invariant.
"""

from collections.abc import Callable
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Imputation, ImputationInfo, Key, Latent, Model, Parameters
from dpjax.data_augmentation.records.imwg import IMwG, Progress, build_sweep_in_pieces
from dpjax.data_augmentation.records.proposals import proposal_at
from dpjax.data_augmentation.records.rounds import window_of
from dpjax.numerics.arrays import PIECE, Piece
from dpjax.release import PrivateRelease, Release
from dpjax.release.summed import as_sum

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


def build_partial_kernel(model: Model, release: PrivateRelease, imputation: Imputation) -> PartialKernel:
    """The kernel by systematic IMwG for identically distributed records and a noisy sum; see `imwg`."""
    summed = as_sum(release)
    assert isinstance(summed, Release)
    assert isinstance(imputation, IMwG)
    sweep = build_sweep_in_pieces(summed, proposal_at(model, correlation=0.0), 1, window_of(imputation.window))

    def step(
        rng_key: Key, latent: Latent, parameters: Parameters, first: Array, number: Array
    ) -> tuple[Latent, ImputationInfo]:
        def for_parts(function: Callable[[Progress, Array, Piece], Progress], progress: Progress) -> Progress:
            def body(index: Array, progress: Progress) -> Progress:
                return function(progress, index, part_of(summed.n, (first + index) % NUM_PARTS))

            return jax.lax.fori_loop(0, number, body, progress)

        latent, info = sweep(rng_key, latent, parameters, for_parts)
        num_made = jnp.asarray(number * size_of_part(summed.n), int)
        return latent, info._replace(acceptance_rate=jnp.sum(info.accepted) / num_made)

    return step


def num_proposals(n: int, first: int, number: int) -> np.ndarray:
    """How many of `number` parts from the part `first` on hold each record [n]."""
    visits = np.bincount((first + np.arange(number)) % NUM_PARTS, minlength=NUM_PARTS)
    ends = np.zeros(n + 1, int)
    np.add.at(ends, starts_of(n), visits)
    np.add.at(ends, starts_of(n) + size_of_part(n), -visits)
    return np.cumsum(ends)[:n]
