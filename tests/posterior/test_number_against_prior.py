"""An unknown number of records where prior and release disagree, against sums over all numbers."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import diagnostics, models

NUMBERS = np.arange(0, 1_500)
PRIOR_SCALE = 2.0
MODEL = models.normal(mean_prior=models.NormalPrior(0.0, PRIOR_SCALE), variance=1.0)
SETTINGS = {"num_warmup": 100, "num_samples": 300, "progress": False}


def count_and_sum(record: dict) -> jax.Array:
    """How many records there are, and the sum of their values."""
    return jnp.stack([jnp.ones_like(record["y"]), record["y"]])


def released(mean: float, value: list[float], noise: float, **options: int) -> dpjax.Release:
    number = dpjax.UnknownCount(models.PoissonCount(mean), **options)
    return dpjax.Release(value, dpjax.Gaussian(noise), count_and_sum, n=number)


def exact(mean: float, value: list[float], noise: float) -> tuple[float, float]:
    """The posterior mean and standard deviation of n: p(n) N(count; n, τ²) N(sum; 0, n + (n s)² + τ²)."""
    spread = np.sqrt(NUMBERS + (NUMBERS * PRIOR_SCALE) ** 2 + noise**2)
    log_weight = stats.poisson.logpmf(NUMBERS, mean) + stats.norm.logpdf(value[0], NUMBERS, noise)
    log_weight += stats.norm.logpdf(value[1], 0.0, spread)
    weight = np.exp(log_weight - log_weight.max())
    centre = np.sum(weight * NUMBERS) / weight.sum()
    return centre, np.sqrt(np.sum(weight * (NUMBERS - centre) ** 2) / weight.sum())


def check(numbers: np.ndarray, centre: float, spread: float) -> None:
    error = float(diagnostics.mcse_mean(numbers[..., None].astype(float))[0])
    assert abs(numbers.mean() - centre) < 5 * error
    assert abs(numbers.std() / spread - 1) < 0.15


@pytest.mark.x32
@pytest.mark.parametrize(
    ("mean", "value"),
    [
        (10.0, [60.0, 30.0]),
        pytest.param(100.0, [250.0, 125.0], marks=pytest.mark.slow),
        pytest.param(300.0, [120.0, -60.0], marks=pytest.mark.slow),
    ],
)
def test_a_number_far_from_its_prior(mean: float, value: list[float]) -> None:
    """The prior alone would end the arrays at 39 rows of the 46 that there are, and at 178 of 242."""
    posterior = dpjax.sample(jax.random.key(1), MODEL, released(mean, value, 3.0), **SETTINGS)
    check(posterior.draws["num_records"], *exact(mean, value, 3.0))


@pytest.mark.slow
def test_particles_have_as_much_room() -> None:
    result = dpjax.sample_smc(jax.random.key(2), MODEL, released(10.0, [60.0, 30.0], 3.0), num_particles=200)
    numbers = np.asarray(result.draws["num_records"], float)
    centre, spread = exact(10.0, [60.0, 30.0], 3.0)
    weights = np.exp(result.log_weights)
    assert abs(np.sum(weights * numbers.mean(axis=1)) - centre) < spread
    assert numbers.max() > 45


@pytest.mark.x32
def test_a_number_that_a_sum_alone_implies() -> None:
    """Records near 1 whose sum is 45, where 10 of them were expected."""
    model = models.normal(mean_prior=models.NormalPrior(1.0, 0.1), variance=0.04)
    number = dpjax.UnknownCount(models.PoissonCount(10.0))
    release = dpjax.Release([45.0], dpjax.Gaussian(2.0), dpjax.statistics.total("y"), n=number)
    posterior = dpjax.sample(jax.random.key(3), model, release, **SETTINGS)
    spread = np.sqrt(NUMBERS * 0.04 + (NUMBERS * 0.1) ** 2 + 4.0)
    log_weight = stats.poisson.logpmf(NUMBERS, 10.0) + stats.norm.logpdf(45.0, NUMBERS, spread)
    weight = np.exp(log_weight - log_weight.max())
    centre = np.sum(weight * NUMBERS) / weight.sum()
    error = float(diagnostics.mcse_mean(posterior.draws["num_records"][..., None].astype(float))[0])
    assert centre > 25
    assert abs(posterior.draws["num_records"].mean() - centre) < 5 * error


@pytest.mark.x64
def test_chains_at_the_last_row_are_refused_and_draws_there_told_of() -> None:
    release = released(10.0, [60.0, 30.0], 3.0, capacity=40)
    with pytest.raises(ValueError, match=r"^release.n: given chains that fill all 40 rows .*capacity=80"):
        dpjax.sample(jax.random.key(4), MODEL, release, **SETTINGS)
    with pytest.warns(UserWarning, match="as many records as the arrays have rows, 40"):
        dpjax.sample(jax.random.key(4), MODEL, release, **SETTINGS | {"num_warmup": 0})


@pytest.mark.x64
def test_a_bound_of_the_prior_is_no_edge() -> None:
    release = dpjax.Release(
        [9.0, 3.0], dpjax.Gaussian(2.0), count_and_sum, n=dpjax.UnknownCount(models.UniformCount(0, 8))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = dpjax.sample(jax.random.key(5), MODEL, release, **SETTINGS)
    assert posterior.draws["num_records"].max() == 8


@pytest.mark.slow
def test_batches_have_the_room_that_one_of_them_needs() -> None:
    releases = [released(10.0, value, 3.0) for value in ([12.0, 6.0], [60.0, 30.0])]
    batch = dpjax.sample_batch(jax.random.key(6), MODEL, releases, **SETTINGS)
    for numbers, value in zip(batch.draws["num_records"], ([12.0, 6.0], [60.0, 30.0]), strict=True):
        check(numbers, *exact(10.0, value, 3.0))


@pytest.mark.parametrize("capacity", [0, 1.5, True])
def test_what_is_no_capacity_is_refused(capacity: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^capacity: given"):
        dpjax.UnknownCount(models.PoissonCount(3.0), capacity=capacity)
