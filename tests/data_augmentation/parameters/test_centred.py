"""Parameter kernels by name: what is understood, what is refused, and how many steps are made."""

import sys
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.data_augmentation.parameters import build_centred_step
from dpjax.data_augmentation.parameters.centred import choose_kernel, default_kernel
from dpjax.data_augmentation.parameters.kernels import KERNELS
from dpjax.data_augmentation.problem import augment

N = 20
MODEL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
RELEASE = dpjax.Release([1.0], dpjax.Laplace(2.0), statistics.total("y", -3.0, 3.0), N)
UNIT = dpjax.data_augmentation.Tuning(jnp.zeros(1), jnp.eye(1), jnp.ones(()))


class Count(NamedTuple):
    """A state, and the report of a step."""

    position: jax.Array


class Report(NamedTuple):
    """One step, the position before it, and a flag."""

    steps: jax.Array
    before: jax.Array
    flag: jax.Array


def walk(log_density: Callable) -> dpjax.base.SamplingAlgorithm:
    """One step to the right."""

    def step(rng_key: jax.Array, state: Count) -> tuple[Count, Report]:
        return Count(state.position + 1.0), Report(jnp.array(1), state.position[0], state.position[0] > 0.5)

    return dpjax.base.SamplingAlgorithm(lambda position, rng_key=None: Count(position), step)


@pytest.mark.parametrize(("num_steps", "before", "flag"), [(1, 0.0, False), (4, 1.5, 0.75)])
def test_as_many_steps_are_made_as_asked_for(num_steps: int, before: float, flag: float) -> None:
    step = build_centred_step(MODEL, dpjax.parameter_kernel(walk, num_steps))
    parameters, info, _ = step(jax.random.key(1), {"mean": jnp.zeros(())}, {"y": jnp.zeros(N)}, UNIT)
    assert float(parameters["mean"]) == num_steps
    assert (int(info.steps), float(info.before), float(info.flag)) == (num_steps, before, flag)


def test_every_step_has_a_key_of_its_own() -> None:
    def noise(log_density: Callable) -> dpjax.base.SamplingAlgorithm:
        def step(rng_key: jax.Array, state: Count) -> tuple[Count, jax.Array]:
            drawn = jax.random.normal(rng_key, state.position.shape)
            return Count(state.position + drawn), drawn[0] ** 2

        return dpjax.base.SamplingAlgorithm(lambda position, rng_key=None: Count(position), step)

    step = build_centred_step(MODEL, dpjax.parameter_kernel(noise, 2))
    parameters, square, _ = step(jax.random.key(2), {"mean": jnp.zeros(())}, {"y": jnp.zeros(N)}, UNIT)
    assert abs(float(parameters["mean"]) ** 2 / 4 - float(square)) > 1e-3  # equal for two equal draws


@pytest.mark.parametrize("name", KERNELS)
def test_a_name_stands_for_the_kernel_with_its_defaults(name: str) -> None:
    chosen = augment(MODEL, RELEASE, parameter_kernel=name).plan.parameter_kernel
    assert chosen == dpjax.parameter_kernel(name) == KERNELS[name]()
    assert hash(chosen) == hash(dpjax.parameter_kernel(name))


def test_an_exact_update_is_overridden_by_a_kernel_only() -> None:
    inexact = MODEL._replace(update=None)
    assert choose_kernel(MODEL, None) is None
    assert choose_kernel(inexact, None) == default_kernel(inexact)
    assert choose_kernel(MODEL, walk) == choose_kernel(inexact, walk) == dpjax.parameter_kernel(walk)
    assert choose_kernel(MODEL, chosen := dpjax.parameter_kernel("hmc", num_leapfrogs=3)) is chosen


