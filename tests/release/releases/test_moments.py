"""Means and variances of groups beside noisy counts: their likelihood by formulas."""

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from dpjax import statistics
from tests.conftest import FLOAT32
from tests.tools.category_oracle import tables

N, LEVELS, GROUPS = 6, np.array([0.2, 0.9, 0.4, 0.7]), np.array([0, 0, 1, 1])
"""Cells 0 and 1 are of the first group, cells 2 and 3 of the second; each has a level of its own."""

NOISY = {"sums": np.array([1.3, 2.2]), "squares": np.array([1.1, 1.6]), "counts": np.array([2.0, 5.0])}
SCALES = {"sums": 0.4, "squares": 0.3, "counts": 0.8}


def powers(power: int):
    """The statistic of the levels to a power, by group."""

    def statistic(record: dict[str, jax.Array]) -> jax.Array:
        level = jnp.asarray(LEVELS, float)[record["cell"]] ** power
        return jnp.where(jnp.asarray(GROUPS)[record["cell"]] == jnp.arange(2), level, 0.0)

    statistic.dimension = 2
    return statistic


SUMS, SQUARES, COUNTS = powers(1), powers(2), statistics.grouped("cell", [0, 0, 1, 1])


def build(mean=None, variance=None, count=NOISY["counts"], sums=SUMS, squares=SQUARES, counts=COUNTS) -> dpjax.Release:
    """What a fitted Gaussian naive Bayes model publishes."""
    own = NOISY["sums"] / NOISY["counts"]
    noises = {"sum_noise": dpjax.Laplace(SCALES["sums"]), "square_noise": dpjax.Laplace(SCALES["squares"])}
    return dpjax.releases.moments(
        own if mean is None else mean,
        NOISY["squares"] / NOISY["counts"] - own**2 if variance is None else variance,
        count,
        sums=sums,
        squares=squares,
        counts=counts,
        **noises,
        count_noise=dpjax.DiscreteLaplace(SCALES["counts"]),
        n=N,
    )


def test_likelihood_by_formulas() -> None:
    """The published numbers tell all noisy sums, so that each has its own noise."""
    every = tables([N], 4)
    records = jnp.asarray([np.repeat(np.arange(4), table) for table in every])
    found = np.asarray(jax.jit(jax.vmap(lambda cells: build().log_likelihood({"cell": cells})))(records))
    indicator = GROUPS[:, None] == np.arange(2)
    exact = {"sums": every * LEVELS, "squares": every * LEVELS**2, "counts": every}
    expected = sum(-np.abs(NOISY[name] - exact[name] @ indicator).sum(axis=1) / SCALES[name] for name in exact)
    difference = found - expected
    np.testing.assert_allclose(difference, difference[0], atol=1e-3 if FLOAT32 else 1e-10)
    # Had the variances been taken for means of squares, it would be another.
    other = build(variance=NOISY["squares"] / NOISY["counts"])
    wrong = np.asarray(jax.jit(jax.vmap(lambda cells: other.log_likelihood({"cell": cells})))(records)) - expected
    assert np.ptp(wrong) > 1
