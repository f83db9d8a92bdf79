"""Models that differ in numbers alone share their programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models
from dpjax.mcmc.run import run_chunk
from dpjax.models import GammaPrior, InverseGammaPrior, NormalInverseGammaPrior, NormalInverseWishartPrior, NormalPrior
from dpjax.models.recipe import split

RELEASE = dpjax.Release([3.0], dpjax.Laplace(2.0), dpjax.statistics.total("y", -5, 5), n=6)
SHORT = {"num_chains": 2, "num_warmup": 20, "num_samples": 20, "interweave": False, "progress": False}

MODELS = {
    "normal": lambda scale: models.normal(NormalPrior(0.0, scale), InverseGammaPrior(2.0, scale)),
    "regression": lambda scale: models.linear_regression(
        covariate_mean=[0.0, scale],
        covariate_cov=scale * np.eye(2),
        coef_prior=NormalPrior(0.0, scale),
        noise_variance=2.0,
    ),
    "conjugate regression": lambda scale: models.linear_regression(
        covariate_prior=NormalInverseWishartPrior(np.zeros(2), scale, 5.0, np.eye(2)),
        noise_variance=NormalInverseGammaPrior(0.0, scale, 2.0, 2.0),
    ),
    "categorical": lambda scale: models.categorical([scale, 2.0, 3.0]),
    "table": lambda scale: models.categorical(np.full(6, scale), shape=(2, 3)),
    "naive Bayes": lambda scale: models.naive_bayes(np.full(2, scale), np.ones((2, 2, 3))),
    "dirichlet": lambda scale: models.dirichlet(GammaPrior(scale, 1.0), 3),
    "exponential": lambda scale: models.exponential(GammaPrior(2.0, scale)),
    "beta": lambda scale: models.beta(scale, GammaPrior(1.0, 1.0)),
}


@pytest.mark.x64
@pytest.mark.parametrize("name", MODELS)
def test_every_shipped_model_holds_its_numbers_apart(name):
    """The form is that of other numbers, and with the numbers it is the model: the same densities and draws."""
    model, other = MODELS[name](0.7), MODELS[name](1.3)
    assert model.recipe.form == other.recipe.form
    assert hash(model.recipe.form) == hash(other.recipe.form)

    def look(model: models.Model) -> tuple:
        parameters = model.sample_prior(jax.random.key(1))
        records = model.sample_records(jax.random.key(2), parameters, 5)
        return parameters, records, model.log_prior(parameters), model.log_density(parameters, records)

    built = jax.jit(lambda numbers: look(other.recipe.form(numbers)))(model.recipe.numbers)
    for one, same in zip(jax.tree.leaves(built), jax.tree.leaves(jax.jit(lambda: look(model))()), strict=True):
        np.testing.assert_allclose(one, same, rtol=10 * jnp.finfo(jnp.zeros(()).dtype).eps ** 0.75)


@pytest.mark.x64
def test_a_study_of_prior_scales_compiles_once():
    run_chunk.clear_cache()
    spreads, programs = [], []
    for scale in (0.01, 1.0, 100.0):
        posterior = dpjax.sample(jax.random.key(1), MODELS["normal"](scale), RELEASE, **SHORT)
        spreads.append(posterior.draws["mean"].std())
        programs.append(run_chunk.jitted._cache_size())
    assert programs[0] == programs[1] == programs[2]
    assert spreads[0] < spreads[1] < spreads[2]


@pytest.mark.x64
def test_without_the_decorator_each_model_is_compiled_and_the_draws_are_the_same():
    held = MODELS["exponential"](1.0)
    plain = held._replace(recipe=None)
    release = dpjax.Release([3.0], dpjax.Laplace(2.0), dpjax.statistics.total("y", 0, 5), n=6)
    one, other = (dpjax.sample(jax.random.key(3), model, release, **SHORT).draws["rate"] for model in (held, plain))
    np.testing.assert_allclose(one, other, rtol=1e-4 if one.dtype == np.float32 else 1e-10)


def test_a_model_whose_functions_depend_on_its_numbers_is_compiled_by_itself():
    model = models.categorical([1e-4, 1e-4])
    assert split(model) == (model, ())  # no non-centred form where probabilities vanish


def test_a_model_of_the_users_own():
    @models.numbered
    def shifted(scale: float, name: str = "mean") -> models.Model:
        return models.normal(NormalPrior(0.0, scale), 1.0)

    assert shifted(1.0).recipe.form == shifted(2.0).recipe.form
    assert shifted(1.0, name="mu").recipe.form != shifted(2.0).recipe.form
    assert shifted(1).recipe.form != shifted(2).recipe.form  # a whole number may be a size


def test_what_cannot_be_compared_or_traced_is_left_as_it_is():
    @models.numbered
    def of_list(scale: float, names: object) -> models.Model:
        return MODELS["normal"](scale)._replace(recipe=None)

    @models.numbered
    def concrete(scale: float) -> models.Model:
        return MODELS["normal"](float(scale))._replace(recipe=None)

    for model in (of_list(1.0, {1, 2}), concrete(1.0)):
        assert split(model) == (model, ())


def test_a_function_that_was_replaced_is_not_forgotten():
    """The recipe of a model is that of its own functions alone."""
    model = MODELS["exponential"](1.0)
    other = model._replace(derived=lambda parameters: {"mean": 1 / parameters["rate"]})
    assert split(model)[0] == model.recipe.form
    assert split(other) == (other, ())
