"""A new integer mechanism, one file of a user's own, is everywhere what a shipped one is."""

from collections.abc import Iterator
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import coupling, models, statistics
from dpjax.mechanisms.promises import Promised, pure
from dpjax.models.integer_noise import check_integer_noise
from tests.extension.rounded_laplace import RoundedLaplace
from tests.extension.two_cells import CELLS, MAX_ERRORS, MODEL, N, agrees, enumerate_records

NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
SUMMED = dpjax.Release([5.0, -1.0], RoundedLaplace(1.5), CELLS, N)
CENSORED = dpjax.Censored(RoundedLaplace(1.5), lower=0.0)
OTHERS = {
    "censored": dpjax.Release([5.0, 0.0], CENSORED, CELLS, N),
    "local": dpjax.LocalRelease([0.0, 1.0, 1.0, 2.0, -1.0, 0.0], RoundedLaplace(0.7)),
}


class Plain:
    """A mechanism of nothing but attributes, which says that its noise is whole."""

    integer_noise = True

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return jnp.sum(RoundedLaplace(1.5).log_noise(value - statistic))

    def sample(self, key: jax.Array, statistic: jax.Array) -> jax.Array:
        return RoundedLaplace(1.5).sample(key, statistic)


MECHANISMS = {"additive": RoundedLaplace(1.5), "censored": CENSORED, "plain": Plain()}


@pytest.fixture(scope="module", params=OTHERS)
def posterior(request: pytest.FixtureRequest) -> dpjax.Posterior:
    options = {"num_warmup": 50, "num_samples": 500, "progress": False}
    return dpjax.sample(jax.random.key(1), MODEL, OTHERS[request.param], **options)


def test_law() -> None:
    support = jnp.arange(-40.0, 41.0)
    probabilities = np.exp(RoundedLaplace(1.5).log_noise(support))
    np.testing.assert_allclose(np.cumsum(probabilities), np.exp(RoundedLaplace(1.5).log_cdf(support)), atol=1e-5)
    draws = np.asarray(RoundedLaplace(1.5).sample_noise(jax.random.key(0), (20_000,), float))
    for number in (-2, 0, 3):
        share = probabilities[number + 40]
        assert abs(np.mean(draws == number) - share) < MAX_ERRORS * np.sqrt(share / 20_000)


@pytest.mark.parametrize("name", MECHANISMS)
def test_fractions_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"value: given .*; expected whole numbers"):
        dpjax.Release([1.5, 2.0], MECHANISMS[name], CELLS, N)
    with pytest.raises(ValueError, match=r"values: given .*; expected whole numbers"):
        dpjax.LocalRelease([1.5, 2.0], MECHANISMS[name])


@pytest.mark.parametrize("name", MECHANISMS)
def test_real_sums_are_refused(name: str) -> None:
    check_integer_noise(MODEL, dpjax.Release([1.0, 2.0], MECHANISMS[name], CELLS, N))
    with pytest.raises(ValueError, match=r"mechanism: given .*, whose noise is whole, on a statistic that is not"):
        dpjax.gibbs(NORMAL, dpjax.Release([1.0], MECHANISMS[name], statistics.total("y", -2, 2), N))
    with pytest.raises(ValueError, match=r"channel: given .*, whose noise is whole, on the field 'y' that is not"):
        dpjax.gibbs(NORMAL, dpjax.LocalRelease(np.arange(5.0), MECHANISMS[name], "y"))


def test_values_beyond_the_clamp_are_refused() -> None:
    with pytest.raises(ValueError, match=r"value: given .*; expected values from 0.0 to inf"):
        dpjax.Release([-1.0, 2.0], CENSORED, CELLS, N)


def test_parameters_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"mechanism\.scale: given shape \[3\]"):
        dpjax.Release([1.0, 2.0], RoundedLaplace(jnp.ones(3)), CELLS, N)


@pytest.mark.x32
def test_chains_agree_with_enumeration(posterior: dpjax.Posterior) -> None:
    assert agrees(posterior)


def test_predicted_releases_are_whole(posterior: dpjax.Posterior) -> None:
    prediction = posterior.predict(jax.random.key(3), num_samples=50)
    assert prediction.values.shape == (50, *posterior.release.observed.shape)
    assert np.all(prediction.values == np.round(prediction.values))
    assert np.any(prediction.values != prediction.released)


def test_importance_sampling_agrees() -> None:
    found = dpjax.importance_sample(jax.random.key(2), MODEL, SUMMED, 10_000)
    error = abs(found.log_marginal_likelihood - enumerate_records(SUMMED)[0])
    assert error < MAX_ERRORS * found.log_marginal_likelihood_error


@pytest.mark.x32
def test_tempered_run_agrees() -> None:
    found = dpjax.sample_smc(jax.random.key(4), MODEL, SUMMED, num_particles=50, num_islands=16, num_sweeps=1)
    error = abs(found.log_marginal_likelihood - enumerate_records(SUMMED)[0])
    assert error < MAX_ERRORS * found.log_marginal_likelihood_error


def test_densities_of_columns() -> None:
    """The columnwise path of the sweeps, with a scale for each coordinate."""
    release = dpjax.Release([5.0, -1.0], RoundedLaplace(jnp.array([1.5, 0.7])), CELLS, N)
    residuals = jnp.array([[0.0, 1.0, -2.0], [3.0, 0.0, 0.5]])
    expected = [release.log_density(release.value - residual) for residual in residuals.T]
    np.testing.assert_allclose(release.log_densities_at(residuals), expected, rtol=1e-5)


@pytest.mark.slow
def test_pairs_meet() -> None:
    kernel = coupling.coupled_gibbs(MODEL, SUMMED, dpjax.soma())
    meetings = coupling.meeting_times(jax.random.key(5), kernel, num_pairs=20, max_steps=200)
    assert meetings.met.all()


@pytest.fixture
def named() -> Iterator[type[RoundedLaplace]]:
    """The mechanism with a name in JSON, words and a promise; other tests list the names of the shipped ones."""

    class Named(RoundedLaplace):
        json_name: ClassVar[str | None] = "rounded-laplace"

        @property
        def promise(self) -> Promised:
            return Promised(
                words=lambda: f"Laplace of scale {self.scale}, rounded",
                of_sums=lambda sums: pure(sums.sensitivity(1) / self.scale),
            )

    yield dpjax.mechanisms.frozen_pytree(Named)
    dpjax.Mechanism.by_json_name.pop("rounded-laplace")


def test_it_is_written_read_and_described(named: type[RoundedLaplace]) -> None:
    release = dpjax.Release([5.0, -1.0], named(1.5), CELLS, N)
    again = dpjax.from_json(release.to_json())
    assert isinstance(again.mechanism, named)
    assert again.mechanism.scale == 1.5
    words = str(dpjax.describe(again))
    assert "Noise: Laplace of scale 1.5, rounded." in words
    assert "ε = 1.33" in words


def test_has_no_neutral_description() -> None:
    for release in (SUMMED, *OTHERS.values()):
        with pytest.raises(TypeError, match=r"RoundedLaplace; expected one of .*store its parameters yourself"):
            release.to_json()
