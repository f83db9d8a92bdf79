"""How often 90 % intervals hold the mean of a finite population, of samples whose probabilities depend on the response.

People are drawn with probabilities in proportion to a size that grows with their response. Each adds Gaussian noise to
the own number. The intervals are those of all records alike, of the weighted pseudo-posterior, and of its sandwich.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from time import process_time

import jax
import numpy as np

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import Timing

MEAN, SPREAD, NOISE = 10.0, 3.0, 2.0
INFORMATIVE = (0.5, 0.5)
"""How the logarithm of a person's size depends on the response, and on what else varies, in standard deviations."""

LEVEL, LEAST = 0.9, 0.86


@dataclass(frozen=True)
class Size:
    """Samples, people in each, in the population, chains, and their steps."""

    samples: int = 400
    n: int = 300
    population: int = 20_000
    chains: int = 2
    steps: tuple[int, int] = (300, 500)


SIZES = {"full": Size(), "quick": Size(samples=20), "tiny": Size(2, 40, 400, 2, (20, 20))}


def measure(size: Size) -> Iterator[Row]:
    """A row: the share of intervals of each kind that hold the mean of the population, and their mean lengths."""
    rng = np.random.default_rng(11)
    values = MEAN + SPREAD * rng.normal(size=size.population)
    people = INFORMATIVE[0] * (values - MEAN) / SPREAD + INFORMATIVE[1] * rng.normal(size=size.population)
    shares = np.exp(people) / np.exp(people).sum()
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 100.0), variance=SPREAD**2)
    run = {"num_chains": size.chains, "num_warmup": size.steps[0], "num_samples": size.steps[1], "progress": False}
    began, held, lengths = process_time(), [], []
    for number in range(size.samples):
        drawn = rng.choice(size.population, size.n, p=shares)
        noisy = values[drawn] + NOISE * rng.normal(size=size.n)
        alike = dpjax.LocalRelease(noisy, dpjax.Gaussian(NOISE), "y")
        weighted = dpjax.LocalRelease(noisy, dpjax.Gaussian(NOISE), "y", weights=1 / shares[drawn])
        plain = dpjax.sample(jax.random.key(number), model, alike, **run)
        pseudo = dpjax.sample(jax.random.key(number), model, weighted, **run)
        tails = (1 - LEVEL) / 2
        ends = [np.quantile(one.draws["mean"], [tails, 1 - tails]) for one in (plain, pseudo, pseudo.sandwich())]
        held.append([low <= values.mean() <= high for low, high in ends])
        lengths.append([high - low for low, high in ends])
    seconds = (process_time() - began) / size.samples
    found, length = np.mean(held, axis=0), np.mean(lengths, axis=0)
    figures = {
        "coverage": float(found[2]),
        "coverage of the pseudo-posterior": float(found[1]),
        "coverage without weights": float(found[0]),
        "its error": float(np.sqrt(LEVEL * (1 - LEVEL) / size.samples)),
        "length over that of the pseudo-posterior": float(length[2] / length[1]),
    }
    timing = Timing(None, seconds, seconds, size.samples)
    yield Row(
        "survey_coverage",
        "informative sampling",
        size.n,
        1,
        size.chains,
        timing,
        figures,
        target=("coverage", ">=", LEAST),
    )
