"""Posteriors of independent runs are put together, unless they are not independent or not alike."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import dpjax
from dpjax.posterior.posterior import Posterior


@pytest.fixture(scope="module")
def runs(run, model, release):
    return [run(model, release, seed, num_chains=2, collect=first_record) for seed in (1, 2)]


def first_record(state):
    return {"y": state.latent.records["y"][0]}


@pytest.mark.x64
def test_chains_of_all_runs_stand_side_by_side(runs):
    joined = Posterior.concat(runs)
    for part in ("draws", "info", "collected", "final_states"):
        both = zip(*(jax.tree.leaves(getattr(each, part)) for each in (joined, *runs)), strict=True)
        for leaf, *parts in both:
            np.testing.assert_array_equal(leaf, np.concatenate(parts))
    assert joined.draws["mean"].shape == (4, 60)
    assert joined.keys == runs[0].keys + runs[1].keys
    assert len(set(joined.keys)) == 4
    assert not joined.interrupted
    assert Posterior.concat([replace(runs[0], interrupted=True), runs[1]]).interrupted
    assert joined.ended == ""
    assert Posterior.concat([replace(run, ended="Time was up.") for run in runs]).ended == "Time was up."


@pytest.mark.filterwarnings("ignore:.*effective sample size")
def test_what_is_joined_is_a_posterior_like_any_other(runs):
    joined = Posterior.concat(runs)
    assert repr(joined).startswith("Posterior: 4 chains of 60 draws of mean")
    both = np.concatenate([run.draws["mean"] for run in runs])
    assert joined.summary()["mean"]["mean"] == pytest.approx(both.mean())
    assert joined.predict(jax.random.key(3), 5).values.shape == (5, 1)
    assert Posterior.concat([joined]).keys == joined.keys


@pytest.mark.x64
def test_a_chain_is_not_counted_twice(runs, run, model, release):
    for again in (runs[0], Posterior.concat(runs), run(model, release, 1, num_chains=4, collect=first_record)):
        with pytest.raises(ValueError, match=r"posteriors: given runs \[0, 1\], which have chains of the same key"):
            Posterior.concat([runs[0], again])


def test_a_model_and_a_release_of_the_same_content_are_the_same(runs):
    copied = jax.tree.map(lambda leaf: leaf, runs[1].release)
    other = replace(runs[1], model=runs[1].model._replace(), release=copied)
    assert other.model is not runs[0].model
    Posterior.concat([runs[0], other])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda run: {"model": run.model._replace(derived=None)}, "model"),
        (lambda run: {"release": replace(run.release, value=run.release.value + 1)}, "release"),
        (lambda run: {"plan": replace(run.plan, interweave=False)}, "plan"),
        (lambda run: {"collected": None}, "collected"),
        (lambda run: {"draws": {name: leaf[:, 1:] for name, leaf in run.draws.items()}}, "draws"),
    ],
)
def test_runs_that_differ_are_refused_by_what_differs(runs, change, what):
    with pytest.raises(ValueError, match=rf"posteriors: given run 1, which differs from run 0 in {what}; .* the key"):
        Posterior.concat([runs[0], replace(runs[1], **change(runs[1]))])


@pytest.mark.parametrize("given", [[], None, "posterior", [1, 2]])
def test_what_is_no_list_of_posteriors_is_refused(given):
    with pytest.raises(TypeError, match=r"^posteriors: given .* expected a list of dpjax.Posterior"):
        Posterior.concat(given)


def imputed_by(imputation):
    return {"imputation": imputation, "interweave": False}


OPTIONS = {
    "scan": ("imputation.scan", imputed_by(dpjax.imwg()), imputed_by(dpjax.imwg(scan="random"))),
    "attempts": ("imputation.attempts", imputed_by(dpjax.soma(2)), imputed_by(dpjax.soma(8))),
    "chosen attempts": ("imputation.attempts", imputed_by(dpjax.soma(2)), imputed_by(dpjax.soma("auto"))),
    "thin": ("thin", {}, {"thin": 2}),
    "num_warmup": ("num_warmup", {}, {"num_warmup": 50}),
    "initial": ("initial", {}, {"initial": {"mean": np.zeros(2)}}),
}


@pytest.mark.x64
@pytest.mark.parametrize("name", OPTIONS)
def test_runs_of_other_options_are_refused_by_the_name_of_the_option(run, model, release, name):
    what, one, other = OPTIONS[name]
    short = {"num_chains": 2, "num_samples": 10}
    runs = [run(model, release, seed, **short, **options) for seed, options in enumerate((one, other))]
    with pytest.raises(ValueError, match=rf"run 1, which differs from run 0 in {what}[;,]"):
        Posterior.concat(runs)
    again = run(model, release, 7, **short, **other)
    assert Posterior.concat([runs[1], again]).settings == again.settings


@pytest.mark.x64
def test_entries_of_batches_of_other_options_are_refused(model, release):
    short = {"num_warmup": 20, "num_samples": 10, "num_chains": 2, "progress": False}
    batches = [
        dpjax.sample_batch(jax.random.key(seed), model, [release], **short | options)
        for seed, options in enumerate(({}, {}, {"thin": 2}))
    ]
    Posterior.concat([batches[0][0], batches[1][0]])
    with pytest.raises(ValueError, match="differs from run 0 in thin;"):
        Posterior.concat([batches[0][0], batches[2][0]])
