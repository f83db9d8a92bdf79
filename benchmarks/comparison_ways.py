"""Five ways of publishing a posterior at one budget: three private Markov chains, and two releases of sums.

Settings come from the pilot alone. DP-HMC has those of `private.plan`; the other chains move on the scale on which the
pilot's posterior is N(0, I). Noise is that of `private.noise.jax`, and accounted for as if it were secure.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import ceil, sqrt
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.comparison_problems import Problem, Records
from benchmarks.papers.dphmc.algorithms import run_chains
from dpjax import private
from dpjax.private import accounting

DELTA = 1e-6
LENGTHS = (60, 250)
"""Iterations of DP-HMC to choose from; more buy hardly more draws here."""
WALK = 1_000
"""Iterations of DP-penalty."""
WALK_VARIANCE = 5.7
"""Of the noise in its test, with which a budget buys most: that of moves at an acceptance rate of 0.23."""
LANGEVIN_STEP, MOST = 0.2, 2_000
"""The step of DP-SGLD, by which variances are 5 % too large, and its iterations at most."""
KEPT = 0.75
"""The share of a chain that is kept, where no plan states its warm-up."""
BOUND = 0.999
"""The share of the pilot's gradients that are not clipped."""
SAMPLES = (500, 2_000)
"""Warm-up and draws of each of four chains given a release."""


class Chain(NamedTuple):
    """A kernel on made-up records, its iterations and its warm-up."""

    kernel: private.PrivateKernel
    iterations: int
    warmup: int
    whitened: bool


class Refused(Exception):
    """A budget does not buy a run."""


@cache
def make_target(problem: Problem, whitened: bool) -> private.Target:
    """The target of made-up records."""

    def place(position: jax.Array) -> jax.Array:
        return problem.place(position) if whitened else position

    return private.target(
        lambda position, record: problem.log_likelihood(place(position), record),
        lambda position: problem.log_prior(place(position)),
        problem.pilot,
        jnp.zeros(len(problem.guess)),
    )


def budget_of(epsilon: float) -> private.Budget:
    """A budget under replace-one neighbours."""
    return private.Budget(epsilon, DELTA, "replace-one")


def gradient_bound(problem: Problem) -> float:
    """The length that few of the pilot's gradients at the guess exceed, on the whitened scale."""
    target = make_target(problem, True)
    slope = jax.vmap(jax.grad(target.log_likelihood), (None, 0))
    rows = np.asarray(jax.jit(slope)(jnp.zeros(len(problem.guess)), problem.pilot))
    return float(np.quantile(np.linalg.norm(rows, axis=1), BOUND))


def plan_hmc(problem: Problem, epsilon: float) -> Chain:
    """DP-HMC with the settings of the plan that expects most draws."""
    target = make_target(problem, False)
    plans = [plan for length in LENGTHS if (plan := try_plan(problem, target, epsilon, length)) is not None]
    if not plans:
        raise Refused
    best = max(plans, key=lambda plan: plan.effective_draws)
    kernel = private.dp_hmc(target, private.noise.jax, **best.settings())
    return Chain(kernel, best.num_iterations, best.num_warmup, False)