@pytest.mark.parametrize(("kernel", "options", "error", "message"), [
    ("nut", {}, ValueError, r"parameter_kernel: given 'nut'; expected one of \['coordinate_slice', .*'nuts', 'slice"),
    (3, {}, TypeError, "parameter_kernel: given 3; expected a hashable function or one of"),
    (["nuts"], {}, TypeError, "parameter_kernel: given .*; expected a hashable function or one of"),
    ("nuts", {"width": 1.0}, TypeError, r"options \['width'\]; expected options of nuts: \['max_doublings', 'target_"),
    ("elliptical_slice", {"width": 1.0}, TypeError, r"expected options of elliptical_slice: none"),
    (walk, {"width": 1.0}, TypeError, r"options \['width'\]; expected options of a function: none"),
    ("nuts", {"num_steps": 0}, ValueError, "num_steps: given 0; expected a whole number >= 1"),
    (walk, {"num_steps": 1.5}, TypeError, "num_steps: given 1.5"),
    ("nuts", {"max_doublings": 0}, ValueError, "max_doublings: given 0"),
    ("hmc", {"num_leapfrogs": "2"}, TypeError, "num_leapfrogs: given '2'"),
    ("mala", {"target_acceptance": 1.0}, ValueError, r"target_acceptance: given 1.0; expected a number in \(0, 1\)"),
    ("slice_sampling", {"width": 0.0}, ValueError, "width: given 0.0; expected finite numbers above 0"),
])  # fmt: skip
def test_what_is_no_kernel_is_refused(kernel: object, options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        dpjax.parameter_kernel(kernel, **options)


@pytest.mark.parametrize("kernel", ["nut", 3, ["nuts"]])
def test_misfits_are_refused_by_the_samplers_too(kernel: object) -> None:
    with pytest.raises((TypeError, ValueError), match="parameter_kernel: given"):
        dpjax.gibbs(MODEL, RELEASE, parameter_kernel=kernel)
    with pytest.raises((TypeError, ValueError), match="parameter_kernel: given"):
        dpjax.sample(jax.random.key(1), MODEL, RELEASE, parameter_kernel=kernel)


@pytest.mark.x64
def test_no_whitening_is_fitted_that_no_step_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["dpjax.mcmc.run"], "tune_to_prior", None)
    monkeypatch.setattr("dpjax.data_augmentation.sweep.fit_to_prior", None)
    options = {"num_warmup": 0, "num_samples": 5, "progress": False, "interweave": False}
    assert dpjax.sample(jax.random.key(1), MODEL, RELEASE, **options).tuning is None
    dpjax.gibbs(MODEL, RELEASE, interweave=False)
    with pytest.raises(TypeError, match="not callable"):
        dpjax.gibbs(MODEL, RELEASE)


def opaque(value: jax.Array) -> jax.Array:
    """The same value, by a loop that has no gradient."""
    return jax.lax.while_loop(lambda pair: pair[0] < 1, lambda pair: (pair[0] + 1, pair[1] * 1.0), (0, value))[1]


def made(change: Callable, size: int = 2) -> dpjax.Model:
    """A model of `size` parameters whose log-density has been tampered with."""
    return dpjax.Model(
        sample_prior=lambda key: {"mean": jax.random.normal(key, (size,))},
        log_prior=lambda parameters: jnp.sum(jax.scipy.stats.norm.logpdf(parameters["mean"])),
        sample_records=lambda key, parameters, n: {"y": jnp.sum(parameters["mean"]) + jax.random.normal(key, (n,))},
        log_density=lambda parameters, records: jax.scipy.stats.norm.logpdf(
            records["y"] - jnp.sum(change(parameters["mean"]))
        ),
    )


@pytest.mark.parametrize(("model", "name"), [
    (made(lambda mean: mean), "hmc"),
    (made(lambda mean: mean, size=20), "hmc"),
    (made(lambda mean: mean, size=21), "nuts"),
    (made(lambda mean: mean, size=1), "coordinate_slice"),
    (made(opaque), "coordinate_slice"),
    (made(lambda mean: jnp.where(mean > 0, mean, jnp.sqrt(-jnp.abs(mean)) * 0)), "coordinate_slice"),
    (made(lambda mean: mean)._replace(log_prior=lambda parameters: 0.0 * parameters["mean"][0],
                                      log_density=lambda parameters, records: 0.0 * records["y"]), "coordinate_slice"),
], ids=["gradients", "twenty parameters", "more of them", "one parameter",
       "no gradient", "gradients that are no numbers", "flat"])  # fmt: skip
def test_the_default_follows_gradients_where_there_are_some(model: dpjax.Model, name: str) -> None:
    assert default_kernel(model) == dpjax.parameter_kernel(name)
