"""The sampler, and imputation alone, in BlackJAX's loops: as they are, thinned, and averaged on the way."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.util import run_inference_algorithm, store_only_expectation_values, thin_algorithm

import dpjax
from dpjax import models

N, NOISE, RELEASED, MEAN = 6, 2.0, 5.0, 0.3
MODEL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)


def total(record: dict) -> jax.Array:
    return record["y"][None]


RELEASE = dpjax.Release([RELEASED], dpjax.Gaussian(NOISE), total, N)
PARAMETERS = {"mean": MEAN}


def exact_start(key: jax.Array, centre: float, mean_variance: float) -> dpjax.data_augmentation.Position:
    """A draw of mean ~ N(centre, mean_variance) and records given the release, by Matheron's rule."""
    mean_key, record_key, noise_key = jax.random.split(key, 3)
    mean = centre + jnp.sqrt(mean_variance) * jax.random.normal(mean_key)
    records = mean + jax.random.normal(record_key, (N,))
    surprise = RELEASED - jnp.sum(records) - NOISE * jax.random.normal(noise_key)
    scaled = surprise / (N**2 * mean_variance + N + NOISE**2)
    return dpjax.data_augmentation.Position(
        {"mean": mean + N * mean_variance * scaled}, {"y": records + (1 + N * mean_variance) * scaled}
    )


def gibbs() -> tuple[dpjax.base.SamplingAlgorithm, Callable]:
    return dpjax.gibbs(MODEL, RELEASE), lambda key: exact_start(key, 0.0, 1.0)


def imwg() -> tuple[dpjax.base.SamplingAlgorithm, Callable]:
    return dpjax.impute(MODEL, RELEASE, PARAMETERS), lambda key: exact_start(key, MEAN, 0.0).records


def soma() -> tuple[dpjax.base.SamplingAlgorithm, Callable]:
    return dpjax.impute(MODEL, RELEASE, PARAMETERS, dpjax.soma(3)), lambda key: exact_start(key, MEAN, 0.0).records


def sum_of(state: Any) -> jax.Array:
    """The sum of the records [] in a state of either kind."""
    return (state.latent if isinstance(state, dpjax.data_augmentation.GibbsState) else state).statistic[0]


def exact_mean(mean_variance: float, centre: float) -> tuple[float, float]:
    """The mean and sd of the sum given the release, where the sum is Normal around n centre."""
    variance = N + N**2 * mean_variance
    shrinkage = variance / (variance + NOISE**2)
    return N * centre + shrinkage * (RELEASED - N * centre), NOISE * np.sqrt(shrinkage)


ALGORITHMS = [(gibbs, exact_mean(1.0, 0.0)), (imwg, exact_mean(0.0, MEAN)), (soma, exact_mean(0.0, MEAN))]
NUM_CHAINS, NUM_STEPS, THIN = 400, 20, 3


@pytest.mark.x64
@pytest.mark.parametrize(("make", "exact"), ALGORITHMS, ids=["gibbs", "imwg", "soma"])
def test_averages_of_thinned_states(make: Callable, exact: tuple[float, float]) -> None:
    """Chains that start in their law stay in it: their averages are around the exact mean of the sum, and no other."""
    algorithm, draw_start = make()
    thinned = thin_algorithm(algorithm, THIN, info_transform=lambda info: jax.tree.map(jnp.mean, info))
    averaging, transform = store_only_expectation_values(thinned, sum_of)

    def chain(key: jax.Array) -> jax.Array:
        start_key, run_key = jax.random.split(key)
        start = averaging.init(thinned.init(draw_start(start_key)))
        run = run_inference_algorithm(run_key, averaging, NUM_STEPS, initial_state=start, transform=transform)
        averages, infos = run[1]
        assert all(leaf.shape == (NUM_STEPS,) for leaf in [averages, *jax.tree.leaves(infos)])
        return averages[-1]

    # BlackJAX multiplies by a flag there.
    with jax.numpy_dtype_promotion("standard"):
        averages = np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(1), NUM_CHAINS)))
    error = averages.std(ddof=1) / np.sqrt(NUM_CHAINS)
    assert abs(averages.mean() - exact[0]) < 5 * error
    assert abs(averages.mean() - exact[0] - 0.3 * exact[1]) > 5 * error


@pytest.mark.keys
def test_a_local_release_is_imputed_exactly() -> None:
    """Each record has P(1) ∝ 0.7 · 0.2 against 0.3 · 0.8 given a released 0."""
    release = dpjax.LocalRelease(np.zeros(2_000, int), dpjax.RandomizedResponse(0.8, 2))
    algorithm = dpjax.impute(models.categorical(np.ones(2)), release, {"probabilities": jnp.array([0.3, 0.7])})
    latent = jax.jit(algorithm.init)({"cell": jnp.zeros(2_000, int)})
    latent, info = jax.jit(algorithm.step)(jax.random.key(3), latent)
    assert info.acceptance_rate == 1
    exact = 0.14 / (0.14 + 0.24)
    assert abs(latent.records["cell"].mean() - exact) < 5 * np.sqrt(exact * (1 - exact) / 2_000)


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        ({"parameters": [0.3]}, TypeError, r"parameters: given list; expected a dict of \['mean'\]"),
        (
            {"parameters": {"sd": 0.3}},
            ValueError,
            r"parameters: given a dict of \['sd'\]; expected a dict of \['mean'\]",
        ),
        ({"parameters": {"mean": [0.3]}}, ValueError, r"parameters\['mean'\]: given shape \[1\]; expected shape \[\]"),
        ({"imputation": dpjax.soma("auto")}, ValueError, "imputation: given SOMA.*'auto'.*; expected fixed numbers"),
        ({"model": RELEASE, "release": MODEL}, TypeError, r"release: given \w+"),
    ],
)
def test_bad_input(choices: dict, error: type, message: str) -> None:
    arguments = {"model": MODEL, "release": RELEASE, "parameters": PARAMETERS} | choices
    with pytest.raises(error, match=message):
        dpjax.impute(**arguments)


def test_prior_predictive_releases_have_their_law() -> None:
    """The released sum is N(0, n² + n + noise²)."""
    prediction = dpjax.sample_prior_predictive(jax.random.key(4), MODEL, RELEASE, 4_000)
    assert prediction.values.shape == (4_000, 1)
    np.testing.assert_array_equal(prediction.released, [RELEASED])
    sd = np.sqrt(N**2 + N + NOISE**2)
    assert abs(prediction.values.mean()) < 5 * sd / np.sqrt(4_000)
    assert abs(prediction.values.std() - sd) < 5 * sd / np.sqrt(8_000)


def test_prior_predictive_local_releases() -> None:
    release = dpjax.LocalRelease(np.zeros(3, int), dpjax.RandomizedResponse(0.8, 2))
    prediction = dpjax.sample_prior_predictive(jax.random.key(5), models.categorical(np.ones(2)), release, 50)
    assert prediction.values.shape == (50, 3)
    with pytest.raises(ValueError, match="num_samples: given 0"):
        dpjax.sample_prior_predictive(jax.random.key(5), MODEL, RELEASE, 0)
