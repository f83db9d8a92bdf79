"""Figure 3 under other readings: what an iteration is, which R-hat is meant, of which draws and of which parameters."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.papers.soma.each_proposal import advance
from benchmarks.papers.soma.mixing import PAPER, first_below
from benchmarks.papers.soma.problems import COLORS, SAMPLERS
from benchmarks.papers.soma.regression_chains import EPSILON, N, make_chains, regression
from dpjax.diagnostics import split_r_hat
from dpjax.diagnostics.convergence import r_hat

KINDS = {"imwg_random": "random", "imwg_systematic": "systematic", "soma": "soma"}
PARAMETERS = {"all": slice(None), "β₀": slice(0, 1), "β": slice(0, 3)}
LEFT_OUT = {"no": 0.0, "half": 0.5}


R_HATS = {"split and ranked": split_r_hat, "classic": r_hat}
"""The second is Gelman and Rubin's, of whole chains and without ranks."""


def measure(chains: int, iterations: int, each: int, points: int) -> dict[str, Any]:
    """The iterations from which the largest R-hat stays below 1.05, by schedule, sampler and definition.

    Parameters
    ----------
    chains
        Of each sampler, from the prior.
    iterations, each
        How many they make of n proposals and an update of the parameters, and of n proposals with an update after each.
    points
        How many lengths of a chain R-hat is taken at.
    """
    result: dict[str, Any] = {"paper": PAPER, "after a sweep": {}, "after each proposal": {}}
    keys = jax.random.split(jax.random.key(20), chains)
    for name, sampler in SAMPLERS.items():
        draws = make_chains(sampler, iterations)(keys)
        result["after a sweep"][name] = readings(draws, points)
        result["after each proposal"][name] = readings(make_each(KINDS[name], each)(keys), points)
    return result


def make_each(kind: str, iterations: int) -> Any:
    """Parameters [chain, iteration, 4] of chains whose parameters move after each of n proposals of an iteration."""
    model, release = regression(N, EPSILON)
    chain = advance(
        (model, release),
        kind,
        update=lambda key, parameters, records: model.update(key, parameters, records),
        keep=lambda records: records,
        block=N,
        blocks=iterations,
    )

    @jax.jit
    @jax.vmap
    def run(key: jax.Array) -> jax.Array:
        parameter_key, records_key, run_key = jax.random.split(key, 3)
        parameters = model.sample_prior(parameter_key)
        parameters, _ = chain(run_key, parameters, model.sample_records(records_key, parameters, N))
        return jnp.column_stack([parameters["coef"], parameters["variance"]])

    return lambda keys: np.asarray(run(keys))


def readings(draws: np.ndarray, points: int) -> dict[str, Any]:
    """From when on R-hat stays below 1.05 under each definition; None where it does not."""
    grid = [int(t) for t in np.linspace(0, draws.shape[1], points + 1)[1:]]
    found: dict[str, Any] = {}
    for definition, function in R_HATS.items():
        for kept, share in LEFT_OUT.items():
            curve = np.array([function(draws[:, int(share * t) : t]) for t in grid])
            for which, place in PARAMETERS.items():
                found[f"{definition}, {kept} draws left out, {which}"] = first_below(curve[:, place].max(axis=1), grid)
    return {"below": found, "length": draws.shape[1]}


def draw(result: dict[str, Any], axes: Any) -> None:
    """A mark for each definition, schedule by schedule; the lines are the paper's."""
    for panel, schedule in zip(axes, ("after a sweep", "after each proposal"), strict=True):
        names = list(next(iter(result[schedule].values()))["below"])
        for name, row in result[schedule].items():
            values = [np.nan if value is None else value for value in row["below"].values()]
            panel.plot(values, np.arange(len(names)), "o", color=COLORS[name], label=name)
            panel.axvline(PAPER[name], color=COLORS[name], linestyle=":")
        panel.set_yticks(np.arange(len(names)), names, fontsize=6)
        panel.set(xlabel="iterations until R-hat < 1.05", title=f"parameters updated {schedule}")
        panel.legend(fontsize="x-small")
