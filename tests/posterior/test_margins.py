"""Margins and conditional probabilities by name, against sums over all combinations of levels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.posterior.posterior import Posterior

PEOPLE = {"sex": ["f", "m"], "age": 3, "income": 2}
RELEASE = dpjax.Release([5, 2, 4, 3, 8, 1], dpjax.DiscreteGaussian(2.0), statistics.cells(["sex", "age"], [2, 3]), n=23)


def posterior_of(model: dpjax.Model) -> Posterior:
    """Draws from the prior, in the place of those of a posterior."""
    keys = jax.random.split(jax.random.key(3), (2, 5))
    draws = jax.tree.map(np.asarray, jax.vmap(jax.vmap(model.sample_prior))(keys))
    rates = {"acceptance_rate": np.ones((2, 5))}
    return Posterior(draws, rates, None, False, model, RELEASE, None, None, None)


MODELS = {
    "log-linear": models.log_linear(PEOPLE, [("sex", "age")]),
    "latent classes": models.latent_classes(PEOPLE, 2),
    "categorical": models.categorical(1.0, (2, 3, 2), fields=list(PEOPLE)),
}


def whole_table(posterior: Posterior) -> np.ndarray:
    """The probabilities [chain, draw, 2, 3, 2] of all combinations, by the density of each."""
    model = posterior.model
    records = model.support()
    flat = {name: jnp.asarray(leaf.reshape(-1, *leaf.shape[2:])) for name, leaf in posterior.draws.items()}
    own = {name: flat[name] for name in model.sample_prior(jax.random.key(0))}
    return np.exp(jax.vmap(lambda one: model.log_density(one, records))(own)).reshape(2, 5, 2, 3, 2)


@pytest.mark.parametrize("name", MODELS)
def test_margins_are_sums_of_the_whole_table(name: str) -> None:
    """In the order in which columns are named, which no table has: a transposed margin has the right sums."""
    posterior = posterior_of(MODELS[name])
    table = whole_table(posterior)
    found = posterior.margin("income", "sex")
    np.testing.assert_allclose(found.draws, table.sum(axis=3).transpose(0, 1, 3, 2), rtol=1e-4)
    under = posterior.margin("age", given=["income", "sex"])
    expected = (table / table.sum(axis=3, keepdims=True)).transpose(0, 1, 3, 4, 2)
    np.testing.assert_allclose(under.draws, expected, rtol=1e-4)
    assert under.name == "P(age | income, sex)"


def test_rows_have_the_names_of_levels() -> None:
    """And a column that no released table has is said to have the prior alone."""
    posterior = posterior_of(MODELS["log-linear"])
    assert posterior.margin("sex").summary().rows == ("P(sex)[f]", "P(sex)[m]")
    with pytest.warns(UserWarning, match="R-hat"):
        assert posterior.summary().note == "by the prior alone, as no released table has them: income"


@pytest.mark.parametrize(
    ("fields", "given", "message"),
    [
        (("height",), (), r"fields: given \['height'\]"),
        (("sex",), "sex", r"fields: given \['sex', 'sex'\]"),
        ((), "sex", "fields: given"),
        ((3,), (), "fields: given 3"),
        (("sex",), {"age": 1}, "given: given {'age': 1}.*take a level of theirs from the last axes"),
        (("sex",), 3, "given: given 3"),
    ],
)
def test_bad_columns_are_named(fields: tuple, given: object, message: str) -> None:
    """Before anything is computed."""
    with pytest.raises((TypeError, ValueError), match=message):
        posterior_of(MODELS["log-linear"]).margin(*fields, given=given)


def test_other_models_have_no_columns_by_name() -> None:
    """Nor has a table whose variables are not named."""
    with pytest.raises(TypeError, match="model: given"):
        posterior_of(models.exponential(models.GammaPrior(2.0, 1.0))).margin("y")
