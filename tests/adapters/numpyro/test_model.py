"""What `from_numpyro` makes of models beyond the shipped ones."""

import doctest
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from numpyro.infer import SVI

import dpjax
from problems import numpyro_programs as programs


def documented() -> dpjax.Model:
    """The Beta-Bernoulli model in the docstring of `numpyro.infer.SVI`."""
    examples = doctest.DocTestParser().get_examples(SVI.__doc__)
    source = next(example.source for example in examples if example.source.startswith("def model(data)"))
    namespace: dict[str, Any] = {"numpyro": numpyro, "dist": dist}
    exec(source, namespace)
    return dpjax.from_numpyro(namespace["model"], records=["obs"], data=None)


@pytest.mark.x64
def test_a_model_from_numpyros_documentation_is_read_unchanged() -> None:
    density = documented().log_density({"latent_fairness": jnp.array(0.3)}, {"obs": jnp.array([0.0, 1.0])})
    np.testing.assert_allclose(density, np.log([0.7, 0.3]), rtol=1e-5)


@pytest.mark.slow
def test_a_model_from_numpyros_documentation_runs_unchanged() -> None:
    """Given its counts the posterior is known."""
    model = documented()
    # Next to no noise on the count of ones, so that the posterior is Beta(10 + 6, 10 + 4).
    release = dpjax.Release([6.0], dpjax.DiscreteGaussian(0.2), lambda record: record["obs"][None].astype(float), n=10)
    posterior = dpjax.sample(jax.random.key(1), model, release, num_warmup=500, num_samples=1_500, progress=False)
    draws = posterior.draws["latent_fairness"]
    error = dpjax.diagnostics.mcse_mean(draws[..., None])[0]
    assert abs(draws.mean() - 16 / 30) < 5 * error


@pytest.mark.x64
def test_fixed_covariates_give_each_record_its_own_law() -> None:
    covariate = jnp.array([-2.0, 0.0, 2.0])
    model = dpjax.from_numpyro(programs.logistic_on_known, records=["y"], covariate=covariate)
    assert not model.exchangeable
    assert model.num_records == 3
    parameters = {"coef": jnp.array([0.0, 50.0])}
    records = jax.jit(lambda key: model.sample_records(key, parameters, 3))(jax.random.key(0))
    assert records["y"].tolist()[0::2] == [0, 1]
    assert model.log_density(parameters, {"y": jnp.array([0, 1, 1])}).shape == (3,)
    assert model.sample_records(jax.random.key(0), parameters, 1)["y"].shape == (1,)


@pytest.mark.slow
def test_covariates_named_as_record_fields_reach_the_statistic() -> None:
    covariate = jnp.array([-1.0, 0.5, 2.0])
    model = dpjax.from_numpyro(programs.logistic_on_known, records=["covariate", "y"], covariate=covariate)
    parameters = model.sample_prior(jax.random.key(0))
    records = model.sample_records(jax.random.key(1), parameters, 3)
    np.testing.assert_array_equal(records["covariate"], covariate)
    release = dpjax.Release(
        [0.0], dpjax.Laplace(1.0), lambda record: (record["covariate"] * record["y"].astype(float))[None], n=3
    )
    sampler = dpjax.gibbs(model, release)
    state = sampler.init(parameters, jax.random.key(2))
    state, _ = jax.jit(sampler.step)(jax.random.key(3), state)
    np.testing.assert_array_equal(state.latent.records["covariate"], covariate)


@pytest.mark.x64
def test_a_model_of_hard_coded_size_takes_any_number_where_its_records_have_one_law() -> None:
    model = dpjax.from_numpyro(programs.categorical, records=["cell"], concentration=np.ones(3))
    parameters = model.sample_prior(jax.random.key(0))
    assert model.num_records is None
    assert model.sample_records(jax.random.key(1), parameters, 9)["cell"].shape == (9,)
    np.testing.assert_array_equal(model.support()["cell"], [0, 1, 2])


def test_covariates_by_index_are_not_taken_for_one_law() -> None:
    table = jnp.array([0.0, 0.0, 0.0, 0.0, 0.0, 3.0])

    def model() -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        with numpyro.plate("records", 6) as index:
            numpyro.sample("y", dist.Normal(mean + table[index], 1.0))

    built = dpjax.from_numpyro(model, records=["y"])
    assert not built.exchangeable
    assert built.num_records == 6