def make_plan(problem: Problem, target: private.Target, epsilon: float, length: int) -> private.Plan:
    """A plan of one chain; what it warns of is measured here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return private.plan(
            jax.random.key(1),
            target,
            source="synthetic",
            num_records=problem.n,
            budget=budget_of(epsilon),
            num_chains=1,
            num_iterations=length,
        )


def try_plan(problem: Problem, target: private.Target, epsilon: float, length: int) -> private.Plan | None:
    """A plan of one chain, or None where it is refused."""
    try:
        return make_plan(problem, target, epsilon, length)
    except ValueError:
        return None


def plan_walk(problem: Problem, epsilon: float) -> Chain:
    """DP-penalty: moves with which the noise of its test is as wanted, and no longer than those without noise."""
    bound, dimension = gradient_bound(problem), len(problem.guess)
    tau = sqrt(WALK / (2 * accounting.largest_mu(epsilon, DELTA))) * (1 + 1e-4)
    scale = min(sqrt(WALK_VARIANCE / dimension) / (2 * tau * bound), 2.38 / sqrt(dimension))
    kernel = private.dp_penalty(
        make_target(problem, True), private.noise.jax, proposal_scale=scale, ratio_bound=bound, tau=tau
    )
    return Chain(kernel, WALK, ceil((1 - KEPT) * WALK), True)


def plan_langevin(problem: Problem, epsilon: float) -> Chain:
    """DP-SGLD on all records, with all of the noise that its dynamics need in the release."""
    bound = gradient_bound(problem)
    multiplier = private.largest_langevin_noise(LANGEVIN_STEP, 1.0, bound)
    kernel = private.dp_sgld(
        make_target(problem, True),
        private.noise.jax,
        step_size=LANGEVIN_STEP,
        sampling_rate=1.0,
        gradient_bound=bound,
        noise_multiplier=multiplier,
    )
    iterations = min(MOST, private.Ledger(budget_of(epsilon)).affordable(kernel.queries))
    if iterations < 1 / (1 - KEPT):
        raise Refused
    return Chain(kernel, iterations, ceil((1 - KEPT) * iterations), True)


CHAINS: dict[str, Callable[[Problem, float], Chain]] = {
    "DP-HMC": plan_hmc,
    "DP-penalty": plan_walk,
    "DP-SGLD": plan_langevin,
}
RELEASES = {"release of sums": "sums", "release of derivatives": "derivatives"}
WAYS = (*CHAINS, *RELEASES)


def prepare(way: str, problem: Problem, epsilon: float) -> Callable[[int, Records], np.ndarray]:
    """The function of a repeat's number and its records that returns draws [count, d] of θ.

    Raises
    ------
    Refused
        If the budget does not buy a run.
    """
    if way in CHAINS:
        chain = CHAINS[way](problem, epsilon)
        private.Ledger(budget_of(epsilon)).charge(chain.kernel.queries, times=chain.iterations)
        return lambda number, records: run_chain(chain, problem, number, records)
    statistic = problem.statistics[RELEASES[way]]
    return lambda number, records: read_release(problem, statistic, epsilon, number, records)


def run_chain(chain: Chain, problem: Problem, number: int, records: Records) -> np.ndarray:
    """Draws [count, d] of one chain that starts at the pilot's posterior."""
    start_key, chain_key = jax.random.split(jax.random.key(100 + number))
    target = replace(chain.kernel.target, records=chunks_of(chain.kernel.target, records))
    start = jax.random.normal(start_key, (1, len(problem.guess)))
    starts = start if chain.whitened else jax.vmap(problem.place)(start)
    kernel = chain.kernel._replace(target=target)
    draws = np.asarray(run_chains(kernel, chain_key, starts, chain.iterations)[0][0])[chain.warmup :]
    return np.asarray(jax.vmap(problem.place)(jnp.asarray(draws))) if chain.whitened else draws


def chunks_of(target: private.Target, records: Records) -> Any:
    """Records as a target holds them."""

    def chunk(leaf: jax.Array, like: jax.Array) -> jax.Array:
        filled = jnp.concatenate([leaf, jnp.repeat(leaf[:1], like.shape[0] * like.shape[1] - len(leaf), axis=0)])
        return filled.reshape(like.shape)

    return jax.tree.map(chunk, records, target.records)


def read_release(problem: Problem, statistic: Any, epsilon: float, number: int, records: Records) -> np.ndarray:
    """Draws [count, d] of the posterior given one release, with the sum taken to be Normal."""
    source = private.noise.Secure(np.random.default_rng(200 + number).bytes)
    confidential = {name: np.asarray(leaf) for name, leaf in records.items()}
    release = private.release(private.Ledger(budget_of(epsilon)), statistic, confidential, noise=source)
    warmup, samples = SAMPLES
    posterior = dpjax.sample_clt(
        jax.random.key(300 + number),
        problem.model,
        release,
        num_chains=4,
        num_warmup=warmup,
        num_samples=samples,
        progress=False,
    )
    return np.asarray(posterior.draws["theta"]).reshape(-1, len(problem.guess))
