"""Figures 1 and 2: how often a proposal to one of two records is accepted, against ε, for two priors; and traces."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.soma.problems import COLORS, MEAN, SAMPLERS, two_records
from dpjax.coupling import theory
from problems.two_records import PRIORS as PRIOR_LAWS

PRIORS = tuple(PRIOR_LAWS)
START = 0.3
TRACE_EPSILON = 20.0


def measure(points: int, chains: int, sweeps: int) -> dict[str, Any]:
    """The acceptance rate at `points` values of ε from 1 to 50, by prior and sampler, and traces of two records.

    Rates are means over chains, with their standard errors, of sweeps of two proposals. Traces are one chain of 500
    proposals at ε = 20 from records of 0.3, and how many points are distinct in those of all chains.
    """
    grid = [float(epsilon) for epsilon in jnp.geomspace(1.0, 50.0, points)]
    rates: dict[str, Any] = {"epsilon": grid}
    for prior in PRIORS:
        rates[prior] = {name: measure_rates(prior, grid, s, chains, sweeps) for name, s in SAMPLERS.items()}
    traces = {name: trace(sampler, chains) for name, sampler in SAMPLERS.items()}
    distinct = {name: [len(np.unique(one, axis=0)) for one in found] for name, found in traces.items()}
    shown = {name: found[0].tolist() for name, found in traces.items()}
    return {"acceptance_rate": rates, "traces": shown, "distinct": distinct}


def make_chain(prior: str, imputation: dpjax.base.Imputation, sweeps: int) -> Any:
    """A chain from records of 0.3 as a function of ε and its key: records and acceptance rate after each sweep."""

    def run(epsilon: jax.Array, key: jax.Array) -> tuple:
        algorithm = dpjax.impute(*two_records(prior, epsilon), {}, imputation)

        def step(latent: dpjax.base.Latent, index: jax.Array) -> tuple:
            latent, info = algorithm.step(jax.random.fold_in(key, index), latent)
            return latent, (latent.records["y"], info.acceptance_rate)

        return jax.lax.scan(step, algorithm.init({"y": jnp.full(2, START)}), jnp.arange(sweeps))[1]

    return run


def measure_rates(prior: str, grid: list[float], imputation: dpjax.base.Imputation, chains: int, sweeps: int) -> Any:
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


def trace(imputation: dpjax.base.Imputation, chains: int) -> np.ndarray:
    """Both records after each of 250 sweeps of two proposals [chain, sweep, 2]."""
    run = jax.jit(jax.vmap(make_chain("beta", imputation, 250), (None, 0)))
    return np.asarray(run(jnp.asarray(TRACE_EPSILON), jax.random.split(jax.random.key(6), chains))[0])


def draw(result: dict[str, Any], axes: Any) -> None:
    """Acceptance against ε for both priors with the proved bounds, and the traces over the posterior's density."""
    rates = result["acceptance_rate"]
    for panel, prior in zip(axes, PRIORS, strict=False):
        for name, figures in rates[prior].items():
            style = ".--" if name == "imwg_systematic" else ".-"  # it lies upon the random scan
            panel.plot(rates["epsilon"], figures["mean"], style, color=COLORS[name], label=name)
        panel.set(xscale="log", ylim=(0, 1), xlabel="ε", ylabel="acceptance rate", title=f"{prior} prior")
    # The mean of two records of [0, 1] with noise of scale 1 / (2 ε) has the privacy loss ε; Exp(1) has no bound.
    budget = np.asarray(rates["epsilon"])
    axes[0].plot(budget, theory.soma_acceptance_bound(budget, 2), "C2:", label="SOMA at least (Theorem 12)")
    axes[0].plot(budget, theory.imwg_acceptance_bound(budget), "C0:", label="IMwG at least (Theorem 12)")
    axes[2].legend(*axes[0].get_legend_handles_labels(), loc="center", frameon=False)
    axes[2].set_axis_off()
    for panel, (name, points) in zip(axes[3:], result["traces"].items(), strict=True):
        draw_trace(panel, points)
        panel.set_title(f"{name}, ε = {TRACE_EPSILON:g}")


def draw_trace(axes: Any, points: list[list[float]]) -> None:
    """One trace from dark to light, over lines of equal posterior density."""
    grid = np.linspace(0.15, 0.85, 100)
    prior = PRIOR_LAWS["beta"]
    mean = (grid[:, None] + grid[None]) / 2
    density = np.outer(prior.pdf(grid), prior.pdf(grid)) * np.exp(-2 * TRACE_EPSILON * np.abs(MEAN - mean))
    levels = density.max() * np.array([0.01, 0.1, 0.4, 0.8])
    axes.contour(grid, grid, density, levels=levels, colors="C1", linewidths=0.8)
    path = np.array([[START, START], *points])
    axes.plot(*path.T, color="0.7", linewidth=0.5, zorder=1)
    axes.scatter(*path.T, c=np.arange(len(path)), s=8, zorder=2)
    axes.set(xlabel="first record", ylabel="second record", aspect="equal")
