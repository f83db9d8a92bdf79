"""Simulation from the prior on: one form of it, and shapes that agree with what is drawn."""

import chex
import jax
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.models import simulation
from dpjax.models.simulation import init_state

MODEL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
RELEASE = dpjax.Release([1.0], dpjax.Laplace(2.0), statistics.total("y", -3.0, 3.0), 6)
LOCAL = dpjax.LocalRelease(np.zeros(6), dpjax.Laplace(2.0), field="y")


@pytest.mark.parametrize("release", [RELEASE, LOCAL])
@pytest.mark.keys
def test_a_state_is_that_of_parameters_from_the_prior_and_records_given_them(release: object) -> None:
    parameter_key, record_key = jax.random.split(jax.random.key(1))
    parameters = MODEL.sample_prior(parameter_key)
    position = dpjax.data_augmentation.Position(
        parameters, MODEL.sample_records(jax.random.clone(record_key), parameters, 6)
    )
    chex.assert_trees_all_equal(simulation.draw_position(jax.random.key(1), MODEL, 6), position)
    chex.assert_trees_all_equal(simulation.draw_position_at(record_key, MODEL, parameters, 6), position)
    chex.assert_trees_all_equal(simulation.draw_state(jax.random.key(1), MODEL, release), init_state(release, position))


def test_shapes_are_those_of_what_is_drawn() -> None:
    position = simulation.draw_position(jax.random.key(1), MODEL, 6)
    shapes = simulation.position_shapes(MODEL, 6)
    chex.assert_trees_all_equal_shapes_and_dtypes(shapes, position)
    assert simulation.parameter_shapes(MODEL) == shapes.parameters


@pytest.mark.parametrize("release", [RELEASE, LOCAL])
def test_values_do_not_depend_on_the_size_of_a_batch(release: object, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = simulation.draw_parameters(jax.random.key(1), MODEL, 5)
    values = simulation.draw_values(jax.random.key(2), MODEL, release, parameters, 5)
    monkeypatch.setattr(simulation, "BATCH_BYTES", 1)
    assert simulation.batch_size(MODEL, release) == 1
    again = simulation.draw_values(jax.random.key(2), MODEL, release, parameters, 5)
    np.testing.assert_allclose(again, values, rtol=1e-6)
