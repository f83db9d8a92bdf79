"""Files are written whole or not at all, and what a killed process leaves is cleared away by the next."""

import os
from pathlib import Path

import pytest

from dpjax._util import files
from dpjax._util.files import held, write_whole
from tests.tools.killed_files import Death, dying

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "result.npz"


def die_while_writing(path: Path) -> None:
    """A process that ends in the midst of a file."""
    child = os.fork()
    if child == 0:
        write_whole(path, lambda file: os._exit(0))
    os.waitpid(child, 0)


def names_beside(path: Path) -> set[str]:
    return {other.name for other in path.parent.iterdir()}


def test_what_a_killed_save_left_is_cleared_away_by_the_next(path: Path) -> None:
    """It stayed for ever, as a result has no lock under which others cleared it away."""
    die_while_writing(path)
    assert len(names_beside(path)) == 1
    assert not path.exists()
    write_whole(path, lambda file: None)
    assert names_beside(path) == {path.name}


def test_a_death_at_any_call_leaves_the_old_file_or_the_new(path: Path) -> None:
    write_whole(path, lambda file: file.write(b"old"))
    with dying(1_000) as clock:
        write_whole(path, lambda file: file.write(b"old"))
    for at in range(1, clock.count + 1):
        with dying(at), pytest.raises(Death):
            write_whole(path, lambda file: file.write(b"new"))
        assert path.read_bytes() in (b"old", b"new")
        write_whole(path, lambda file: file.write(b"old"))
        assert names_beside(path) == {path.name}


def test_a_file_that_another_is_writing_is_left_to_it(path: Path) -> None:
    """Whoever held the lock took all unfinished files for abandoned."""

    def write(file: object) -> None:
        write_whole(path, lambda inner: None)
        assert len(names_beside(path)) == 2

    write_whole(path, write)
    assert names_beside(path) == {path.name}


def test_the_lock_of_a_process_that_died_is_free(path: Path) -> None:
    child = os.fork()
    if child == 0:
        with held(path, 0.0):
            os._exit(0)
    os.waitpid(child, 0)
    with held(path, 0.0), pytest.raises(TimeoutError), held(path, 0.0):
        pass


def test_a_lock_follows_its_name(path: Path) -> None:
    """The holder of a file that was removed would be one of two."""
    with held(path, 0.0) as lock:
        assert lock.is_held()
        path.unlink()
        assert not lock.is_held()
        with held(path, 0.0) as other:
            assert other.is_held()


def test_without_posix_locks_a_second_file_is_locked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, where an open file can be neither replaced nor removed."""
    monkeypatch.setattr(files, "fcntl", None)
    with held(path, 0.0) as lock:
        assert lock.is_held()
        with pytest.raises(TimeoutError), held(path, 0.0):
            pass
    path.with_name("result.npz.0.unfinished").write_bytes(b"half")
    write_whole(path, lambda file: file.write(b"all"))
    assert path.read_bytes() == b"all"
    assert names_beside(path) <= {path.name, path.name + ".lock"}
