"""One short run that tests break off at will, and its parts."""

import jax
import numpy as np
import pytest

from dpjax import private
from dpjax.private.runs import run as run_module
from tests.private import cases
from tests.private.cases import AMPLE, STARTS, WALK

KEY = jax.random.key(1)


def ledger(epsilon: float = AMPLE) -> private.Ledger:
    return cases.ledger(epsilon)


def go(positions=STARTS, spent=None, key=KEY, kernel=WALK, **arguments) -> private.PrivateDraws:
    return private.sample(key, kernel, positions, spent or ledger(), **({"num_iterations": 40} | arguments))


def make_whole() -> private.PrivateDraws:
    """The run that all of these are parts of."""
    result = go()
    assert np.all(result.not_private.acceptance_rate > 0.1)
    return result


def shorten_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every part of a run be one iteration long."""
    monkeypatch.setattr(run_module, "GROWTH", 1)
    monkeypatch.setattr(run_module, "COST_OF_CHARGE", 1e9)


def break_off(monkeypatch: pytest.MonkeyPatch, error: BaseException, at: int = 3) -> None:
    """Let a part of the run fail instead of being made."""
    real, calls = run_module.advance, []

    def broken(*arguments):
        calls.append(1)
        if len(calls) == at:
            raise error
        return real(*arguments)

    monkeypatch.setattr(run_module, "advance", broken)
