"""The four algorithms at the paper's settings, the two exact ones, and how they are run and paid for."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.papers.dphmc.problems import DELTA, NUM_CHAINS, Problem
from dpjax import private

NAMES = ("DP-HMC", "DP-penalty", "DP-SGLD", "DP-SGNHT")
HMC = {
    "banana": {
        "tau_l": 31.62,
        "tau_g": 173.9,
        "step_size": 0.006,
        "num_leapfrog": 25,
        "ratio_bound": 0.1,
        "gradient_bound": 0.05,
    },
    "gaussian": {
        "tau_l": 31.62,
        "tau_g": 79.06,
        "step_size": 1.5e-4,
        "num_leapfrog": 12,
        "ratio_bound": 6.0,
        "gradient_bound": 10.0,
    },
}
PENALTY = {
    "banana": {"tau": 53.76, "proposal_scale": 0.06, "ratio_bound": 0.15},
    "gaussian": {"tau": 15.81, "proposal_scale": 7e-4, "ratio_bound": 10.0},
}
SGLD = {
    "banana": {"gradient_bound": 0.2, "step_size": 1.0},
    "gaussian": {"gradient_bound": 15.0, "step_size": 0.008},
}
SGNHT = {
    "banana": {"gradient_bound": 0.2, "step_size": 100.0, "diffusion": 50.0},
    "gaussian": {"gradient_bound": 12.0, "step_size": 0.2, "diffusion": 30.0},
}
"""Step sizes of the subsampled algorithms are over n."""
BATCH = 1_000
JITTER = {"low": 0.0, "high": 1.0, "length": 4096}
"""The range in the authors' code: mean step η/2."""


def make_kernel(name: str, problem: Problem) -> private.PrivateKernel:
    """An algorithm at the paper's settings, with noise from `noise.jax`."""
    target, noise = problem.target, private.noise.jax
    if name == "DP-HMC":
        settings = dict(HMC[problem.name])
        steps = private.halton_steps(settings.pop("step_size"), **JITTER, rng=np.random.default_rng(7))
        return private.dp_hmc(target, noise, step_size=steps, **settings)
    if name == "DP-penalty":
        return private.dp_penalty(target, noise, **PENALTY[problem.name])
    return subsampled(name, problem)


def subsampled(name: str, problem: Problem) -> private.PrivateKernel:
    """DP-SGLD or DP-SGNHT, with all of the noise that its dynamics need in the release."""
    target, noise, n = problem.target, private.noise.jax, problem.target.num_records
    settings = dict((SGLD if name == "DP-SGLD" else SGNHT)[problem.name])
    step, bound, rate = settings.pop("step_size") / n, settings["gradient_bound"], BATCH / n
    if name == "DP-SGLD":
        multiplier = private.largest_langevin_noise(step, rate, bound)
        return private.dp_sgld(
            target, noise, step_size=step, sampling_rate=rate, noise_multiplier=multiplier, **settings
        )
    multiplier = rate / bound * float(np.sqrt(2 * settings["diffusion"] / step))
    return private.dp_sgnht(target, noise, step_size=step, sampling_rate=rate, noise_multiplier=multiplier, **settings)


def count_iterations(kernel: private.PrivateKernel, epsilon: float, cap: int) -> tuple[int, float]:
    """Iterations of each of the chains that (ε, δ) allows under replace-one neighbours, at most `cap`; ε spent.

    The search for what subsampled queries can afford takes minutes, so that the cap is tried before.
    """
    ledger, iterations = private.Ledger(private.Budget(epsilon, DELTA, "replace-one")), cap
    try:
        ledger.charge(kernel.queries, times=cap * NUM_CHAINS)
    except private.BudgetExceeded:
        iterations = ledger.affordable(kernel.queries) // NUM_CHAINS
        ledger.charge(kernel.queries, times=iterations * NUM_CHAINS)
    return iterations, ledger.privacy_spent().epsilon


def run_repeats(
    kernel: private.PrivateKernel,
    key: jax.Array,
    starts: jax.Array,
    num_iterations: int,
    thin: int = 1,
    places: range | None = None,
) -> tuple[np.ndarray, dict[str, list[float]]]:
    """Draws [repeats, chains, iterations // thin, d] from starts [repeats · chains, d], and means that are not private.

    One repeat after the other: more chains at once would leave the cache. Of the starts of many repeats some may be
    run alone, at their places, with the keys that they have among all.
    """
    groups = starts.reshape(-1, NUM_CHAINS, starts.shape[-1])
    runs = [
        run_chains(kernel, jax.random.fold_in(key, place), groups[place], num_iterations, thin)
        for place in (range(len(groups)) if places is None else places)
    ]
    rates = {name: [round(rates[name], 4) for _, rates in runs] for name in runs[0][1]}
    return np.stack([draws for draws, _ in runs]), rates


def run_chains(
    kernel: private.PrivateKernel, key: jax.Array, positions: jax.Array, num_iterations: int, thin: int = 1
) -> tuple[np.ndarray, dict[str, float]]:
    """Draws [chains, iterations // thin, d], charged to no ledger, and means over them that are not private."""
    keys = jax.random.split(key, len(positions))
    draws, info = scan_chains(kernel.build, kernel.target, keys, positions, number=num_iterations // thin, thin=thin)
    rates = {"acceptance": np.asarray(info.is_accepted), **jax.device_get(info.not_private)._asdict()}
    means = {name: float(np.mean(rate)) for name, rate in rates.items() if np.all(np.isfinite(rate))}
    return np.swapaxes(np.asarray(draws), 0, 1), means


@partial(jax.jit, static_argnames=("build", "number", "thin"))
def scan_chains(
    build: Callable[..., Any], target: private.Target, keys: jax.Array, positions: jax.Array, *, number: int, thin: int
) -> tuple[jax.Array, private.KernelInfo]:
    """Draws [draw, chain, d] and the reports on all iterations [draw, iteration, chain]."""
    algorithm = build(target)

    def iterate(states: Any, count: jax.Array) -> tuple[Any, private.KernelInfo]:
        return jax.vmap(lambda key, state: algorithm.step(jax.random.fold_in(key, count), state))(keys, states)

    def draw(states: Any, counts: jax.Array) -> tuple[Any, tuple[jax.Array, private.KernelInfo]]:
        states, info = jax.lax.scan(iterate, states, counts)
        return states, (states.position, info)

    counts = jnp.arange(number * thin).reshape(number, thin)
    return jax.lax.scan(draw, jax.vmap(algorithm.init)(positions), counts)[1]
