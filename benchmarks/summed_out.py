"""Records that are summed out, beside NUTS of NumPyro on the same sum written by hand."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax.scipy.special import gammaln, logsumexp
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import timing_since
from dpjax.diagnostics import ess_bulk

STEPS, QUICK_STEPS = (1_000, 1_000), (200, 200)
"""Steps of warm-up and sampling."""

CHAINS = 4


class Case(NamedTuple):
    """A model of the records, what was released of them, and the same posterior written for NumPyro."""

    model: Callable[..., None]
    arguments: dict[str, Any]
    release: Any
    by_hand: Callable[[], None]


def counties(number: int, states: int, scale: float = 5.0) -> Case:
    """Counts of counties with effects of their states, behind discrete Gaussian noise."""
    rng = np.random.default_rng(0)
    state, x = np.arange(number) % states, rng.normal(size=number)
    log_population = rng.normal(8.0, 1.0, number)
    effect = 0.5 * rng.normal(size=states)
    counts = rng.poisson(np.exp(log_population - 6.0 + 0.4 * x + effect[state]))
    released = counts + np.round(rng.normal(0.0, scale, number)).astype(int)

    def log_rate(log_population: Any, x: Any, state: Any) -> Any:
        level, slope = numpyro.sample("level", dist.Normal(-5.0, 2.0)), numpyro.sample("slope", dist.Normal(0.0, 1.0))
        spread = numpyro.sample("spread", dist.HalfNormal(1.0))
        with numpyro.plate("states", states):
            deviation = numpyro.sample("deviation", dist.Normal(0.0, 1.0))
        return log_population + level + slope * x + spread * deviation[state]

    def model(log_population: Any = None, x: Any = None, state: Any = None, y: Any = None) -> None:
        rate = jnp.exp(log_rate(log_population, x, state))
        with numpyro.plate("counties", len(log_population)):
            numpyro.sample("y", dist.Poisson(rate), obs=y)

    reach = int(7 * scale)
    factor = windows(released, np.arange(-reach, reach + 1), lambda noise: -(noise**2) / (2 * scale**2))
    known = {"log_population": log_population, "x": x, "state": state}
    release = dpjax.LocalRelease(released, dpjax.DiscreteGaussian(scale), "y")
    return Case(model, known, release, lambda: numpyro.factor("released", factor(log_rate(**known))))


def weeks(number: int, scale: float = 4.0) -> Case:
    """Weekly counts whose level is a random walk, behind discrete Laplace noise."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(np.exp(3.0 + np.cumsum(rng.normal(0.0, 0.2, number))))
    released = counts + rng.geometric(1 - np.exp(-1 / scale), number) - rng.geometric(1 - np.exp(-1 / scale), number)

    def log_rate() -> Any:
        level, spread = numpyro.sample("level", dist.Normal(2.0, 2.0)), numpyro.sample("spread", dist.HalfNormal(0.5))
        with numpyro.plate("steps", number):
            step = numpyro.sample("step", dist.Normal(0.0, 1.0))
        return level + spread * jnp.cumsum(step)

    def model(week: Any = None, y: Any = None) -> None:
        rate = jnp.exp(log_rate()[week])
        with numpyro.plate("weeks", len(week)):
            numpyro.sample("y", dist.Poisson(rate), obs=y)

    factor = windows(released, np.arange(-63, 65), lambda noise: -np.abs(noise) / scale)
    release = dpjax.LocalRelease(released, dpjax.DiscreteLaplace(scale), "y")
    return Case(model, {"week": np.arange(number)}, release, lambda: numpyro.factor("released", factor(log_rate())))


def windows(released: np.ndarray, offsets: np.ndarray, log_noise: Callable[[np.ndarray], np.ndarray]) -> Any:
    """The log-likelihood as a function of the logarithms of the rates, with what does not depend on them computed."""
    numbers = released[None] + offsets[:, None]
    possible, counts = numbers >= 0, np.maximum(numbers, 0)
    constant = np.where(possible, log_noise(released[None] - numbers) - np.asarray(gammaln(counts + 1.0)), -np.inf)
    return lambda log_rate: jnp.sum(logsumexp(counts * log_rate - jnp.exp(log_rate) + constant, axis=0))


