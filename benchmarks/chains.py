"""Records that are chains in time: an epidemic with noisy daily numbers, and states behind randomized response."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist
from scipy.special import gammaln

import dpjax
from benchmarks.first_draws import Size, measure_first
from benchmarks.rows import Row

CASES = ("SIR of 20 persons, 60 days", "1,000 persons, 5 answers")
SIZES = {
    "full": Size(CASES, steps=(300, 300)),
    "quick": Size(CASES[1:], steps=(300, 300)),
    "tiny": Size(CASES[1:], 1, (20, 20)),
}
LONGEST = 60.0
"""The CPU seconds that a run may take."""


def measure(size: Size) -> Iterator[Row]:
    """A row for each case."""
    for case in size.cases:
        model, release = epidemic(20, 60) if case == CASES[0] else answers(1_000, 5)

        def draw(model: Any = model, release: Any = release) -> dict[str, np.ndarray]:
            return dpjax.sample(jax.random.key(1), model, release, **size.options).draws

        row = measure_first("chains", case, (release.n, release.values.size), size, draw)
        yield Row(**{**vars(row), "target": ("s", "<=", LONGEST)})


def epidemic(size: int, days: int) -> tuple[dpjax.Model, dpjax.LocalRelease]:
    """A chain of numbers of susceptible and infected persons, and how many are infected each day with noise."""
    s, i = np.array([(s, i) for s in range(size + 1) for i in range(size + 1 - s)]).T
    new, over = s[:, None] - s, i[:, None] + s[:, None] - s - i
    possible = (new >= 0) & (over >= 0) & (over <= i[:, None]) & ((new == 0) | (i[:, None] > 0))
    new, over = np.where(possible, new, 0), np.where(possible, over, 0)
    log_ways = np.where(possible, log_comb(s[:, None], new) + log_comb(i[:, None], over), -np.inf)

    def ward(n: int, infected: Any = None) -> None:
        contacts = numpyro.sample("contacts", dist.LogNormal(-0.5, 0.7))
        recovery = numpyro.sample("recovery", dist.Beta(2, 6))
        rate = contacts * i[:, None] / size
        log_caught = jnp.log(-jnp.expm1(-jnp.where(rate > 0, rate, 1.0)))
        infect = new * log_caught - (s[:, None] - new) * rate
        recover = over * jnp.log(recovery) + (i[:, None] - over) * jnp.log1p(-recovery)
        start = np.where((s == size - 1) & (i == 1), 1.0, 0.0)
        chain = dpjax.MarkovChain(start, jnp.exp(log_ways + infect + recover), num_times=days, values=i)
        with numpyro.plate("wards", n):
            numpyro.sample("infected", chain, obs=infected)

    rng = np.random.default_rng(6)
    well, ill, path = size - 1, 1, []
    for _ in range(days):
        path.append(ill)
        caught, left = rng.binomial(well, 1 - np.exp(-0.4 * ill / size)), rng.binomial(ill, 0.08)
        well, ill = well - caught, ill + caught - left
    share = 1 - np.exp(-1)
    noisy = np.array(path) + rng.geometric(share, days) - rng.geometric(share, days)
    release = dpjax.LocalRelease(noisy[None], dpjax.DiscreteLaplace(1.0), field="infected")
    return dpjax.from_numpyro(ward, records="infected", n=1), release


def log_comb(total: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The logarithm of the number of ways to choose."""
    return gammaln(total + 1) - gammaln(chosen + 1) - gammaln(total - chosen + 1)


def answers(n: int, visits: int) -> tuple[dpjax.Model, dpjax.LocalRelease]:
    """Whether each person was ill at each visit, of which a wrong answer has the probability 0.2."""

    def health(n: int, ill: Any = None) -> None:
        first, fall, recover = (numpyro.sample(name, dist.Beta(1.0, 3.0)) for name in ("first", "fall", "recover"))
        table = jnp.stack([jnp.stack([1 - fall, fall]), jnp.stack([recover, 1 - recover])])
        with numpyro.plate("people", n):
            chain = dpjax.MarkovChain(jnp.stack([1 - first, first]), table, num_times=visits)
            numpyro.sample("ill", chain, obs=ill)

    rng = np.random.default_rng(1)
    ill = np.zeros((n, visits), int)
    for visit in range(1, visits):
        ill[:, visit] = rng.random(n) < np.where(ill[:, visit - 1] == 1, 0.6, 0.15)
    answered = np.where(rng.random((n, visits)) < 0.8, ill, 1 - ill)
    channel = dpjax.RandomizedResponse(keep=0.8, num_categories=2)
    return dpjax.from_numpyro(health, records="ill"), dpjax.LocalRelease(answered, channel, field="ill")
