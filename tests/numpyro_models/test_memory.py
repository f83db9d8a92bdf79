"""A NumPyro model that is passed on again is the model that it was, with its programs, unless what it reads changes."""

from threading import Lock

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import dpjax
from dpjax.adapters.numpyro import model as module

TOTAL = dpjax.statistics.total("y", -9.0, 9.0)
SCALE = 1.0


def heights(n: int, mean: float = 0.0) -> None:
    level = numpyro.sample("level", dist.Normal(mean, 2.0))
    with numpyro.plate("people", n):
        numpyro.sample("y", dist.Normal(level, SCALE))


def slopes(x: np.ndarray, y: None = None) -> None:
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("people", len(x)):
        numpyro.sample("y", dist.Normal(slope * x, 1.0))


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*effective sample size", "ignore:R-hat")
def test_a_model_passed_on_again_compiles_nothing(compilations):
    def run(value: float) -> np.ndarray:
        model = dpjax.from_numpyro(heights, ["y"])
        release = dpjax.Release([value], dpjax.Laplace(2.0), TOTAL, 20)
        return dpjax.sample(jax.random.key(1), model, release, num_warmup=8, num_samples=8).draws["level"]

    first = run(5.0)
    compilations.clear()
    np.testing.assert_array_equal(run(5.0), first)
    assert np.any(run(6.0) != first)
    assert compilations == []


@pytest.mark.x64
def test_equal_arguments_give_the_same_model():
    model = dpjax.from_numpyro(slopes, ["y"], x=np.arange(4.0))
    assert dpjax.from_numpyro(slopes, ["y"], x=np.arange(4.0)) is model
    assert dpjax.from_numpyro(slopes, ["y"], x=np.arange(4.0) + 1) is not model
    assert dpjax.from_numpyro(slopes, ["y"], x=np.arange(5.0)) is not model
    assert dpjax.from_numpyro(heights, ["y"], mean=1.0) is not dpjax.from_numpyro(heights, ["y"])
    assert dpjax.from_numpyro(heights, ["y"], n=7) is not dpjax.from_numpyro(heights, ["y"])


def test_what_a_function_reads_is_read_again(monkeypatch):
    """A mutation would be a model that keeps the standard deviation which the function once read."""

    def density() -> float:
        model = dpjax.from_numpyro(heights, ["y"])
        return float(model.log_density({"level": jnp.zeros(())}, {"y": jnp.zeros(1)})[0])

    before = density()
    monkeypatch.setattr(f"{__name__}.SCALE", 2.0)
    np.testing.assert_allclose(density(), before - np.log(2.0), rtol=1e-6)


def test_what_cannot_be_compared_is_built_anew():
    lock = Lock()

    def program(n: int) -> None:
        with lock:
            heights(n)

    assert module.content_of_call(program, ["y"], None, {}) is None
    assert dpjax.from_numpyro(program, ["y"]) is not dpjax.from_numpyro(program, ["y"])


def test_a_refusal_is_made_again():
    def program(n: int) -> None:
        with numpyro.plate("people", n):
            numpyro.sample("y", dist.Normal(0.0, 1.0))
        numpyro.factor("more", 1.0)

    for _ in range(2):
        with pytest.raises(ValueError, match="factor"):
            dpjax.from_numpyro(program, ["y"])
