"""When a run has drawn enough: conditions on its draws, checked after fixed numbers of draws."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_instance, check_number, check_positive_number, fail
from dpjax.base import Model
from dpjax.diagnostics import convergence
from dpjax.diagnostics.warnings import never_change
from dpjax.models.simulation import position_shapes
from dpjax.runtime.checkpoint import PeriodicCheckpoint
from dpjax.runtime.devices import agree
from dpjax.runtime.run import Run, Status, StoppingRule, is_interrupted

__all__ = [
    "Convergence",
    "Until",
    "UntilEnough",
    "assess",
    "check_until",
    "how_it_ended",
    "make_stopping_rule",
    "until",
]

FIRST_CHECK, GROWTH = 100, 1.25
"""Draws of each chain at the first look, and how many times as many there are at the next one.

Looks that grow apart cost a few times what the last of them does.
"""


@dataclass(frozen=True)
class Until:
    """The conditions of `until`; None where there is none."""

    ess: float | None
    r_hat: float | None
    seconds: float | None

    def is_met(self, reached: "Convergence") -> bool:
        """Whether the draws are as good as asked for; never while no effective size is known."""
        enough = self.ess is None or reached.ess >= self.ess
        agree = self.r_hat is None or reached.r_hat <= self.r_hat
        return self.asks_for_quality and reached.ess > 0 and enough and agree

    @property
    def asks_for_quality(self) -> bool:
        """Whether there is a condition on the draws, and not on the time alone."""
        return self.ess is not None or self.r_hat is not None

    def __str__(self) -> str:
        asked = {name: getattr(self, name) for name in ("ess", "r_hat", "seconds")}
        return ", ".join(f"{name}={value:g}" for name, value in asked.items() if value is not None)


@names_arguments
def until(*, ess: float | None = None, r_hat: float | None = None, seconds: float | None = None) -> Until:
    """When `sample` may stop before `num_samples` draws: once `ess` and `r_hat` are as asked, or time is up.

    Parameters
    ----------
    ess
        The smallest effective sample size, of bulk and of tails and of all parameters, is at least this.
    r_hat
        The largest rank-normalised split R-hat of all parameters is at most this.
    seconds
        So many seconds have passed since the call. The warm-up and one chunk of draws are made all the same.

    Raises
    ------
    TypeError, ValueError
        If nothing is asked for, or a number is out of range.

    Notes
    -----
    Nothing is known of a parameter that could move and has not, and the run continues; constants are left out.

    `ess` and `r_hat` are checked after 100 draws of each chain, and then whenever there are a quarter more. The draws
    are thus the first ones of the run without `until`, and their number is the same on every machine, unless time is
    up. Stopping when diagnostics look good favours runs that look good early. Ask for no fewer than some hundred
    effective draws, and do not take a bare R-hat for more than it is. Ask for both: slow moves that are small beside
    fast ones escape effective sizes of few draws, while chains that differ by them raise R-hat.

    Examples
    --------
    >>> import dpjax
    >>> print(dpjax.until(ess=400, r_hat=1.01))
    ess=400, r_hat=1.01
    """
    if ess is None and r_hat is None and seconds is None:
        fail("until", "no condition", "ess, r_hat or seconds", "Ask for some, such as ess=400, r_hat=1.01.")
    for name, value in (("ess", ess), ("seconds", seconds)):
        if value is not None:
            check_positive_number(name, value)
    if r_hat is not None:
        check_number("r_hat", r_hat)
        check_array("r_hat", r_hat, lambda value: value > 1, "a number above 1", "Pass such as 1.01.")
    return Until(*(None if value is None else float(value) for value in (ess, r_hat, seconds)))


def check_until(given: Any, model: Model | None = None) -> None:
    """Raise unless this is what `until` returns, or None, and the model, where one is given, has numbers to look at."""
    if given is None:
        return
    check_instance("until", given, Until, "Pass such as dpjax.until(ess=400, r_hat=1.01).")
    if model is not None and not draws_numbers(model):
        fail("until", f"{given}, for a model without parameters", "None for it", "Leave it out.")


def draws_numbers(model: Model) -> bool:
    """Whether there is anything to look at: parameters, or what is reported beside them."""
    parameters, records = position_shapes(model, model.num_records or 1)
    return bool(parameters or jax.eval_shape(model.derived, parameters) or jax.eval_shape(model.reported, records))


class Convergence(NamedTuple):
    """How good draws are: the smallest effective sample size and the largest R-hat of all numbers drawn."""

    ess: float
    r_hat: float

    def __str__(self) -> str:
        return f"smallest effective sample size {self.ess:.0f}, largest R-hat {self.r_hat:.3f}"


UNKNOWN = Convergence(0.0, math.inf)
NOTHING: Mapping[str, np.ndarray | bool] = MappingProxyType({})


def assess(draws: dict[str, np.ndarray], free: Mapping[str, np.ndarray | bool] = NOTHING) -> Convergence:
    """How good draws [chain, draw, ...] are; what is not finite is bad.

    Numbers that never change are left out unless they are `free`, that is, could: of these nothing is known, nor is it
    where no number has moved.
    """
    found, moved = [Convergence(math.inf, 1.0)], False
    for name, values in draws.items():
        values = convergence.check_draws(values)
        moving = ~never_change(values)  # also where a draw is not finite
        moved = moved or bool(np.any(moving))
        sizes = np.fmin(convergence.ess_bulk(values), convergence.ess_tail(values))[moving]
        ratios = convergence.split_r_hat(values)[moving]
        ess, r_hat = np.min(np.nan_to_num(sizes), initial=math.inf), np.max(no_number(ratios), initial=1.0)
        found.append(Convergence(ess, r_hat))
        found += [UNKNOWN] * bool(np.any(~moving & free.get(name, False)))
    ess, r_hat = min(one.ess for one in found), max(one.r_hat for one in found)
    return Convergence(float(ess), float(r_hat)) if moved else UNKNOWN


def no_number(ratios: np.ndarray) -> np.ndarray:
    """Ratios, infinite where they are not a number."""
    return np.where(np.isnan(ratios), math.inf, ratios)


def next_check(filled: int) -> int:
    """The first number of draws above `filled` at which a run is checked."""
    exponent = 0
    while (number := math.ceil(FIRST_CHECK * GROWTH**exponent)) <= filled:
        exponent += 1
    return number


@dataclass
class UntilEnough(StoppingRule):
    """Ends a run where its conditions are met.

    Parameters
    ----------
    conditions
        What is asked for.
    last
        The number of the segment whose draws are kept.
    assess
        ``status -> Convergence`` at the draws made so far.
    agree
        Makes a decision of several processes that of the first.
    began
        When the call was made.
    """

    conditions: Until
    last: int
    assess: Callable[[Any], Convergence]
    agree: Callable[[bool], bool]
    began: float = field(default_factory=time.monotonic)
    why: str = ""

    def room(self, status: Status) -> float:
        """How many draws there are before the next check."""
        checks = status.segment == self.last and self.conditions.asks_for_quality
        return next_check(status.filled) - status.filled if checks else math.inf

    def is_enough(self, status: Status) -> bool:
        """Whether to stop here."""
        if status.segment < self.last or status.filled == 0:
            return False
        if self.conditions.asks_for_quality and status.filled == next_check(status.filled - 1):
            reached = self.assess(status)
            self.why = f"enough for {self.conditions}: {reached}" if self.conditions.is_met(reached) else ""
        if not self.why and self.agree(self.is_late()):
            self.why = f"time was up ({self.conditions})"
        return bool(self.why)

    def is_late(self) -> bool:
        """Whether the time is up."""
        return self.conditions.seconds is not None and time.monotonic() - self.began >= self.conditions.seconds

    def explain(self, status: Status) -> str:
        """Why the run ended, where it was not interrupted."""
        if self.why or not self.conditions.asks_for_quality or status.filled < FEWEST:
            return self.why or "all of num_samples were drawn"
        reached = self.assess(status)
        met = "enough" if self.conditions.is_met(reached) else "not enough"
        return f"all of num_samples were drawn, {met} for {self.conditions}: {reached}"


def make_stopping_rule(
    conditions: Until | None, run: Run, assess: Callable[[Any], Convergence], began: float
) -> UntilEnough | None:
    """What ends a run where conditions are met; None where there are none."""
    if conditions is None:
        return None
    return UntilEnough(conditions, len(run.schedule) - 1, assess, partial(agree, run.mesh), began)


def how_it_ended(
    name: str, run: Run, status: Status, file: PeriodicCheckpoint | None, rule: UntilEnough | None
) -> tuple[bool, str]:
    """Whether draws are missing that were wanted, and why the run ended where it did; see `is_interrupted`."""
    enough = rule is not None and bool(rule.why)
    interrupted = not enough and is_interrupted(name, run, status, file)
    return interrupted, "" if rule is None or interrupted else rule.explain(status)


FEWEST = 4
"""Draws of each chain without which there is no R-hat."""
