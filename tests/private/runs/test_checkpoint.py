"""A run's file takes up no other run, and a disk that is full loses nothing."""

import errno
import json
import os
import warnings
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import private
from dpjax.private.runs.checkpoint import probe
from dpjax.runtime.checkpoint import CheckpointFile
from tests.private.cases import BOUND, STARTS, TARGET, WALK, tilted
from tests.private.runs.paid_runs import KEY, break_off, go, ledger, make_whole, shorten_parts


@pytest.fixture(scope="module")
def whole() -> private.PrivateDraws:
    return make_whole()


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch):
    shorten_parts(monkeypatch)


def test_a_run_goes_on_from_its_checkpoint(tmp_path, monkeypatch, whole):
    path, spent = tmp_path / "run.npz", ledger()
    with monkeypatch.context() as patch:
        break_off(patch, KeyboardInterrupt())
        with pytest.warns(UserWarning, match=r"call again with the same arguments to continue from .*run\.npz"):
            go(spent=spent, checkpoint=path)
    result = go(spent=spent, checkpoint=path)
    np.testing.assert_array_equal(result.draws, whole.draws)
    count = spent.queries[0].count
    assert count == (40 + 1) * 3
    again = go(spent=spent, checkpoint=path)
    np.testing.assert_array_equal(again.draws, whole.draws)
    assert spent.queries[0].count == count
    for rate, expected in zip(again.not_private, whole.not_private, strict=True):
        np.testing.assert_allclose(rate, expected, rtol=1e-5)


def test_as_many_as_the_budget_allows_is_decided_once(tmp_path, monkeypatch):
    path, spent = tmp_path / "run.npz", ledger()
    spent.charge(WALK.queries, spent.affordable(WALK.queries) - 40 * 3)
    with monkeypatch.context() as patch:
        break_off(patch, KeyboardInterrupt())
        with pytest.warns(UserWarning, match="after 2 of 40"):
            go(spent=spent, checkpoint=path, num_iterations=None)
    with pytest.warns(UserWarning, match="after 39 of 40.*BudgetExceeded"):  # one was paid for and not made
        result = go(spent=spent, checkpoint=path, num_iterations=None)
    assert result.draws.shape == (3, 39, 2)
    assert spent.affordable(WALK.queries) == 0
    with pytest.warns(UserWarning, match="after 39 of 40"):
        assert go(spent=spent, checkpoint=path, num_iterations=None).num_iterations == 39


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": jax.random.key(2)}, "in key"),
        ({"num_iterations": 20}, "num_iterations: saved 40, now 20"),
        ({"thin": 2}, "thin: saved 1, now 2"),
        ({"positions": STARTS + 1}, "in positions"),
        ({"ledger": ledger(4.0)}, "budget: saved"),
        ({"kernel": WALK._replace(target=replace(TARGET, records=TARGET.records + 1))}, "what is confidential"),
        ({"kernel": WALK._replace(queries=(private.Query("x", 3.0, "secure"),))}, "queries: saved"),
        ({"kernel": WALK._replace(target=tilted(chunk_size=2))}, "what is confidential"),
    ],
)
def test_another_run_does_not_take_up_a_checkpoint(saved_run, change, message):
    arguments = {"key": KEY, "kernel": WALK, "positions": STARTS, "ledger": ledger(), "num_iterations": 40} | change
    with pytest.raises(ValueError, match=message):
        private.sample(**arguments, checkpoint=saved_run)


def test_a_rejection_is_the_same_whichever_record_differs(saved_run):
    """That of record 0 named the target as well, so that a guess of it was confirmed or denied for nothing."""
    said = set()
    for place in [(0, 0), (1, 0), (0, 2)]:
        other = replace(TARGET, records=TARGET.records.at[place].add(0.5))
        with pytest.raises(ValueError, match="differs in what is confidential;") as refused:
            go(kernel=WALK._replace(target=other), checkpoint=saved_run)
        said.add(str(refused.value))
    assert len(said) == 1
    assert (
        probe(replace(TARGET, records=TARGET.records * 7), jnp.ones(2)).tolist() == probe(TARGET, jnp.ones(2)).tolist()
    )


