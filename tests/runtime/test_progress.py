"""What is shown of a run: a bar on a terminal, lines anywhere if asked for, or nothing."""

import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event, Thread, active_count
from types import SimpleNamespace
from typing import Any

import jax
import pytest
from tqdm import tqdm

import dpjax
from dpjax.runtime import progress
from dpjax.runtime.progress import Progress, announce, check_progress

SHORT = {"num_chains": 2, "num_warmup": 20, "num_samples": 20}
MODEL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
RELEASE = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def show(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, choice: bool | str, seconds: float = 0.0) -> str:
    """What is written of a run of eight steps in four moves."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "LINE_SECONDS", seconds)
    monkeypatch.setattr(Progress, "renew", lambda self: None)
    with Progress(choice, unit="pair") as bar:
        bar.expect(8)
        for _ in range(4):
            bar.advance(2, "warm-up")
    return stream.getvalue()


def test_lines_come_wherever_standard_error_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = show(monkeypatch, io.StringIO(), "lines").splitlines()
    assert re.fullmatch(r"warm-up: 8 of 8 \(100 %\) after \d\d:\d\d, about 00:00 to go", lines[-1])
    assert len(lines) >= 4
    assert len(set(lines)) == len(lines)


def test_compilation_is_left_out_of_the_time_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean since the call once said hours: no other test reads the estimate while a run is under way."""
    clock = [1000.0]
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(Progress, "renew", lambda self: None)
    with Progress("lines") as bar:
        bar.bar._time = lambda: clock[0]
        monkeypatch.setattr(progress.time, "time", bar.bar._time)
        bar.bar.start_t = clock[0] - 600.0
        bar.expect(1001)
        bar.advance(1, "warm-up")
        clock[0] += 10.0
        bar.advance(100, "warm-up")
        lines = stream.getvalue().splitlines()
    assert lines[-2].endswith("1 of 1001 (0 %) after 10:00, about ? to go")
    assert lines[-1].endswith("101 of 1001 (10 %) after 10:10, about 01:30 to go")


def test_a_terminal_that_reports_no_width_has_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container: tqdm shows nothing at all in no columns. Every other terminal here says how wide it is."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
    with open(leader, "rb", buffering=0) as shown, open(follower, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr(Progress, "renew", lambda self: None)
        with Progress(True) as bar:
            bar.expect(8)
            bar.advance(8, "warm-up")
        terminal.flush()
        assert "8/8" in os.read(shown.fileno(), 10_000).decode()


def test_lines_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each phase, and the last one."""
    assert len(show(monkeypatch, io.StringIO(), "lines", seconds=100.0).splitlines()) <= 3


def test_bars_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    assert show(monkeypatch, io.StringIO(), True) == ""
    assert show(monkeypatch, Terminal(), False) == ""
    bar = show(monkeypatch, Terminal(), True)
    assert "8/8" in bar
    assert "warm-up" in bar


def test_what_is_shown_moves_while_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first moment: the main thread may be minutes from its first step."""
    seen = Event()

    class Seen(Terminal):
        def write(self, text: str) -> int:
            if self.getvalue().count("reading model and release") > 3:
                seen.set()
            return super().write(text)

    monkeypatch.setattr(sys, "stderr", terminal := Seen())
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.001)
    with Progress(True):
        assert "reading model and release: 00:00" in terminal.getvalue()
        assert seen.wait(60.0)


def test_a_program_is_announced_while_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """By events of JAX, whose names may change."""
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with Progress(True) as bar:
        lowered = jax.jit(lambda x: x + 1.0).lower(1.0)
        bar.say("looking for starts")
        lowered.compile()
        bar.say("preparing the sampler")
    shown = terminal.getvalue()
    assert re.search(r"looking for starts, compiling program \d+: ", shown)
    assert "preparing the sampler: " in shown


def test_what_a_run_is_at_is_announced_by_what_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the innermost run, which may be hidden."""
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    announce("nothing")
    with Progress(True):
        with Progress(False):
            announce("hidden")
        announce("looking for starts")
    announce("nothing")
    shown = terminal.getvalue()
    assert "looking for starts" in shown
    assert "hidden" not in shown
    assert "nothing" not in shown


def test_a_call_that_is_refused_leaves_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    threads = active_count()
    with pytest.raises(ValueError, match="no"), Progress(True):
        raise ValueError("no")
    assert terminal.getvalue().endswith("\r")
    assert active_count() == threads


def test_warnings_have_lines_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr(progress, "TICK_SECONDS", 60.0)
    shows = lambda *given: terminal.write(f"{given[0]}\n")  # noqa: E731
    monkeypatch.setattr(warnings, "showwarning", shows)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with Progress(True):
            warnings.warn("too coarse", stacklevel=1)
        assert warnings.showwarning is shows
    assert re.search(r"00:00\r +\rtoo coarse\n\rreading", terminal.getvalue())


def test_a_run_that_is_continued_begins_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with Progress(True) as bar:
        bar.expect(8, 6)
        bar.advance(2, "sampling")
    assert "8/8" in terminal.getvalue()


CALLS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "sample": (partial(dpjax.sample, **SHORT), ["reading", "preparing", "looking for starts", "warm-up", "sampling"]),
    "sample_smc": (
        partial(dpjax.sample_smc, num_particles=20, num_islands=2, num_sweeps=1),
        ["reading", "preparing the sampler", "moving particles"],
    ),
    "importance_sample": (
        partial(dpjax.importance_sample, num_samples=200),
        ["reading", "preparing the sampler", "drawing from the prior"],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_phase_is_announced_on_a_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, each before what it does."""
    call, phases = CALLS[name]
    shown = on_terminal(monkeypatch, lambda: call(jax.random.key(1), MODEL, RELEASE))
    places = [shown.find(phase) for phase in phases]
    assert -1 not in places, shown
    assert places == sorted(places)


def on_terminal(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> str:
    """What a call writes to standard error, if that is a terminal."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    parts: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # raised at the end on Linux
            while part := os.read(reader, 65_536):
                parts.append(part)

    thread = Thread(target=read)
    thread.start()
    with open(writer, "w") as stream, monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(sys, "stderr", stream)
        call()
    thread.join()
    os.close(reader)
    return b"".join(parts).decode()


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
