"""A NumPyro model is its function, which decides what is compiled, and its numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import dpjax

TOTAL = dpjax.statistics.total("y", -9.0, 9.0)
SCALE = 1.0
TABLE = np.ones(3)


def heights(n: int, mean: float = 0.0) -> None:
    level = numpyro.sample("level", dist.Normal(mean, 2.0))
    with numpyro.plate("people", n):
        numpyro.sample("y", dist.Normal(level, SCALE))


def slopes(x: np.ndarray, y: None = None) -> None:
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("people", len(x)):
        numpyro.sample("y", dist.Normal(slope * x, 1.0))


def visits(n: int, exposure: float) -> None:
    rate = numpyro.sample("rate", dist.Gamma(2.0, 0.5))
    with numpyro.plate("people", n):
        numpyro.sample("y", dist.Poisson(exposure * rate))


def grouped(group: np.ndarray, spread: float) -> None:
    """The number of groups is read from the largest index."""
    with numpyro.plate("groups", int(group.max()) + 1):
        level = numpyro.sample("level", dist.Normal(0.0, spread))
    with numpyro.plate("people", len(group)):
        numpyro.sample("y", dist.Normal(level[group], 1.0))


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*effective sample size", "ignore:R-hat")
def test_a_model_of_the_same_function_compiles_nothing(compilations):
    """Neither its inspection nor its run, with the same numbers or with others."""

    def run(value: float, mean: float = 0.0) -> np.ndarray:
        model = dpjax.from_numpyro(heights, ["y"], mean=mean)
        release = dpjax.Release([value], dpjax.Laplace(2.0), TOTAL, 20)
        return dpjax.sample(jax.random.key(1), model, release, num_warmup=8, num_samples=8).draws["level"]

    first = run(5.0)
    compilations.clear()
    np.testing.assert_array_equal(run(5.0), first)
    assert np.any(run(6.0) != first)
    assert np.any(run(5.0, mean=2.0) != first)
    assert compilations == []


@pytest.mark.x64
def test_models_are_compared_by_function_and_numbers():
    model, same, other, longer = (
        dpjax.from_numpyro(slopes, ["y"], x=x) for x in (np.arange(4.0), np.arange(4.0), np.arange(4) + 0.5, np.ones(5))
    )
    assert model == same
    assert model != other
    assert jax.tree.structure(model) == jax.tree.structure(other)
    assert jax.tree.structure(model) != jax.tree.structure(longer)
    assert "slopes, records=('y',), x=float64[4] [0.0, 1.0, 2.0" in repr(model)


def densities_of_zero() -> tuple[dpjax.Model, float]:
    model = dpjax.from_numpyro(heights, ["y"])
    return model, float(model.log_density({"level": jnp.zeros(())}, {"y": jnp.zeros(1)})[0])


def test_what_a_function_reads_is_read_again(monkeypatch):
    """A mutation would be a program that keeps the standard deviation which the function once read."""
    one, before = densities_of_zero()
    monkeypatch.setattr(f"{__name__}.SCALE", 2.0)
    other, after = densities_of_zero()
    np.testing.assert_allclose(after, before - np.log(2.0), rtol=1e-6)
    assert jax.tree.structure(one) != jax.tree.structure(other)


def test_an_array_that_a_function_reads_is_read_again(monkeypatch):
    """Within a compiled part of the function, whose constants the text of a traced program leaves out."""

    def program(n: int) -> None:
        level = numpyro.sample("level", dist.Normal(0.0, 1.0))
        shift = jax.jit(lambda level: level + jnp.sum(jnp.asarray(TABLE, float)))
        with numpyro.plate("people", n):
            numpyro.sample("y", dist.Normal(shift(level), 1.0))

    one = dpjax.from_numpyro(program, ["y"])
    same = dpjax.from_numpyro(program, ["y"])
    monkeypatch.setattr(f"{__name__}.TABLE", np.array([1.0, 5.0, 1.0]))
    assert jax.tree.structure(one) == jax.tree.structure(same)
    assert jax.tree.structure(one) != jax.tree.structure(dpjax.from_numpyro(program, ["y"]))


@pytest.mark.x64
def test_numbers_that_a_function_reads_in_python_decide_what_is_compiled():
    def model(group: list[int], spread: float = 1.0) -> dpjax.Model:
        return dpjax.from_numpyro(grouped, ["y"], group=np.array(group), spread=spread)

    one, other, three = model([0, 1, 0, 1]), model([0, 1, 0, 1], spread=2.0), model([0, 1, 2, 1])
    assert jax.tree.leaves(one) == [1.0]
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert jax.tree.structure(one) != jax.tree.structure(three)
    assert jax.jit(three.sample_prior)(jax.random.key(1))["level"].shape == (3,)


@pytest.mark.x64
def test_the_likelihood_of_tallied_counts_is_mapped_over_an_argument():
    """It has a derivative of its own, through which the mapped number must pass."""
    model = dpjax.from_numpyro(visits, ["y"], exposure=1.0)
    counts = {"y": jnp.array([0, 3, 1, 2])}

    def gradient(exposure: jax.Array) -> jax.Array:
        arguments = model.layout.arguments | {"exposure": exposure}
        held = jax.tree.unflatten(jax.tree.structure(model), jax.tree.leaves(arguments))
        return jax.grad(lambda rate: held.log_likelihood({"rate": rate}, held.summarize(counts)))(2.0)

    exposures = jnp.array([0.5, 3.0])
    np.testing.assert_allclose(jax.jit(jax.vmap(gradient))(exposures), 6 / 2.0 - 4 * exposures, rtol=1e-6)
