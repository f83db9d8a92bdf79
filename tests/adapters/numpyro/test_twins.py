"""The hand-written models, written again in NumPyro: the same laws, to rounding."""

from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models
from problems import numpyro_programs as programs

COVARIATES = {"covariate_mean": np.array([0.5, -1.0]), "covariate_cov": np.array([[1.0, 0.3], [0.3, 2.0]])}
CELLS = np.array([2.0, 1.0, 3.0])
CLASSES, FEATURES = np.array([2.0, 1.0]), np.full((3, 2, 2), 1.5)

TWINS = {
    "normal": (
        models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=models.InverseGammaPrior(4.0, 3.0)),
        lambda: dpjax.from_numpyro(programs.normal, records=["y"]),
    ),
    "regression": (
        models.linear_regression(**COVARIATES, coef_prior=models.NormalPrior(0.0, 2.0), noise_variance=2.0),
        lambda: dpjax.from_numpyro(programs.regression, records=("x", "y"), scale=2.0, variance=2.0, **COVARIATES),
    ),
    "categorical": (
        models.categorical(CELLS),
        lambda: dpjax.from_numpyro(programs.categorical, records=("cell",), concentration=CELLS),
    ),
    "naive bayes": (
        models.naive_bayes(CLASSES, FEATURES),
        lambda: dpjax.from_numpyro(
            programs.naive_bayes,
            records=("class", "features"),
            class_concentration=CLASSES,
            feature_concentration=FEATURES,
        ),
    ),
}
N = 6
LONG = ("naive bayes", "beta")
"""Whose programs take long to compile, of laws that other tests have too."""


def marked(names: Iterable[str]) -> list:
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in names]


@pytest.fixture(scope="module", params=marked(TWINS))
def twins(request: pytest.FixtureRequest) -> tuple[dpjax.Model, dpjax.Model]:
    hand_written, build = TWINS[request.param]
    return hand_written, build()


class Figures(NamedTuple):
    """What one program computes of both twins, at the draws of one of them."""

    parameters: dict
    records: dict
    priors: tuple
    densities: tuple
    constrained: dict
    jacobians: tuple
    again: dict
    noise: object
    scored: object


def compute(twins: tuple[dpjax.Model, dpjax.Model], source: int, key: jax.Array) -> Figures:
    prior_key, record_key, noise_key = jax.random.split(key, 3)
    parameters = twins[source].sample_prior(prior_key)
    records = twins[source].sample_records(record_key, parameters, N)
    _, model = twins
    unconstrained = model.unconstrain(parameters)
    constrained = model.constrain(unconstrained)
    flat, unravel = jax.flatten_util.ravel_pytree(unconstrained)

    def free(vector: jax.Array) -> jax.Array:
        leaves = model.constrain(unravel(vector)).items()
        # The last probability of each row follows from the others.
        rows = [leaf if leaf.shape == unconstrained[name].shape else leaf[..., :-1] for name, leaf in leaves]
        return jnp.concatenate([leaf.ravel() for leaf in rows])

    noise = model.noncentred.noise(noise_key, parameters, records)
    return Figures(
        parameters,
        records,
        tuple(twin.log_prior(parameters) for twin in twins),
        tuple(twin.log_density(parameters, records) for twin in twins),
        constrained,
        (model.log_jacobian(unconstrained), jnp.linalg.slogdet(jax.jacobian(free)(flat))[1]),
        model.noncentred.records(parameters, noise),
        noise,
        model.noncentred.scores.noise(model.noncentred.scores.scores(noise)),
    )


def close(one: object, other: object) -> None:
    tolerance = 1e-10 if jax.config.jax_enable_x64 else 1e-3
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance), one, other)


def shapes(tree: object) -> object:
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype.kind), tree)


@pytest.mark.x64
def test_both_have_the_same_laws_names_and_shapes(twins: tuple) -> None:
    one, other = (
        jax.jit(lambda key, source=source: compute(twins, source, key))(jax.random.key(3)) for source in (0, 1)
    )
    for figures in (one, other):
        close(*figures.priors)
        close(*figures.densities)
        close(figures.constrained, figures.parameters)
        close(*figures.jacobians)
        close(figures.again, figures.records)
        close(figures.scored, figures.noise)
        assert all(leaf.shape[-1] == N for leaf in jax.tree.leaves(figures.noise))
    assert shapes(one[:2]) == shapes(other[:2])


def test_discrete_records_list_the_same_support(twins: tuple) -> None:
    hand_written, model = twins
    if hand_written.support is not None and model.support is not None:
        close(model.support(), hand_written.support())


GAMMA = models.GammaPrior(3.0, 1.0)
OTHERS = {
    "dirichlet": (models.dirichlet(shape_prior=GAMMA, dim=3), programs.dirichlet, "share", {"dim": 3}),
    "exponential": (models.exponential(models.GammaPrior(2.0, 1.0)), programs.exponential, "y", {}),
    "beta": (models.beta(GAMMA, GAMMA), programs.beta, "y", {}),
}


@pytest.mark.x64
@pytest.mark.parametrize("name", marked(OTHERS))
def test_densities_of_the_other_twins_agree(name: str) -> None:
    hand_written, program, field, arguments = OTHERS[name]
    model = dpjax.from_numpyro(program, records=[field], **arguments)

    @jax.jit
    def densities(key: jax.Array) -> list:
        prior_key, record_key = jax.random.split(key)
        parameters = model.sample_prior(prior_key)
        records = model.sample_records(record_key, parameters, N)
        return [(twin.log_prior(parameters), twin.log_density(parameters, records)) for twin in (model, hand_written)]

    close(*densities(jax.random.key(8)))
