"""The posterior of an unknown number of records, against enumeration and against convolution on a grid."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, gammaln, logsumexp

import dpjax
from dpjax import models, statistics

PRIOR = models.UniformCount(20, 45)
NUMBERS = np.arange(20, 46)
MAX_Z, NUM_CHAINS, NUM_STEPS, NUM_WARMUP = 4.0, 150, 220, 20


def draw(model: dpjax.Model, release: dpjax.Release, interweave: bool) -> dict[str, np.ndarray]:
    """Draws [chain, draw, ...] of many chains, and the numbers of records."""
    algorithm = dpjax.gibbs(model, release, dpjax.imwg(), interweave=interweave)

    def chain(key: jax.Array) -> dict:
        prior_key, record_key, run_key = jax.random.split(key, 3)
        state = algorithm.init(model.sample_prior(prior_key), record_key)

        def step(state: dpjax.data_augmentation.GibbsState, key: jax.Array) -> tuple:
            state, _ = algorithm.step(key, state)
            return state, {**state.parameters, "num_records": state.latent.records["num_records"][0]}

        return jax.lax.scan(step, state, jax.random.split(run_key, NUM_STEPS))[1]

    draws = jax.device_get(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(7), NUM_CHAINS)))
    return {name: leaf[:, NUM_WARMUP:].astype(float) for name, leaf in draws.items()}


def z_score(draws: np.ndarray, exact: float) -> float:
    """How many standard errors the mean of independent chains [chain, draw] is off."""
    means = draws.mean(axis=1)
    return float((means.mean() - exact) / (means.std(ddof=1) / np.sqrt(len(means))))


def check(draws: np.ndarray, values: np.ndarray, weights: np.ndarray) -> None:
    """Raise unless mean, square and standard deviation agree with those of weighted values."""
    mean = np.sum(weights * values) / np.sum(weights)
    variance = np.sum(weights * (values - mean) ** 2) / np.sum(weights)
    assert abs(z_score(draws, mean)) < MAX_Z
    assert abs(z_score((draws - mean) ** 2, variance)) < MAX_Z
    assert abs(draws.std() / np.sqrt(variance) - 1) < 0.05


ALPHA, SCALE, CELLS = (1.0, 2.0), 2.0, (9.0, 24.0)
TABLE = models.categorical(concentration=ALPHA)
NOISY_TABLE = dpjax.Release(
    CELLS, dpjax.DiscreteGaussian(SCALE), statistics.cells("cell", 2), n=dpjax.UnknownCount(PRIOR)
)


def enumerate_tables() -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """All n, how many records are in the first cell, the weights of both, and log p(released value)."""
    n, first = np.meshgrid(NUMBERS, np.arange(46), indexing="ij")
    second = np.maximum(n - first, 0)
    lattice = np.exp(-(np.arange(-60, 61) ** 2) / (2 * SCALE**2)).sum()
    log_weight = gammaln(n + 1.0) - gammaln(first + 1.0) - gammaln(second + 1.0)
    log_weight += betaln(ALPHA[0] + first, ALPHA[1] + second) - betaln(*ALPHA) - np.log(len(NUMBERS))
    log_weight -= ((CELLS[0] - first) ** 2 + (CELLS[1] - second) ** 2) / (2 * SCALE**2) + 2 * np.log(lattice)
    log_weight = np.where(first <= n, log_weight, -np.inf)
    log_marginal = logsumexp(log_weight)
    return n, first, np.exp(log_weight - log_marginal), log_marginal


@pytest.mark.x64
@pytest.mark.parametrize("interweave", [pytest.param(False, marks=pytest.mark.slow), True])
def test_two_categories_against_enumeration(interweave: bool) -> None:
    n, first, weight, _ = enumerate_tables()
    draws = draw(TABLE, NOISY_TABLE, interweave)
    check(draws["num_records"], n, weight)
    mean = np.sum(weight * (ALPHA[0] + first) / (sum(ALPHA) + n))
    assert abs(z_score(draws["probabilities"][..., 0], mean)) < MAX_Z


@pytest.mark.x64
def test_marginal_likelihood_against_enumeration() -> None:
    n, _, weight, log_marginal = enumerate_tables()
    options = {"num_particles": 100, "num_islands": 16, "num_sweeps": 2, "imputation": dpjax.imwg()}
    found = dpjax.sample_smc(jax.random.key(4), TABLE, NOISY_TABLE, **options)
    assert abs(found.log_marginal_likelihood - log_marginal) < MAX_Z * found.log_marginal_likelihood_error
    numbers = found.resample(jax.random.key(5), 4_000)["num_records"]
    assert abs(numbers.mean() - np.sum(weight * n)) < 0.5


@pytest.mark.x64
def test_importance_sampling_against_enumeration() -> None:
    n, _, weight, log_marginal = enumerate_tables()
    found = dpjax.importance_sample(jax.random.key(2), TABLE, NOISY_TABLE, 20_000)
    assert abs(found.log_marginal_likelihood - log_marginal) < MAX_Z * found.log_marginal_likelihood_error
    mean, error = (found.summary()["num_records"][name] for name in ("mean", "se_mean"))
    assert abs(mean - np.sum(weight * n)) < MAX_Z * error


def count_and_total(record: dict) -> jax.Array:
    return jnp.stack([jnp.ones(()), jnp.clip(record["y"], -2.0, 2.0)])


def total_likelihood(mean: float, released: float, scale: float) -> np.ndarray:
    """p(noisy clamped total | n, mean) for each of `NUMBERS`, by Fourier transforms on a grid."""
    step = 1 / 64
    grid = np.arange(-128, 129) * step
    ends = np.concatenate([[-np.inf], grid[:-1] + step / 2, [np.inf]])
    size = 2**14
    record = np.zeros(size)
    record[np.round(grid / step).astype(int)] = np.diff(stats.norm.cdf(ends, mean))
    transform = np.fft.fft(record)
    places = np.fft.fftfreq(size, 1 / size) * step
    noise = stats.laplace.pdf(released - places, scale=scale)
    return np.array([np.sum(np.fft.ifft(transform**n).real * noise) for n in NUMBERS])


@pytest.mark.x64
@pytest.mark.parametrize("interweave", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_normal_records_against_convolution(interweave: bool) -> None:
    value, scales = (36.0, 14.0), (4.0, 5.0)
    means = np.linspace(-2, 2.5, 46)
    prior = stats.norm.pdf(means)[None]
    total = np.stack([total_likelihood(mean, value[1], scales[1]) for mean in means], axis=1)
    weight = stats.laplace.pdf(value[0] - NUMBERS, scale=scales[0])[:, None] * prior * total

    release = dpjax.Release(value, dpjax.Laplace(jnp.array(scales)), count_and_total, n=dpjax.UnknownCount(PRIOR))
    draws = draw(models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0), release, interweave)
    check(draws["num_records"], np.broadcast_to(NUMBERS[:, None], weight.shape), weight)
    check(draws["mean"], np.broadcast_to(means[None], weight.shape), weight)
