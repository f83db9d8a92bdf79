"""A run of `mixture.sample` that stops when it has drawn enough: its draws are the first ones of the whole run."""

import numpy as np
import pytest

import dpjax
from dpjax import mixture
from dpjax.mcmc.until import assess
from dpjax.models import GammaPrior
from tests.mixture.test_checkpoint import assert_same, draw

ENOUGH = dpjax.until(ess=60, r_hat=1.1)
OPTIONS = {"num_samples": 400, "concentration": GammaPrior(2.0, 4.0)}


@pytest.fixture(scope="module")
def whole() -> mixture.MixturePosterior:
    return draw(**OPTIONS)


@pytest.fixture(scope="module")
def part() -> mixture.MixturePosterior:
    return draw(**OPTIONS, until=ENOUGH)


def is_enough(draws: dict[str, np.ndarray]) -> bool:
    return ENOUGH.is_met(assess(draws))


@pytest.mark.x64
def test_a_run_ends_with_the_first_draws_that_are_enough(whole, part):
    number = part.draws["num_clusters"].shape[1]
    first = {name: values[:, :number] for name, values in whole.draws.items()}
    for name, values in first.items():
        np.testing.assert_array_equal(part.draws[name], values)
    np.testing.assert_array_equal(part.collected["labels"], whole.collected["labels"][:, :number])
    looks = [look for look in (100, 125, 157, 196, 245, 306, 382) if look <= number]
    enough = [is_enough({name: values[:, :look] for name, values in whole.draws.items()}) for look in looks]
    assert looks[-1] == number < 400
    assert enough.index(True) == len(looks) - 1
    assert part.ended.startswith("enough for ess=60, r_hat=1.1: smallest effective sample size")
    assert (part.interrupted, whole.ended) == (False, "")


def test_a_checkpoint_is_continued_whatever_is_asked_for(tmp_path, whole, part):
    file = {"checkpoint": tmp_path / "run.npz"}
    assert_same(draw(**OPTIONS, **file, until=ENOUGH), part)
    assert_same(draw(**OPTIONS, **file, until=ENOUGH), part)
    assert_same(draw(**OPTIONS, **file), whole)


def test_time_ends_a_run_after_its_warm_up(whole):
    posterior = draw(**OPTIONS, until=dpjax.until(seconds=1e-6))
    number = posterior.draws["concentration"].shape[1]
    np.testing.assert_array_equal(posterior.draws["concentration"], whole.draws["concentration"][:, :number])
    assert 1 <= number < 400
    assert posterior.ended == "time was up (seconds=1e-06)"


def test_what_is_no_condition_is_refused_by_name():
    with pytest.raises(TypeError, match=r"^until: given .*; expected .*Until"):
        draw(until=400)
