"""Counts in place of records: the same posterior, and what an effective draw of it costs."""

import time
from typing import Any

import jax
import numpy as np

import dpjax
from benchmarks.tables.models import MODELS, build
from benchmarks.tables.sizes import round_off
from dpjax.diagnostics import ess_bulk, mcse_mean

CHAINS = 2


def measure(sizes: list[int], budgets: dict[str, dict[str, list[int]]]) -> dict[str, Any]:
    """Rows by model and size, with the sweeps of counts and of records [warm-up, kept] by size."""
    return {"rows": [compare(name, n, budgets[str(n)]) for name in MODELS for n in sizes]}


def compare(name: str, n: int, budget: dict[str, list[int]]) -> dict[str, Any]:
    """The row of a model and a size."""
    model, release = build(name, n)
    row: dict[str, Any] = {"model": name, "n": n}
    seen = {}
    for way, imputation in {"counts": dpjax.counts(), "records": dpjax.imwg()}.items():
        seen[way], seconds = run(model, release, imputation, *budget[way])
        row[f"milliseconds per sweep, {way}"] = round_off(1e3 * seconds / (CHAINS * budget[way][1]))
        row[f"effective draws per second, {way}"] = round_off(smallest(seen[way]) / seconds)
    errors = [mcse_mean(draws) for draws in seen.values()]
    gap = seen["counts"].mean(axis=(0, 1)) - seen["records"].mean(axis=(0, 1))
    row["largest difference in standard errors"] = round_off(float(np.max(np.abs(gap) / np.hypot(*errors))))
    return row


def run(
    model: dpjax.Model, release: dpjax.Release, imputation: dpjax.base.Imputation, warmup: int, kept: int
) -> tuple[np.ndarray, float]:
    """Draws [chain, draw, number], and the CPU seconds of those kept: of a run, less those of one that keeps one."""
    seconds = {}
    for length in (1, kept, 1, kept):  # the first time compiles
        began = time.process_time()
        options = {"num_chains": CHAINS, "num_warmup": warmup, "imputation": imputation, "progress": False}
        posterior = dpjax.sample(jax.random.key(5), model, release, num_samples=length, **options)
        seconds[length] = time.process_time() - began
    draws = [np.reshape(leaf, (*leaf.shape[:2], -1)) for leaf in posterior.draws.values()]
    return np.concatenate(draws, axis=2), max(seconds[kept] - seconds[1], 1e-9)


def smallest(draws: np.ndarray) -> float:
    """The smallest effective sample size of the numbers of draws [chain, draw, number]."""
    return float(np.min(ess_bulk(draws)))


def draw(result: dict[str, Any], axes: Any) -> None:
    """Effective draws per second by size."""
    for place, name in enumerate(MODELS):
        rows = [row for row in result["rows"] if row["model"] == name]
        for way in ("counts", "records"):
            speed = [row[f"effective draws per second, {way}"] for row in rows]
            axes[place].loglog([row["n"] for row in rows], speed, "o-", label=way)
        axes[place].set(xlabel="records", ylabel="effective draws per second", title=name)
    axes[0].legend(frameon=False)
