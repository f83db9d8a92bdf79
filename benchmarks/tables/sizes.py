"""Sweep times and effective draws as the number of people grows: the cost does not, as no record is imputed."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.tables.problems import draw_table, release_table
from benchmarks.timing import time_call
from dpjax.diagnostics import ess_bulk

CHAINS = 4
REPEATS = 2

FEW, MANY_SWEEPS = 100, 10
"""Below so many cells a sweep is so short that so many times as many are timed."""


def measure(sizes: list[int], cells: list[int], num_warmup: int, num_samples: int) -> dict[str, Any]:
    """A row for each table, and by number of cells the slope of log time on log n."""
    rows = [measure_table(n, count, num_warmup, num_samples) for count in cells for n in sizes]
    slopes = {}
    for count in cells:
        own = [row for row in rows if row["cells"] == count]
        logs = np.log([[row["n"], row["microseconds per sweep"]] for row in own])
        slopes[str(count)] = float(f"{np.polyfit(*logs.T, 1)[0]:.3g}")
    return {"rows": rows, "slopes": slopes}


def measure_table(n: int, cells: int, num_warmup: int, num_samples: int) -> dict[str, float]:
    """The row of one table. A run that keeps one draw is the warm-up; the draws are what a full run takes more."""
    generator = np.random.default_rng([7, n, cells])
    num_samples *= MANY_SWEEPS if cells < FEW else 1
    counts = draw_table(cells, n, generator)
    release, model = release_table(counts, generator), dpjax.models.categorical(jnp.ones(cells))

    def draw(samples: int) -> dpjax.posterior.Posterior:
        budget = {"num_chains": CHAINS, "num_warmup": num_warmup, "num_samples": samples}
        options = {"imputation": dpjax.counts(), "collect": counts_of, "progress": False}
        return dpjax.sample(jax.random.key(1), model, release, **budget, **options)

    full, posterior = time_call(lambda: draw(num_samples), REPEATS)
    warmup, _ = time_call(lambda: draw(1), REPEATS)
    seconds = full.best_seconds - warmup.best_seconds
    sweeps = CHAINS * (num_samples - 1)
    size = {"shares": worst(posterior.draws["probabilities"]), "counts": worst(posterior.collected)}
    return {
        "cells": cells,
        "n": n,
        "microseconds per sweep": round_off(1e6 * seconds / sweeps),
        "seconds of warm-up": round_off(warmup.best_seconds),
        **{f"effective {name} per sweep": round_off(found / sweeps) for name, found in size.items()},
        **{f"effective {name} per second": round_off(found / seconds) for name, found in size.items()},
    }


def counts_of(state: Any) -> jax.Array:
    """The counts [cells] of a chain's state."""
    return state.latent.records["counts"][0]


def worst(draws: np.ndarray) -> float:
    """The smallest effective sample size of draws [chain, draw, cells]; of those that never move it is not known."""
    return float(np.nanmin(ess_bulk(np.asarray(draws, float))))


def round_off(number: float) -> float:
    """Three digits."""
    return float(f"{number:.3g}")


def draw(result: dict[str, Any], axes: Any) -> None:
    """The time of a sweep, and effective draws per second, by number of people."""
    for place, name in enumerate(("microseconds per sweep", "effective shares per second")):
        for cells in dict.fromkeys(row["cells"] for row in result["rows"]):
            own = [row for row in result["rows"] if row["cells"] == cells]
            axes[place].loglog([row["n"] for row in own], [row[name] for row in own], "o-", label=f"{cells} cells")
        axes[place].set(xlabel="people", ylabel=name)
        axes[place].set_ylim(bottom=1)
    axes[0].legend(frameon=False)