def question(number: int) -> Case:
    """Answers to an unrelated question: with probability 0.7 the sensitive one, else one of known frequency 0.4."""
    rng = np.random.default_rng(2)
    group = rng.integers(0, 2, number)
    truth = rng.random(number) < np.array([0.2, 0.35])[group]
    answers = np.where(rng.random(number) < 0.7, truth, rng.random(number) < 0.4).astype(int)

    def model(group: Any = None, y: Any = None) -> None:
        with numpyro.plate("groups", 2):
            share = numpyro.sample("share", dist.Beta(1.0, 1.0))
        with numpyro.plate("people", len(group)):
            numpyro.sample("y", dist.Bernoulli(share[group]), obs=y)

    def by_hand() -> None:
        with numpyro.plate("groups", 2):
            share = numpyro.sample("share", dist.Beta(1.0, 1.0))
        with numpyro.plate("people", number):
            numpyro.sample("answer", dist.Bernoulli(0.12 + 0.7 * share[group]), obs=answers)

    channel = dpjax.RandomizedResponse(matrix=[[0.88, 0.12], [0.18, 0.82]])
    return Case(model, {"group": group}, dpjax.LocalRelease(answers, channel, "y"), by_hand)


CASES: dict[str, Callable[[], Case]] = {
    "26 weeks, random walk": lambda: weeks(26),
    "unrelated question, 260 answers": lambda: question(260),
    "unrelated question, 100,000 answers": lambda: question(100_000),
    "300 counties, 50 states": lambda: counties(300, 50),
}


def measure(quick: bool) -> Iterator[Row]:
    """Two rows for each case; ratios are to NumPyro with the better mass matrix."""
    for name, build in CASES.items():
        case = build()
        # NumPyro goes last: programs that both need are compiled by then.
        ours = measure_call(f"{name}: dpjax", case, partial(sample, case), quick)
        others = [
            measure_call(f"{name}: NumPyro, {kind} mass", case, partial(by_hand, case, dense), quick)
            for kind, dense in (("diagonal", False), ("dense", True))
        ]
        best = max(row.figures["effective per s"] for row in others)
        ours.figures["times NumPyro"] = ours.figures["effective per s"] / best
        yield from (ours, *others)


def measure_call(case: str, of: Case, call: Callable[[tuple[int, int]], Any], quick: bool) -> Row:
    """The effective draws of the worst parameter per CPU second of a first call, compilation included."""
    began = time.process_time()
    draws = jax.block_until_ready(call(QUICK_STEPS if quick else STEPS))
    timing = timing_since(began)
    least = min(float(np.min(ess_bulk(np.asarray(leaf)))) for leaf in draws.values())
    seconds = timing.best_seconds
    figures = {"effective per s": least / seconds, "effective": least, "s": seconds}
    return Row("summed_out", case, of.release.n, 1, CHAINS, timing, figures)


def sample(case: Case, steps: tuple[int, int]) -> dict[str, np.ndarray]:
    """The draws of `dpjax.sample` by the obvious call, with the model read."""
    model = dpjax.from_numpyro(case.model, records=["y"], **case.arguments)
    budget = {"num_warmup": steps[0], "num_samples": steps[1], "num_chains": CHAINS, "progress": False}
    return dpjax.sample(jax.random.key(1), model, case.release, **budget).draws


def by_hand(case: Case, dense: bool, steps: tuple[int, int]) -> dict[str, Any]:
    """The draws of NumPyro's NUTS."""
    kernel = NUTS(case.by_hand, dense_mass=dense)
    settings = {"num_chains": CHAINS, "chain_method": "sequential", "progress_bar": False}
    run = MCMC(kernel, num_warmup=steps[0], num_samples=steps[1], **settings)
    run.run(jax.random.key(2))
    return run.get_samples(group_by_chain=True)
