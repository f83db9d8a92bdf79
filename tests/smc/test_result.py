"""Evidence of islands: impossible ones, and those that disagree."""

import numpy as np
import pytest

from dpjax.smc.sample import combine
from dpjax.smc.sampler import Trace


def traces(temperatures: list[list[float]], log_increments: list[list[float]]) -> Trace:
    """Traces of islands with these figures."""
    figures = np.array(temperatures), np.array(log_increments)
    ones = np.ones_like(figures[0])
    return Trace(figures[0], 50 * ones, figures[1], 0.5 * ones, 0 * ones)


DRAWS = {"mean": np.arange(12.0).reshape(3, 4)}


NAN, INF = np.nan, np.inf


def test_impossible_releases_are_an_error() -> None:
    never = traces([[NAN, NAN]] * 3, [[-INF, NAN]] * 3)
    with pytest.raises(ValueError, match="release: given a value of zero density at every particle of all 3 islands"):
        combine(DRAWS, never)


def test_too_many_steps_are_an_error() -> None:
    short = traces([[0.1, 0.2]] * 3, [[-1.0, -1.0]] * 3)
    with pytest.raises(
        ValueError, match=r"target_ess: given steps so short that 200 of them end at 0\.2; expected steps"
    ):
        combine(DRAWS, short)


def test_an_island_without_possible_particles_weighs_nothing() -> None:
    result = combine(DRAWS, traces([[0.5, 1.0], [1.0, NAN], [NAN, NAN]], [[-1.0, -2.0], [-3.0, NAN], [-INF, NAN]]))
    np.testing.assert_allclose(np.exp(result.log_weights), [0.5, 0.5, 0.0])
    assert result.log_marginal_likelihood == pytest.approx(-3.0 + np.log(2 / 3))
    # The likelihoods found are (1, 1, 0) times e⁻³: their mean is 2/3 of it, its error 1/3.
    assert result.log_marginal_likelihood_error == pytest.approx(0.5)
    assert result.summary()["mean"]["mean"] == pytest.approx(np.arange(8.0).mean())


@pytest.mark.x32
def test_islands_that_disagree_are_reported() -> None:
    with pytest.warns(UserWarning, match=r"The islands disagree: 3 of them are worth 1\.0\. Pass more particles"):
        combine(DRAWS, traces([[1.0]] * 3, [[0.0], [-9.0], [-9.0]]))
