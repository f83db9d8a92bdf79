"""A ledger's file: one budget for all who share it, whatever name they use and whenever they die."""

import contextlib
import errno
import json
import os
import pickle
import random
import threading
from dataclasses import asdict
from pathlib import Path
from unittest.mock import Mock

import pytest

from dpjax.private import Budget, BudgetExceeded, Ledger, Query
from dpjax.private.accounting import ledger_file
from tests.private.accounting.ledgers import BUDGET, charged

QUERY = Query("gradient", 2_000.0, "secure")
OTHER = Query("log-likelihood ratio", 3_000.0, "secure")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.json"


def test_ledgers_at_once_see_each_others_charges(path):
    """As many threads with ledgers of their own as there are names; each opens and charges in turns with the others."""
    names, rounds, errors = ("one", "other", "third"), 5, []

    def run(name: str) -> None:
        try:
            for _ in range(rounds):
                Ledger(BUDGET, path).charge([Query(name, 2_000.0, "secure")])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert charged(path) == dict.fromkeys(names, rounds)


def test_what_others_charged_leaves_less(path):
    one, other = Ledger(BUDGET, path), Ledger(BUDGET, path)
    all_of_it = one.affordable([QUERY])
    one.charge([QUERY], all_of_it - 1)
    assert other.affordable([QUERY]) == 1
    other.charge([QUERY])
    with pytest.raises(BudgetExceeded, match="0 can be made"):
        one.charge([QUERY])
    assert one.queries == other.queries
    assert other.privacy_spent().num_queries == all_of_it


def test_symbolic_links_lead_to_one_budget(path, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link, folder = tmp_path / "elsewhere" / "link.json", tmp_path / "folder"
    link.symlink_to(path)  # before there is a ledger
    folder.symlink_to(tmp_path)
    for name in (link, path, folder / "ledger.json", tmp_path / "elsewhere" / ".." / "ledger.json"):
        Ledger(BUDGET, name).charge([QUERY])
    assert charged(path) == {"gradient": 4}
    assert link.is_symlink()
    assert {item.name for item in (tmp_path / "elsewhere").iterdir()} == {"link.json"}


def test_hard_links_are_refused(path, tmp_path):
    ledger, second = Ledger(BUDGET, path), tmp_path / "second.json"
    ledger.charge([QUERY])
    os.link(path, second)
    for use in (lambda: ledger.charge([QUERY]), lambda: Ledger(BUDGET, path), lambda: Ledger(BUDGET, second)):
        with pytest.raises(RuntimeError, match="second name"):
            use()
    second.unlink()
    ledger.charge([QUERY])
    assert charged(path) == {"gradient": 2}


def test_a_ledger_that_was_removed_does_not_come_back_fresh(path):
    ledger = Ledger(BUDGET, path)
    ledger.charge([QUERY])
    kept = path.read_text()
    path.unlink()
    for use in (lambda: ledger.charge([QUERY]), lambda: ledger.queries, lambda: Ledger(BUDGET, path)):
        with pytest.raises(RuntimeError, match="that is gone"):
            use()
    path.write_text(kept)
    ledger.charge([QUERY])
    path.write_text(kept)
    with pytest.raises(RuntimeError, match="an older copy forgets"):
        ledger.charge([QUERY])
    path.unlink()
    path.with_name("ledger.json.begun").unlink()
    assert Ledger(BUDGET, path).queries == ()  # asked for
    with pytest.raises(RuntimeError, match="queries are missing"):
        ledger.charge([QUERY])


def test_charges_on_top_of_an_older_copy_do_not_hide_what_it_lacks(path):
    """There were as many queries again, and the total told nothing."""
    ledger = Ledger(BUDGET, path)
    ledger.charge([QUERY])
    older = path.read_bytes()
    ledger.charge([QUERY])
    path.write_bytes(older)
    Ledger(BUDGET, path).charge([QUERY], 2)
    with pytest.raises(RuntimeError, match="queries are missing that were charged"):
        ledger.charge([QUERY])


def test_a_removed_lock_loses_no_charge(path, monkeypatch):
    """Others locked a new one, charged the file of before, and had their charge written over."""
    one, other, real = Ledger(BUDGET, path), Ledger(BUDGET, path), ledger_file.write_whole
    threads = []

    def meddle(*arguments):
        if not threads:
            for lock in path.parent.glob("*.lock"):
                lock.unlink()
            threads.append(threading.Thread(target=other.charge, args=([OTHER],)))
            threads[0].start()
            threads[0].join(0.3)
        real(*arguments)

    monkeypatch.setattr(ledger_file, "write_whole", meddle)
    one.charge([QUERY])
    threads[0].join()
    assert charged(path) == {QUERY.name: 1, OTHER.name: 1}


def test_a_file_that_is_removed_during_a_charge_is_not_written_again(path, monkeypatch):
    """It might be another by then."""
    ledger, real = Ledger(BUDGET, path), Ledger._excess

    def meddle(ledger, queries):
        path.unlink()
        return real(ledger, queries)

    monkeypatch.setattr(Ledger, "_excess", meddle)
    with pytest.raises(RuntimeError, match="removed or replaced during a charge"):
        ledger.charge([QUERY])
    assert not path.exists()


def flip(content: bytes, rng: random.Random) -> bytes:
    place, bit = rng.randrange(len(content)), rng.randrange(8)
    return content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]


