"""Group effects with parameters of their own: the coordinates of the non-centred step, and a grid as the oracle."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats

import dpjax
from dpjax import diagnostics
from dpjax.data_augmentation.parameters import choose_kernel
from dpjax.data_augmentation.parameters.kernels import HMC
from tests.tools.perfect_start import REJECT, parameter_p_value, run

GROUPS, PER_GROUP, SCALE = 8, 20, 10.0
GROUP = np.repeat(np.arange(GROUPS), PER_GROUP)


def two_levels(group: Any) -> None:
    mu = numpyro.sample("mu", dist.Normal(0.0, 3.0))
    tau = numpyro.sample("tau", dist.HalfNormal(2.0))
    theta = numpyro.sample("theta", dist.Normal(mu, tau).expand([GROUPS]).to_event(1))
    with numpyro.plate("people", len(group)):
        numpyro.sample("y", dist.Normal(theta[group], 1.0))


def several_families(n: int) -> None:
    centre = numpyro.sample("centre", dist.Normal(0.0, 1.0))
    spread = numpyro.sample("spread", dist.Gamma(2.0, 2.0))
    rates = numpyro.sample("rates", dist.LogNormal(centre, spread).expand([3]).to_event(1))
    shift = numpyro.sample("shift", dist.StudentT(5.0, jnp.sum(rates), spread))
    share = numpyro.sample("share", dist.Beta(2.0, 2.0))
    with numpyro.plate("people", n):
        numpyro.sample("y", dist.Normal(shift + share, rates[0]))


def one_level(n: int) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    scale = numpyro.sample("scale", dist.LogNormal(0.0, 1.0))
    with numpyro.plate("people", n):
        numpyro.sample("y", dist.Normal(mean[0] + mean[1], scale))


def group_sums(record: Any) -> jax.Array:
    return jnp.where(jnp.arange(GROUPS) == record["group"], record["y"], 0.0)


def grouped() -> dpjax.Model:
    return dpjax.from_numpyro(two_levels, records=["group", "y"], group=jnp.asarray(GROUP))


@pytest.mark.x64
def test_coordinates_are_left_alone_where_no_parameter_depends_on_another() -> None:
    assert dpjax.from_numpyro(one_level, records=["y"]).noncentred.coordinates is None


def test_the_coordinates_are_a_map_and_its_inverse_with_that_determinant() -> None:
    coordinates = dpjax.from_numpyro(several_families, records=["y"]).noncentred.coordinates
    rng = np.random.default_rng(1)
    free = {
        name: jnp.asarray(rng.normal(size=shape))
        for name, shape in {"centre": (), "spread": (), "rates": (3,), "shift": (), "share": ()}.items()
    }
    vector, unravel = jax.flatten_util.ravel_pytree(free)

    @jax.jit
    def compute(free: dict) -> tuple:
        parameters = coordinates.constrain(free)
        matrix = jax.jacobian(lambda v: jax.flatten_util.ravel_pytree(coordinates.constrain(unravel(v)))[0])(vector)
        return parameters, coordinates.unconstrain(parameters), matrix, coordinates.log_jacobian(free)

    parameters, back, matrix, log_jacobian = compute(free)
    for name in free:
        np.testing.assert_allclose(back[name], free[name], rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(log_jacobian, np.linalg.slogdet(matrix)[1], rtol=1e-4)
    expected = (jnp.log(parameters["rates"]) - parameters["centre"]) / parameters["spread"]
    np.testing.assert_allclose(free["rates"], expected, rtol=1e-3, atol=1e-5)


@pytest.mark.x64
def test_known_groups_do_not_hide_the_gradients_from_the_default_kernel() -> None:
    """The density of a model with known covariates was tried with two records, which such a model does not have."""
    assert isinstance(choose_kernel(grouped(), None), HMC)


def perfect_start(model: dpjax.Model) -> float:
    release = dpjax.Release(jnp.zeros(GROUPS), dpjax.Gaussian(SCALE), group_sums, GROUP.size)
    after = run(jax.random.key(4), model, release, dpjax.imwg(), interweave=True, num_chains=1_500, num_sweeps=6)
    laws = {"mu": lambda mu: (mu, stats.norm(scale=3.0)), "tau": lambda tau: (tau, stats.halfnorm(scale=2.0))}
    return parameter_p_value(after, laws)


@pytest.mark.slow
def test_a_perfect_start_stays_perfect() -> None:
    assert perfect_start(grouped()) > REJECT


@pytest.mark.slow
def test_a_determinant_without_the_scale_of_the_groups_is_found_out() -> None:
    """A mutation."""
    model = grouped()
    wrong = model.noncentred.coordinates._replace(log_jacobian=model.log_jacobian)
    assert perfect_start(model._replace(noncentred=model.noncentred._replace(coordinates=wrong))) < REJECT


def released_sums() -> np.ndarray:
    rng = np.random.default_rng(2)
    theta = rng.normal(1.0, 0.7, GROUPS)
    return (theta[GROUP] + rng.standard_normal(GROUP.size)).reshape(GROUPS, -1).sum(1) + SCALE * rng.normal(size=GROUPS)


def moments_on_a_grid(sums: np.ndarray) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of mu and tau: given them the sums are independent Normal numbers."""
    mu = np.linspace(-9.0, 10.0, 500)[:, None]
    log_tau = np.linspace(-10.0, np.log(14.0), 900)[None]
    tau = np.exp(log_tau)
    spread = np.sqrt(PER_GROUP**2 * tau**2 + PER_GROUP + SCALE**2)
    density = stats.norm.logpdf(mu, 0, 3) + stats.halfnorm.logpdf(tau, scale=2) + log_tau
    density = density + sum(stats.norm.logpdf(value, PER_GROUP * mu, spread) for value in sums)
    weight = np.exp(density - density.max())
    weight /= weight.sum()
    means = {"mu": np.sum(weight * mu), "tau": np.sum(weight * tau)}
    values = {"mu": mu, "tau": tau}
    return {name: (mean, np.sqrt(np.sum(weight * (values[name] - mean) ** 2))) for name, mean in means.items()}


@pytest.mark.slow
def test_the_two_level_model_agrees_with_a_grid() -> None:
    """The mean and the standard deviation of the top level, within 5 standard errors; the release is not clamped."""
    sums = released_sums()
    release = dpjax.Release(jnp.asarray(sums), dpjax.Gaussian(SCALE), group_sums, GROUP.size)
    posterior = dpjax.sample(jax.random.key(3), grouped(), release, num_samples=4_000, progress=False)
    for name, (mean, sd) in moments_on_a_grid(sums).items():
        draws = np.asarray(posterior.draws[name], float)
        assert diagnostics.ess_bulk(draws) > 1_000
        assert abs(draws.mean() - mean) < 5 * diagnostics.mcse_mean(draws)
        assert abs(draws.std() - sd) < 5 * diagnostics.mcse_sd(draws)
