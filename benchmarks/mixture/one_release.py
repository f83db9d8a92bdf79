"""Appendix C: 250 records of three Beta groups, known through draws from their smoothed histogram, or noisy counts."""

import time
from functools import partial
from math import exp, floor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.mixture.densities import betas_density
from benchmarks.mixture.problems import CONCENTRATION, three_betas
from dpjax import diagnostics, mixture, statistics
from dpjax.mixture.binned import bin_release
from dpjax.mixture.chunks import Draw, run_chunk
from dpjax.mixture.conditional import Problem, Scheme
from dpjax.mixture.relabelled import MarginalScheme
from dpjax.mixture.result import mixture_densities
from dpjax.mixture.sample import start_chains
from dpjax.mixture.schemes import functions_of

N = 250
NUM_DRAWS = floor(N ** (3 / 5) + 1)
NUM_CHAINS = 2
GROUPS = (1, 8)
GRID = np.linspace(0.01, 0.99, 50)
SCHEMES = {"conditional": Scheme("posterior", 48, 1, in_turn=True), "neal5": MarginalScheme("neal5", 48, in_turn=True)}
WIDE, NARROW = mixture.GammaShapes(2.0, 2.0), mixture.GammaShapes(90.0, 2.0)


class Variant(NamedTuple):
    """What is released and how it is read: the base measure, the sampler, and δ or noisy counts."""

    base: mixture.GammaShapes
    sampler: str
    released: str


VARIANTS = {
    "conditional": Variant(WIDE, "conditional", "draws"),
    "neal5": Variant(WIDE, "neal5", "draws"),
    "conditional, concentrated": Variant(NARROW, "conditional", "draws"),
    "neal5, concentrated": Variant(NARROW, "neal5", "draws"),
    "printed weight": Variant(NARROW, "conditional", "draws of the printed weight"),
    "noisy counts": Variant(NARROW, "conditional", "counts"),
}


def measure(num_warmup: int, num_samples: int, epsilons: list[float], levels: list[int]) -> dict[str, Any]:
    """A row for every variant, number of bins L ⌊n^(1/5) + 1⌋ and ε."""
    records = three_betas(N, np.random.default_rng(20_250))
    grid = [(level, epsilon, name) for level in levels for epsilon in epsilons for name in VARIANTS]
    rows = [measure_row(records, *cell, num_warmup, num_samples) for cell in grid]
    return {
        "n": N,
        "draws_released": NUM_DRAWS,
        "concentration": CONCENTRATION,
        "chains": NUM_CHAINS,
        "grid": GRID.round(3).tolist(),
        "rows": rows,
    }


def make_release(records: np.ndarray, num_bins: int, epsilon: float, released: str) -> dpjax.Release:
    """One release of the records' histogram."""
    histogram = statistics.histogram("record", np.linspace(0, 1, num_bins + 1))
    if released == "counts":
        mechanism = dpjax.Laplace(dpjax.laplace_scale(epsilon, histogram.sensitivity(1, "replace-one")))
        template = dpjax.Release(jnp.zeros(num_bins), mechanism, histogram, N)
    else:
        weight = choose_weight(epsilon, num_bins, released)
        template = dpjax.Release(jnp.zeros(NUM_DRAWS), dpjax.SmoothedHistogram(weight, NUM_DRAWS), histogram, N)
    return template.sample(jax.random.key(7), {"record": jnp.asarray(records, float)})


def choose_weight(epsilon: float, num_bins: int, released: str) -> float:
    """δ: the smallest that is ε-private, or the smallest that fulfils the condition as the paper prints it."""
    if released == "draws":
        return dpjax.smoothing_weight(epsilon, NUM_DRAWS, num_bins, N)
    return num_bins / N / (num_bins / N + exp(epsilon / NUM_DRAWS) + 1)


def true_epsilon(weight: float, num_bins: int) -> float:
    """The ε that draws with this δ keep."""
    return NUM_DRAWS * float(np.log1p((1 - weight) * num_bins / (weight * N)))


