"""The README is short, its code runs as it stands and prints what is shown, and its links lead somewhere."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.tools.printed import run_checked

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()


MAX_WORDS = 900


def test_it_is_short():
    assert len(TEXT.split()) <= MAX_WORDS


@pytest.mark.x32
def test_the_code_prints_what_is_shown():
    """And the intervals that are stated are those of the posterior, and of the table as if it had no noise."""
    draws = run_checked(ROOT / "README.md")["posterior"].draws["log_odds_ratio"]
    stated = [list(map(float, pair)) for pair in re.findall(r"(\d\.\d) to\s(\d\.\d)", TEXT)]
    shares = np.random.default_rng(1).dirichlet([59, 22, 13, 65], 100_000).T
    naive = np.log(shares[0] * shares[3] / (shares[1] * shares[2]))
    for one, interval in zip((naive, draws), stated, strict=True):
        np.testing.assert_allclose(np.quantile(one, [0.025, 0.975]), interval, atol=0.3)


def test_the_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)", TEXT)
    assert targets
    assert [target for target in targets if "://" not in target and not (ROOT / target).exists()] == []


def test_the_commands_are_those_of_the_makefile():
    rules = (ROOT / "Makefile").read_text()
    named = re.findall(r"`make ([\w-]+)`", TEXT)
    assert named
    for target in named:
        assert re.search(rf"^{target}:", rules, re.M)
