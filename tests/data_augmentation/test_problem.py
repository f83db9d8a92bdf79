"""The form of the latent data is asked for once in a call, and never again of its result."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.data_augmentation.records.imwg import IMwG

KEY = jax.random.key(3)
MODEL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
TOTAL = dpjax.statistics.total("y", -4.0, 4.0)
RELEASE, OTHER = (dpjax.Release(jnp.array([value]), dpjax.Laplace(2.0), TOTAL, n=8) for value in (4.0, -9.0))
SWEEP: dict[str, Any] = {"interweave": False}
QUIET: dict[str, Any] = {"progress": False}
SHORT: dict[str, Any] = {
    "num_chains": 2,
    "num_warmup": 0,
    "num_samples": 4,
    "progress": False,
    "refresh": False,
    **SWEEP,
}


def asked() -> None:
    """A posterior, and all that it derives from the form of its latent data."""
    posterior = dpjax.sample(KEY, MODEL, RELEASE, **SHORT)
    assert posterior.describe()
    assert posterior.remedy
    posterior.predict(KEY)
    posterior.completed(KEY, 2)


def tested() -> None:
    draws = {"mean": np.random.default_rng(2).normal(size=(4, 50))}
    known: dict[str, Any] = {"approximate": False, "final_states": None, "tuning": None, "plan": None}
    rates = {"acceptance_rate": np.ones((4, 50))}
    posterior = dpjax.Posterior(draws, rates, None, False, MODEL, RELEASE, **known)
    dpjax.invariance_test(KEY, posterior, num_sweeps=1, num_warmup=1, progress=False, **SWEEP)


CALLS: dict[str, tuple[Callable[[], Any], int]] = {
    "gibbs": (lambda: dpjax.gibbs(MODEL, RELEASE), 1),
    "impute": (lambda: dpjax.impute(MODEL, RELEASE, {"mean": np.array(0.0)}), 1),
    "sample": (asked, 1),
    "sample_batch": (lambda: dpjax.sample_batch(KEY, MODEL, [RELEASE, OTHER, RELEASE], **SHORT), 3),
    "sample_smc": (
        lambda: dpjax.sample_smc(KEY, MODEL, RELEASE, num_particles=4, num_islands=2, num_sweeps=1, **SWEEP),
        1,
    ),
    "maximum_likelihood": (
        lambda: dpjax.maximum_likelihood(KEY, MODEL, RELEASE, num_chains=8, num_steps=64, progress=False),
        1,
    ),
    "sbc": (
        lambda: dpjax.sbc(KEY, MODEL, RELEASE, num_replicates=20, num_draws=4, thin=1, num_warmup=1, **SWEEP),
        1,
    ),
    "invariance_test": (tested, 1),
}


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The releases that IMwG was asked to form."""
    right, found = IMwG.form, []

    def watched(self: IMwG, model: Any, release: Any) -> Any:
        found.append(release)
        return right(self, model, release)

    monkeypatch.setattr(IMwG, "form", watched)
    return found


@pytest.mark.x64
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_the_form_is_asked_for_once(forms: list[Any], name: str) -> None:
    call, number = CALLS[name]
    call()
    assert len(forms) == number


@pytest.fixture(scope="module")
def posterior() -> dpjax.Posterior:
    """A short run."""
    return dpjax.sample(KEY, MODEL, RELEASE, **SHORT)


@pytest.mark.x64
def test_another_release_has_another_problem(posterior: dpjax.Posterior) -> None:
    assert posterior.problem.given_release is RELEASE
    changed = replace(posterior, release=OTHER)
    assert changed.problem.given_release is changed.problem.release is OTHER


@pytest.mark.x64
def test_a_saved_result_derives_the_form_again(posterior: dpjax.Posterior, forms: list[Any], tmp_path: Path) -> None:
    posterior.save(tmp_path / "posterior.dpjax")
    for read in (pickle.loads(pickle.dumps(posterior)), dpjax.load(tmp_path / "posterior.dpjax")):
        assert "problem" not in vars(read)
        assert read.problem.plan == posterior.plan
    assert len(forms) == 2


def test_an_imputation_that_builds_no_kernel_is_refused() -> None:
    with pytest.raises(TypeError, match=r"imputation: given no_kernel, which returns None; expected a func"):
        dpjax.gibbs(MODEL, RELEASE, no_kernel)


def no_kernel(model: Any, release: Any) -> Any:
    """Nothing."""
