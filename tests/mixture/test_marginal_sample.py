"""`mixture.sample` with the marginal samplers: slots that run out, strange values, and what is refused."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

import dpjax
from dpjax import mixture
from dpjax.mixture import schemes
from dpjax.mixture.samplers.conditional import Problem
from dpjax.models import GammaPrior
from tests.mixture.two_points import TwoPoints

VALUES = np.array([-1.4, -1.0, 0.1, 0.6, 2.0, 2.3])
LAPLACE = dpjax.Laplace(0.6)
GAUSSIAN = dpjax.Gaussian(0.6)
BASE = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
TRUNCATED = mixture.TruncatedNormalInverseGamma(0.0, 0.1, 3.0, 3.0)


def draw(sampler: Any, values: np.ndarray = VALUES, **options: Any) -> mixture.MixturePosterior:
    settings = {"num_chains": 2, "num_warmup": 0, "num_samples": 40, "progress": False}
    settings |= {"channel": LAPLACE, "base": BASE, "concentration": 0.3, "collect": ("labels", "records")}
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


@pytest.mark.parametrize(
    "values",
    [VALUES, np.zeros(6), np.array([-1e6, 0.0, 0.0, 0.1, 0.2, 1e6])],
    ids=["ordinary", "identical", "far outside"],
)
@pytest.mark.filterwarnings("ignore::dpjax.PrecisionWarning")
def test_any_values_give_finite_draws(values: np.ndarray) -> None:
    check_draws(draw("neal5", values))


OTHERS: dict[str, dict[str, Any]] = {
    "neal2": {"base": TRUNCATED, "channel": GAUSSIAN},
    "neal3": {"base": TRUNCATED, "channel": GAUSSIAN},
    "neal8": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("sampler", OTHERS)
def test_the_others_draw_too(sampler: str) -> None:
    check_draws(draw(sampler, **OTHERS[sampler]))
    check_draws(draw(sampler, np.array([-1e6, 0.0, 0.0, 0.1, 0.2, 1e6]), **OTHERS[sampler]))


@pytest.mark.slow
def test_all_auxiliaries_can_be_collected() -> None:
    posterior = draw("neal5", auxiliaries=3, redraw=False)
    check_draws(posterior)
    assert posterior.collected["records"].shape == (2, 40, 6, 3)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["neal3", "neal5", "neal8"])
def test_a_sweep_made_again_with_more_slots_is_the_same(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for capacity in (16, 64):
        monkeypatch.setattr(schemes, "first_capacity", lambda problem, capacity=capacity: capacity)
        found.append(draw(sampler, concentration=2.0, **OTHERS.get(sampler, {})))
        check_draws(found[-1])
    grown, wide = found
    assert 16 < grown.mixing.weights.shape[2] < 64
    np.testing.assert_array_equal(grown.collected["labels"], wide.collected["labels"])


def test_a_large_concentration_gets_slots_at_once() -> None:
    problem = Problem(np.zeros(50), LAPLACE, BASE, np.array(40.0))
    assert 300 < schemes.first_capacity(problem) < 500
    assert schemes.first_capacity(replace(problem, concentration=GammaPrior(2.0, 4.0))) == 32


REFUSED = [
    ({"sampler": "neal4"}, ValueError, "sampler"),
    ({"sampler": "neal2"}, ValueError, "sampler"),
    ({"sampler": "neal3"}, ValueError, "sampler"),
    ({"sampler": "neal3", "channel": GAUSSIAN}, ValueError, "sampler"),
    ({"sampler": "neal3", "channel": None, "base": None, "kernel": TwoPoints()}, ValueError, "sampler"),
    ({"sampler": "neal8", "base": None, "kernel": TwoPoints()}, ValueError, "sampler"),
    ({"sampler": "neal5", "channel": None}, ValueError, "sampler"),
    ({"sampler": "neal5", "channel": GAUSSIAN, "base": TRUNCATED}, ValueError, "sampler"),
    ({"sampler": "neal5", "weights": "stick"}, ValueError, "weights"),
    ({"sampler": "neal5", "truncation": 20}, ValueError, "truncation"),
    ({"sampler": "neal5", "offers": 2}, ValueError, "offers"),
    ({"sampler": "neal5", "auxiliaries": 0}, ValueError, "auxiliaries"),
    ({"sampler": "neal5", "redraw": "no"}, TypeError, "redraw"),
    ({"sampler": "neal8", "redraw": False}, ValueError, "redraw"),
    ({"sampler": "neal3", "channel": None, "auxiliaries": 2}, ValueError, "auxiliaries"),
    ({"sampler": "conditional", "auxiliaries": 2}, ValueError, "auxiliaries"),
    ({"sampler": "conditional", "redraw": False}, ValueError, "redraw"),
]


@pytest.mark.parametrize(("change", "error", "argument"), REFUSED)
def test_what_does_not_go_together_is_refused(change: dict[str, Any], error: Any, argument: str) -> None:
    settings = {"values": VALUES, "channel": LAPLACE, "base": BASE, "concentration": 1.0, "progress": False}
    with pytest.raises(error, match=rf"^{argument}: given"):
        mixture.sample(jax.random.key(0), **(settings | change))
