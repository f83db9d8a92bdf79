"""No kernel takes a candidate whose density is zero, infinite or not a number, wherever it starts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.mcmc import slice as blackjax_slice

from dpjax import models
from dpjax.data_augmentation.parameters import Tuning, build_centred_step, build_interweaving_step, parameter_kernel
from dpjax.data_augmentation.parameters.kernels import KERNELS
from dpjax.numerics import all_finite, decision_uniforms, proper_density
from tests.data_augmentation.parameters.saturating import MODEL, RELEASE, TUNING

CHAINS, STEPS = 200, 30
SLICES = ("elliptical_slice", "slice_sampling", "coordinate_slice")
NAMES = [pytest.param(name, marks=() if name in SLICES else pytest.mark.slow) for name in KERNELS]


def cliff(vector: jax.Array) -> jax.Array:
    """A Normal density on x₀ > 0; none elsewhere: −∞, NaN or +∞, as x₁ falls."""
    nothing = jnp.where(vector[1] > 0, -jnp.inf, jnp.where(vector[1] > -1, jnp.nan, jnp.inf))
    return proper_density(jnp.where(vector[0] > 0, -0.5 * jnp.sum(vector**2), nothing))


def move(name: str, starts: jax.Array) -> jax.Array:
    """Where chains are after some steps, [chain, 2]."""
    algorithm = parameter_kernel(name).build(cliff, 2, jnp.asarray(0.5))

    def chain(key: jax.Array, start: jax.Array) -> jax.Array:
        def step(state: object, index: jax.Array) -> tuple:
            return algorithm.step(jax.random.fold_in(key, index), state)[0], None

        return jax.lax.scan(step, algorithm.init(start), jnp.arange(STEPS))[0].position

    return jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(1), CHAINS), starts)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("inside", [True, False])
def test_a_kernel_never_enters_where_there_is_no_density(name: str, inside: bool) -> None:
    """From within it stays within; from without it stays where it is, or comes within."""
    side = jnp.asarray([0.5, -0.5] if inside else [-0.5, -0.5])
    starts = jnp.tile(side[None], (CHAINS, 1))
    ends = move(name, starts)
    within = ends[:, 0] > 0
    assert bool(jnp.all(within)) if inside else bool(jnp.all(within | jnp.all(ends == starts, axis=1)))
    if name in SLICES:
        assert bool(jnp.any(within))


def test_a_level_of_zero_density_would_accept_anything() -> None:
    """A mutation: candidates are valid wherever they are."""
    algorithm = blackjax_slice.as_top_level_api(cliff, width=2.0, interval=blackjax_slice.stepping_out)
    start = jnp.asarray([-0.5, -0.5])
    keys = jax.random.split(jax.random.key(3), CHAINS)
    ends = jax.jit(jax.vmap(lambda key: algorithm.step(key, algorithm.init(start))[0].position))(keys)
    assert bool(jnp.any((ends[:, 0] < 0) & jnp.any(ends != start[None], axis=1)))


def test_an_update_that_is_not_finite_is_undone_and_counted() -> None:
    def broken(key: jax.Array, parameters: dict, records: dict) -> dict:
        return {"mean": jnp.where(parameters["mean"] > 0, jnp.nan, parameters["mean"] + 1)}

    model = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)._replace(update=broken)
    step = build_centred_step(model, None)
    tuning = Tuning(jnp.zeros(1), jnp.eye(1), jnp.ones(()))
    for start, end, count in ((0.5, 0.5, 1), (-0.5, 0.5, 0)):
        moved, _, num = step(jax.random.key(0), {"mean": jnp.asarray(start)}, {"y": jnp.zeros(2)}, tuning)
        assert (float(moved["mean"]), int(num)) == (end, count)


def interweave(records: jax.Array) -> tuple:
    step = build_interweaving_step(MODEL, RELEASE)
    return jax.jit(step)(jax.random.key(5), {"location": jnp.asarray(0.3)}, {"y": records}, TUNING)


def test_records_that_the_noise_does_not_give_back_are_left_as_they_were() -> None:
    """A record in the tail has the noise 1, whose record is infinite: parameters and records stay."""
    records = jnp.asarray([0.1, 9.0, 0.4])
    moved, again, info = interweave(records)
    assert float(moved["location"]) == float(jnp.asarray(0.3))
    np.testing.assert_array_equal(again["y"], records)
    assert int(info.num_nonfinite) == 1
    moved, again, info = interweave(jnp.asarray([0.1, 1.0, 0.4]))
    assert float(moved["location"]) != float(jnp.asarray(0.3))
    assert bool(all_finite(again))
    assert int(info.num_nonfinite) == 0


@pytest.mark.parametrize("density", [jnp.nan, jnp.inf, -jnp.inf])
def test_what_is_no_density_is_read_as_zero(density: float) -> None:
    assert float(proper_density(jnp.asarray(density))) == -np.inf
    assert float(proper_density(jnp.asarray(-3.0))) == -3.0


def test_uniform_draws_for_logarithms_are_never_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    def lowest(key: jax.Array, shape: tuple, dtype: type) -> jax.Array:
        return jnp.zeros(shape, dtype)

    monkeypatch.setattr(jax.random, "uniform", lowest)
    assert float(jnp.log(decision_uniforms(jax.random.key(0)))) > -40
