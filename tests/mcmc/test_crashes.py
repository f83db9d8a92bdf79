"""Full disks, read-only folders, kills and second runs: what was drawn is returned, and what was saved stays."""

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

from dpjax.runtime import checkpoint, run as runtime_run
from dpjax.runtime.checkpoint import CheckpointFile
from dpjax.runtime.progress import Progress
from tests.tools.killed_files import Death, dying

SAVEZ = np.savez


def full(file, **arrays):
    """A disk that fills up while the file is written."""
    file.write(b"half")
    raise OSError(errno.ENOSPC, "No space left on device")


def too_large(file, **arrays):
    """The system itself refuses to let the file grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        SAVEZ(file, **arrays)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def read_only(file, **arrays):
    raise OSError(errno.EROFS, "Read-only file system")


def names_in(folder):
    return [file.name for file in folder.iterdir() if file.suffix != ".lock"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.npz"


@pytest.fixture
def small_steps(monkeypatch):
    """Save after every chunk of seven draws."""
    monkeypatch.setattr(runtime_run, "next_length", lambda made, seconds: 7)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN_SAVES", 0.0)


@pytest.mark.x64
@pytest.mark.parametrize("write", [full, too_large, read_only])
def test_a_finished_run_that_cannot_be_saved_is_returned(monkeypatch, path, run, model, release, assert_same, write):
    whole = run(model, release)
    with monkeypatch.context() as context:
        context.setattr(np, "savez", write)
        with pytest.warns(UserWarning, match=r"could not be saved in .*run.npz.*Its draws are returned"):
            assert_same(run(model, release, checkpoint=path), whole)
    assert names_in(path.parent) == []
    assert_same(run(model, release, checkpoint=path), whole)
    assert names_in(path.parent) == ["run.npz"]


def test_a_disk_that_is_full_all_along_warns_once(
    monkeypatch, small_steps, path, run, model, release, assert_same, recwarn
):
    whole = run(model, release)
    monkeypatch.setattr(np, "savez", full)
    assert_same(run(model, release, checkpoint=path), whole)
    assert ["could not be saved" in str(warning.message) for warning in recwarn] == [True]


def test_a_disk_with_room_again_is_used(monkeypatch, small_steps, path, run, model, release, assert_same):
    whole, calls = run(model, release), []

    def sometimes(file, **arrays):
        calls.append(file)
        (full if len(calls) < 5 else SAVEZ)(file, **arrays)

    monkeypatch.setattr(np, "savez", sometimes)
    with pytest.warns(UserWarning, match="could not be saved"):
        run(model, release, checkpoint=path)
    monkeypatch.setattr(runtime_run, "next_length", None)  # which every chunk asks for
    assert_same(run(model, release, checkpoint=path), whole)


def interrupt_after(monkeypatch, steps):
    total = 0

    def advance(self, made, phase):
        nonlocal total
        total += made
        if total > steps:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "advance", advance)


def test_an_interrupted_run_that_cannot_be_saved_is_returned(monkeypatch, small_steps, path, run, model, release):
    whole = run(model, release)
    interrupt_after(monkeypatch, 120)
    monkeypatch.setattr(np, "savez", full)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        part = run(model, release, checkpoint=path)
    texts = [str(warning.message) for warning in record]
    assert len(texts) == 2
    assert "could not be saved" in texts[0]
    assert "interrupted after 21 of 60 draws" in texts[1]
    assert "continue" not in texts[1]
    np.testing.assert_array_equal(part.draws["mean"], whole.draws["mean"][:, :21])


def test_an_interruption_before_the_first_draw_promises_nothing(monkeypatch, path, run, model, release):
    interrupt_after(monkeypatch, 0)
    monkeypatch.setattr(np, "savez", full)
    with (
        pytest.warns(UserWarning, match="could not be saved"),
        pytest.raises(KeyboardInterrupt, match="Nothing was drawn"),
    ):
        run(model, release, checkpoint=path)


def test_a_second_interruption_while_saving_keeps_the_draws(monkeypatch, path, run, model, release, assert_same):
    def interrupted(file, **arrays):
        raise KeyboardInterrupt

    whole = run(model, release)
    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.warns(UserWarning, match="The end of the run was not saved"):
        assert_same(run(model, release, checkpoint=path), whole)
    assert names_in(path.parent) == []


def refuse(*arguments, **options):
    raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize("is_finished", [False, True])
def test_a_checkpoint_without_a_lock_is_refused(monkeypatch, path, run, model, release, is_finished):
    """It was used all the same, by as many runs as liked, which wrote over each other."""
    if is_finished:
        run(model, release, checkpoint=path)
    held = path.read_bytes() if is_finished else None
    monkeypatch.setattr("dpjax._util.files.acquire", refuse)
    with pytest.raises(RuntimeError, match=r"checkpoint: given .*run.npz', where no lock can be had .*Copy it"):
        run(model, release, checkpoint=path)
    assert (path.read_bytes() if path.exists() else None) == held


def test_a_run_whose_lock_was_removed_leaves_the_file_to_another(path):
    """Both wrote it in turns: each lost what the other had saved."""
    first, other = CheckpointFile(path, {}), CheckpointFile(path, {})
    with first.held():
        path.with_name("run.npz.lock").unlink()
        with other.held():
            other.write({}, {"draws": np.zeros(2)})
            taken = path.read_bytes()
            with pytest.raises(OSError, match="was removed, so that another run may use the file"):
                first.write({}, {"draws": np.ones(2)})
    assert path.read_bytes() == taken


def test_a_folder_that_cannot_be_written_to_is_refused_at_once(monkeypatch, path, run, model, release):
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    with pytest.raises(ValueError, match=r"checkpoint: given .*; expected a file in a folder that can be written to"):
        run(model, release, checkpoint=path)


def test_a_file_in_use_is_refused(monkeypatch, path, run, model, release):
    link = path.with_name("link.npz")
    link.symlink_to(path)
    with CheckpointFile(path, {}).held():
        for name in (path, link):
            with pytest.raises(
                RuntimeError, match=r"checkpoint: given .*run.npz', which another run is using; expected"
            ):
                run(model, release, checkpoint=name)
    run(model, release, checkpoint=link)
    assert link.is_symlink()
    assert path.exists()


def test_what_a_killed_run_left_is_removed(path, run, model, release):
    path.with_name("run.npz.1-2.unfinished").write_bytes(b"half")
    path.with_name("run.npz2.1-2.unfinished").write_bytes(b"of another run")
    run(model, release, checkpoint=path)
    assert sorted(names_in(path.parent)) == ["run.npz", "run.npz2.1-2.unfinished"]


def spoil(arrays, name):
    """The arrays of a checkpoint with one of them forged."""
    progress = json.loads(str(arrays["progress"]))
    changed = {"filled": {"filled": 10**6}, "segment": {"segment": -1}, "type": {"filled": "all"}, "plan": {"plan": {}}}
    if name in changed:
        return arrays | {"progress": np.array(json.dumps(progress | changed[name]))}
    forged = {
        "no JSON": {"progress": np.array("{")},
        "a list": {"fingerprint": np.array("[]")},
        "fewer draws": {"draws.parameters.mean": arrays["draws.parameters.mean"][:, :3]},
        "other type": {"draws.parameters.mean": arrays["draws.parameters.mean"].astype("float16")},
        "other state": {"chains.state.parameters.mean": np.zeros(3)},
        "records": {"chains.state.latent.records.y": np.zeros((4, 19))},
    }
    if name == "missing":
        return {key: entry for key, entry in arrays.items() if key != "draws.parameters.mean"}
    return arrays | forged[name]


@pytest.fixture(scope="module")
def saved(tmp_path_factory, run, model, release):
    path = tmp_path_factory.mktemp("saved") / "run.npz"
    run(model, release, checkpoint=path)
    return path


FORGED = [
    *("filled", "segment", "type", "plan", "no JSON", "a list"),
    *("fewer draws", "other type", "other state", "records", "missing"),
]


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_checkpoint_is_refused(path, saved, run, model, release, name):
    with np.load(saved) as arrays:
        np.savez(path, **spoil(dict(arrays), name))
    held = path.read_bytes()
    with pytest.raises(
        ValueError, match=r"checkpoint: given .*(cannot be read|differs in).*; expected a checkpoint of"
    ):
        run(model, release, checkpoint=path)
    assert path.read_bytes() == held


@pytest.mark.parametrize("place", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_damaged_checkpoint_is_refused_or_read_whole(path, saved, run, model, release, place, assert_same):
    content = bytearray(saved.read_bytes())
    content[int(place * len(content))] ^= 4
    path.write_bytes(content)
    try:
        part = run(model, release, checkpoint=path)
    except ValueError as error:
        part = error
    if isinstance(part, ValueError):
        assert "cannot be read" in str(part) or "no checkpoint" in str(part)
    else:  # a bit that says nothing, such as the time of an entry
        assert_same(part, run(model, release))


SCRIPT = """
    import sys
    from importlib.util import module_from_spec, spec_from_file_location

    import jax
    from dpjax.runtime import checkpoint
    from dpjax.runtime import run as runtime_run

    jax.config.update("jax_enable_x64", sys.argv[3] == "True")
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")
    spec = spec_from_file_location("shared", sys.argv[1])
    shared = module_from_spec(spec)
    sys.modules["shared"] = shared
    spec.loader.exec_module(shared)
    runtime_run.next_length = lambda made, seconds: 1
    checkpoint.SECONDS_BETWEEN_SAVES = 0.0
    shared.short_run(shared.MODEL, shared.release_of(), num_samples=5_000, checkpoint=sys.argv[2])