@pytest.mark.x64
def test_deterministic_sites_of_parameters_are_derived_quantities() -> None:
    model = dpjax.from_numpyro(programs.two_groups, records=["group", "y"])
    parameters = jax.jit(model.sample_prior)(jax.random.key(0))
    assert set(parameters) == {"centre", "spread", "share", "mean"}
    derived = model.derived(parameters)
    np.testing.assert_allclose(derived["difference"], parameters["mean"][1] - parameters["mean"][0])
    assert "group: a uniform within its cell" in model.describe()

    def touched(n: int) -> None:
        with numpyro.plate("records", n):
            y = numpyro.sample("y", dist.Normal(0.0, 1.0))
        numpyro.deterministic("average", jnp.mean(y))

    assert dpjax.from_numpyro(touched, records=["y"]).derived({}) == {}


def test_a_moving_bound_has_density_zero_beyond_it() -> None:
    def model(n: int) -> None:
        bound = numpyro.sample("bound", dist.Exponential(1.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Uniform(0.0, bound))

    density = jax.jit(dpjax.from_numpyro(model, records=["y"]).log_density)
    np.testing.assert_allclose(density({"bound": jnp.array(2.0)}, {"y": jnp.array([1.0, 3.0])}), [-np.log(2), -np.inf])


def test_new_parameters_and_records_do_not_trace_the_model_again() -> None:
    model = dpjax.from_numpyro(programs.logistic, records=["x", "y"])

    @jax.jit
    @chex.assert_max_traces(n=1)
    def density(key: jax.Array) -> jax.Array:
        prior_key, record_key = jax.random.split(key)
        parameters = model.sample_prior(prior_key)
        return model.log_density(parameters, model.sample_records(record_key, parameters, 5))

    values = [float(density(jax.random.key(seed)).sum()) for seed in range(3)]
    assert len(set(values)) == 3


@pytest.mark.x32
def test_a_local_release_of_known_covariates_is_imputed_exactly() -> None:
    """Randomized responses to a logistic regression on known covariates, against enumeration of the answers."""
    covariate = jnp.array([-1.0, 0.0, 1.5])
    model = dpjax.from_numpyro(programs.logistic_on_known, records=["y"], covariate=covariate)
    channel = dpjax.RandomizedResponse(keep=0.8, num_categories=2)
    release = dpjax.LocalRelease(jnp.array([0, 1, 1]), channel, field="y")
    parameters = {"coef": jnp.array([0.3, 1.2])}
    kernel = dpjax.imwg()(model, release)
    latent = jax.jit(dpjax.gibbs(model, release).init)(parameters, jax.random.key(0)).latent

    draws = jax.jit(jax.vmap(lambda key: kernel(key, latent, parameters)[0].records["y"]))(
        jax.random.split(jax.random.key(1), 20_000)
    )
    one = jax.nn.sigmoid(0.3 + 1.2 * covariate)
    likelihood = jnp.where(jnp.array([0, 1, 1]) == 1, 0.8, 0.2)
    exact = one * likelihood / (one * likelihood + (1 - one) * (1 - likelihood))
    error = np.sqrt(exact * (1 - exact) / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - exact) < 5 * error)


@pytest.mark.x32
def test_gaussian_noise_on_each_normal_record_is_taken_out_exactly() -> None:
    """The records and their noise add up, so that the posterior of the mean is known."""

    def model(n: int) -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(mean, 1.0))

    built = dpjax.from_numpyro(model, records=["y"])
    values = jnp.array([0.3, 1.9, -0.4, 2.2])
    release = dpjax.LocalRelease(values, dpjax.Gaussian(1.5), field="y")
    options = {"num_warmup": 200, "num_samples": 1_000, "progress": False}
    posterior = dpjax.sample(jax.random.key(4), built, release, imputation=dpjax.imwg(), **options)
    assert posterior.info["acceptance_rate"].min() == 1.0
    precision = 1 / 4 + 4 / (1 + 1.5**2)
    draws = posterior.draws["mean"]
    error = dpjax.diagnostics.mcse_mean(draws[..., None])[0]
    assert abs(draws.mean() - values.sum() / (1 + 1.5**2) / precision) < 5 * error


@pytest.mark.slow
def test_a_table_under_randomized_response_is_imputed_exactly_and_counted() -> None:
    built = dpjax.from_numpyro(programs.categorical, records=["cell"], concentration=np.ones(3))
    release = dpjax.LocalRelease(jnp.array([0, 0, 1, 2, 0]), dpjax.RandomizedResponse(keep=0.7, num_categories=3))
    sampler = dpjax.gibbs(built, release)
    state = sampler.init({"probabilities": jnp.array([0.5, 0.3, 0.2])}, jax.random.key(5))
    _, info = jax.jit(sampler.step)(jax.random.key(6), state)
    assert info.imputation.acceptance_rate == 1.0
    np.testing.assert_array_equal(built.summarize({"cell": jnp.array([0, 2, 2])}), [1, 0, 2])
