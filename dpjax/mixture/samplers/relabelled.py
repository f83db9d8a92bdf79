"""What the marginal samplers share: how a sweep is made, and what becomes of the labels."""

from collections.abc import Callable
from typing import NamedTuple

from dpjax.base import Array, Key
from dpjax.mixture.base import MixtureState, Theta
from dpjax.mixture.samplers.conditional import Problem

__all__ = ["MarginalScheme", "Relabel", "Relabelled"]


class MarginalScheme(NamedTuple):
    """How a sweep of a marginal sampler is made; hashable, one compiled program for each.

    sampler
        ``"neal2"``, ``"neal3"``, ``"neal5"`` or ``"neal8"``.
    capacity
        The number of slots.
    auxiliaries
        For Neal 5 the offered records that estimate a density, for Neal 8 the fresh parameters offered to a record.
    redraw
        Whether Neal 5 keeps one of its auxiliary records and draws the others anew each sweep.
    in_turn
        Whether chains are advanced one after another.
    split_merge, launch_scans
        Split-merge proposals before each sweep, and the scans that prepare each.
    """

    sampler: str
    capacity: int
    auxiliaries: int = 1
    redraw: bool = False
    in_turn: bool = False
    split_merge: int = 0
    launch_scans: int = 0

    @property
    def num_held(self) -> int:
        """How many records of each person the state holds."""
        return self.auxiliaries if self.sampler == "neal5" and not self.redraw else 1


class Relabelled(NamedTuple):
    """Labels and records after a move, before the parameters of the clusters are drawn anew.

    labels, records, log_channel
        As those of `MixtureState`; of several held auxiliaries the second axis counts them.
    theta
        The parameters [H, ...] with those of new clusters among them.
    acceptance_rate
        The share of records [] whose offer was accepted.
    num_nonfinite
        How many records [] kept what they had because a density was not a number.
    overflow
        Whether a new cluster found no empty slot [].
    """

    labels: Array
    records: Array
    log_channel: Array
    theta: Theta
    acceptance_rate: Array
    num_nonfinite: Array
    overflow: Array


Relabel = Callable[[Problem, MarginalScheme, Key, MixtureState], Relabelled]
"""``(problem, scheme, key, state) -> relabelled``, leaving labels and records given parameters invariant."""
