"""Effective draws per CPU second on the private regression, beside NUTS and importance sampling."""

import warnings
from collections.abc import Iterator
from dataclasses import replace

import jax
import numpy as np

import dpjax
from benchmarks import nuts
from benchmarks.rows import Row
from benchmarks.timing import Timing, time_call
from dpjax.diagnostics import ess_bulk
from problems.regression import make_model, published_release

CHAINS = 16
REPEATS = 3
BOUNDS = {1: 5_000.0, 10: 800.0}
"""The effective draws per second wanted of the default sampler, by ε."""

NUTS_STEPS, STEPS, IMPORTANCE_DRAWS = (500, 1_000), (1_000, 4_000), 200_000
QUICK_NUTS_STEPS, QUICK_STEPS, QUICK_IMPORTANCE_DRAWS = (200, 200), (200, 500), 20_000
"""Steps of warm-up and sampling, and draws of importance sampling."""

SAMPLERS = {
    "IMwG and interweaving (default)": {},
    "without refreshes": {"refresh": False},
    "IMwG alone": {"interweave": False, "refresh": False},
    "SOMA, m = n": {"imputation": dpjax.soma()},
    'SOMA, "auto"': {"imputation": dpjax.soma("auto")},
}


def measure(quick: bool) -> Iterator[Row]:
    """Rows for every sampler at both privacy budgets; ratios are to NUTS at the same budget."""
    model = make_model()
    nuts_steps, steps = (QUICK_NUTS_STEPS, QUICK_STEPS) if quick else (NUTS_STEPS, STEPS)
    num_draws = QUICK_IMPORTANCE_DRAWS if quick else IMPORTANCE_DRAWS
    for epsilon, bound in BOUNDS.items():
        release = published_release(epsilon)
        yardstick = measure_nuts(epsilon, release, *nuts_steps)
        yield yardstick
        for name, options in SAMPLERS.items():
            row = measure_sample(epsilon, name, model, release, options, *steps)
            target = ("effective per s", ">=", bound) if not options else None
            yield replace(compare(row, yardstick), target=target)
        yield compare(measure_importance(epsilon, model, release, num_draws), yardstick)


def compare(row: Row, yardstick: Row) -> Row:
    """The row with its speed relative to the yardstick's."""
    name = "effective per s"
    return replace(row, figures={**row.figures, "times NUTS": row.figures[name] / yardstick.figures[name]})


def measure_sample(
    epsilon: int, name: str, model: dpjax.Model, release: dpjax.Release, options: dict, warmup: int, samples: int
) -> Row:
    """The row of `dpjax.sample`. A run that keeps one draw is the warm-up; the draws are what a full run takes more."""

    def draw(samples: int) -> dpjax.Posterior:
        budget = {"num_chains": CHAINS, "num_warmup": warmup, "num_samples": samples}
        return dpjax.sample(jax.random.key(1), model, release, **budget, progress=False, **options)

    timing, draws = time_call(lambda: draw(samples).draws["coef"], REPEATS)
    warmup_timing, _ = time_call(lambda: draw(1).draws["coef"], REPEATS)
    return to_row(epsilon, name, release, subtract(timing, warmup_timing), warmup_timing, draws)


def subtract(timing: Timing, part: Timing) -> Timing:
    """The timing of what remains of runs without a part of them."""
    return replace(
        timing,
        best_seconds=timing.best_seconds - part.best_seconds,
        median_seconds=timing.median_seconds - part.median_seconds,
    )


def measure_nuts(epsilon: int, release: dpjax.Release, warmup: int, samples: int) -> Row:
    """The row of NUTS."""
    warm_up, draw = nuts.build(release, CHAINS, warmup, samples)
    warmup_timing, state = time_call(warm_up, 1)
    timing, draws = time_call(lambda: draw(state), 1)
    timing = replace(timing, compile_seconds=timing.compile_seconds + warmup_timing.compile_seconds)
    return to_row(epsilon, "NumPyro NUTS, augmented model", release, timing, warmup_timing, draws)


def measure_importance(epsilon: int, model: dpjax.Model, release: dpjax.Release, num_draws: int) -> Row:
    """The row of prior-predictive importance sampling, whose draws are independent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # k-hat is in the row
        timing, result = time_call(
            lambda: dpjax.importance_sample(jax.random.key(1), model, release, num_draws), REPEATS
        )
    size = result.effective_sample_size
    figures = {
        "effective per s": size / timing.best_seconds,
        "with warm-up": size / timing.best_seconds,
        "effective per draw": size / num_draws,
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
