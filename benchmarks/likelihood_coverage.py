"""How often confidence intervals of maximum likelihood hold the true parameters, over releases of Normal records.

Wald, profile and bootstrap intervals of a mean and a variance from noisy sums of the records and their squares.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from time import process_time

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import Timing

SCALE = np.array([4.0, 10.0])
TRUTH = {"mean": 0.6, "variance": 1.5}
LEVEL = 0.9
TOLERANCE = 0.04
"""Of 500 intervals the share that holds varies by about 0.013."""

METHODS = ("wald", "profile", "bootstrap")


def sums(record: dict[str, jax.Array]) -> jax.Array:
    return jnp.stack([record["y"], record["y"] ** 2])


@dataclass(frozen=True)
class Size:
    """How many records, releases, and refits of a bootstrap."""

    n: int = 50
    releases: int = 500
    refits: int = 100


SIZES = {"full": Size(), "quick": Size(releases=5), "tiny": Size(10, 1, 20)}


def measure(size: Size) -> Iterator[Row]:
    """One row: shares of 90 % intervals that hold the truth, by method and parameter."""
    n, releases = size.n, size.releases
    priors = dpjax.models.NormalPrior(0.0, 2.0), dpjax.models.InverseGammaPrior(2.0, 2.0)
    model = dpjax.models.normal(*priors)
    design = dpjax.Release(np.zeros(2), dpjax.Laplace(jnp.asarray(SCALE, float)), sums, n)
    begin = process_time()
    held: dict[str, list[bool]] = {}
    for number in range(releases):
        record_key, release_key, fit_key = jax.random.split(jax.random.key(number), 3)
        records = model.sample_records(record_key, {name: jnp.asarray(one) for name, one in TRUTH.items()}, n)
        for name, holds in intervals_of(fit_key, model, design.sample(release_key, records), size.refits).items():
            held.setdefault(name, []).append(holds)
    seconds = (process_time() - begin) / releases
    figures = {name: float(np.mean(each)) for name, each in held.items()} | {"releases": float(releases)}
    timing = Timing(None, seconds, seconds, releases)
    target = ("profile mean", ">=", LEVEL - TOLERANCE)
    yield Row("likelihood_coverage", "Normal mean and variance", n, 2, 32, timing, figures, target=target)


def intervals_of(key: jax.Array, model: dpjax.Model, release: dpjax.Release, num_refits: int) -> dict[str, bool]:
    """Whether the intervals from one release hold the truth, by method and parameter."""
    with warnings.catch_warnings():
        # Now and then the variance is estimated at zero: told, and counted like any other.
        warnings.simplefilter("ignore", UserWarning)
        fit = dpjax.maximum_likelihood(key, model, release, num_steps=5_000, progress=False)
    found = {method: fit.confidence_interval(LEVEL, method, num_refits=num_refits) for method in METHODS}
    return {
        f"{method} {name}": bool(ends.lower[name] <= truth <= ends.upper[name])
        for method, ends in found.items()
        for name, truth in TRUTH.items()
    }
