"""Bayesian p-values of chosen statistics."""

import jax
import numpy as np
import pytest
from scipy import stats

import dpjax
from tests.plot.results import make_posterior

KEY = jax.random.key(5)
VALUES = np.array([0.2, -0.4, 1.1, 0.9, 3.5, -3.0])
LOCAL = dpjax.LocalRelease(VALUES, dpjax.Gaussian(1.0), field="y")
NUM_DRAWS = 2_000


def largest(values: np.ndarray) -> float:
    return float(np.max(values))


@pytest.fixture(scope="module")
def posterior() -> dpjax.Posterior:
    return make_posterior(LOCAL, num_draws=NUM_DRAWS)


def test_p_values_are_shares_of_the_predictive_distribution(posterior: dpjax.Posterior) -> None:
    """By the Normal distribution of released values at each draw; of all values, and of groups in order of names."""
    found = posterior.check(KEY, {"largest": largest, "mean": np.mean}, by=["b", "a", "a", "a", "b", "b"])
    assert found.rows == ("largest[a]", "largest[b]", "mean[a]", "mean[b]")
    means, sd = posterior.draws["mean"].ravel(), np.sqrt(2.0)
    groups = {"a": VALUES[1:4], "b": VALUES[[0, 4, 5]]}
    error = np.sqrt(0.25 / (2 * NUM_DRAWS))
    for name, own in groups.items():
        exact = np.mean(1 - stats.norm.cdf(own.max(), means, sd) ** 3)
        assert abs(found[f"largest[{name}]"]["p_value"] - exact) < 4 * error
        assert found[f"largest[{name}]"]["released"] == pytest.approx(own.max())
        exact = np.mean(stats.norm.sf(own.mean(), means, sd / np.sqrt(3)))
        assert abs(found[f"mean[{name}]"]["p_value"] - exact) < 4 * error
    assert posterior.check(KEY, largest, num_samples=50).rows == ("largest",)


def test_ties_count_half(posterior: dpjax.Posterior) -> None:
    """A statistic that is the same in all releases says nothing, and is not at an end."""
    assert posterior.check(KEY, len, num_samples=20)["len"]["p_value"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"statistic": "mean"}, TypeError, "statistic: given a text|statistic: given .*mean"),
        ({"statistic": lambda values: values}, ValueError, "a function that returns a finite number"),
        ({"statistic": lambda values: np.nan}, ValueError, "returned nan"),
        ({"statistic": lambda values: None}, ValueError, "returned None"),
        ({"statistic": {}}, ValueError, "statistic: given none"),
        ({"statistic": np.max, "by": ["a", None, "b", "b", "a", "a"]}, ValueError, "by: given no name in place 1"),
        ({"statistic": np.max, "by": ["a"]}, ValueError, "by: given 1 groups; expected one for each of 6"),
        ({"statistic": np.max, "by": "a"}, TypeError, "by: "),
    ],
)
def test_what_is_no_check_is_refused(posterior: dpjax.Posterior, arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        posterior.check(KEY, **arguments)
