"""How often 95 % intervals of released margins hold the truth, over simulated releases of a log-linear model.

Two noisy tables of three columns, with the budget divided between them. The error of the posterior means stands beside
that of the released counts themselves, divided by n.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from time import process_time

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import Timing

SIZES_OF = {"age": 3, "job": 3, "income": 3}
TABLES = (("age", "job"), ("job", "income"))
LEAST = 0.92


@dataclass(frozen=True)
class Size:
    """How many releases for each ε, people, chains, and their steps."""

    releases: int = 100
    epsilons: tuple[float, ...] = (0.5, 1.0, 4.0)
    n: int = 1_000
    chains: int = 2
    steps: tuple[int, int] = (500, 1_000)


SIZES = {"full": Size(), "quick": Size(releases=10), "tiny": Size(2, (1.0,), 100, 2, (20, 20))}


def measure(size: Size) -> Iterator[Row]:
    """A row for each ε: the share of intervals that hold the truth, and mean absolute errors."""
    model = dpjax.models.log_linear(SIZES_OF, TABLES)
    truth = model.sample_prior(jax.random.key(7))
    shares = np.concatenate([np.ravel(model.margin(truth, table)) for table in TABLES])
    for epsilon in size.epsilons:
        began = process_time()
        parts = [
            dpjax.Release(
                np.zeros(9), dpjax.DiscreteLaplace(len(TABLES) / epsilon), dpjax.statistics.cells(table, [3, 3]), size.n
            )
            for table in TABLES
        ]
        design, releases = dpjax.joint(*parts), []
        for number in range(size.releases):
            record_key, noise_key = jax.random.split(jax.random.key(number))
            releases.append(design.sample(noise_key, model.sample_records(record_key, truth, size.n)))
        batch = dpjax.sample_batch(
            jax.random.key(1),
            model,
            releases,
            num_chains=size.chains,
            num_warmup=size.steps[0],
            num_samples=size.steps[1],
            imputation=dpjax.counts(width=16),
            progress=False,
        )
        drawn = margins_of(model, jnp.asarray(batch.draws["effects"]))
        lower, upper = np.quantile(drawn, [0.025, 0.975], axis=1)
        held = np.mean((lower <= shares) & (shares <= upper), axis=1)
        noisy = np.array([release.value for release in releases]) / size.n
        figures = {
            "coverage": float(np.mean(held)),
            "its error": float(np.std(held) / np.sqrt(len(held))),
            "error of means": float(np.mean(np.abs(drawn.mean(axis=1) - shares))),
            "error of released": float(np.mean(np.abs(noisy - shares))),
        }
        seconds = (process_time() - began) / size.releases
        timing = Timing(None, seconds, seconds, size.releases)
        target = ("coverage", ">=", LEAST)
        yield Row("margin_coverage", f"ε = {epsilon}", size.n, 18, size.chains, timing, figures, target=target)


def margins_of(model: dpjax.Model, effects: jax.Array) -> np.ndarray:
    """The probabilities [release, draw, 18] of the cells of both tables."""

    def of_one(one: jax.Array) -> jax.Array:
        return jnp.concatenate([jnp.ravel(model.margin({"effects": one}, table)) for table in TABLES])

    of_release = jax.jit(jax.vmap(of_one))
    return np.array([of_release(own.reshape(-1, own.shape[-1])) for own in effects], float)
