"""A run that stops when it has drawn enough: its draws are the first ones of the whole run, however it is cut."""

import warnings

import jax
import numpy as np
import pytest

import dpjax
from dpjax.mcmc.until import Convergence, assess, check_until, next_check
from dpjax.runtime import run as runtime_run
from dpjax.runtime.progress import Progress

ENOUGH = dpjax.until(ess=400, r_hat=1.01)
LOOKS = [100, 125, 157, 196, 245, 306, 382, 477, 597]


@pytest.fixture(scope="module")
def whole(run, model, release):
    return run(model, release, num_samples=700)


@pytest.fixture(scope="module")
def part(run, model, release):
    return run(model, release, num_samples=700, until=ENOUGH)


def assert_begins(whole, part):
    """Raise unless the draws and reports of one run are the first ones of another."""
    number = part.draws["mean"].shape[1]
    for name, values in part.draws.items():
        np.testing.assert_array_equal(values, whole.draws[name][:, :number])
    np.testing.assert_array_equal(part.info["acceptance_rate"], whole.info["acceptance_rate"][:, :number])


def test_looks_grow_apart_and_depend_on_the_number_of_draws_alone():
    assert next_check(0) == next_check(99) == 100
    assert [next_check(number) for number in LOOKS[:-1]] == LOOKS[1:]


@pytest.mark.x64
def test_a_run_ends_with_the_first_draws_that_are_enough(whole, part):
    assert_begins(whole, part)
    number = part.draws["mean"].shape[1]
    assert number in LOOKS
    table = part.summary()
    assert min(*table.columns["ess_bulk"], *table.columns["ess_tail"]) >= 400
    before = [assess({name: values[:, :look] for name, values in whole.draws.items()}) for look in LOOKS]
    assert [look.ess >= 400 and look.r_hat <= 1.01 for look in before].index(True) == LOOKS.index(number)
    assert not part.interrupted
    assert "; enough for ess=400, r_hat=1.01: smallest effective sample size" in part.describe()
    assert "num_samples" not in whole.describe()


def test_where_it_ends_does_not_depend_on_how_it_is_cut(monkeypatch, part, run, model, release, assert_same):
    monkeypatch.setattr(runtime_run, "next_length", lambda made, seconds: 23)
    assert_same(run(model, release, num_samples=700, until=ENOUGH), part)


def test_a_checkpoint_is_continued_whatever_is_asked_for(tmp_path, whole, part, run, model, release, assert_same):
    options = {"num_samples": 700, "checkpoint": tmp_path / "run.npz"}
    run(model, release, until=ENOUGH, **options)
    again = run(model, release, until=ENOUGH, **options)
    assert_same(again, part)
    assert again.ended == part.ended
    assert_same(run(model, release, **options), whole)


def test_a_run_that_never_is_good_enough_makes_all_draws_and_says_so(whole, run, model, release):
    posterior = run(model, release, num_samples=120, until=dpjax.until(ess=10_000))
    assert posterior.draws["mean"].shape[1] == 120
    assert "all of num_samples were drawn, not enough for ess=10000: smallest effective" in posterior.describe()


def test_time_ends_a_run_after_its_warm_up(whole, run, model, release):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = run(model, release, num_samples=700, until=dpjax.until(seconds=1e-6))
    assert 1 <= posterior.draws["mean"].shape[1] < 700
    assert_begins(whole, posterior)
    assert not posterior.interrupted
    assert "; time was up (seconds=1e-06)" in posterior.describe()


def test_time_that_is_not_up_changes_nothing(run, model, release):
    posterior = run(model, release, until=dpjax.until(seconds=1e6))
    assert posterior.draws["mean"].shape[1] == 60
    assert posterior.ended == "all of num_samples were drawn"


def test_an_interruption_is_still_one(monkeypatch, run, model, release):
    def stop(self, made, phase):
        if phase == "sampling":
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "advance", stop)
    with pytest.warns(UserWarning, match="was interrupted after"):
        posterior = run(model, release, until=ENOUGH)
    assert posterior.interrupted
    assert posterior.ended == ""


def test_a_look_sees_the_worst_number_and_leaves_out_constants():
    values = np.random.default_rng(1).normal(size=(4, 200, 2))
    good = assess({"a": values, "constant": np.ones((4, 200))}, {"a": True, "constant": False})
    assert good.ess > 300
    assert 1 <= good.r_hat < 1.02
    apart = values + np.arange(4)[:, None, None]
    assert assess({"a": values, "b": apart}).r_hat > 1.5
    assert assess({"a": values, "b": np.where(values > 2, np.nan, values)}) == Convergence(0.0, np.inf)


BAD = {
    "until: given no condition": {},
    "ess: given": {"ess": 0},
    "ess: given shape": {"ess": [400, 400]},
    "seconds: given": {"seconds": float("nan")},
    "r_hat: given": {"r_hat": 1.0},
}


@pytest.mark.parametrize("message", BAD)
def test_unusable_conditions_are_refused(message):
    with pytest.raises(ValueError, match=message):
        dpjax.until(**BAD[message])


def test_what_is_no_condition_is_refused_before_anything_is_compiled(run, model, release):
    with pytest.raises(TypeError, match=r"until: given dict; expected a Until\. Pass such as dpjax\.until"):
        run(model, release, until={"ess": 400})
    with pytest.raises(TypeError, match="ess: given an array of"):
        dpjax.until(ess="many")


def test_a_model_without_parameters_has_nothing_to_look_at():
    def sample_records(key, parameters, n):
        return {"y": jax.random.normal(key, (n,))}

    def log_density(parameters, records):
        return records["y"]

    model = dpjax.Model(lambda key: {}, lambda parameters: 0.0, sample_records, log_density)
    with pytest.raises(ValueError, match="for a model without parameters"):
        check_until(ENOUGH, model)
    check_until(ENOUGH, model._replace(reported=lambda records: {"first": records["y"][0]}))


def test_nothing_is_met_while_no_effective_size_is_known():
    """As of the first few hundred draws that are not kept, whose chains may agree by chance."""
    assert not dpjax.until(r_hat=1.2).is_met(Convergence(0.0, 1.0))
    assert dpjax.until(r_hat=1.2).is_met(Convergence(50.0, 1.0))
