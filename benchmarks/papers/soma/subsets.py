"""Appendix A.2: SOMA with fewer attempts than records, at uniform random subsets and at windows in turn."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.papers.soma.regression_chains import EPSILON, N, regression
from dpjax.data_augmentation.records.placed import Decision, SummedTarget, SweepState, sweep
from dpjax.data_augmentation.records.soma import decide_among, first_places
from dpjax.diagnostics import ess_bulk, mcse_mean
from dpjax.numerics import decision_uniforms

KINDS = ("windows", "subsets")


def measure(attempts: list[int], chains: int, iterations: int) -> dict[str, Any]:
    """Acceptance, the mean of β₀ with its error, and effective draws of β₀, by number of attempts and kind of subset.

    Regression with 100 records at ε = 30; the first half of the iterations is left out.
    """
    rows = {}
    for number in attempts:
        rows[str(number)] = {kind: measure_kind(kind, number, chains, iterations) for kind in KINDS}
    return {"attempts": rows}


def measure_kind(kind: str, attempts: int, chains: int, iterations: int) -> dict[str, float]:
    """The row of one kind."""
    coef, rate = make_chains(kind, attempts, iterations)(jax.random.split(jax.random.key(7), chains))
    kept = np.asarray(coef)[:, iterations // 2 :, 0]
    return {
        "acceptance": float(np.asarray(rate)[:, iterations // 2 :].mean()),
        "mean": float(kept.mean()),
        "standard_error": float(mcse_mean(kept)),
        "ess": float(ess_bulk(kept)),
    }


def make_chains(kind: str, attempts: int, iterations: int) -> Any:
    """Coefficients [chain, iteration, 3] and acceptance of chains from the prior."""
    model, release = regression(N, EPSILON)
    target = SummedTarget(release, N)

    def innovations(key: jax.Array) -> tuple:
        places_key, select_key, accept_key = jax.random.split(key, 3)
        # The first places of a random order of all, for each proposal.
        subsets = jnp.argsort(jax.random.uniform(places_key, (N, N)), axis=1)[:, :attempts]
        places = first_places(N, attempts) if kind == "windows" else subsets
        return places, jax.random.uniform(select_key, (N,)), decision_uniforms(accept_key, (N,))

    def decide_in_subset(target: Any, state: SweepState, column: jax.Array, innovation: tuple) -> tuple:
        places, *uniforms = innovation
        tried = state._replace(columns=state.columns[:, places])
        decision, nonfinite = decide_among(attempts, target, tried, column, (None, *uniforms))
        return Decision(places[decision.place], decision.accepted, decision.log_weight), nonfinite

    decide = partial(decide_among, attempts) if kind == "windows" else decide_in_subset

    @jax.jit
    @jax.vmap
    def run(key: jax.Array) -> tuple:
        parameter_key, records_key, run_key = jax.random.split(key, 3)
        parameters = model.sample_prior(parameter_key)

        def step(state: tuple, index: jax.Array) -> tuple:
            update_key, proposal_key, innovation_key = jax.random.split(jax.random.fold_in(run_key, index), 3)
            parameters = model.update(update_key, *state)
            proposals = model.sample_records(proposal_key, parameters, N)
            records, _, info = sweep(target, state[1], proposals, decide, innovations(innovation_key))
            return (parameters, records), (parameters["coef"], info.acceptance_rate)

        start = (parameters, model.sample_records(records_key, parameters, N))
        return jax.lax.scan(step, start, jnp.arange(iterations))[1]

    return run


def draw(result: dict[str, Any], axes: Any) -> None:
    """Effective draws against attempts."""
    for kind in KINDS:
        rows = {int(number): row[kind] for number, row in result["attempts"].items()}
        axes.plot(list(rows), [row["ess"] for row in rows.values()], ".-", label=kind)
    axes.set(xscale="log", xlabel="attempts", ylabel="effective draws of β₀")
    axes.legend()
