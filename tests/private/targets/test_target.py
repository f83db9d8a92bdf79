"""Targets from dpjax's models and from NumPyro's: their log-posterior is the model's, on the unconstrained scale."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from numpyro.infer.util import potential_energy

from dpjax import models, private
from dpjax.private import Target, noise
from tests.private.cases import ledger

RNG = np.random.default_rng(4)
X = RNG.normal(size=(11, 2))
Y = X @ np.array([0.5, -1.0]) + 0.3 * RNG.normal(size=11)
NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=models.InverseGammaPrior(4.0, 3.0))


@pytest.fixture(autouse=True, scope="module")
def _ranks_and_types_may_differ() -> Iterator[None]:
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def regression(x, y=None) -> None:
    coef = numpyro.sample("coef", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("records", len(x)):
        numpyro.sample("y", dist.Normal(x @ coef, scale), obs=y)


def standardised(x, y=None) -> None:
    regression((x - jnp.mean(x, axis=0)) / jnp.std(x, axis=0), y)


def informed(x, y=None) -> None:
    """A prior that uses Σx² (Zellner's)."""
    coef = numpyro.sample("coef", dist.Normal(0.0, 1 / jnp.sqrt(jnp.sum(x**2))))
    with numpyro.plate("records", len(x)):
        numpyro.sample("y", dist.Normal(x @ jnp.ones(2) * coef, 1.0), obs=y)


def counted(n, y=None) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0 / n))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


def enclosed(y=None) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", 11):
        numpyro.sample("y", dist.Normal(mean * X[:, 0], 1.0), obs=y)


def ill_conditioned(x, exposure, group, count=None) -> None:
    """Rounding errors that a small scale blows up, positive covariates and groups: a model of one record at a time."""
    scale = numpyro.sample("scale", dist.HalfNormal(1e-3))
    coef = numpyro.sample("coef", dist.Normal(0.0, 30.0).expand([50]).to_event(1))
    effects = numpyro.sample("effects", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    with numpyro.plate("records", len(x)):
        numpyro.sample("count", dist.Normal(x @ coef + jnp.log(exposure) + effects[group], scale), obs=count)


def log_density(target: Target, vector: jax.Array) -> jax.Array:
    records = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), target.records)
    terms = jax.vmap(target.log_likelihood, (None, 0))(vector, records)
    return jnp.sum(jnp.where(jnp.arange(len(terms)) < target.count, terms, 0.0)) + target.log_prior(vector)


@pytest.mark.parametrize(("platform", "shape"), [("cpu", (4, 256)), ("gpu", (1, 1_000))])
def test_a_device_takes_as_many_records_at_once_as_suit_it(monkeypatch, platform, shape) -> None:
    """An accelerator took them in as many chunks as a core, one after another; sums are the same to the last bit."""
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    records, model = (
        RNG.normal(size=1_000),
        (lambda mean, y: -jnp.sum((y - mean) ** 2) / 2, lambda mean: -(mean[0] ** 2)),
    )
    target, whole = (private.target(*model, records, jnp.zeros(1), chunk_size=size) for size in (None, 1_000))
    assert target.records.shape == shape
    sums = [private.clipped_gradients(one, jnp.ones(1), bound=0.5).value for one in (target, whole)]
    np.testing.assert_array_equal(*sums)


@pytest.mark.x64
def test_a_numpyro_model_s_posterior_is_its_potential() -> None:
    target = private.numpyro_target(regression, {"y": Y}, {"x": X}, chunk_size=4)
    assert (target.dimension, target.num_records) == (3, 11)
    vectors = RNG.normal(size=(3, 3))

    def potential(vector: jax.Array) -> jax.Array:
        return -potential_energy(regression, (X,), {"y": Y}, target.unravel(vector))

    ours, theirs = (
        jax.jit(jax.vmap(jax.value_and_grad(density)))(jnp.asarray(vectors))
        for density in (lambda vector: log_density(target, vector), potential)
    )
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-10)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-9)


def test_draws_come_on_the_scale_of_the_model() -> None:
    target = private.model_target(NORMAL, {"y": Y})
    kernel = private.dp_penalty(target, noise.jax, proposal_scale=0.3, ratio_bound=5.0, tau=10.0)
    starts = jax.vmap(target.unravel)(jnp.full((2, 2), -1.0))
    result = private.sample(jax.random.key(0), kernel, starts, ledger(), num_iterations=20)
    assert {name: draws.shape for name, draws in result.draws.items()} == {"mean": (2, 20), "variance": (2, 20)}
    assert np.all(result.draws["variance"] > 0)


