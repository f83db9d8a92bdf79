"""`mixture.sample` with the marginal samplers: slots that run out, strange values, and what is refused."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

import dpjax
from dpjax import mixture
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.samplers import SAMPLERS
from dpjax.mixture.samplers.marginal import Marginal
from dpjax.mixture.samplers.neal5 import Neal5
from dpjax.models import GammaPrior
from tests.mixture.two_points import TwoPoints

VALUES = np.array([-1.4, -1.0, 0.1, 0.6, 2.0, 2.3])
LAPLACE = dpjax.Laplace(0.6)
GAUSSIAN = dpjax.Gaussian(0.6)
BASE = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
TRUNCATED = mixture.TruncatedNormalInverseGamma(0.0, 0.1, 3.0, 3.0)


def draw(sampler: Any, values: np.ndarray = VALUES, **options: Any) -> mixture.MixturePosterior:
    settings = {"num_chains": 2, "num_warmup": 0, "num_samples": 40, "progress": False}
    settings |= {"channel": LAPLACE, "component": BASE, "concentration": 0.3, "collect": ("labels", "records")}
    return mixture.sample(jax.random.key(3), values, sampler=sampler, **(settings | options))


def check_draws(posterior: mixture.MixturePosterior) -> None:
    number = posterior.draws["num_clusters"]
    assert number.shape == (2, 40)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(posterior.mixing))
    assert np.all(np.isfinite(posterior.collected["records"]))
    assert np.all(posterior.mixing.remainder < 1e-3)
    assert np.all(posterior.info["num_nonfinite"] == 0)
    found = [[len(set(row)) for row in chain] for chain in posterior.collected["labels"]]
    np.testing.assert_array_equal(found, number)


@pytest.mark.x32
@pytest.mark.parametrize(
    "values",
    [VALUES, np.zeros(6), np.array([-1e6, 0.0, 0.0, 0.1, 0.2, 1e6])],
    ids=["ordinary", "identical", "far outside"],
)
@pytest.mark.filterwarnings("ignore::dpjax.release.PrecisionWarning")
def test_any_values_give_finite_draws(values: np.ndarray) -> None:
    check_draws(draw(mixture.neal5(), values))


OTHERS: dict[str, dict[str, Any]] = {
    "neal2": {"component": TRUNCATED, "channel": GAUSSIAN},
    "neal3": {"component": TRUNCATED, "channel": GAUSSIAN},
    "neal8": {},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpjax.release.PrecisionWarning")
@pytest.mark.parametrize("sampler", OTHERS)
def test_the_others_draw_too(sampler: str) -> None:
    check_draws(draw(SAMPLERS[sampler](), **OTHERS[sampler]))
    check_draws(draw(SAMPLERS[sampler](), np.array([-1e6, 0.0, 0.0, 0.1, 0.2, 1e6]), **OTHERS[sampler]))


@pytest.mark.slow
def test_all_auxiliaries_can_be_collected() -> None:
    posterior = draw(mixture.neal5(3, redraw=False))
    check_draws(posterior)
    assert posterior.collected["records"].shape == (2, 40, 6, 3)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["neal3", "neal5", "neal8"])
def test_a_sweep_made_again_with_more_slots_is_the_same(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for capacity in (16, 64):
        monkeypatch.setattr(Marginal, "first_capacity", lambda self, problem, capacity=capacity: capacity)
        found.append(draw(SAMPLERS[sampler](), concentration=2.0, **OTHERS.get(sampler, {})))
        check_draws(found[-1])
    grown, wide = found
    assert 16 < grown.mixing.weights.shape[2] < 64
    np.testing.assert_array_equal(grown.collected["labels"], wide.collected["labels"])


def test_a_large_concentration_gets_slots_at_once() -> None:
    problem = MixtureProblem(np.zeros(50), LAPLACE, BASE, np.array(40.0))
    assert 300 < Neal5().first_capacity(problem) < 500
    assert Neal5().first_capacity(replace(problem, concentration=GammaPrior(2.0, 4.0))) == 32


REFUSED = [
    ({"sampler": "neal8"}, TypeError, "sampler"),
    ({"sampler": mixture.neal8}, TypeError, "sampler"),
    ({"sampler": mixture.neal2()}, ValueError, "sampler"),
    ({"sampler": mixture.neal3()}, ValueError, "sampler"),
    ({"sampler": mixture.neal3(), "channel": GAUSSIAN}, ValueError, "sampler"),
    ({"sampler": mixture.neal3(), "channel": None, "component": TwoPoints()}, ValueError, "sampler"),
    ({"sampler": mixture.neal8(), "component": TwoPoints()}, ValueError, "sampler"),
    ({"sampler": mixture.neal5(), "channel": None}, ValueError, "sampler"),
    ({"sampler": mixture.neal5(), "channel": GAUSSIAN, "component": TRUNCATED}, ValueError, "sampler"),
]


@pytest.mark.x64
@pytest.mark.parametrize(("change", "error", "argument"), REFUSED)
def test_what_does_not_go_together_is_refused(change: dict[str, Any], error: Any, argument: str) -> None:
    settings = {"values": VALUES, "channel": LAPLACE, "component": BASE, "concentration": 1.0}
    with pytest.raises(error, match=rf"^{argument}: given"):
        mixture.gibbs(**(settings | change))


BAD_CHOICES = [
    (lambda: mixture.neal5(0), ValueError, "auxiliaries"),
    (lambda: mixture.neal5(redraw="no"), TypeError, "redraw"),
    (lambda: mixture.neal8(0), ValueError, "auxiliaries"),
]


@pytest.mark.parametrize(("make", "error", "argument"), BAD_CHOICES)
def test_unusable_choices_are_refused(make: Any, error: Any, argument: str) -> None:
    with pytest.raises(error, match=rf"^{argument}: given"):
        make()
