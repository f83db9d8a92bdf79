"""Records that are summed out, beside NUTS of NumPyro on the same sum written by hand."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from numpyro.infer import MCMC, NUTS

import dpjax
from benchmarks.rows import Row
from benchmarks.summed_out_cases import CASES, Case
from benchmarks.timing import timing_since
from dpjax.diagnostics import ess_bulk


@dataclass(frozen=True)
class Size:
    """The cases, and chains with their steps of warm-up and draws."""

    cases: tuple[str, ...] = tuple(CASES)
    chains: int = 4
    steps: tuple[int, int] = (1_000, 1_000)


SIZES = {
    "full": Size(),
    "quick": Size(steps=(200, 200)),
    "tiny": Size(("unrelated question, 260 answers",), 1, (20, 20)),
}


def measure(size: Size) -> Iterator[Row]:
    """Two rows for each case; ratios are to NumPyro with the better mass matrix."""
    for name in size.cases:
        case = CASES[name]()
        # NumPyro goes last: programs that both need are compiled by then.
        ours = measure_call(f"{name}: dpjax", case, partial(sample, case), size)
        others = [
            measure_call(f"{name}: NumPyro, {kind} mass", case, partial(by_hand, case, dense), size)
            for kind, dense in (("diagonal", False), ("dense", True))
        ]
        best = max(row.figures["effective per s"] for row in others)
        ours.figures["times NumPyro"] = ours.figures["effective per s"] / best
        yield from (ours, *others)


def measure_call(case: str, of: Case, call: Callable[[Size], Any], size: Size) -> Row:
    """The effective draws of the worst parameter per CPU second of a first call, compilation included."""
    began = time.process_time()
    draws = jax.block_until_ready(call(size))
    timing = timing_since(began)
    least = min(float(np.min(ess_bulk(np.asarray(leaf)))) for leaf in draws.values())
    seconds = timing.best_seconds
    figures = {"effective per s": least / seconds, "effective": least, "s": seconds}
    return Row("summed_out", case, of.release.n, 1, size.chains, timing, figures)


def sample(case: Case, size: Size) -> dict[str, np.ndarray]:
    """The draws of `dpjax.sample` by the obvious call, with the model read."""
    budget = {"num_warmup": size.steps[0], "num_samples": size.steps[1], "num_chains": size.chains, "progress": False}
    return dpjax.sample(jax.random.key(1), case.read(), case.release, **budget).draws


def by_hand(case: Case, dense: bool, size: Size) -> dict[str, Any]:
    """The draws of NumPyro's NUTS."""
    kernel = NUTS(case.by_hand, dense_mass=dense)
    settings = {"num_chains": size.chains, "chain_method": "sequential", "progress_bar": False}
    run = MCMC(kernel, num_warmup=size.steps[0], num_samples=size.steps[1], **settings)
    run.run(jax.random.key(2))
    return run.get_samples(group_by_chain=True)
