"""A run in which the non-centred form breaks down says so, and draws from the right posterior all the same."""

import warnings

import jax
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import diagnostics
from tests.data_augmentation.parameters.saturating import MODEL, RELEASE

SIZES = {"num_chains": 4, "num_warmup": 300, "num_samples": 1_500, "progress": False}


def exact_moments() -> tuple[float, float]:
    """Mean and standard deviation of the location: a Normal sum, whose clamping does not matter, and Laplace noise."""
    grid, sums = np.linspace(-6, 6, 601), np.linspace(-30, 30, 3_001)
    released = float(np.asarray(RELEASE.value)[0])
    noise = stats.laplace(released, 1.0).pdf(sums)
    weights = stats.norm.pdf(grid) * (stats.norm(3 * grid[:, None], 3**0.5).pdf(sums) @ noise)
    weights /= weights.sum()
    mean = weights @ grid
    return mean, (weights @ (grid - mean) ** 2) ** 0.5


@pytest.mark.x32
def test_a_form_that_saturates_is_reported_and_the_posterior_is_right() -> None:
    with pytest.warns(UserWarning, match="not finite") as at_run:
        posterior = dpjax.sample(jax.random.key(3), MODEL, RELEASE, **SIZES)
    with pytest.warns(UserWarning, match="not finite") as at_summary:
        posterior.summary()
    assert {warning.filename for warning in (*at_run, *at_summary)} == {__file__}
    draws = posterior.draws["location"]
    assert np.all(np.isfinite(draws))
    assert np.all(np.isfinite(posterior.final_states.latent.records["y"]))
    mean, sd = exact_moments()
    assert abs(draws.mean() - mean) < 5 * diagnostics.mcse_mean(draws)
    assert abs(draws.std() - sd) < 5 * diagnostics.mcse_sd(draws)


@pytest.mark.x64
def test_a_run_without_such_a_form_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = dpjax.sample(jax.random.key(3), MODEL, RELEASE, interweave=False, **SIZES)
    assert not np.any(posterior.info["num_nonfinite"])
