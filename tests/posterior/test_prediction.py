"""Predicted releases: their law, how many, and what is refused."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from dpjax import diagnostics
from dpjax.mechanisms import Gaussian
from dpjax.release import LocalRelease


@pytest.mark.keys
def test_predictions_have_the_law_of_the_posterior_predictive(posterior, exact):
    """A new value is N(n mean, n + noise²): its moments follow from the posterior's; gates of 5 standard errors."""
    prediction = posterior.predict(jax.random.key(8))
    assert prediction.values.shape == (4_000, 1)
    np.testing.assert_array_equal(prediction.released, [13.0])
    sd = np.sqrt(20**2 * exact.sd**2 + 20 + 5.0**2)
    standardized = (prediction.values - 20 * exact.mean) / sd
    # The draws are dependent: their effective number is taken from the run.
    size = float(diagnostics.ess_bulk(posterior.draws["mean"]))
    assert abs(standardized.mean()) < 5 / np.sqrt(size)
    assert abs(standardized.std() - 1) < 5 / np.sqrt(2 * size)
    assert abs((standardized * sd / 5.0).std() - 1) > 5 / np.sqrt(2 * size)


def test_a_prediction_is_shown_by_its_size(posterior):
    """All values filled the screen."""
    assert repr(posterior.predict(jax.random.key(1), num_samples=3)) == "3 predicted releases of 1 value"


def test_fewer_draws_are_taken_from_all_chains(posterior):
    """The first ones are of one chain, and so alike that predictions from them look right."""
    assert posterior.choose_draws(5).tolist() == [0, 1_000, 2_000, 2_999, 3_999]


def test_predictions_do_not_depend_on_the_batch(monkeypatch, posterior):
    whole = posterior.predict(jax.random.key(8), num_samples=50).values
    monkeypatch.setattr("dpjax.models.simulation.BATCH_BYTES", 7 * 20 * 16)
    np.testing.assert_allclose(posterior.predict(jax.random.key(8), num_samples=50).values, whole, rtol=1e-5)
    assert len(np.unique(whole)) == 50


@pytest.mark.parametrize(
    ("key", "num_samples", "message"),
    [
        (3, None, "key: given 3"),
        (None, 0, "num_samples: given 0"),
        (None, 4_001, "num_samples: given 4001; expected at most"),
    ],
)
def test_bad_predictions(posterior, key, num_samples, message):
    with pytest.raises((TypeError, ValueError), match=message):
        posterior.predict(jax.random.key(0) if key is None else key, num_samples)


def test_a_local_release_is_predicted_record_by_record(posterior):
    """With parameter zero a new value is N(0, 1 + 0.5²), independently for each record."""
    release = LocalRelease(np.linspace(-1.0, 1.0, 12), Gaussian(0.5), field="y")
    local = replace(posterior, release=release, draws={"mean": np.zeros((4, 1_000))})
    prediction = local.predict(jax.random.key(1))
    assert prediction.values.shape == (4_000, 12)
    np.testing.assert_array_equal(prediction.released, release.values)
    correlation = np.corrcoef(prediction.values.T) - np.eye(12)
    assert np.abs(correlation).max() < 5 / np.sqrt(4_000)
    assert abs(prediction.values.var() - 1.25) < 5 * 1.25 * np.sqrt(2 / prediction.values.size)
