"""NumPyro models of cells with probability exactly 0: starts, moves and imputed records, against enumeration."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy.special import gammaln, logsumexp

import dpjax
from dpjax import statistics
from dpjax.base import Model
from tests.tools.category_oracle import Moments, check

N, SCALE = 3, 1.2
VALUE = np.array([0.4, 1.2, -0.3, 0.3, 0.6, 1.1])
POSSIBLE = [(0, 0), (0, 1), (1, 1), (1, 2)]
KNOWN = np.array([0.4, 0.6])
RUN = {"num_warmup": 300, "num_samples": 2_000, "progress": False}


def table_of_zeros(n: int) -> None:
    """Two groups: the first never has the last of three levels, the second never the first."""
    share = numpyro.sample("share", dist.Beta(1.5, 1.0))
    levels = numpyro.sample("levels", dist.Dirichlet(jnp.array([1.0, 1.5])))
    table = jnp.zeros((2, 3)).at[0, :2].set(levels).at[1, 1:].set(jnp.asarray(KNOWN, levels.dtype))
    with numpyro.plate("records", n):
        group = numpyro.sample("group", dist.Bernoulli(probs=share))
        numpyro.sample("level", dist.Categorical(probs=table[group]))


@pytest.fixture
def model() -> Model:
    return dpjax.from_numpyro(table_of_zeros, records=("group", "level"))


TABLE = statistics.cells(["group", "level"], [2, 3])
RELEASE = dpjax.Release(VALUE, dpjax.Laplace(SCALE), TABLE, N)


def exact() -> Moments:
    """Of the share of the second group and the first level of the first, by every way to give people a cell."""
    weights, first, second = [], [], []
    for cells in product(POSSIBLE, repeat=N):
        table = np.zeros((2, 3))
        for cell in cells:
            table[cell] += 1
        shapes = np.array([[1.5 + table[1].sum(), 1.0 + table[0].sum()], [1.0, 1.5] + table[0, :2]])
        weight = np.sum(gammaln(shapes)) - np.sum(gammaln(shapes.sum(axis=1))) + table[1, 1:] @ np.log(KNOWN)
        weights.append(weight - np.abs(VALUE - table.ravel()).sum() / SCALE)
        top, size = shapes[:, 0], shapes.sum(axis=1)
        first.append(top / size)
        second.append(top * (top + 1) / (size * (size + 1)))
    weight = np.exp(np.array(weights) - logsumexp(weights))
    mean = weight @ np.array(first)
    return Moments(mean, np.sqrt(weight @ np.array(second) - mean**2))


def counts_of(state):
    return state.latent.records["counts"][0]


@pytest.mark.x32
@pytest.mark.parametrize(
    "imputation",
    [
        dpjax.imwg(),
        pytest.param(dpjax.counts(), marks=pytest.mark.slow),
        pytest.param(dpjax.soma(attempts=3), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_posterior(model, imputation) -> None:
    collect = {"collect": counts_of} if "Counts" in str(imputation) else {}
    posterior = dpjax.sample(jax.random.key(1), model, RELEASE, imputation=imputation, **collect, **RUN)
    draws = np.stack([posterior.draws["share"], posterior.draws["levels"][..., 0]], axis=-1)
    check(draws, exact())
    if collect:
        assert np.all(np.asarray(posterior.collected)[..., [2, 3]] == 0)  # in the order of the table


def test_density_and_slopes(model) -> None:
    parameters = model.sample_prior(jax.random.key(2))
    support = model.support()
    density = np.asarray(model.log_density(parameters, support))
    listed = list(zip(np.asarray(support["group"]).tolist(), np.asarray(support["level"]).tolist(), strict=True))
    assert [cell for cell, term in zip(listed, density, strict=True) if np.isfinite(term)] == POSSIBLE
    np.testing.assert_allclose(np.exp(density).sum(), 1, rtol=1e-5)
    records = model.sample_records(jax.random.key(3), parameters, 500)
    drawn = set(zip(np.asarray(records["group"]).tolist(), np.asarray(records["level"]).tolist(), strict=True))
    assert drawn <= set(POSSIBLE)

    def log_density(real):
        return jnp.sum(model.log_density(model.constrain(real), records))

    assert all(
        np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(jax.grad(log_density)(model.unconstrain(parameters)))
    )


@pytest.mark.x64
def test_a_known_count_of_an_impossible_cell_is_refused(model) -> None:
    known = dpjax.Release([1.0], dpjax.Exact(), statistics.linear(TABLE, np.eye(6)[[2]]), N)
    with pytest.raises(ValueError, match=r"^release: given "):
        dpjax.sample(jax.random.key(0), model, dpjax.joint(RELEASE, known), imputation=dpjax.counts())
