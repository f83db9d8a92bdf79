"""Models are data: those that differ in numbers alone share their programs, and are pickled, compared and mapped."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax
from dpjax import models
from dpjax.base import static
from dpjax.clt.number import with_place
from dpjax.data_augmentation.counts.form import CountModel, count_form
from dpjax.likelihood.evidence import FixedParameters
from dpjax.mcmc.run import run_chunk
from dpjax.models import GammaPrior, InverseGammaPrior, NormalInverseGammaPrior, NormalInverseWishartPrior, NormalPrior
from dpjax.models.data_sets import DataSetsModel

RELEASE = dpjax.Release([3.0], dpjax.Laplace(2.0), dpjax.statistics.total("y", -5, 5), n=6)
TABLE = dpjax.Release([3.0, 2.0, 1.0], dpjax.Laplace(2.0), dpjax.statistics.cells("cell", 3), n=6)
UNKNOWN = dpjax.Release([3.0], dpjax.Laplace(2.0), RELEASE.statistic, dpjax.UnknownCount(models.PoissonCount(5.0)))
SHORT = {"num_chains": 2, "num_warmup": 20, "num_samples": 20, "interweave": False, "progress": False}


def normal(scale: float) -> models.Model:
    return models.normal(NormalPrior(0.0, scale), InverseGammaPrior(2.0, scale))


def located(n: int, scale: float) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, scale))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 2 * scale))


MODELS = {
    "normal": normal,
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
    "structural zeros": lambda scale: models.categorical(np.full(3, scale), possible=[True, False, True]),
    "dirichlet": lambda scale: models.dirichlet(GammaPrior(scale, 1.0), 3),
    "exponential": lambda scale: models.exponential(GammaPrior(2.0, scale)),
    "beta": lambda scale: models.beta(scale, GammaPrior(1.0, 1.0)),
    "data sets": lambda scale: DataSetsModel(normal(scale), models.PoissonCount(5.0), 12),
    "counts": lambda scale: count_form(models.categorical([scale, 2.0, 3.0]), TABLE)[0],
    "NumPyro": lambda scale: dpjax.from_numpyro(located, ["y"], scale=scale),
    "with the place of a number": lambda scale: with_place(normal(scale), UNKNOWN),
    "held": lambda scale: FixedParameters(normal(1.0), {"mean": scale, "variance": 2.0}),
}


def look(model: models.Model) -> tuple:
    """Draws and densities of a model."""
    parameters = model.sample_prior(jax.random.key(1))
    records = model.sample_records(jax.random.key(2), parameters, 5)
    return parameters, records, model.log_prior(parameters), model.log_density(parameters, records)


@pytest.mark.x64
@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_its_structure_and_its_numbers(name):
    """Equality, hashes, copies and pickles are those of data; a mapped model is each of its models."""
    model, same, other = (MODELS[name](scale) for scale in (0.7, 0.7, 1.3))
    assert model == same
    assert model != other
    assert hash(model) == hash(other)
    assert jax.tree.structure(model) == jax.tree.structure(other)
    assert copy.deepcopy(model) == model or isinstance(model, CountModel)  # tables are compared by identity
    assert isinstance(model, CountModel) or pickle.loads(pickle.dumps(model)) == model
    assert type(model).__name__ in repr(model)

    both = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf, float) for leaf in leaves]), model, other)
    mapped, single = jax.jit(jax.vmap(look))(both), jax.jit(look)
    for place, one in enumerate((model, other)):
        for found, value in zip(*map(jax.tree.leaves, (mapped, single(one))), strict=True):
            np.testing.assert_allclose(found[place], value, rtol=10 * jnp.finfo(jnp.zeros(()).dtype).eps ** 0.75)


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
def test_a_model_of_functions_is_compiled_by_itself_and_its_draws_are_the_same():
    held = MODELS["exponential"](1.0)
    plain = held._replace()
    release = dpjax.Release([3.0], dpjax.Laplace(2.0), dpjax.statistics.total("y", 0, 5), n=6)
    one, other = (dpjax.sample(jax.random.key(3), model, release, **SHORT).draws["rate"] for model in (held, plain))
    np.testing.assert_allclose(one, other, rtol=1e-4 if one.dtype == np.float32 else 1e-10)


def test_what_decides_the_functions_of_a_model_is_part_of_its_structure():
    one, other = models.categorical([1e-4, 1e-4]), models.categorical([1.0, 1.0])
    assert not one.has("noncentred")  # probabilities vanish
    assert jax.tree.structure(one) != jax.tree.structure(other)


def test_a_function_that_was_replaced_is_not_forgotten():
    model = MODELS["exponential"](1.0)
    other = model._replace(derived=lambda parameters: {"mean": 1 / parameters["rate"]})
    assert other.derived({"rate": 2.0}) == {"mean": 0.5}
    assert other != model
    assert other == jax.tree.unflatten(jax.tree.structure(other), [])
    assert other._replace(derived=None).derived({"rate": 2.0}) == {}


def test_a_model_of_functions_has_what_it_was_given():
    """What it was not given is that of every other model."""
    model = MODELS["exponential"](1.0)._replace(num_records=5, update=None)
    asked = ("noncentred", "num_records", "update", "derived", "exchangeable")
    assert [model.has(name) for name in asked] == [True, True, False, False, False]
    assert (model.exchangeable, model.num_records) == (True, 5)
    with pytest.raises(TypeError, match="unexpected keyword argument 'updat'"):
        model._replace(updat=None)


class Shift(models.Model):
    """A model with fields of any kind."""

    scale: object = 1.0
    names: object = static(default=())

    def sample_prior(self, key):
        return {"mean": jax.random.normal(key)}

    def log_prior(self, parameters):
        return jnp.zeros(())

    def sample_records(self, key, parameters, n):
        return {"y": parameters["mean"] + self.scale * jax.random.normal(key, (n,))}

    def log_density(self, parameters, records):
        return jnp.zeros(len(records["y"]))


def test_fields_of_other_kinds_are_refused_by_name(compilations):
    models.check_model(Shift(np.ones(())))
    with pytest.raises(TypeError, match="model: given 'wide' in scale; expected numbers, or a static field"):
        models.check_model(Shift("wide"))
    assert compilations == []