@pytest.mark.x64
def test_a_model_of_dpjax_gives_the_same_posterior_up_to_a_constant() -> None:
    target = private.model_target(NORMAL, {"y": Y}, chunk_size=4)
    mean, log_variance = 0.4, -0.3
    parameters = {"mean": jnp.asarray(mean), "variance": jnp.exp(jnp.asarray(log_variance))}
    expected = (
        jnp.sum(NORMAL.log_density(parameters, {"y": jnp.asarray(Y)})) + NORMAL.log_prior(parameters) + log_variance
    )
    vector = jax.flatten_util.ravel_pytree(NORMAL.unconstrain(parameters))[0]
    np.testing.assert_allclose(log_density(target, vector), expected, rtol=1e-10)


def test_records_with_laws_of_their_own_are_sent_elsewhere() -> None:
    with pytest.raises(ValueError, match="numpyro_target"):
        private.model_target(NORMAL._replace(exchangeable=False), {"y": Y})


OTHERS = [
    (standardised, {"x": X}, "a record's density depends on the other records"),
    (counted, {}, "the prior depends"),
    (enclosed, {}, "covariates"),
    pytest.param(informed, {"x": X}, "the prior depends", marks=pytest.mark.slow),
]


@pytest.mark.x64
@pytest.mark.parametrize(("model", "covariates", "message"), OTHERS)
def test_a_model_that_is_another_one_for_one_record_is_refused(model, covariates: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        private.numpyro_target(model, {"y": Y}, covariates)
    assert "Make it an argument" in str(caught.value) or "public" in str(caught.value)


def test_a_covariate_that_is_passed_as_public_is_refused() -> None:
    with pytest.raises(ValueError, match="pass it in `covariates`"):
        private.numpyro_target(regression, {"y": Y}, x=X)


def far(x, y=None) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", len(x)):
        numpyro.sample("y", dist.Normal(mean * jnp.sqrt(x - 10.0), 1.0), obs=y)


@pytest.mark.x64
def test_no_error_of_a_model_depends_on_confidential_covariates() -> None:
    """It was tried on the first records, and an error told whether one was out of its range."""
    data = {"y": np.zeros(9)}
    for covariate in (np.linspace(11.0, 19.0, 9), np.linspace(1.0, 9.0, 9)):
        with pytest.raises(ValueError, match=r"^fn: given a model without a finite density .*examples="):
            private.numpyro_target(far, data, {"x": covariate})
        assert (
            private.numpyro_target(far, data, {"x": covariate}, examples={"x": np.array([12.0, 15.0])}).dimension == 1
        )
    for examples in ({}, {"x": np.ones((2, 3))}, {"x": np.ones(0)}, {"z": np.ones(3)}):
        with pytest.raises(ValueError, match=r"^examples: given shapes"):
            private.numpyro_target(far, data, {"x": np.ones(9)}, examples=examples)


def reading(x, y=None) -> None:
    """It looks at its covariates in Python, and holds an array of seven numbers."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    if np.max(x) > 100:
        raise ArithmeticError
    with numpyro.plate("records", len(x)):
        numpyro.sample("y", dist.Normal(mean * (x + np.zeros(7)), 1.0), obs=y)


@pytest.mark.x64
def test_no_error_of_a_model_depends_on_covariates_or_their_number() -> None:
    """It was traced with the confidential ones: the first passed this, the second and the third raised errors."""
    errors = []
    for covariate in (np.zeros(7), np.zeros(6), np.full(7, 1e3)):
        with pytest.raises((ArithmeticError, TypeError, ValueError)) as caught:
            private.numpyro_target(reading, {"y": np.zeros(len(covariate))}, {"x": covariate})
        errors.append((type(caught.value), str(caught.value)))
    assert len(set(errors)) == 1


@pytest.mark.slow
def test_rounding_is_not_taken_for_another_model() -> None:
    data = {"x": RNG.normal(size=(9, 50)), "exposure": np.full(9, 1e3), "group": np.arange(9) % 3}
    assert private.numpyro_target(ill_conditioned, {"count": RNG.normal(size=9)}, data).dimension == 54
