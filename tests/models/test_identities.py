"""What must hold to rounding between the functions of a model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.models import check_model
from tests.models.cases import CASES, FREE_NOISE, LEARNED, NONCENTRED, draw, unconstrained


def assert_same(one: dict, other: dict, tolerance: float) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance), one, other)


@pytest.mark.parametrize("name", CASES)
def test_contract(name: str) -> None:
    check_model(CASES[name])


@pytest.mark.x64
@pytest.mark.parametrize("name", CASES)
def test_likelihood_through_the_summary_is_the_sum_of_densities(name: str) -> None:
    parameters, records = draw(name, seed=1)
    moved, _ = draw(name, seed=2)
    model = CASES[name]
    through_summary = jax.jit(lambda point: model.log_likelihood(point, model.summarize(records)))
    for point in (parameters, moved):
        total = jax.jit(model.log_density)(point, records).sum()
        np.testing.assert_allclose(through_summary(point), total, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", NONCENTRED)
def test_records_come_back_from_their_noise(name: str) -> None:
    parameters, records = draw(name, seed=3)
    noise_of, records_of, *_ = CASES[name].noncentred
    back = jax.jit(lambda key: records_of(parameters, noise_of(key, parameters, records)))(jax.random.key(4))
    assert_same(back, records, 1e-10 if jax.config.jax_enable_x64 else 1e-5)


@pytest.mark.x64
@pytest.mark.parametrize("name", [name for name in NONCENTRED if name not in FREE_NOISE])
def test_the_density_of_noise_is_that_of_its_records_times_the_slope(name: str) -> None:
    """At two parameters: terms free of these would cancel from a ratio, and here there are none."""
    model = CASES[name]
    for seed in (3, 5):
        parameters, records = draw(name, seed)
        noise = model.noncentred.noise(jax.random.key(4), parameters, records)
        _, slope = jax.jvp(
            lambda u, p=parameters: model.noncentred.records(p, u)["y"], (noise,), (jnp.ones_like(noise),)
        )
        expected = model.log_density(parameters, records) + jnp.log(slope)
        np.testing.assert_allclose(model.noncentred.log_density(parameters, noise), expected, rtol=1e-8)


@pytest.mark.x64
@pytest.mark.parametrize("name", LEARNED)
def test_scales_are_inverse(name: str) -> None:
    parameters, _ = draw(name, seed=7)
    assert_same(CASES[name].constrain(unconstrained(name, parameters)), parameters, 1e-10)


def test_normal_field_holds_the_mean_and_standard_deviation() -> None:
    mean, scale = CASES["normal, variance"].normal_field({"mean": jnp.array(3.0), "variance": jnp.array(4.0)})
    assert (mean, scale) == (3.0, 2.0)


@pytest.mark.parametrize("name", CASES)
def test_arrays_have_the_default_dtypes(name: str) -> None:
    parameters, records = draw(name, seed=10)
    wanted = {jnp.result_type(float), jnp.result_type(int)}
    assert {leaf.dtype for leaf in jax.tree.leaves((parameters, records))} <= wanted
    assert CASES[name].log_density(parameters, records).dtype == jnp.result_type(float)
