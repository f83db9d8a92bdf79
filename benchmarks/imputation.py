"""IMwG, SOMA and pCN in effective draws per CPU second, as the privacy budget and the number of records grow."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import summarize
from dpjax.diagnostics import ess_bulk
from problems import regression

MANY = (10_000, 100_000, 1_000_000)
"""Sizes at which chains begin at the Normal law of the sum, and warm-up only tunes."""
LONG_WARMUP = 1_000
"""The size at which noise moves with the parameters, and chains start far away."""
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


@dataclass(frozen=True)
class Size:
    """How much is measured.

    records, many
        Numbers of records, and whether of the regression those of `MANY` follow.
    epsilons, problems, imputations
        Of which budgets, problems and imputations there are cells.
    chains, warmup
        Chains, and steps of their warm-up.
    updates, divisor
        Updates of records of each chain, from which the number of draws follows, and by how much fewer these are.
    """

    records: tuple[int, ...] = (20, 100, 1_000)
    many: bool = True
    epsilons: tuple[float, ...] = (0.3, 1, 3, 10, 30)
    problems: tuple[str, ...] = tuple(PROBLEMS)
    imputations: tuple[str, ...] = tuple(IMPUTATIONS)
    chains: int = 4
    warmup: int = 200
    updates: int = 500_000
    divisor: int = 1

    def records_of(self, problem: str) -> tuple[int, ...]:
        """Naive Bayes is sampled in counts where records are many."""
        return self.records + MANY if self.many and problem == "regression" else self.records

    def budgets_of(self, n: int) -> tuple[float, ...]:
        """Fewer budgets where sweeps are long."""
        if n in MANY:
            return self.epsilons[1:2] if n == MANY[-1] else self.epsilons[:3]
        return self.epsilons


SIZES = {
    "full": Size(),
    "quick": Size(records=(20, 100), many=False, epsilons=(0.3, 3, 30), divisor=10),
    "tiny": Size((20,), False, (1,), ("regression",), ("pCN, auto",), 2, 20, 20_000, 10),
}


def measure(size: Size) -> Iterator[Row]:
    """Rows for every problem, number of records, budget and imputation."""
    for problem in size.problems:
        model, statistic, sensitivity, truth = PROBLEMS[problem]()
        for n in size.records_of(problem):
            # Compiled programs take memory mappings, of which a process may have only so many.
            jax.clear_caches()
            # One set of records for all budgets; the noise is the same draw, scaled.
            record_key, noise_key = jax.random.split(jax.random.key(n))
            records = jax.jit(model.sample_records, static_argnums=2)(record_key, truth, n)
            for epsilon in size.budgets_of(n):
                mechanism = dpjax.Laplace(sensitivity / epsilon)
                release = regression.privatize(noise_key, mechanism, statistic, records, n)
                for name in size.imputations:
                    if n in MANY and name == "SOMA, auto":
                        continue
                    yield measure_cell(f"{problem}, ε = {epsilon}: {name}", model, release, IMPUTATIONS[name], size)


def measure_cell(
    case: str, model: dpjax.Model, release: dpjax.Release, imputation: dpjax.base.Imputation, size: Size
) -> Row:
    """The row of one sampler: the smallest effective size of any parameter, for the time of its draws' sweeps."""
    num_samples = int(np.clip(size.updates // release.n, 200, 4_000)) // size.divisor
    # Noise that moves with the parameters takes a longer warm-up, or a start at the Normal law of the sum.
    initial, num_warmup = ("large-sample", size.warmup // 2) if release.n in MANY else (None, size.warmup)
    num_warmup *= 5 if release.n == LONG_WARMUP else 1

    def draw(num_samples: int) -> tuple[dpjax.posterior.Posterior, float]:
        budget = {
            "num_chains": size.chains,
            "num_warmup": num_warmup,
            "num_samples": num_samples,
            "imputation": imputation,
        }
        began = time.process_time()
        posterior = dpjax.sample(jax.random.key(1), model, release, **budget, initial=initial, progress=False)
        return posterior, time.process_time() - began

    _, first = draw(1)
    _, start = draw(1)
    posterior, total = draw(num_samples + 1)
    seconds = total - start
    names = jax.eval_shape(model.sample_prior, jax.random.key(0))
    effective = min(float(np.nanmin(ess_bulk(posterior.draws[name]))) for name in names)
    figures = {
        "effective per s": effective / seconds,
        "effective per draw": effective / (size.chains * (num_samples + 1)),
        "µs per sweep": seconds / (size.chains * num_samples) * 1e6,
        "acceptance": float(np.mean(posterior.info["acceptance_rate"])),
        **numbers_of(posterior.plan.imputation),
    }
    return Row("imputation", case, release.n, release.value.size, size.chains, summarize(first, [seconds]), figures)


def numbers_of(imputation: dpjax.base.Imputation) -> dict[str, float]:
    """The numbers of an imputation, as warm-up chose them."""
    values = {name: getattr(imputation, name, None) for name in ("attempts", "block", "correlation")}
    return {name: float(value) for name, value in values.items() if value is not None}
