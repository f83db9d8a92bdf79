"""The posterior of a county's block groups, tracts and total together, beside least squares on the same release."""

import time
from typing import Any

import jax
import numpy as np
from scipy import stats

import dpjax
from benchmarks.tables.problems import believe_county, draw_county, release_county
from benchmarks.tables.sizes import counts_of, round_off
from dpjax.diagnostics import ess_bulk, split_r_hat

CHAINS = 4
LEVEL = 0.9
SIZES = {"0": (0, 0), "1 to 3": (1, 3), "4 to 10": (4, 10), "11 to 100": (11, 100), "more": (101, np.inf)}


def measure(
    tracts: int, groups: int, categories: int, totals: list[str], num_warmup: int, num_samples: int, thin: int
) -> dict[str, Any]:
    """Rows for the county's totals by category known or noisy: errors and coverage by the true count of a cell."""
    rows, runs, budget = [], [], {"num_warmup": num_warmup, "num_samples": num_samples, "thin": thin}
    for kind in totals:
        generator = np.random.default_rng(11)
        county = draw_county(tracts, groups, categories, generator)
        release = release_county(county, kind == "known", generator)
        model = believe_county(county)
        draws, seconds = sample_counts(model, release, budget)
        truth = county.counts.reshape(-1)
        runs.append({"totals": kind, "people": int(truth.sum()), "seconds": seconds} | read_convergence(draws))
        answers = {"posterior": read_draws(draws, truth), "least squares": estimate(model, release, truth)}
        for way, answer in answers.items():
            rows += [{"totals": kind, "way": way} | row for row in by_size(answer, truth)]
    return {"runs": runs, "rows": rows}


def sample_counts(model: dpjax.Model, release: dpjax.Release, budget: dict[str, int]) -> tuple[np.ndarray, float]:
    """Draws [chain, draw, cell] of the counts, and the CPU seconds that they took with warm-up and compilation."""
    began = time.process_time()
    options = {"imputation": dpjax.counts(), "collect": counts_of, "progress": False}
    posterior = dpjax.sample(jax.random.key(2), model, release, num_chains=CHAINS, **budget, **options)
    return np.asarray(posterior.collected, float), round_off(time.process_time() - began)


def read_convergence(draws: np.ndarray) -> dict[str, float]:
    """The worst R-hat and effective sample size of the counts [chain, draw, cell] that vary."""
    moving = draws[..., np.ptp(draws, axis=(0, 1)) > 0]
    return {
        "largest R-hat": round(float(np.max(split_r_hat(moving))), 4),
        "smallest effective size": round_off(float(np.min(ess_bulk(moving)))),
    }


def read_draws(draws: np.ndarray, truth: np.ndarray) -> dict[str, np.ndarray]:
    """The mean [cell], whether the interval covers, and whether the mean is negative.

    Among draws that equal the true count its place is drawn: so intervals of whole numbers cover as often as they say.
    """
    merged = draws.reshape(-1, truth.size)
    below, equal = np.mean(merged < truth, axis=0), np.mean(merged == truth, axis=0)
    place = below + equal * np.random.default_rng(13).uniform(size=truth.size)
    mean = merged.mean(axis=0)
    return {"mean": mean, "covered": np.abs(place - 0.5) < LEVEL / 2}


def estimate(model: dpjax.Model, release: dpjax.Release, truth: np.ndarray) -> dict[str, np.ndarray]:
    """The same of least squares, with intervals of the normal law."""
    found = dpjax.data_augmentation.least_squares(model, release)
    reach = stats.norm.ppf((1 + LEVEL) / 2) * np.sqrt(found.variance)
    return {"mean": found.value, "covered": np.abs(found.value - truth) <= reach}


def by_size(answer: dict[str, np.ndarray], truth: np.ndarray) -> list[dict[str, Any]]:
    """A row for all cells, and for those of each size: the root mean squared error of means, coverage and negatives."""
    chosen = {"all": (0, np.inf)} | SIZES
    rows = []
    for name, (low, high) in chosen.items():
        cells = (truth >= low) & (truth <= high)
        error = answer["mean"][cells] - truth[cells]
        rows.append(
            {
                "count": name,
                "cells": int(cells.sum()),
                "root mean squared error": round_off(float(np.sqrt(np.mean(error**2)))),
                "coverage": round_off(float(np.mean(answer["covered"][cells]))),
                "negative": round_off(float(np.mean(answer["mean"][cells] < 0))),
            }
        )
    return rows


def draw(result: dict[str, Any], axes: Any) -> None:
    """Errors and coverage by the true count, of the last run."""
    totals = result["runs"][-1]["totals"]
    for way, colour in {"posterior": "#1f6fb4", "least squares": "#d95f02"}.items():
        own = [row for row in result["rows"] if (row["totals"], row["way"]) == (totals, way)]
        for place, name in enumerate(("root mean squared error", "coverage")):
            axes[place].plot([row["count"] for row in own], [row[name] for row in own], "o", color=colour, label=way)
            axes[place].set(xlabel="people in the cell", ylabel=name)
    axes[0].set(ylim=(0, None), title=f"county totals {totals}")
    axes[0].legend(frameon=False)
    axes[1].axhline(LEVEL, color="0.7", linewidth=1, zorder=0)