@pytest.mark.parametrize("change", [{"proposal_scale": 2.0}, {"ratio_bound": 2 * BOUND}], ids=str)
def test_another_kernel_does_not_take_up_a_checkpoint(saved_run, change):
    """Settings that no query tells."""
    settings = {"proposal_scale": 1.0, "ratio_bound": BOUND, "tau": 1.0} | change
    kernel = private.dp_penalty(TARGET, private.noise.jax, **settings)
    assert kernel.queries == WALK.queries
    with pytest.raises(ValueError, match="differs in code of kernel"):
        go(kernel=kernel, checkpoint=saved_run)


@pytest.mark.parametrize("change", ["prior", "likelihood"])
def test_another_target_does_not_take_up_a_checkpoint(tmp_path, change):
    """Of the same values at the starts, which are 0."""

    def kernel_of(prior_sd: float, slope: float) -> private.PrivateKernel:
        def log_likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
            return slope * jnp.dot(record, theta)

        def log_prior(theta: jax.Array) -> jax.Array:
            return -0.5 * jnp.dot(theta, theta) / prior_sd**2

        target = private.target(log_likelihood, log_prior, TARGET.records[0, :3], jnp.zeros(2))
        return private.dp_penalty(target, private.noise.jax, proposal_scale=1.0, ratio_bound=BOUND, tau=1.0)

    path, starts = tmp_path / "run.npz", jnp.zeros((3, 2))
    go(starts, kernel=kernel_of(1.0, 1.0), checkpoint=path)
    with pytest.warns(
        UserWarning, match="not charged for all iterations in the checkpoint, and is now for 120:"
    ):  # written again, it is the same target
        go(starts, kernel=kernel_of(1.0, 1.0), checkpoint=path)
    with pytest.raises(ValueError, match="differs in code of target"):
        go(starts, kernel=kernel_of(0.1, 1.0) if change == "prior" else kernel_of(1.0, 0.5), checkpoint=path)


def test_a_ledger_that_begins_anew_is_charged_for_the_draws_in_a_checkpoint(tmp_path, saved_run, whole):
    path = tmp_path / "run.npz"
    path.write_bytes(saved_run.read_bytes())
    spent = ledger()
    with pytest.warns(UserWarning, match="not charged for all iterations in the checkpoint, and is now for 120:"):
        result = go(spent=spent, checkpoint=path)
    np.testing.assert_array_equal(result.draws, whole.draws)
    assert [query.count for query in spent.queries] == [40 * 3]
    assert go(spent=spent, checkpoint=path).ledger.queries == spent.queries  # it knows the run now
    with pytest.raises(ValueError, match="key: given the key of an earlier run"):
        go(spent=spent)
    poor = ledger()
    poor.charge(WALK.queries, poor.affordable(WALK.queries) - 40 * 3 + 1)
    for _ in range(2):
        with pytest.raises(private.BudgetExceeded):
            go(spent=poor, checkpoint=path)


@pytest.mark.parametrize("case", ["another ledger in between", "an older copy put back"])
def test_a_ledger_pays_for_what_it_missed_of_a_run_that_it_knows(tmp_path, monkeypatch, case):
    """A mark of the run alone does not tell how much of it was charged here."""
    path, file = tmp_path / "run.npz", tmp_path / "ledger.json"
    budget = ledger().budget
    others = {"another ledger in between": ledger(), "an older copy put back": private.Ledger(budget, file)}
    copy = b""
    for at, spent in [(8, private.Ledger(budget, file)), (26, others[case])]:
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            break_off(patch, KeyboardInterrupt(), at)
            go(spent=spent, checkpoint=path)
        copy = copy or file.read_bytes()
    file.write_bytes(copy)
    with pytest.warns(UserWarning, match="not charged for all iterations in the checkpoint, and is now for 75:"):
        result = go(spent=private.Ledger(budget, file), checkpoint=path)
    assert result.num_iterations == 40
    # One iteration, which the interruption lost, was paid for as well.
    assert [query.count for query in result.ledger.queries] == [(40 + 1) * 3]
    assert go(spent=result.ledger, checkpoint=path).ledger.queries == result.ledger.queries


