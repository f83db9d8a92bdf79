"""Chains of any sampler from over-dispersed starts, timed without their warm-up, and what is read off them."""

import time
from typing import NamedTuple

import jax
import numpy as np

import dpjax
from benchmarks.papers.mixture.problems import Problem
from dpjax import diagnostics, mixture

SAMPLERS: dict[str, mixture.Sampler] = {
    "exact": mixture.conditional(proposals=0),
    "metropolis": mixture.conditional(proposals=1),
    "4 proposals": mixture.conditional(proposals=4),
    "paper's slice": mixture.conditional("stick", proposals=1),
    "Neal 5, m = 1": mixture.neal5(),
    "Neal 5, m = 5": mixture.neal5(5, redraw=False),
    "Neal 8": mixture.neal8(),
    "Neal 2": mixture.neal2(),
    "Neal 3": mixture.neal3(),
}
"""The conditional sampler with exact, Metropolis and i-SIR records; the paper's samplers; and those of Neal (2000)."""

COLORS = dict(zip(SAMPLERS, ("C0", "C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8"), strict=True))


class Length(NamedTuple):
    """How long chains are: sweeps thrown away, draws kept, and how many sweeps these lie apart."""

    warmup: int
    draws: int
    thin: int = 1


def is_known(problem: Problem) -> bool:
    """Whether the records themselves were released, so that none is imputed."""
    return problem.channel is None and not isinstance(problem.values, dpjax.Release)


def run_chains(
    sampler: str,
    problem: Problem,
    seed: int,
    length: Length,
    *,
    num_chains: int = 1,
    collect: tuple[str, ...] | None = None,
    timed: bool = True,
) -> tuple[mixture.MixturePosterior, float]:
    """Draws, and the CPU seconds that they took after the warm-up; NaN if they are not timed.

    A run of the same key and warm-up with one draw is made before: it compiles, and made again it tells what the
    warm-up takes. Where later draws need more slots than those, they are made again too, as more was compiled for them.
    """

    def draw(num_samples: int) -> tuple[mixture.MixturePosterior, float]:
        began = time.process_time()
        posterior = mixture.sample(
            jax.random.key(seed),
            *problem.released,
            component=problem.component,
            concentration=problem.concentration,
            sampler=SAMPLERS["exact" if is_known(problem) else sampler],
            num_chains=num_chains,
            num_warmup=length.warmup,
            num_samples=num_samples,
            thin=length.thin,
            collect=collect,
            progress=False,
        )
        return posterior, time.process_time() - began

    if not timed:
        return draw(length.draws)[0], np.nan
    draw(1)
    short, of_warmup = draw(1)
    posterior, seconds = draw(length.draws)
    if num_slots(posterior) > num_slots(short):
        posterior, seconds = draw(length.draws)
    return posterior, (seconds - of_warmup) * length.draws / max(length.draws - 1, 1)


def num_slots(posterior: mixture.MixturePosterior) -> int:
    """How many slots were held."""
    return int(posterior.mixing.weights.shape[2])


def read_clusters(posterior: mixture.MixturePosterior, seconds: float, length: Length) -> dict[str, float]:
    """The acceptance rate, and how well the number of clusters is known, of a run of one chain or several."""
    number = posterior.draws["num_clusters"].astype(float)
    sweeps = number.size * length.thin
    effective = float(diagnostics.ess_bulk(number)) if np.ptp(number) > 0 else np.nan
    return {
        "acceptance": float(np.mean(posterior.info["acceptance_rate"])),
        "clusters": float(np.mean(number)),
        "effective": effective,
        "effective_per_1000": 1_000 * effective / sweeps,
        "effective_per_second": effective / seconds,
        "microseconds": 1e6 * seconds / sweeps,
    }
