"""Figure 6 in numbers: after how many sweeps the quartiles of the records have their exact distribution."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.soma.histogram import EPSILON, QUARTILES, TRACE_START
from benchmarks.papers.soma.problems import COLORS, CONFIDENTIAL, SAMPLERS, Problem, histogram

STARTS = ("0.05", "prior")
SWEEPS = 8
TOLERANCES = (0.01, 0.02, 0.04)
NUM_EXACT = 20_000


def measure(sizes: tuple[int, ...], releases: int, runs: int) -> dict[str, Any]:
    """The distance to the exact quartiles after each sweep of n proposals, and when it stays below a tolerance.

    The distance is that of the paper's curves: the largest difference among the quartiles over runs of the three
    quartiles of the records, nine in all. It is a mean over simulated releases, because the paper prints none.
    Chains start with all records at 0.05 or with records of the prior, because the paper does not say where.

    Parameters
    ----------
    sizes
        The numbers of records n.
    releases, runs
        Simulated releases of each n, and runs of each sampler at each of them.
    """
    return {"n": list(sizes), "quartiles": {str(n): measure_size(histogram(n, EPSILON), releases, runs) for n in sizes}}


def measure_size(problem: Problem, releases: int, runs: int) -> dict[str, Any]:
    """The distances of every start and sampler, with standard errors of the settling times over releases."""
    template = problem[1]
    values = [simulate(problem, jax.random.fold_in(jax.random.key(3), place)) for place in range(releases)]
    rng = np.random.default_rng(4)
    exact = [exact_quartiles(np.asarray(value), template.n, rng) for value in values]
    result: dict[str, Any] = {}
    for start in STARTS:
        result[start] = {}
        for name, sampler in SAMPLERS.items():
            run = make_run(problem, sampler, start, runs)
            paths = [np.asarray(run(value)) for value in values]
            distances = np.array([distance(path, law) for path, law in zip(paths, exact, strict=True)])
            result[start][name] = summarize(distances)
    return result


def simulate(problem: Problem, key: jax.Array) -> jax.Array:
    """A released value of confidential records."""
    template = problem[1]
    records_key, noise_key = jax.random.split(key)
    records = jax.random.beta(records_key, *CONFIDENTIAL, (template.n,))
    return template.sample(noise_key, {"y": records}).value


def make_run(problem: Problem, imputation: dpjax.base.Imputation, start: str, runs: int) -> Any:
    """The records of all runs after each sweep [run, sweep, n] as a function of the released value."""
    model, template = problem

    @jax.jit
    def run(value: jax.Array) -> jax.Array:
        release = dpjax.Release(value, template.mechanism, template.statistic, template.n)
        algorithm = dpjax.impute(model, release, {}, imputation)

        def one(key: jax.Array) -> jax.Array:
            start_key, run_key = jax.random.split(key)
            fixed = jnp.full(template.n, TRACE_START)
            records = fixed if start == "0.05" else model.sample_records(start_key, {}, template.n)["y"]

            def step(latent: dpjax.base.Latent, index: jax.Array) -> tuple:
                latent, _ = algorithm.step(jax.random.fold_in(run_key, index), latent)
                return latent, latent.records["y"]

            path = jax.lax.scan(step, algorithm.init({"y": records}), jnp.arange(SWEEPS))[1]
            return jnp.concatenate([records[None], path])

        return jax.vmap(one)(jax.random.split(jax.random.key(7), runs))

    return run


def exact_quartiles(value: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """The quartiles of the records' quartiles [3, 3] by exact draws of the counts, bin by bin from the last.

    Given the noisy counts D the counts have density Π exp(−|D_j − c_j| ε / 2) / c_j! over those that add up to n.
    """
    counts = np.arange(n + 1)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    weights = np.exp(-EPSILON / 2 * np.abs(value[:, None] - counts) - factorials)
    totals = [np.eye(n + 1)[0]]  # of the bins so far, the weight of each number of records in them
    for weight in weights:
        totals.append(np.convolve(totals[-1], weight)[: n + 1])
    left = np.full(NUM_EXACT, n)
    records = np.zeros((NUM_EXACT, n))
    for place in reversed(range(len(weights))):
        others = left[:, None] - counts
        shares = weights[place] * np.where(others >= 0, totals[place][np.maximum(others, 0)], 0.0)
        heights = np.cumsum(shares, axis=1)
        drawn = np.sum(heights < rng.uniform(size=(NUM_EXACT, 1)) * heights[:, -1:], axis=1)
        inside = (counts[:n] < left[:, None]) & (counts[:n] >= (left - drawn)[:, None])
        uniforms = (place + rng.uniform(size=records.shape)) / len(weights)
        records, left = np.where(inside, uniforms, records), left - drawn
    return summary(records)


def summary(records: np.ndarray) -> np.ndarray:
    """The quartiles over runs of the quartiles of records [run, ..., n]: [over runs, of records, ...]."""
    return np.quantile(np.quantile(records, QUARTILES, axis=-1), QUARTILES, axis=1)


def distance(paths: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The largest difference of the nine curves [sweep]."""
    return np.max(np.abs(summary(paths) - exact[..., None]), axis=(0, 1))


def summarize(distances: np.ndarray) -> dict[str, Any]:
    """The mean distances [sweep], and the mean times at each tolerance with standard errors over releases."""
    times = {str(each): [settle(row, each) for row in distances] for each in TOLERANCES}
    errors = {each: np.std(found, ddof=1) / np.sqrt(len(found)) for each, found in times.items()}
    return {
        "distance": distances.mean(axis=0).tolist(),
        "sweeps": {each: float(np.mean(found)) for each, found in times.items()},
        "standard_error": {each: float(error) for each, error in errors.items()},
    }


def settle(distances: np.ndarray, tolerance: float) -> float:
    """The first time from which distances stay below a tolerance, between two sweeps by a line; the last if never."""
    above = np.flatnonzero(distances > tolerance)
    if not len(above):
        return 0.0
    last = above[-1]
    if last + 1 == len(distances):
        return float(last)
    before, after = distances[last : last + 2]
    return float(last + (before - tolerance) / (before - after))


def draw(result: dict[str, Any], axes: Any) -> None:
    """The distances by sweep, a panel for each number of records and start."""
    panels = iter(axes)
    for n, starts in result["quartiles"].items():
        for start, samplers in starts.items():
            panel = next(panels)
            for name, found in samplers.items():
                panel.plot(found["distance"], ".-", color=COLORS[name], label=name)
            panel.set(xlabel="sweeps of n proposals", ylabel="distance to the exact quartiles", yscale="log")
            panel.set_title(f"n = {n}, from {start}")
            panel.legend(fontsize="x-small")