def accepted_with_less(path: Path, flips: int) -> int:
    """How many of so many flipped bits are taken for a ledger that has spent less."""
    ledger = Ledger(BUDGET, path)
    ledger.charge([QUERY, OTHER], 20)
    content, spent, less, rng = path.read_bytes(), ledger.privacy_spent().epsilon, 0, random.Random(2)
    for _ in range(flips):
        path.write_bytes(flip(content, rng))
        with contextlib.suppress(ValueError):
            less += Ledger(BUDGET, path).privacy_spent().epsilon < spent
    return less


@pytest.mark.parametrize("flips", [50, pytest.param(1_000, marks=pytest.mark.slow)])
def test_a_flipped_bit_never_lowers_what_was_spent(path, flips):
    assert accepted_with_less(path, flips) == 0


def test_without_a_checksum_flipped_bits_do(path, monkeypatch):
    monkeypatch.setattr("dpjax.private.accounting.ledger_file.checksum", lambda content: "0")
    assert accepted_with_less(path, 300) > 0


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b'{"format": 3}', b"null"])
def test_what_is_no_ledger_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="ledger: given a text"):
        Ledger(BUDGET, path)


def test_numbers_of_numpy_survive(path):
    import numpy as np

    budget = Budget(np.float32(6.0), np.float64(1e-6), "replace-one")
    Ledger(budget, path).charge([Query("gradient", np.float32(2_000.0), "secure", np.int64(2))])
    assert charged(path) == {"gradient": 2}


def break_writes(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("os.fsync", refuse)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_charge_that_cannot_be_written_is_not_made(path, monkeypatch, code):
    ledger = Ledger(BUDGET, path)
    ledger.charge([QUERY])
    with monkeypatch.context() as patch:
        break_writes(patch, code)
        with pytest.raises(RuntimeError, match="cannot be written"):
            ledger.charge([QUERY])
        with pytest.raises(RuntimeError, match="cannot be written"):
            Ledger(BUDGET, path.with_name("new.json"))
    assert charged(path) == {"gradient": 1}
    ledger.charge([QUERY])
    assert charged(path) == {"gradient": 2}
    assert not list(path.parent.glob("*.unfinished"))


def test_a_file_that_cannot_be_read_or_locked_is_named(path, monkeypatch):
    ledger = Ledger(BUDGET, path)
    monkeypatch.setattr("dpjax.private.accounting.ledger_file.SECONDS_TO_WAIT", 0.01)
    other = Ledger(BUDGET, path)
    held = threading.Event()
    done = threading.Event()

    def hold() -> None:
        with other._file.locked():
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with pytest.raises(RuntimeError, match="held by another process"):
        ledger.charge([QUERY])
    done.set()
    thread.join()
    for problem in (PermissionError(errno.EACCES, "Permission denied"), NotImplementedError("flock")):
        monkeypatch.setattr("dpjax._util.files.acquire", Mock(side_effect=problem))
        with pytest.raises(RuntimeError, match="no lock can be had"):
            ledger.charge([QUERY])


@pytest.mark.parametrize("name", [".", "missing/ledger.json", "loop/ledger.json", "bad\0name"])
def test_a_path_that_leads_nowhere_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    with pytest.raises(ValueError, match="path: given"):
        Ledger(BUDGET, name)


def test_a_ledger_out_of_a_pickle_is_a_record(path):
    ledger = Ledger(BUDGET, path)
    ledger.charge([QUERY], 3)
    copy = pickle.loads(pickle.dumps(ledger))
    assert copy.privacy_spent() == ledger.privacy_spent()
    assert copy.affordable([QUERY]) == ledger.affordable([QUERY])
    with pytest.raises(RuntimeError, match="a copy, of a pickle or JSON"):
        copy.charge([QUERY])
    again = Ledger.from_json(copy.to_json(), chargeable=True)
    again.charge([QUERY])
    assert again.queries[0].count == 4
    assert json.loads(ledger.to_json())["budget"] == asdict(BUDGET)
