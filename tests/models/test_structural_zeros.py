"""Tables with cells that cannot occur: probabilities of 0, by records and by counts, against enumeration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models, statistics
from tests.tools.category_oracle import Moments, check, moments, tables

PRIOR = np.array([1.0, 2.0, 1.5, 0.8])
POSSIBLE = [True, False, True, True]
INSIDE = np.flatnonzero(POSSIBLE)
MODEL = models.categorical(concentration=PRIOR, possible=POSSIBLE)
VALUE, SCALE, N = np.array([3.0, 1.0, 2.5, -0.5]), 1.2, 6
RELEASE = dpjax.Release(VALUE, dpjax.Laplace(SCALE), statistics.cells("cell", 4), N)
WHOLE = dpjax.Release(np.round(VALUE), dpjax.DiscreteLaplace(SCALE), statistics.cells("cell", 4), N)
RUN = {"num_warmup": 500, "num_samples": 4_000, "progress": False}


def exact(value: np.ndarray) -> Moments:
    def log_likelihood(table: np.ndarray) -> float:
        return -np.abs(value[INSIDE] - table).sum() / SCALE

    return moments(log_likelihood, [N], PRIOR[INSIDE])


@pytest.mark.x32
@pytest.mark.parametrize(
    "imputation",
    [dpjax.imwg(), dpjax.counts(), pytest.param(dpjax.counts(collapse=False), marks=pytest.mark.slow)],
    ids=str,
)
def test_posterior(imputation) -> None:
    posterior = dpjax.sample(jax.random.key(1), MODEL, RELEASE, imputation=imputation, **RUN)
    draws = posterior.draws["probabilities"]
    assert np.all(draws[..., 1] == 0)
    check(draws[..., INSIDE], exact(VALUE))


@pytest.mark.x32
def test_by_default() -> None:
    draws = dpjax.sample(jax.random.key(2), MODEL, WHOLE, **RUN).draws["probabilities"]
    assert np.all(draws[..., 1] == 0)
    check(draws[..., INSIDE], exact(np.round(VALUE)))


def test_an_impossible_cell_is_no_small_one() -> None:
    """The same table where the cell is only rare is another posterior."""

    def log_likelihood(table: np.ndarray) -> float:
        return -np.abs(VALUE - table).sum() / SCALE

    wrong = moments(log_likelihood, [N], PRIOR)
    right = exact(VALUE)
    assert np.max(np.abs(wrong.mean[INSIDE] - right.mean)) > 0.05


def test_prior_and_records() -> None:
    keys = jax.random.split(jax.random.key(3), 4_000)
    drawn = np.asarray(jax.vmap(MODEL.sample_prior)(keys)["probabilities"])
    assert np.all(drawn[:, 1] == 0)
    law = stats.beta(PRIOR[0], PRIOR[2] + PRIOR[3])
    assert stats.kstest(drawn[:, 0], law.cdf).pvalue > 1e-3
    parameters = {"probabilities": jnp.asarray(drawn[0])}
    records = MODEL.sample_records(jax.random.key(4), parameters, 2_000)
    counts = np.bincount(np.asarray(records["cell"]), minlength=4)
    assert counts[1] == 0
    assert np.isneginf(MODEL.log_density(parameters, {"cell": jnp.array([1])})[0])
    share = drawn[0][INSIDE].astype(np.float64)
    expected = stats.dirichlet.logpdf(share / share.sum(), PRIOR[INSIDE])
    np.testing.assert_allclose(MODEL.log_prior(parameters), expected, rtol=1e-3)


def test_unconstrained_scale() -> None:
    parameters = {"probabilities": jnp.array([0.2, 0.0, 0.5, 0.3])}
    real = MODEL.unconstrain(parameters)
    assert real["probabilities"].shape == (2,)
    np.testing.assert_allclose(MODEL.constrain(real)["probabilities"], parameters["probabilities"], rtol=1e-5)


@pytest.mark.x64
def test_tables_are_of_possible_cells() -> None:
    assert len(tables([N], 3)) == 28
    posterior = dpjax.sample(
        jax.random.key(5), MODEL, RELEASE, imputation=dpjax.counts(), num_samples=20, progress=False
    )
    assert posterior.predict(jax.random.key(6), num_samples=5).values.shape == (5, 4)


@pytest.mark.x64
def test_a_known_count_of_an_impossible_cell_is_refused() -> None:
    known = dpjax.Release([2.0], dpjax.Exact(), statistics.grouped("cell", [-1, 0, -1, -1]), N)
    with pytest.raises(ValueError, match=r"^release: given "):
        dpjax.sample(jax.random.key(0), MODEL, dpjax.joint(RELEASE, known))


def test_a_table_beyond_the_cells_is_still_refused() -> None:
    wider = dpjax.Release(np.zeros(5), dpjax.Laplace(1.0), statistics.cells("cell", 5), N)
    with pytest.raises(ValueError, match=r"^release: given a table of 5 categories of 'cell', of which no record"):
        dpjax.sample(jax.random.key(0), MODEL, wider)
