"""Effective sizes that shrink as draws are added are told of; chains that mix are not."""

import warnings

import numpy as np
import pytest

from dpjax.diagnostics.summary import summarize, tabulate
from dpjax.diagnostics.warnings import name_late, warn_of_poor_mixing

LENGTH, CHAINS = 4_000, 4


def late(draws: dict[str, np.ndarray]) -> list[str]:
    return name_late(draws, tabulate({name: summarize(leaf) for name, leaf in draws.items()}))


def chains(correlation: float, number: int = 1, seed: int = 1) -> np.ndarray:
    """Draws [chain, draw, number] of autoregressive chains."""
    generator = np.random.default_rng(seed)
    draws = generator.normal(size=(LENGTH, CHAINS, number))
    for place in range(1, LENGTH):
        draws[place] = correlation * draws[place - 1] + np.sqrt(1 - correlation**2) * draws[place]
    return draws.swapaxes(0, 1)


def test_a_region_found_late_is_told_of() -> None:
    """Two chains stay far out for some draws of their second halves."""
    draws = chains(0.3)[..., 0]
    draws[:2, 3_000:3_150] -= 6.0
    assert late({"scale": draws}) == ["scale"]
    table = tabulate({"scale": summarize(draws)})
    with pytest.warns(UserWarning, match="effective sizes that did not grow with the draws.*: scale"):
        warn_of_poor_mixing(table, "Draw more.", late=["scale"])


@pytest.mark.x32
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_chains_that_mix_are_not(correlation: float) -> None:
    """A hundred parameters, each with some four hundred effective draws or more."""
    assert late({"all": chains(correlation, 100)}) == []


def test_few_draws_are_not_compared() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert late({"few": chains(0.0)[:, :400, 0]}) == []
