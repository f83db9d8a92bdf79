"""The README is short, its code runs as it stands and prints what is shown, and its links lead somewhere."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()


MAX_WORDS = 900
MAX_DEVIATION = 5.0  # standard errors


def test_it_is_short():
    assert len(TEXT.split()) <= MAX_WORDS


@pytest.mark.x32
def test_the_code_prints_what_is_shown(capsys):
    names: dict = {}
    exec(compile("\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.S)), "README.md", "exec"), names)
    assert names["posterior"].draws["coef"].shape == (4, 2_000, 3)
    (text,) = re.findall(r"```text\n(.*?)```", TEXT, re.S)
    printed, shown = table_of(capsys.readouterr().out), table_of(text)
    assert printed.keys() == shown.keys()
    for name, row in printed.items():
        assert row.keys() == shown[name].keys()
        errors = np.hypot(row["mcse_mean"], shown[name]["mcse_mean"])
        assert abs(row["mean"] - shown[name]["mean"]) < MAX_DEVIATION * errors


def table_of(text: str) -> dict[str, dict[str, float]]:
    """A printed summary: its rows by name, each with its figures by name."""
    head, *rows = (line.split() for line in text.strip().splitlines())
    return {name: dict(zip(head, map(float, figures), strict=True)) for name, *figures in rows}


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
