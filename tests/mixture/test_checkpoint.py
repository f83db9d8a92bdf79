"""An interrupted run of `mixture.sample` continues to the same draws, and is taken up by no other run."""

import errno
import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import chex
import jax
import numpy as np
import pytest

import dpjax
from dpjax import mixture
from dpjax.mixture.samplers.conditional import Conditional
from dpjax.runtime import fingerprint, run as runtime_run
from dpjax.runtime.checkpoint import CheckpointFile
from dpjax.runtime.progress import Progress

VALUES = np.array([-1.4, -1.0, 0.1, 0.6, 2.0, 2.3])
BASE = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)


def labels_of(state: mixture.MixtureState) -> dict[str, jax.Array]:
    return {"labels": state.labels}


def draw(seed: int = 3, **options: Any) -> mixture.MixturePosterior:
    """A short run; nearly all of them share two compiled programs."""
    settings = {"values": VALUES, "channel": dpjax.Laplace(0.6), "component": BASE, "concentration": 0.3}
    settings |= {"num_chains": 2, "num_warmup": 20, "num_samples": 30, "collect": ("labels",), "progress": False}
    return mixture.sample(jax.random.key(seed), **(settings | options))


def assert_same(one: mixture.MixturePosterior, other: mixture.MixturePosterior) -> None:
    """Raise unless all draws, reports and states agree to the last bit."""
    for name in ("draws", "mixing", "info", "collected", "final_states"):
        chex.assert_trees_all_equal(getattr(one, name), getattr(other, name))
    assert one.interrupted == other.interrupted


def interrupted(**options: Any) -> mixture.MixturePosterior | None:
    """A run that stops before its end, whichever way it tells so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return draw(**options)
        except KeyboardInterrupt:
            return None


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make runs raise KeyboardInterrupt whenever the bar has moved past a number of steps, in chunks of seven draws."""

    def arm(steps: int) -> None:
        total = 0

        def advance(self: Progress, made: int, phase: str) -> None:
            nonlocal total
            total += made
            if total > steps:
                total = 0
                raise KeyboardInterrupt

        monkeypatch.setattr(Progress, "advance", advance)
        monkeypatch.setattr(runtime_run, "next_length", lambda made, seconds: 7)

    return arm


