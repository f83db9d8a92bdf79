"""Devices and pipes are no files: nothing replaces them, and nothing waits for them."""

import os
import signal
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dpjax
from dpjax._util.files import held, open_regular, write_whole
from dpjax.adapters import census, pageviews
from dpjax.posterior.saving import Saved
from dpjax.private import Budget, Ledger
from dpjax.runtime.checkpoint import CheckpointFile, check_path

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")

DOORS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "ledger": (lambda path: Ledger(Budget(1.0, 1e-6, "replace-one"), path), "path"),
    "save": (lambda path: Saved().save(path), "path"),
    "load": (dpjax.load, "path"),
    "checkpoint": (check_path, "checkpoint"),
    "CSV": (
        lambda path: pageviews.read_thresholded_counts(
            path, mechanism=dpjax.DiscreteLaplace(1.0), threshold=1, keys=5, n=30
        ),
        "path",
    ),
    "Parquet": (lambda path: census.read_noisy_measurements(path, n=20), "path"),
}


@dataclass(frozen=True)
class Result(Saved):
    number: int


@pytest.fixture(autouse=True)
def clock() -> Iterator[None]:
    """An error in place of waiting for ever."""

    def stop(*arguments: Any) -> None:
        raise AssertionError("it waits for whoever writes into the pipe")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 10.0)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=["pipe", "device"])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The path of a pipe, or a link to a terminal, which is a character device."""
    path = tmp_path / "special"
    if request.param == "pipe":
        os.mkfifo(path)
        yield path
        assert stat.S_ISFIFO(path.stat().st_mode)
        return
    ends = os.openpty()
    path.symlink_to(os.ttyname(ends[1]))
    yield path
    assert path.is_symlink()
    assert stat.S_ISCHR(path.stat().st_mode)
    for end in ends:
        os.close(end)


@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_file_is_refused_by_name(door: str, special: Path) -> None:
    """A ledger and a result took the place of a device, and a pipe was waited for without end."""
    if door == "Parquet":
        pytest.importorskip("pyarrow")
    call, argument = DOORS[door]
    with pytest.raises(ValueError, match=rf"^{argument}: given .*; expected "):
        call(special)
    assert [other.name for other in special.parent.iterdir()] == [special.name]


def test_what_became_none_meanwhile_is_left_alone(special: Path) -> None:
    with pytest.raises(OSError, match="is no regular file"):
        write_whole(special, lambda file: None)
    with pytest.raises(OSError, match="is no regular file"):
        open_regular(special)
    with pytest.raises(OSError, match="is no regular file"), held(special, 0.0):
        pass
    with pytest.raises(ValueError, match=r"checkpoint: given .*is no regular file"):
        CheckpointFile(special, {}).take_up(lambda *read: read)


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    """A result that was saved by the name of a link replaced the link, and the file kept the old result."""
    file, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to(file)
    Result(1).save(link)
    assert link.is_symlink()
    assert file.stat().st_size > 0
