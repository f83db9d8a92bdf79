"""Tiers and shards of the suite: what a run leaves out, and that nothing is left out of all."""

import os
from pathlib import Path

import jax
import pytest

from tests.conftest import prune
from tests.mutants import MUTANTS
from tests.tools.proofs import KILLED, KILLERS, PROOFS
from tests.tools.quick import CORE, choose, imports_of_tests
from tests.tools.shards import NUMBER, rotation
from tests.tools.weights import HEAVY, KINDS, ROOT, divide, other_files, read_weights, renew, shards, weigh

WEIGHTS = {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0, "e": 1.0}


def test_shards_hold_every_file_once_and_weigh_the_same() -> None:
    divided = shards(WEIGHTS, WEIGHTS.__getitem__, 3)
    assert sorted(path for paths in divided for path in paths) == sorted(WEIGHTS)
    assert [sum(map(WEIGHTS.get, paths)) for paths in divided] == [5.0, 5.0, 5.0]


def test_each_file_is_in_one_shard() -> None:
    everything = {path for paths in divide(NUMBER) for path in paths}
    left_out = [set(other_files(f"{place}/{NUMBER}")) for place in range(1, NUMBER + 1)]
    assert "tests/test_tiers.py" in everything
    assert all(sum(path in files for files in left_out) == NUMBER - 1 for path in everything)
    assert other_files("1/1") == []


@pytest.mark.parametrize("shard", ["0/3", "4/3"])
def test_a_shard_that_there_is_not_is_refused(shard: str) -> None:
    with pytest.raises(ValueError, match=f"--shard: given {shard}"):
        other_files(shard)


def test_as_many_commits_as_shards_begin_with_each() -> None:
    assert {rotation(commits)[0] for commits in range(NUMBER)} == set(range(1, NUMBER + 1))
    assert sorted(rotation(7)) == list(range(1, NUMBER + 1))


def test_no_shard_is_far_heavier_than_another() -> None:
    weights = read_weights()
    loads = [sum(weigh(weights, path) for path in paths) for paths in divide(NUMBER)]
    assert max(loads) < 1.5 * min(loads)


def test_weights_are_brought_up_to_date() -> None:
    path, other = "tests/test_tiers.py", "tests/smc/test_sample.py"
    proof = next(test for test in PROOFS if test.startswith(other))
    before = {path: {"heavy": ["test_a"], "float64": 9.0, "light": 1.0}, "tests/gone.py": {"float64": 1.0}}
    after = renew(before, {(f"{path}::test_b", "float64"): HEAVY / 2, (proof, "proof"): 5.0})
    # The run has no heavy test of the file: what all its tests cost is not known from it.
    assert after == {other: {"float64": 5.0, "light": 5.0}, path: {**before[path], "light": HEAVY / 2}}
    after = renew(before, {(f"{path}::test_{letter}", "float64"): 2.0 for letter in "ab"})
    assert after == {path: {"heavy": ["test_a", "test_b"], "float64": 4.0}}


def test_a_quick_run_begins_with_the_tests_of_what_has_changed() -> None:
    """Whatever else imports it: they once came by the number of their imports alone."""
    tests = {"tests/a/test_b.py": {"dpjax.a.b", "dpjax.c", "dpjax.d"}, "tests/e.py": {"dpjax.a.b"}, "tests/f.py": set()}
    chosen = choose(["dpjax/a/b.py", "README.md"], tests, lambda path: 1.0)
    assert chosen == [*CORE, "tests/a/test_b.py", "tests/e.py"]
    assert (
        choose(["dpjax/importance.py"], imports_of_tests(), lambda path: 1.0)[len(CORE)] == "tests/test_importance.py"
    )


def test_proofs_exist() -> None:
    for proof in PROOFS | KILLERS:
        path, name = proof.split("::")
        assert f"def {name.split('[')[0]}(" in (ROOT / path).read_text()


def test_each_mutant_has_a_killer() -> None:
    assert set(KILLED) == {mutant.name for mutant in MUTANTS}


def test_listed_weights_are_of_files_that_exist() -> None:
    for path, of_file in read_weights().items():
        assert set(of_file) <= {"heavy", "light", *KINDS}
        assert (ROOT / path).exists()


def test_the_oldest_programs_go_when_there_are_too_many(tmp_path: Path) -> None:
    for place, name in enumerate("cab"):
        (tmp_path / name).write_bytes(bytes(10))
        os.utime(tmp_path / name, (place, place))
    prune(tmp_path, 30)
    assert len(list(tmp_path.iterdir())) == 3
    prune(tmp_path, 19)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.keys
def test_a_key_used_twice_is_seen_where_tests_ask_for_it() -> None:
    key = jax.random.key(0)
    jax.random.normal(key)
    with pytest.raises(jax.errors.KeyReuseError):
        jax.random.normal(key)
