"""Figure 3: R-hat and effective sample size against iterations, regression with 100 records, ε = 30."""

from typing import Any

import jax
import numpy as np

from benchmarks.papers.soma.problems import COLORS, SAMPLERS
from benchmarks.papers.soma.regression_chains import NAMES, make_chains
from dpjax.diagnostics import ess_bulk, split_r_hat

THRESHOLD = 1.05
PAPER = {"imwg_random": 1500, "imwg_systematic": 1500, "soma": 800}
"""About how many iterations the paper's chains take until R-hat is below 1.05."""


def measure(repeats: int, chains: int, iterations: int, points: int) -> dict[str, Any]:
    """Of each sampler, R-hat and bulk ESS of all draws so far, and from when on R-hat stays below 1.05.

    R-hat is the largest and ESS the smallest of the parameters', medians over repeated sets of chains, at so many
    lengths of a chain. A set that never stays below is counted as settled at its end.
    """
    grid = [int(t) for t in np.linspace(0, iterations, points + 1)[1:]]
    result: dict[str, Any] = {"iterations": grid, "samplers": {}}
    for name, sampler in SAMPLERS.items():
        run = make_chains(sampler, iterations)
        draws = [run(jax.random.split(jax.random.key(20 + repeat), chains)) for repeat in range(repeats)]
        r_hat = np.array([[split_r_hat(chain[:, :t]) for t in grid] for chain in draws])  # [repeat, t, parameter]
        ess = np.array([[ess_bulk(chain[:, :t]) for t in grid] for chain in draws])
        below = [first_below(row, grid) for row in r_hat.max(axis=2)]
        result["samplers"][name] = {
            "r_hat": np.median(r_hat.max(axis=2), axis=0).tolist(),
            "ess": np.median(ess.min(axis=2), axis=0).tolist(),
            "below": below,
            "mean": float(np.mean(below)),
            "standard_deviation": float(np.std(below, ddof=1)) if repeats > 1 else 0.0,
            "ess_at_end": dict(zip(NAMES, np.median(ess[:, -1], axis=0).tolist(), strict=True)),
            "paper_below": PAPER[name],
        }
    return result


def first_below(r_hat: np.ndarray, grid: list[int]) -> int:
    """From which number of iterations on R-hat stays below the threshold; the last where it does not."""
    above = np.flatnonzero(r_hat >= THRESHOLD)
    following = 0 if above.size == 0 else int(above[-1]) + 1
    return grid[min(following, len(grid) - 1)]


def draw(result: dict[str, Any], axes: Any) -> None:
    """Both against iterations."""
    for name, figures in result["samplers"].items():
        axes[0].plot(result["iterations"], figures["r_hat"], color=COLORS[name], label=name)
        axes[1].plot(result["iterations"], figures["ess"], color=COLORS[name], label=name)
        axes[0].axvline(figures["paper_below"], color=COLORS[name], linestyle=":")
    axes[0].axhline(THRESHOLD, color="0.5", linestyle="--")
    axes[0].set(xlabel="iterations", ylabel="largest R-hat", ylim=(1, 1.6))
    axes[1].set(xlabel="iterations", ylabel="smallest bulk ESS")
    axes[0].legend(title="dotted: the paper's crossing")