def measure_row(
    records: np.ndarray, level: int, epsilon: float, name: str, num_warmup: int, num_samples: int
) -> dict[str, Any]:
    """The figures of one variant at one ε and number of bins."""
    variant, num_bins = VARIANTS[name], level * floor(N ** (1 / 5) + 1)
    release = make_release(records, num_bins, epsilon, variant.released)
    problem = Problem(release.value, bin_release(release), variant.base, jnp.asarray(CONCENTRATION, float))
    draw, seconds = sample(problem, SCHEMES[variant.sampler], num_warmup, num_samples)
    number = np.asarray(draw.num_clusters, float).T
    density = np.mean(mixture_densities(problem, jnp.asarray(GRID, float), draw.mixing), axis=(0, 1))
    row = {"variant": name, "level": level, "bins": num_bins, "epsilon": epsilon}
    if variant.released != "counts":
        weight = choose_weight(epsilon, num_bins, variant.released)
        row |= {"weight": float(f"{weight:.4g}"), "true_epsilon": round(true_epsilon(weight, num_bins), 2)}
    return row | {
        "acceptance": round(float(np.mean(draw.info.acceptance_rate)), 4),
        "bound": float(f"{exp(-epsilon):.3g}"),
        "effective_per_1000": round(1_000 * float(diagnostics.ess_bulk(number)) / number.size, 1),
        "r_hat": round(float(diagnostics.r_hat(number)), 3),
        "mean_clusters": round(float(number.mean()), 2),
        "distance": round(float(np.mean(np.abs(density - betas_density(GRID)))) / 2, 3),
        "microseconds": round(1e6 * seconds / (num_samples * NUM_CHAINS)),
        "density": density.round(3).tolist(),
    }


def sample(problem: Problem, scheme: Any, num_warmup: int, num_samples: int) -> tuple[Draw, float]:
    """The draws [draw, chain, ...] after warm-up, and their CPU seconds; one program for each number of bins."""
    start_key, chain_key = jax.random.split(jax.random.key(1))
    states = start_chains(problem, scheme, jax.random.split(start_key, NUM_CHAINS), jnp.array(GROUPS))
    keys = jax.random.split(chain_key, NUM_CHAINS)
    move = functions_of(scheme)[1]
    run = partial(run_chunk, move, scheme, (), max(num_warmup, num_samples), problem=problem, chain_keys=keys)
    step = np.int32(1)
    states, *_ = run(states=states, start=np.int32(0), length=np.int32(num_warmup), thin=step)
    jax.block_until_ready(states)
    began = time.process_time()
    _, draws, made, _ = jax.block_until_ready(
        run(states=states, start=np.int32(num_warmup), length=np.int32(num_samples), thin=step)
    )
    if int(made) < num_samples:
        raise RuntimeError(f"{scheme.capacity} slots are too few.")
    return jax.tree.map(lambda leaf: leaf[:num_samples], draws), time.process_time() - began


def draw(result: dict[str, Any], axes: Any) -> None:
    """Densities: a row of panels for each base measure, a column for each number of bins, a colour for each ε."""
    levels = sorted({row["level"] for row in result["rows"]})
    epsilons = sorted({row["epsilon"] for row in result["rows"]})
    for place, (suffix, base) in enumerate((("", "Gamma(2, 2)"), (", concentrated", "Gamma(90, 2)"))):
        for column, level in enumerate(levels):
            panel = axes[3 * place + column]
            panel.plot(GRID, betas_density(GRID), "k", linewidth=1)
            for row in (row for row in result["rows"] if row["level"] == level):
                style = {f"conditional{suffix}": "-", f"neal5{suffix}": ":"}.get(row["variant"])
                if style:
                    label = f"ε = {row['epsilon']:g}" if style == "-" else None
                    panel.plot(GRID, row["density"], style, color=f"C{epsilons.index(row['epsilon'])}", label=label)
            panel.set(title=f"L = {level}, a, b ~ {base}", xlabel="record", ylim=(0, 5))
    axes[0].legend(fontsize="small", title="— conditional, ··· Neal 5", title_fontsize="small")
