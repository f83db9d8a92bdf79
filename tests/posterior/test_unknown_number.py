"""The posterior of an unknown number of records, against enumeration and against convolution on a grid."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, gammaln, logsumexp

import dpjax
from dpjax import models, statistics
from dpjax.imputation.data_sets import data_set_form

PRIOR = models.UniformCount(20, 45)
NUMBERS = np.arange(20, 46)
MAX_Z, NUM_CHAINS, NUM_STEPS, NUM_WARMUP = 4.0, 250, 220, 20


def draw(model: dpjax.Model, release: dpjax.Release, interweave: bool) -> dict[str, np.ndarray]:
    """Draws [chain, draw, ...] of many chains, and the numbers of records."""
    model, release = data_set_form(model, release)
    algorithm = dpjax.gibbs(model, release, dpjax.imwg(), interweave=interweave)

    def chain(key: jax.Array) -> dict:
        prior_key, record_key, run_key = jax.random.split(key, 3)
        state = algorithm.init(model.sample_prior(prior_key), record_key)

        def step(state: dpjax.GibbsState, key: jax.Array) -> tuple:
            state, _ = algorithm.step(key, state)
            return state, {**state.parameters, **model.reported(state.latent.records)}

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


@pytest.mark.x64
@pytest.mark.parametrize("interweave", [False, True])
def test_two_categories_against_enumeration(interweave: bool) -> None:
    alpha, scale, value = (1.0, 2.0), 2.0, (9.0, 24.0)
    n, first = np.meshgrid(NUMBERS, np.arange(46), indexing="ij")
    second = n - first
    with np.errstate(all="ignore"):
        log_weight = gammaln(n + 1.0) - gammaln(first + 1.0) - gammaln(second + 1.0)
        log_weight += betaln(alpha[0] + first, alpha[1] + second)
        log_weight -= ((value[0] - first) ** 2 + (value[1] - second) ** 2) / (2 * scale**2)
    log_weight = np.where(second >= 0, log_weight, -np.inf)
    weight = np.exp(log_weight - logsumexp(log_weight))

    release = dpjax.Release(
        value, dpjax.DiscreteGaussian(scale), statistics.cells("cell", 2), n=dpjax.UnknownCount(PRIOR)
    )
    draws = draw(models.categorical(concentration=alpha), release, interweave)
    check(draws["num_records"], n, weight)
    mean = np.sum(weight * (alpha[0] + first) / (sum(alpha) + n))
    assert abs(z_score(draws["probabilities"][..., 0], mean)) < MAX_Z


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
@pytest.mark.parametrize("interweave", [False, True])
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