@pytest.fixture
def few_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make chains begin with eight slots."""
    monkeypatch.setattr(Conditional, "first_capacity", lambda self, problem: 8)


@pytest.fixture(scope="module")
def whole() -> mixture.MixturePosterior:
    return draw()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("saved") / "run.npz"
    draw(checkpoint=path)
    return path


@pytest.mark.x64
@pytest.mark.parametrize("steps", [0, 12, 19, 30], ids="after {} steps".format)
def test_a_run_continues_to_the_same_draws(interrupt, monkeypatch, tmp_path, whole, steps):
    path = tmp_path / "run.npz"
    interrupt(steps)
    assert interrupted(checkpoint=path) is None or steps == 30
    monkeypatch.undo()
    monkeypatch.setattr("dpjax.mixture.run.MixtureRun.open", None)  # a continued run needs no starts
    assert_same(draw(checkpoint=path), whole)


@pytest.mark.x64
def test_slots_may_grow_after_a_restart(interrupt, tmp_path):
    """There are many interruptions; with this key the slots grow after half of the draws."""
    options = {"seed": 1, "num_samples": 60, "thin": 2}
    whole, path, slots = draw(**options), tmp_path / "run.npz", []
    interrupt(14)
    while (result := interrupted(checkpoint=path, **options)) is None or result.interrupted:
        with np.load(path) as arrays:
            slots.append(json.loads(str(arrays["progress"]))["slots"])
        assert len(slots) < 20
    assert slots[-1] == 16 == whole.mixing.weights.shape[2]
    assert {8, 16} < set(slots)
    assert_same(result, whole)


def test_a_finished_run_is_read_and_not_made_again(monkeypatch, saved, whole):
    monkeypatch.setattr(runtime_run, "next_length", None)  # which every chunk asks for
    assert_same(draw(checkpoint=saved), whole)


def test_an_interruption_says_how_to_continue(interrupt, tmp_path, whole):
    interrupt(30)
    with pytest.warns(UserWarning, match=r"mixture.sample was interrupted after 14 of 30 draws\. Call again .*run.npz"):
        part = draw(checkpoint=tmp_path / "run.npz")
    np.testing.assert_array_equal(part.collected["labels"], whole.collected["labels"][:, :14])
    interrupt(0)
    with pytest.raises(KeyboardInterrupt, match=r"mixture.sample was interrupted in warm-up, .* pass `checkpoint`"):
        draw()


OTHERS: dict[str, dict[str, Any]] = {
    "key": {"seed": 2},
    "num_chains": {"num_chains": 3},
    "num_warmup": {"num_warmup": 21},
    "num_samples": {"num_samples": 31},
    "thin": {"thin": 2},
    "values": {"values": VALUES + 1},
    "channel.scale": {"channel": dpjax.Laplace(0.7)},
    "code of channel": {"channel": dpjax.Gaussian(0.6)},
    "component.mean": {"component": mixture.NormalInverseGamma(1.0, 0.1, 3.0, 3.0)},
    "concentration": {"concentration": 0.4},
    "concentration.shape": {"concentration": dpjax.models.GammaPrior(1.0, 1.0)},
    "discount": {"discount": 0.25},
    "sampler.proposals": {"sampler": mixture.conditional(proposals=2)},
    "code of sampler": {"sampler": mixture.neal8()},
    "code of collect": {"collect": labels_of},
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_checkpoint_of_another_run_is_refused(saved, name):
    with pytest.raises(ValueError, match=rf"checkpoint: given .*differs in .*\b{name}: saved .*, now .*; expected"):
        draw(checkpoint=saved, **OTHERS[name])


def test_the_checkpoint_of_another_version_is_refused(monkeypatch, saved):
    monkeypatch.setattr(fingerprint, "installed_version", lambda: "99.0")
    with pytest.raises(ValueError, match=r"dpjax version: saved .*, now 99.0"):
        draw(checkpoint=saved)


def forge(arrays: dict[str, np.ndarray], **progress: Any) -> dict[str, np.ndarray]:
    return arrays | {"progress": np.array(json.dumps(json.loads(str(arrays["progress"])) | progress))}


FORGED: dict[str, Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]] = {
    "more draws than there are": lambda arrays: forge(arrays, filled=31),
    "a segment that is not": lambda arrays: forge(arrays, segment=2),
    "draws in words": lambda arrays: forge(arrays, filled="all"),
    "no slots": lambda arrays: forge(arrays, slots=0),
    "other slots": lambda arrays: forge(arrays, slots=64),
    "slots in words": lambda arrays: forge(arrays, needed="many"),
    "no progress": lambda arrays: arrays | {"progress": np.array("{}")},
    "fewer draws": lambda arrays: arrays | {"draws.concentration": arrays["draws.concentration"][:, :3]},
    "other draws": lambda arrays: arrays | {"draws.mixing.weights": arrays["draws.mixing.weights"].astype("float16")},
    "other labels": lambda arrays: arrays | {"states.labels": np.zeros((2, 7), np.int32)},
    "no records": lambda arrays: {name: leaf for name, leaf in arrays.items() if name != "states.records"},
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_checkpoint_is_refused(tmp_path, saved, name):
    path = tmp_path / "run.npz"
    with np.load(saved) as arrays:
        np.savez(path, **FORGED[name](dict(arrays)))
    held = path.read_bytes()
    with pytest.raises(ValueError, match=r"checkpoint: given .*cannot be read.*; expected a checkpoint of"):
        draw(checkpoint=path)
    assert path.read_bytes() == held


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS])
def test_a_run_that_cannot_be_saved_is_returned(monkeypatch, tmp_path, whole, error):
    def fail(file: Any, **arrays: Any) -> None:
        raise OSError(error, "no")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.warns(UserWarning, match=r"could not be saved in .*run.npz.*Its draws are returned"):
        assert_same(draw(checkpoint=tmp_path / "run.npz"), whole)


def test_a_file_in_use_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    with CheckpointFile(path, {}).held(), pytest.raises(RuntimeError, match="which another run is using"):
        draw(checkpoint=path)


@pytest.mark.x64
def test_a_function_collects_what_names_do(few_slots):
    named, posterior = draw(num_warmup=0), draw(num_warmup=0, collect=labels_of)
    np.testing.assert_array_equal(posterior.collected["labels"], named.collected["labels"])
    np.testing.assert_array_equal(posterior.co_clustering(), named.co_clustering())
    with pytest.raises(ValueError, match=r"^collect: given a run without labels"):
        replace(posterior, collected=None).co_clustering()
