"""Records that are summed out, beside NUTS of NumPyro on the same sum written by hand."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy as np
from numpyro.infer import MCMC, NUTS

import dpjax
from benchmarks.first_draws import Size, measure_first
from benchmarks.rows import Row
from benchmarks.summed_out_cases import CASES, Case

SIZES = {
    "full": Size(tuple(CASES)),
    "quick": Size(tuple(CASES), steps=(200, 200)),
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
    """The effective draws of the worst parameter per CPU second of a first call."""
    return measure_first("summed_out", case, (of.release.n, 1), size, partial(call, size))


def sample(case: Case, size: Size) -> dict[str, np.ndarray]:
    """The draws of `dpjax.sample` by the obvious call, with the model read."""
    return dpjax.sample(jax.random.key(1), case.read(), case.release, **size.options).draws


def by_hand(case: Case, dense: bool, size: Size) -> dict[str, Any]:
    """The draws of NumPyro's NUTS."""
    kernel = NUTS(case.by_hand, dense_mass=dense)
    settings = {"num_chains": size.chains, "chain_method": "sequential", "progress_bar": False}
    run = MCMC(kernel, num_warmup=size.steps[0], num_samples=size.steps[1], **settings)
    run.run(jax.random.key(2))
    return run.get_samples(group_by_chain=True)