"""


def wait_for(condition, process):
    while not condition():
        assert process.poll() is None, "the run ended before it was killed"
        time.sleep(0.005)


@pytest.mark.x64
@pytest.mark.parametrize("seconds", [0.0, *(pytest.param(0.2 * k, marks=pytest.mark.slow) for k in range(1, 6))])
def test_a_killed_run_continues_to_the_same_draws(path, run, model, release, assert_same, seconds):
    shared, x64 = Path(__file__).parents[1] / "tools" / "conjugate.py", jax.config.jax_enable_x64
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(shared), str(path), str(x64)]
    root = str(Path(checkpoint.__file__).parents[2])
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": root})
    try:
        wait_for(path.exists, process)
        time.sleep(seconds)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with np.load(path) as arrays:
        held = json.loads(str(arrays["progress"]))
    assert held["segment"] < 9 or held["filled"] < 5_000
    options = {"num_samples": 5_000}
    assert_same(run(model, release, checkpoint=path, **options), run(model, release, **options))
    assert names_in(path.parent) == ["run.npz"]


@pytest.mark.x64
@pytest.mark.parametrize("kills", [2, pytest.param(24, marks=pytest.mark.slow)])
def test_death_at_any_call_that_changes_a_file_costs_no_draw(
    small_steps, path, run, model, release, assert_same, kills
):
    """The run that starts again is the whole one, and leaves no file of the one that died."""
    whole = run(model, release)
    with dying(100_000) as clock:
        run(model, release, checkpoint=path)
    for at in random.Random(7).sample(range(1, clock.count + 1), kills):
        path.unlink()
        with dying(at), pytest.raises(Death):
            run(model, release, checkpoint=path)
        assert_same(run(model, release, checkpoint=path), whole)
        assert names_in(path.parent) == ["run.npz"]
