"""A run of pairs that is interrupted or killed continues to the same results, and is taken up by no other run."""

import errno
import json
import warnings

import chex
import jax
import numpy as np
import pytest

import dpjax
from dpjax.coupling import CoupledKernel, UnbiasedEstimates, coupled_exchangeable, run, unbiased_estimates
from dpjax.runtime import checkpoint
from dpjax.runtime.checkpoint import CheckpointFile
from tests.coupling.enumerated import kernel, log_density, log_proposal, ones, propose, sample_start

NUM_PAIRS = 40


def estimate(seed: int = 5, **options) -> UnbiasedEstimates:
    """A short run in which pairs wait for lanes; nearly all of them share their programs."""
    settings = {"kernel": kernel(), "function": ones, "k": 2, "m": 30, "lag": 2, "num_pairs": NUM_PAIRS}
    settings |= {"max_steps": 500, "batch_size": 16}
    return unbiased_estimates(jax.random.key(seed), **(settings | options))


def assert_same(one: UnbiasedEstimates, other: UnbiasedEstimates) -> None:
    """Raise unless all estimates and meetings agree to the last bit."""
    for name in ("values", "averages", "cost"):
        chex.assert_trees_all_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.meetings.times, other.meetings.times)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pairs.npz"


@pytest.fixture(scope="module")
def whole() -> UnbiasedEstimates:
    return estimate()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "pairs.npz"
    estimate(checkpoint=path)
    return path


@pytest.fixture
def interrupt(monkeypatch):
    """Make runs raise KeyboardInterrupt after a number of programs."""
    whole_program = run.run_program

    def arm(programs: int) -> None:
        left = [programs]

        def run_program(pool, status):
            if left[0] == 0:
                raise KeyboardInterrupt
            left[0] -= 1
            return whole_program(pool, status)

        monkeypatch.setattr(run, "run_program", run_program)

    return arm


@pytest.mark.x64
def test_a_run_continues_to_the_same_results(interrupt, monkeypatch, path, whole):
    """It is interrupted after every third program, however many there are."""
    texts = []
    while True:
        interrupt(3)
        try:
            result = estimate(checkpoint=path)
            break
        except KeyboardInterrupt as error:
            texts.append(str(error))
    assert len(texts) >= 2
    assert all("of 40 pairs had ended. Call again with the same arguments" in text for text in texts)
    assert_same(result, whole)
    assert [file.name for file in path.parent.iterdir() if file.suffix != ".lock"] == ["pairs.npz"]


def test_a_finished_run_is_read_and_not_made_again(interrupt, saved, whole):
    interrupt(0)
    assert_same(estimate(checkpoint=saved), whole)


def test_an_interrupted_run_without_a_file_says_what_would_help(interrupt):
    interrupt(1)
    with pytest.raises(KeyboardInterrupt, match=r"0 of 40 pairs had ended\. Pass `checkpoint`"):
        estimate()


def other_kernel() -> CoupledKernel:
    more = {"imputation": dpjax.soma(), "statistic": lambda record: 1.0 * record[None], "proposals": 1}
    return coupled_exchangeable(log_density, propose, log_proposal, sample_start, **more)


OTHERS = {
    "key": {"seed": 6},
    "lag": {"lag": 3},
    "m": {"m": 31},
    "num_pairs": {"num_pairs": 41},
    "max_steps": {"max_steps": 501},
    "pairs at once": {"batch_size": 8},
    "code of function": {"function": lambda records: records[0]},
    "code of kernel.step": {"kernel": other_kernel()},
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_checkpoint_of_another_run_is_refused(saved, name):
    with pytest.raises(ValueError, match=rf"checkpoint: given .*differs in .*\b{name}: saved .*, now .*; expected"):
        estimate(checkpoint=saved, **OTHERS[name])


def forge(arrays, **progress):
    return arrays | {"progress": np.array(json.dumps(json.loads(str(arrays["progress"])) | progress))}


FORGED = {
    "no steps": lambda arrays: forge(arrays, steps=0),
    "pairs that wait": lambda arrays: forge(arrays, waiting=39),
    "pairs that there are not": lambda arrays: forge(arrays, waiting=41),
    "steps in words": lambda arrays: forge(arrays, steps="many"),
    "a pair counted twice": lambda arrays: arrays | {"owners": np.zeros_like(arrays["owners"])},
    "fewer results": lambda arrays: arrays | {"results.average": arrays["results.average"][:3]},
    "other flags": lambda arrays: arrays | {"ended": arrays["ended"].astype(int)},
    "no lanes": lambda arrays: {name: leaf for name, leaf in arrays.items() if not name.startswith("lanes")},
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_checkpoint_is_refused(path, saved, name):
    with np.load(saved) as arrays:
        np.savez(path, **FORGED[name](dict(arrays)))
    held = path.read_bytes()
    with pytest.raises(ValueError, match=r"checkpoint: given .*cannot be read.*; expected a checkpoint of"):
        estimate(checkpoint=path)
    assert path.read_bytes() == held


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS])
def test_a_run_that_cannot_be_saved_is_returned_and_leaves_the_last_file(monkeypatch, interrupt, path, whole, error):
    interrupt(2)
    with pytest.raises(KeyboardInterrupt):
        estimate(checkpoint=path)
    held = path.read_bytes()

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError(error, "no")

    interrupt(-1)
    monkeypatch.setattr(np, "savez", fail)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN_SAVES", 0.0)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        assert_same(estimate(checkpoint=path), whole)
    assert ["could not be saved" in str(warning.message) for warning in record] == [True]
    assert path.read_bytes() == held


def test_a_file_in_use_is_refused(path):
    with CheckpointFile(path, {}).held(), pytest.raises(RuntimeError, match="which another run is using"):
        estimate(checkpoint=path)


def test_a_folder_that_is_not_there_is_refused(path):
    with pytest.raises(ValueError, match=r"checkpoint: given .*; expected a file in an existing folder"):
        estimate(checkpoint=path.parent / "nowhere" / "pairs.npz")
