"""What must hold to rounding between the functions of a model."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from dpjax.diagnostics.summary import summarize
from dpjax.models import categorical, check_model
from dpjax.models.bijections import COVARIANCE, POSITIVE, SIMPLEX, Bijection
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


def simplex_coordinates(value: jax.Array) -> jax.Array:
    return value[..., :-1]


def covariance_coordinates(value: jax.Array) -> jax.Array:
    return value[jnp.tril_indices(len(value))]


@pytest.mark.x64
@pytest.mark.parametrize(
    ("bijection", "coordinates", "shape"),
    [
        (POSITIVE, jnp.ravel, (4,)),
        (SIMPLEX, simplex_coordinates, (3,)),
        (SIMPLEX, simplex_coordinates, (2, 3, 2)),
        (COVARIANCE, covariance_coordinates, (1,)),
        (COVARIANCE, covariance_coordinates, (6,)),
        (COVARIANCE, covariance_coordinates, (10,)),
    ],
)
def test_log_jacobian_is_that_of_the_coordinates_of_the_density(
    bijection: Bijection, coordinates: object, shape: tuple
) -> None:
    point = jax.random.normal(jax.random.key(8), shape)
    flat, unravel = ravel_pytree(point)

    def look(vector: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        jacobian = jax.jacfwd(lambda moved: coordinates(bijection.constrain(unravel(moved))).ravel())(vector)
        back = bijection.unconstrain(bijection.constrain(unravel(vector)))
        return jacobian, bijection.log_jacobian(unravel(vector)), back

    jacobian, log_jacobian, back = jax.jit(look)(flat)
    np.testing.assert_allclose(log_jacobian, np.linalg.slogdet(jacobian)[1], atol=1e-10)
    np.testing.assert_allclose(back, point, atol=1e-10)


@pytest.mark.x64
def test_log_jacobian_of_a_model_adds_its_parameters() -> None:
    name = "regression, covariates"
    point = unconstrained(name, draw(name, seed=9)[0])
    expected = COVARIANCE.log_jacobian(point["covariate_cov"])
    np.testing.assert_allclose(CASES[name].log_jacobian(point), expected, atol=1e-10)


def test_two_by_two_odds_ratio_is_one_number() -> None:
    derived = CASES["categorical"].derived({"probabilities": jnp.array([0.1, 0.2, 0.3, 0.4])})
    np.testing.assert_allclose(derived["odds_ratio"], 0.1 * 0.4 / (0.2 * 0.3), rtol=1e-5)
    np.testing.assert_allclose(derived["log_odds_ratio"], np.log(0.1 * 0.4 / (0.2 * 0.3)), rtol=1e-5)


def test_odds_ratios_of_probabilities_that_underflow_are_finite_and_can_be_summarised() -> None:
    """Dirichlet(.05) draws had log ratios of infinity, and NaN where two cells underflowed: summaries were all NaN."""
    model = categorical(np.full(4, 0.05), shape=(2, 2))
    zeros = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.5, 0.0, 0.0, 0.5]]
    derived = jax.vmap(model.derived)({"probabilities": jnp.array(zeros)})
    for name, ratios in derived.items():
        assert np.isfinite(ratios).all(), name
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            summary = summarize(np.asarray(ratios)[None])
        assert np.isfinite(summary["50%"])
        assert np.isfinite(summary["97.5%"])
    assert derived["log_odds_ratio"][2] < -100 < 100 < derived["log_odds_ratio"][3]


def test_odds_ratios_of_larger_tables_are_local_and_given_the_other_variables() -> None:
    table = np.arange(1.0, 25.0).reshape(2, 3, 4)
    ratios = table[0, :-1] * table[1, 1:] / (table[0, 1:] * table[1, :-1])
    derived = categorical(np.ones(24), shape=(2, 3, 4)).derived({"probabilities": jnp.asarray(table.ravel() / 300)})
    assert derived["odds_ratio"].shape == (1, 2, 4)
    np.testing.assert_allclose(derived["odds_ratio"][0], ratios, rtol=1e-4)


def test_two_by_two_tables_at_levels_of_a_third_variable() -> None:
    derived = categorical(np.ones(24), shape=(2, 2, 6)).derived({"probabilities": jnp.full(24, 1 / 24)})
    np.testing.assert_allclose(derived["odds_ratio"], np.ones(6), rtol=1e-5)


def test_normal_field_holds_the_mean_and_standard_deviation() -> None:
    mean, scale = CASES["normal, variance"].normal_field({"mean": jnp.array(3.0), "variance": jnp.array(4.0)})
    assert (mean, scale) == (3.0, 2.0)


@pytest.mark.parametrize("name", CASES)
def test_arrays_have_the_default_dtypes(name: str) -> None:
    parameters, records = draw(name, seed=10)
    wanted = {jnp.result_type(float), jnp.result_type(int)}
    assert {leaf.dtype for leaf in jax.tree.leaves((parameters, records))} <= wanted
    assert CASES[name].log_density(parameters, records).dtype == jnp.result_type(float)
