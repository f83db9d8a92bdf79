"""What is shown of a run: a bar on a terminal, lines anywhere if asked for, or nothing."""

import io
import re
import sys
from types import SimpleNamespace

import pytest
from tqdm import tqdm

from dpjax.runtime import progress
from dpjax.runtime.progress import Progress, check_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def show(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, choice: bool | str, seconds: float = 0.0) -> str:
    """What is written of a run of eight steps in four moves."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "LINE_SECONDS", seconds)
    with Progress(8, 0, choice, unit="pair") as bar:
        for _ in range(4):
            bar.advance(2, "warm-up")
    return stream.getvalue()


def test_lines_come_wherever_standard_error_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = show(monkeypatch, io.StringIO(), "lines").splitlines()
    assert re.fullmatch(r"warm-up: 8 of 8 \(100 %\) after \d\d:\d\d, about 00:00 to go", lines[-1])
    assert len(lines) >= 4
    assert len(set(lines)) == len(lines)


def test_lines_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(show(monkeypatch, io.StringIO(), "lines", seconds=100.0).splitlines()) <= 2


def test_bars_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    assert show(monkeypatch, io.StringIO(), True) == ""
    assert show(monkeypatch, Terminal(), False) == ""
    bar = show(monkeypatch, Terminal(), True)
    assert "8/8" in bar
    assert "warm-up" in bar


def test_a_run_says_that_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first step, which may be minutes away."""
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with Progress(8, 0, True):
        assert "compiling the sampler" in terminal.getvalue()


def test_a_run_that_is_continued_begins_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with Progress(8, 6, True) as bar:
        bar.advance(2, "sampling")
    assert "8/8" in terminal.getvalue()


def test_notebooks_have_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their standard error is no terminal."""
    kernel = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    monkeypatch.setattr(progress, "choose_bar", lambda: tqdm)
    assert "8/8" in show(monkeypatch, io.StringIO(), True)
    assert show(monkeypatch, io.StringIO(), False) == ""


@pytest.mark.parametrize("given", ["bar", None, 1])
def test_another_choice_is_refused(given: object) -> None:
    with pytest.raises(TypeError, match=r"progress: given .*; expected True, False or 'lines'"):
        check_progress(given)