def test_draws_go_on_with_a_ledger_that_was_charged_for_them_alone(whole):
    with pytest.raises(ValueError, match="ledger: given one that was not charged for the draws that go on"):
        go(whole, spent=ledger())
    assert go(whole, spent=whole.ledger, num_iterations=2).num_iterations == 42


@pytest.fixture(scope="module")
def saved_run(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "run.npz"
    go(checkpoint=path)
    return path


def forge(path: Path, saved: Path, **changes) -> Path:
    with np.load(saved) as archive:
        np.savez(path, **{name: leaf for name, leaf in (dict(archive) | changes).items() if leaf is not None})
    return path


def text(**content) -> np.ndarray:
    return np.array(json.dumps(content))


@pytest.mark.parametrize(
    "changes",
    [
        {"leaf0": np.zeros((2, 2))},
        {"leaf0": np.zeros((3, 2), complex)},
        {"leaf2": None},
        {"progress": text(done=41, total=40)},
        {"progress": text(done=-1, total=40)},
        {"progress": text(done=4.0, total=40)},
        {"progress": text(done=39, total=40)},
        {"progress": text()},
        {"progress": np.array("[]")},
        {"progress": np.zeros(3)},
        {"fingerprint": None},
        {"fingerprint": np.array("{")},
        {"fingerprint": np.array([None], object)},
    ],
)
def test_a_forged_checkpoint_is_refused(tmp_path, saved_run, changes):
    with pytest.raises(ValueError, match=r"checkpoint: given .*forged"):
        go(checkpoint=forge(tmp_path / "forged.npz", saved_run, **changes))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"draws", None])
def test_what_is_no_checkpoint_is_refused(tmp_path, saved_run, content):
    path = tmp_path / "forged.npz"
    path.write_bytes(saved_run.read_bytes()[:-200] if content is None else content)
    with pytest.raises(ValueError, match=r"checkpoint: given .*forged"):
        go(checkpoint=path)


def fill_disk(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """No more than so many checkpoints fit."""
    from dpjax.runtime import checkpoint

    real, calls = checkpoint.write_whole, []

    def write(path, put, mode):
        calls.append(path)
        if len(calls) > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, put)

    monkeypatch.setattr(checkpoint, "write_whole", write)


def test_a_full_disk_loses_nothing_and_spends_no_more(tmp_path, monkeypatch, whole):
    path, spent = tmp_path / "run.npz", ledger()
    with monkeypatch.context() as patch:
        fill_disk(patch, after=3)
        with pytest.warns(UserWarning, match="after 3 of 40.*No space left"):
            result = go(spent=spent, checkpoint=path)
    np.testing.assert_array_equal(result.draws, whole.draws[:, :3])
    assert spent.queries[0].count == 3 * 3
    rest = go(result, spent=spent, num_iterations=37)
    np.testing.assert_array_equal(rest.draws, whole.draws)


def test_a_full_disk_at_the_end_does_not_lose_a_finished_run(tmp_path, monkeypatch, whole):
    fill_disk(monkeypatch, after=40)
    with pytest.warns(UserWarning, match="after 40 of 40.*No space left"):
        result = go(checkpoint=tmp_path / "run.npz")
    np.testing.assert_array_equal(result.draws, whole.draws)


def test_a_checkpoint_that_another_run_uses_costs_nothing(tmp_path):
    path, spent = tmp_path / "run.npz", ledger()
    with CheckpointFile(path, {}).held(), pytest.raises(RuntimeError, match="which another run is using"):
        go(spent=spent, checkpoint=path)
    assert spent.queries == ()
    assert go(spent=spent, checkpoint=path).num_iterations == 40


def test_a_checkpoint_that_cannot_be_written_costs_nothing(tmp_path, monkeypatch):
    spent = ledger()
    fill_disk(monkeypatch, after=0)
    with pytest.raises(RuntimeError, match=r"No space left.*Nothing was charged"):
        go(spent=spent, checkpoint=tmp_path / "run.npz")
    with pytest.raises(ValueError, match="existing folder"):
        go(spent=spent, checkpoint=tmp_path / "missing" / "run.npz")
    assert spent.queries == ()
