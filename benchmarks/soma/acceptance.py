"""Figures 1 and 2: how often an offer to one of two records is accepted, against ε, for two priors; and traces."""

from typing import Any

import jax
import jax.numpy as jnp

import dpjax
from benchmarks.soma.problems import SAMPLERS, two_records

PRIORS = ("beta", "exponential")
START = 0.3


def measure(points: int, chains: int, sweeps: int) -> dict[str, Any]:
    """The acceptance rate at `points` values of ε from 1 to 50, by prior and sampler, and traces of two records.

    Rates are means over chains, with their standard errors, of sweeps of two offers. The released value, which the
    paper does not give, is the prior's mean. Traces are one chain of 500 offers at ε = 20 from records of 0.3.
    """
    grid = [float(epsilon) for epsilon in jnp.geomspace(1.0, 50.0, points)]
    rates: dict[str, Any] = {"epsilon": grid}
    for prior in PRIORS:
        rates[prior] = {name: measure_rates(prior, grid, s, chains, sweeps) for name, s in SAMPLERS.items()}
    return {"acceptance_rate": rates, "traces": {name: trace(sampler) for name, sampler in SAMPLERS.items()}}


def make_chain(prior: str, imputation: dpjax.Imputation, sweeps: int) -> Any:
    """A chain from records of 0.3 as a function of ε and its key: records and acceptance rate after each sweep."""

    def run(epsilon: jax.Array, key: jax.Array) -> tuple:
        model, release = two_records(prior, 1.0)
        release = dpjax.Release(release.value, dpjax.Laplace(1 / epsilon), release.statistic, release.n)
        algorithm = dpjax.impute(model, release, {}, imputation)

        def step(latent: dpjax.Latent, index: jax.Array) -> tuple:
            latent, info = algorithm.step(jax.random.fold_in(key, index), latent)
            return latent, (latent.records["y"], info.acceptance_rate)

        return jax.lax.scan(step, algorithm.init({"y": jnp.full(2, START)}), jnp.arange(sweeps))[1]

    return run


def measure_rates(prior: str, grid: list[float], imputation: dpjax.Imputation, chains: int, sweeps: int) -> Any:
    """The mean rate and its standard error at each ε, after a tenth as many sweeps of warm-up."""
    run = make_chain(prior, imputation, sweeps + sweeps // 10)

    @jax.jit
    def rates(epsilons: jax.Array, keys: jax.Array) -> jax.Array:
        def one(epsilon: jax.Array, key: jax.Array) -> jax.Array:
            return jnp.mean(run(epsilon, key)[1][sweeps // 10 :])

        return jax.vmap(jax.vmap(one, (None, 0)), (0, None))(epsilons, keys)

    found = rates(jnp.asarray(grid), jax.random.split(jax.random.key(4), chains))
    errors = jnp.std(found, axis=1, ddof=1) / chains**0.5
    return {"mean": jnp.mean(found, axis=1).tolist(), "standard_error": errors.tolist()}


def trace(imputation: dpjax.Imputation) -> list[list[float]]:
    """Both records after each of 250 sweeps of two offers."""
    run = jax.jit(make_chain("beta", imputation, 250))
    return run(jnp.asarray(20.0), jax.random.key(6))[0].tolist()


def draw(result: dict[str, Any], axes: Any) -> None:
    """Acceptance against ε; the exponential prior dashed."""
    rates = result["acceptance_rate"]
    for prior, style in zip(PRIORS, ("-", "--"), strict=True):
        for place, (name, figures) in enumerate(rates[prior].items()):
            axes.plot(rates["epsilon"], figures["mean"], style, color=f"C{place}", label=f"{name}, {prior}")
    axes.set_xscale("log")
    axes.set_xlabel("ε")
    axes.set_ylabel("acceptance rate")
    axes.legend(fontsize="small")
