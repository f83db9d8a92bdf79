"""A regression from sums over an unknown number of records, as several rows of one person leave it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.first_draws import Size, measure_first
from benchmarks.rows import Row
from dpjax import models, statistics

NUMBER = 2_200
GRAM = statistics.gram(lower=[-1, -1], upper=[1, 1], response=(-1, 1))
VAGUE, KNOWN = models.UniformCount(500, 3_000), models.PoissonCount(2_200.0)


@dataclass(frozen=True)
class Case:
    """What is released, and what is believed of the number."""

    scale: float
    prior: dpjax.release.unknown_count.CountPrior
    counted: bool = False


CASES = {
    "a vague number, noise of 20": Case(20.0, VAGUE),
    "the same with a count": Case(20.0, VAGUE, counted=True),
    "a vague number, noise of 2.8": Case(2.8, VAGUE),
    "the same with a count, noise of 2.8": Case(2.8, VAGUE, counted=True),
    "a number known to 2 %, noise of 20": Case(20.0, KNOWN),
}
SAMPLERS: dict[str, Callable[..., dpjax.Posterior]] = {"sample": dpjax.sample, "sample_clt": dpjax.sample_clt}


SIZES = {
    "full": Size(tuple(CASES)),
    "quick": Size(tuple(CASES), steps=(300, 300)),
    "tiny": Size(("a vague number, noise of 20",), 1, (20, 20)),
}


def measure(size: Size) -> Iterator[Row]:
    """A row for each case and sampler."""
    for name in size.cases:
        release = release_of(CASES[name])
        for sampler, call in SAMPLERS.items():
            yield measure_call(f"{name}: {sampler}", release, call, size)


def make_model() -> dpjax.Model:
    """Two covariates, of which nothing is known."""
    return models.linear_regression(
        covariate_prior=models.NormalInverseWishartPrior(jnp.zeros(2), 1.0, 4.0, 0.1 * jnp.eye(2)),
        noise_variance=models.NormalInverseGammaPrior(jnp.zeros(3), jnp.eye(3), 2.0, 0.1),
    )


def release_of(case: Case) -> dpjax.Release:
    """Noisy sums over the rows of made-up people."""
    rng = np.random.default_rng(1)
    first = rng.normal(0.0, 0.35, NUMBER)
    second = 0.4 * first + rng.normal(0.1, 0.3, NUMBER)
    response = 0.2 + 0.5 * first - 0.3 * second + rng.normal(0, 0.2, NUMBER)
    statistic = statistics.stacked(statistics.count(), GRAM) if case.counted else GRAM
    records = {"x": jnp.stack([first, second], axis=1), "y": jnp.asarray(response)}
    total = np.asarray(jnp.sum(jax.vmap(statistic)(records), axis=0))
    value = total + rng.normal(0.0, case.scale, total.size)
    return dpjax.Release(value, dpjax.Gaussian(case.scale), statistic, dpjax.UnknownCount(case.prior))


def measure_call(case: str, release: dpjax.Release, call: Callable[..., dpjax.Posterior], size: Size) -> Row:
    """The effective draws of the worst parameter per CPU second of a first call."""

    def draw() -> dict[str, np.ndarray]:
        return call(jax.random.key(1), make_model(), release, **size.options).draws

    return measure_first("unknown_number", case, (NUMBER, release.value.size), size, draw)
