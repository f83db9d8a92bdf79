"""IMwG, SOMA and pCN in effective draws per CPU second, as the privacy budget and the number of records grow."""

import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import summarize
from dpjax.diagnostics import ess_bulk
from problems import regression

CHAINS = 4
WARMUP = 200
EPSILONS = (0.3, 1, 3, 10, 30)
SIZES = (20, 100, 1_000)
MANY = (10_000, 100_000, 1_000_000)
"""Sizes at which chains begin at the Normal law of the sum, and warm-up only tunes."""
UPDATES = 500_000
"""Updates of records of each chain, from which the number of draws follows."""

IMPUTATIONS = {"IMwG": dpjax.imwg(), "SOMA, auto": dpjax.soma("auto"), "pCN, auto": dpjax.pcn()}

TRUTH = {
    "class_probabilities": [0.4, 0.6],
    "feature_probabilities": [[[0.2, 0.8], [0.7, 0.3]], [[0.5, 0.5], [0.1, 0.9]], [[0.3, 0.7], [0.6, 0.4]]],
}


def naive_bayes() -> tuple[dpjax.Model, Any, float, dict]:
    """Two classes and three binary features; replacing a record moves six of the counts by one at most."""
    model = dpjax.models.naive_bayes(np.ones(2), np.ones((3, 2, 2)))
    truth = {name: jnp.asarray(value) for name, value in TRUTH.items()}
    return model, dpjax.statistics.class_features(2, 3, 2), 6.0, truth


def linear_regression() -> tuple[dpjax.Model, Any, float, dict]:
    """The private regression."""
    return regression.make_model(), regression.STATISTIC, regression.SENSITIVITY, regression.parameters()


PROBLEMS = {"regression": linear_regression, "naive Bayes": naive_bayes}


def measure(quick: bool) -> Iterator[Row]:
    """Rows for every problem, number of records, budget and imputation."""
    for problem, build in PROBLEMS.items():
        model, statistic, sensitivity, truth = build()
        for n in sizes_of(problem, quick):
            # Compiled programs take memory mappings, of which a process may have only so many.
            jax.clear_caches()
            # One set of records for all budgets; the noise is the same draw, scaled.
            record_key, noise_key = jax.random.split(jax.random.key(n))
            records = jax.jit(model.sample_records, static_argnums=2)(record_key, truth, n)
            for epsilon in budgets_of(n, quick):
                mechanism = dpjax.Laplace(sensitivity / epsilon)
                release = regression.privatize(noise_key, mechanism, statistic, records, n)
                for name, imputation in IMPUTATIONS.items():
                    if n in MANY and name == "SOMA, auto":
                        continue
                    yield measure_cell(f"{problem}, ε = {epsilon}: {name}", model, release, imputation, quick)


def sizes_of(problem: str, quick: bool) -> tuple[int, ...]:
    """Naive Bayes is sampled in counts where records are many."""
    if quick:
        return SIZES[:2]
    return SIZES + MANY if problem == "regression" else SIZES


def budgets_of(n: int, quick: bool) -> tuple[float, ...]:
    """Fewer budgets where sweeps are long."""
    if n in MANY:
        return EPSILONS[1:2] if n == MANY[-1] else EPSILONS[:3]
    return EPSILONS[::2] if quick else EPSILONS


def measure_cell(
    case: str, model: dpjax.Model, release: dpjax.Release, imputation: dpjax.base.Imputation, quick: bool
) -> Row:
    """The row of one sampler: the smallest effective size of any parameter, for the time of its draws' sweeps."""
    num_samples = int(np.clip(UPDATES // release.n, 200, 4_000)) // (10 if quick else 1)
    # Noise that moves with the parameters takes a longer warm-up, or a start at the Normal law of the sum.
    initial, num_warmup = ("large-sample", WARMUP // 2) if release.n in MANY else (None, WARMUP)
    num_warmup *= 5 if release.n == SIZES[-1] else 1

    def draw(num_samples: int) -> tuple[dpjax.posterior.Posterior, float]:
        budget = {"num_chains": CHAINS, "num_warmup": num_warmup, "num_samples": num_samples, "imputation": imputation}
        began = time.process_time()
        posterior = dpjax.sample(jax.random.key(1), model, release, **budget, initial=initial, progress=False)
        return posterior, time.process_time() - began

    _, first = draw(1)
    _, start = draw(1)
    posterior, total = draw(num_samples + 1)
    seconds = total - start
    names = jax.eval_shape(model.sample_prior, jax.random.key(0))
    size = min(float(np.nanmin(ess_bulk(posterior.draws[name]))) for name in names)
    figures = {
        "effective per s": size / seconds,
        "effective per draw": size / (CHAINS * (num_samples + 1)),
        "µs per sweep": seconds / (CHAINS * num_samples) * 1e6,
        "acceptance": float(np.mean(posterior.info["acceptance_rate"])),
        **numbers_of(posterior.plan.imputation),
    }
    return Row("imputation", case, release.n, release.value.size, CHAINS, summarize(first, [seconds]), figures)


def numbers_of(imputation: dpjax.base.Imputation) -> dict[str, float]:
    """The numbers of an imputation, as warm-up chose them."""
    values = {name: getattr(imputation, name, None) for name in ("attempts", "block", "correlation")}
    return {name: float(value) for name, value in values.items() if value is not None}
