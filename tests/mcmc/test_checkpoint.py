"""An interrupted run keeps its draws, continues to the same draws, and is taken up by no other run."""

import sys
import warnings

import jax
import numpy as np
import pytest

from dpjax.data_augmentation.records import soma
from dpjax.mcmc import run as mcmc_run, starts
from dpjax.mechanisms import Laplace
from dpjax.release import Release
from dpjax.runtime import fingerprint as fingerprint_module, run as runtime_run
from dpjax.runtime.progress import Progress
from dpjax.runtime.run import next_length


@pytest.fixture
def interrupt(monkeypatch):
    """Make runs raise KeyboardInterrupt when the bar has moved past a number of steps, in chunks of seven draws."""

    def arm(steps: int) -> None:
        total = 0

        def advance(self, made: int, phase: str) -> None:
            nonlocal total
            total += made
            if total > steps:
                raise KeyboardInterrupt

        monkeypatch.setattr(Progress, "advance", advance)
        monkeypatch.setattr(runtime_run, "next_length", lambda made, seconds: 7)

    return arm


def interrupted_run(run, *arguments, **options):
    """A run that stops before its end, whichever way it tells so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return run(*arguments, **options)
        except KeyboardInterrupt:
            return None


def test_an_interruption_keeps_what_was_drawn(interrupt, monkeypatch, run, model, release):
    whole = run(model, release)
    interrupt(120)
    with pytest.warns(UserWarning, match="interrupted after 21 of 60 draws"):
        part = run(model, release)
    assert part.interrupted
    assert not whole.interrupted
    np.testing.assert_array_equal(part.draws["mean"], whole.draws["mean"][:, :21])
    rates = part.info["acceptance_rate"], part.info["acceptance_rate_per_record"]
    np.testing.assert_allclose(rates[0].mean(1), rates[1].mean(1), rtol=1e-6)
    np.testing.assert_array_equal(part.final_states.parameters["mean"], part.draws["mean"][:, -1])


def test_an_interruption_inside_a_chunk_keeps_the_chunks_before(monkeypatch, run, model, release):
    whole = run(model, release)
    calls = []

    def broken(*arguments, **options):
        calls.append(arguments)
        if len(calls) > 15:
            raise KeyboardInterrupt
        return mcmc_run.run_chunk(*arguments, **options)

    broken.eval_shape, broken.lower = mcmc_run.run_chunk.eval_shape, mcmc_run.run_chunk.lower
    monkeypatch.setattr("dpjax.mcmc.run.PosteriorRun.PROGRAM", staticmethod(broken))
    monkeypatch.setattr(runtime_run, "next_length", lambda made, seconds: 7)
    with pytest.warns(UserWarning, match="interrupted after"):
        part = run(model, release)
    made = part.draws["mean"].shape[1]
    assert 0 < made < 60
    np.testing.assert_array_equal(part.draws["mean"], whole.draws["mean"][:, :made])


def test_an_interruption_in_warmup_says_that_nothing_was_drawn(interrupt, run, model, release):
    interrupt(30)
    with pytest.raises(KeyboardInterrupt, match=r"interrupted in warm-up.*Nothing was drawn"):
        run(model, release)


@pytest.mark.parametrize("steps", [0, 10, 50, 97, 100, 130], ids="after {} steps".format)
def test_a_run_continues_to_the_same_draws(interrupt, monkeypatch, tmp_path, run, model, release, assert_same, steps):
    whole, path = run(model, release), tmp_path / "run.npz"
    interrupt(steps)
    interrupted_run(run, model, release, checkpoint=path)
    assert path.exists()
    monkeypatch.undo()
    monkeypatch.setattr(starts, "search", None)  # a continued run needs no starts
    assert_same(run(model, release, checkpoint=path), whole)
    assert [file.name for file in tmp_path.iterdir() if file.suffix != ".lock"] == ["run.npz"]


@pytest.mark.x64
@pytest.mark.parametrize("steps", [0, 50, 130], ids="after {} steps".format)
def test_a_run_with_a_step_size_continues_to_the_same_draws(
    interrupt, monkeypatch, tmp_path, run, model, release, assert_same, steps
):
    options = {"parameter_kernel": "nuts"}
    whole, path = run(model, release, **options), tmp_path / "run.npz"
    interrupt(steps)
    interrupted_run(run, model, release, checkpoint=path, **options)
    monkeypatch.undo()
    monkeypatch.setattr("dpjax.mcmc.run.PosteriorRun.open", None)
    assert_same(run(model, release, checkpoint=path, **options), whole)


@pytest.mark.x64
def test_a_run_interrupted_at_every_chunk(interrupt, monkeypatch, tmp_path, run, model, release, assert_same):
    """The worst case, with everything that a checkpoint may hold: tuned attempts, thinning and collected records."""
    options = {"imputation": soma("auto"), "interweave": False, "collect": records_of, "thin": 2, "num_samples": 20}
    whole, path = run(model, release, **options), tmp_path / "run.npz"
    interrupt(0)
    calls = 0
    while (result := interrupted_run(run, model, release, checkpoint=path, **options)) is None or result.interrupted:
        calls += 1
        assert calls < 100
    assert calls > 10
    assert_same(result, whole)


def records_of(state):
    return state.latent.records["y"]


def test_a_finished_run_is_read_and_not_made_again(monkeypatch, tmp_path, run, model, release, assert_same):
    whole = run(model, release, checkpoint=tmp_path / "run.npz")
    monkeypatch.setattr(runtime_run, "next_length", None)  # which every chunk asks for
    assert_same(run(model, release, checkpoint=tmp_path / "run.npz"), whole)


def test_a_run_is_saved_from_time_to_time(monkeypatch, tmp_path, run, model, release):
    saved = []
    monkeypatch.setattr("dpjax.runtime.checkpoint.SECONDS_BETWEEN_SAVES", 0.0)
    monkeypatch.setattr(
        "dpjax.runtime.checkpoint.PeriodicCheckpoint.save", lambda self, status: saved.append(status.filled)
    )
    monkeypatch.setattr(runtime_run, "next_length", lambda made, seconds: 20)
    run(model, release, checkpoint=tmp_path / "run.npz")
    assert saved[-3:] == [20, 40, 60]


def narrow_prior(parameters):
    return jax.scipy.stats.norm.logpdf(parameters["mean"], 0.0, 1.0)


def other_statistic(record):
    return 2 * record["y"][None]


def other_update(key, parameters, records):
    return parameters


OTHERS = {
    "num_samples": {"num_samples": 61},
    "num_warmup": {"num_warmup": 101},
    "thin": {"thin": 2},
    "num_chains": {"num_chains": 3},
    "key": {"seed": 2},
    "code of collect": {"collect": records_of},
    "initial.mean": {"initial": {"mean": np.zeros(4)}},
    "code of plan.imputation": {"imputation": soma()},
    "plan.interweave": {"interweave": False},
    "plan.parameter_kernel": {"parameter_kernel": "nuts"},
    "release.value": {
        "release": lambda release: Release(release.value + 1, release.mechanism, release.statistic, n=20)
    },
    "release.mechanism.scale": {
        "release": lambda release: Release(release.value, Laplace(3.0), release.statistic, n=20)
    },
    "code of release.mechanism": {
        "release": lambda release: Release(release.value, Laplace(release.mechanism.scale), release.statistic, n=20)
    },
    "code of model.functions.update": {"model": lambda model: model._replace(update=other_update)},
    "release": {"release": lambda release: Release(release.value, release.mechanism, release.statistic, n=21)},
    "model.statistic": {"release": lambda release: Release(release.value, release.mechanism, other_statistic, n=20)},
    "model.log_prior": {"model": lambda model: model._replace(log_prior=narrow_prior)},
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory, run, model, release):
    path = tmp_path_factory.mktemp("checkpoint") / "run.npz"
    run(model, release, checkpoint=path)
    return path


@pytest.mark.x64
@pytest.mark.parametrize("name", OTHERS)
def test_the_checkpoint_of_another_run_is_refused(saved, run, model, release, name):
    options = dict(OTHERS[name])
    model = options.pop("model", lambda same: same)(model)
    release = options.pop("release", lambda same: same)(release)
    with pytest.raises(
        ValueError, match=rf"checkpoint: given .*differs in .*\b{name}: saved .*, now .*; expected"
    ) as error:
        run(model, release, checkpoint=saved, **options)
    assert "Pass another path" in str(error.value)


@pytest.mark.x64
def test_the_checkpoint_of_another_collect_is_refused(tmp_path, run, model, release):
    run(model, release, checkpoint=tmp_path / "run.npz", collect=lambda state: state.latent.records["y"][0])
    with pytest.raises(ValueError, match=r"differs in code of collect: saved .*<lambda> \w+, now .*<lambda> \w+;"):
        run(model, release, checkpoint=tmp_path / "run.npz", collect=lambda state: state.latent.records["y"][1])


def test_the_checkpoint_of_another_version_is_refused(monkeypatch, saved, run, model, release):
    monkeypatch.setattr(fingerprint_module, "installed_version", lambda: "99.0")
    with pytest.raises(ValueError, match=r"dpjax version: saved .*, now 99.0"):
        run(model, release, checkpoint=saved)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04 broken"])
def test_a_file_that_is_no_checkpoint_is_refused(tmp_path, run, model, release, content):
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"checkpoint: given .*cannot be read"):
        run(model, release, checkpoint=path)
    assert path.read_bytes() == content


def test_another_archive_is_refused(tmp_path, run, model, release):
    np.savez(tmp_path / "run.npz", values=np.zeros(3))
    with pytest.raises(ValueError, match="which is no checkpoint"):
        run(model, release, checkpoint=tmp_path / "run.npz")


def test_a_checkpoint_holds_no_pickles(saved):
    with np.load(saved, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)


def test_the_bar_is_silent_where_there_is_no_terminal(capsys, run, model, release):
    run(model, release, progress=True)
    assert capsys.readouterr() == ("", "")


def test_the_bar_moves_on_a_terminal(capsys, monkeypatch, run, model, release):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    run(model, release, progress=True)
    assert "160/160" in capsys.readouterr().err
    run(model, release, progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("length", "seconds", "expected"),
    [(1, 10.0, 1), (1, 0.001, 8), (100, 0.25, 100), (100, 1.0, 25), (100, 0.125, 200)],
)
def test_the_next_length_aims_at_a_quarter_of_a_second(length, seconds, expected):
    assert next_length(length, seconds) == expected
