"""Effective draws per CPU second on the private regression, beside NUTS and importance sampling."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import jax
import numpy as np

import dpjax
from benchmarks import nuts
from benchmarks.rows import Row
from benchmarks.timing import Timing, time_call
from dpjax.diagnostics import ess_bulk
from problems.regression import make_model, published_release

BOUNDS = {1: 5_000.0, 10: 800.0}
"""The effective draws per second wanted of the default sampler, by ε."""

SAMPLERS = {
    "IMwG and interweaving (default)": {},
    "without refreshes": {"refresh": False},
    "IMwG alone": {"interweave": False, "refresh": False},
    "SOMA, m = n": {"imputation": dpjax.soma()},
    'SOMA, "auto"': {"imputation": dpjax.soma("auto")},
}


@dataclass(frozen=True)
class Size:
    """Chains and repeats, the budgets and samplers, steps of warm-up and sampling, and draws by importance."""

    chains: int = 16
    repeats: int = 3
    epsilons: tuple[int, ...] = tuple(BOUNDS)
    samplers: tuple[str, ...] = tuple(SAMPLERS)
    nuts_steps: tuple[int, int] = (500, 1_000)
    steps: tuple[int, int] = (1_000, 4_000)
    importance_draws: int = 200_000


SIZES = {
    "full": Size(),
    "quick": Size(nuts_steps=(200, 200), steps=(200, 500), importance_draws=20_000),
    "tiny": Size(2, 1, (10,), ("IMwG and interweaving (default)",), (10, 10), (50, 100), 1_000),
}


def measure(size: Size) -> Iterator[Row]:
    """Rows for every sampler at both privacy budgets; ratios are to NUTS at the same budget."""
    model = make_model()
    for epsilon in size.epsilons:
        release = published_release(epsilon)
        yardstick = measure_nuts(epsilon, release, size.chains, *size.nuts_steps)
        yield yardstick
        for name in size.samplers:
            row = measure_sample(epsilon, name, model, release, size)
            target = None if SAMPLERS[name] else ("effective per s", ">=", BOUNDS[epsilon])
            yield replace(compare(row, yardstick), target=target)
        yield compare(measure_importance(epsilon, model, release, size), yardstick)


def compare(row: Row, yardstick: Row) -> Row:
    """The row with its speed relative to the yardstick's."""
    name = "effective per s"
    return replace(row, figures={**row.figures, "times NUTS": row.figures[name] / yardstick.figures[name]})


def measure_sample(epsilon: int, name: str, model: dpjax.Model, release: dpjax.Release, size: Size) -> Row:
    """The row of `dpjax.sample`. A run that keeps one draw is the warm-up; the draws are what a full run takes more."""

    def draw(samples: int) -> dpjax.Posterior:
        budget = {"num_chains": size.chains, "num_warmup": size.steps[0], "num_samples": samples}
        return dpjax.sample(jax.random.key(1), model, release, **budget, progress=False, **SAMPLERS[name])

    timing, draws = time_call(lambda: draw(size.steps[1]).draws["coef"], size.repeats)
    warmup_timing, _ = time_call(lambda: draw(1).draws["coef"], size.repeats)
    return to_row(epsilon, name, release, subtract(timing, warmup_timing), warmup_timing, draws)


def subtract(timing: Timing, part: Timing) -> Timing:
    """The timing of what remains of runs without a part of them."""
    return replace(
        timing,
        best_seconds=timing.best_seconds - part.best_seconds,
        median_seconds=timing.median_seconds - part.median_seconds,
    )


def measure_nuts(epsilon: int, release: dpjax.Release, chains: int, warmup: int, samples: int) -> Row:
    """The row of NUTS."""
    warm_up, draw = nuts.build(release, chains, warmup, samples)
    warmup_timing, state = time_call(warm_up, 1)
    timing, draws = time_call(lambda: draw(state), 1)
    timing = replace(timing, compile_seconds=timing.compile_seconds + warmup_timing.compile_seconds)
    return to_row(epsilon, "NumPyro NUTS, augmented model", release, timing, warmup_timing, draws)


def measure_importance(epsilon: int, model: dpjax.Model, release: dpjax.Release, size: Size) -> Row:
    """The row of prior-predictive importance sampling, whose draws are independent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # k-hat is in the row
        timing, result = time_call(
            lambda: dpjax.importance_sample(jax.random.key(1), model, release, size.importance_draws), size.repeats
        )
    effective = result.effective_sample_size
    figures = {
        "effective per s": effective / timing.best_seconds,
        "with warm-up": effective / timing.best_seconds,
        "effective per draw": effective / size.importance_draws,
        "mean of coef[1]": float(np.exp(result.log_weights) @ result.draws["coef"][:, 1]),
        "k-hat": result.pareto_khat,
    }
    case = f"ε = {epsilon}: importance sampling"
    return Row("effective", case, release.n, release.value.size, 1, timing, figures)


def to_row(epsilon: int, name: str, release: dpjax.Release, timing: Timing, warmup: Timing, draws: np.ndarray) -> Row:
    """The row of a Markov chain's draws [chain, draw, 3]: the smallest bulk effective sample size counts."""
    size = float(np.min(ess_bulk(draws)))
    figures = {
        "effective per s": size / timing.best_seconds,
        "with warm-up": size / (timing.best_seconds + warmup.best_seconds),
        "effective per draw": size / (draws.shape[0] * draws.shape[1]),
        "warm-up s": warmup.best_seconds,
        "mean of coef[1]": float(np.mean(draws[..., 1])),
    }
    case = f"ε = {epsilon}: {name}"
    return Row("effective", case, release.n, release.value.size, draws.shape[0], timing, figures)
