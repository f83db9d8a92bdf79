"""The picture of acceptance, with its bound."""

import numpy as np
import pytest

import dpjax
from dpjax.plot.acceptance import epsilon_of
from tests.plot.axes import labels_of, new_axes
from tests.plot.results import MODEL, RELEASE, STATISTIC, N, make_posterior

EPSILON = 1.0  # a range of 4 over a scale of 4


def test_acceptance_is_shown_with_what_is_proved_of_it():
    posterior = make_posterior()
    axes = posterior.plot_acceptance(axes=new_axes())
    rates = posterior.info["acceptance_rate_per_record"]
    dots, mean, bound = axes.lines
    np.testing.assert_allclose(dots.get_ydata(), rates.mean(axis=0))
    np.testing.assert_allclose(mean.get_ydata(), rates.mean())
    np.testing.assert_allclose(bound.get_ydata(), np.exp(-EPSILON))
    assert labels_of(axes)[1:] == ["mean 0.70", "at least exp(−1) = 0.37"]
    axes.figure.draw_without_rendering()


def test_the_bound_is_that_of_the_sampler():
    bound = make_posterior(imputation=dpjax.soma(attempts=8)).plot_acceptance(epsilon=3.0, axes=new_axes()).lines[2]
    np.testing.assert_allclose(bound.get_ydata(), 8 / (8 + np.exp(3) - 1))
    bound = make_posterior(imputation=dpjax.soma()).plot_acceptance(axes=new_axes()).lines[2]
    np.testing.assert_allclose(bound.get_ydata(), N / (N + np.exp(EPSILON) - 1))
    assert len(make_posterior(imputation=dpjax.pcn(4, 0.5)).plot_acceptance(axes=new_axes()).lines) == 2


def test_epsilon_follows_from_the_noise_or_the_promise():
    assert epsilon_of(RELEASE) == pytest.approx(EPSILON)
    unclamped = dpjax.statistics.total("y")
    assert epsilon_of(dpjax.Release([12.0], dpjax.Laplace(4.0), unclamped, n=N)) is None
    for neighbours, epsilon in {"replace-one": 0.5, "add-or-remove": 1.0}.items():
        promise = dpjax.Privacy("pure", neighbours, epsilon=0.5)
        assert epsilon_of(dpjax.Release([12.0], dpjax.Laplace(4.0, privacy=promise), unclamped, n=N)) == epsilon
    rho = dpjax.Privacy("zcdp", "replace-one", rho=0.5)
    assert epsilon_of(dpjax.Release([12.0], dpjax.Gaussian(4.0, privacy=rho), STATISTIC, n=N)) is None
    both = dpjax.joint(RELEASE, dpjax.Release([12.0], dpjax.Laplace(2.0), STATISTIC, n=N))
    assert epsilon_of(both) == pytest.approx(3 * EPSILON)


def test_acceptance_needs_records_that_were_imputed():
    posterior = make_posterior()
    posterior.info.pop("acceptance_rate_per_record")
    with pytest.raises(ValueError, match="posterior: given draws without rates of records"):
        posterior.plot_acceptance()
    with pytest.raises(ValueError, match="epsilon"):
        make_posterior(model=MODEL).plot_acceptance(epsilon=-1.0)
