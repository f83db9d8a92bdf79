"""Odds ratios of tables: of which levels, and where probabilities underflow."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.diagnostics.summary import summarize
from dpjax.models import categorical
from tests.models.cases import CASES


def test_two_by_two_odds_ratio_is_one_number() -> None:
    derived = CASES["categorical"].derived({"probabilities": jnp.array([0.1, 0.2, 0.3, 0.4])})
    np.testing.assert_allclose(derived["odds_ratio"], 0.1 * 0.4 / (0.2 * 0.3), rtol=1e-5)
    np.testing.assert_allclose(derived["log_odds_ratio"], np.log(0.1 * 0.4 / (0.2 * 0.3)), rtol=1e-5)


def test_odds_ratios_of_probabilities_that_underflow_are_finite_and_can_be_summarised() -> None:
    """Dirichlet(.05) draws had log ratios of infinity, and NaN where two cells underflowed: summaries were all NaN."""
    model = categorical(np.full(4, 0.05), shape=(2, 2))
    zeros = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.5, 0.0, 0.0, 0.5]]
    derived = jax.vmap(model.derived)({"probabilities": jnp.array(zeros)})
    for name, ratios in derived.items():
        assert np.isfinite(ratios).all(), name
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            summary = summarize(np.asarray(ratios)[None])
        assert np.isfinite(summary["50%"])
        assert np.isfinite(summary["97.5%"])
    assert derived["log_odds_ratio"][2] < -100 < 100 < derived["log_odds_ratio"][3]


def test_odds_ratios_of_larger_tables_are_local_and_given_the_other_variables() -> None:
    table = np.arange(1.0, 25.0).reshape(2, 3, 4)
    ratios = table[0, :-1] * table[1, 1:] / (table[0, 1:] * table[1, :-1])
    derived = categorical(np.ones(24), shape=(2, 3, 4)).derived({"probabilities": jnp.asarray(table.ravel() / 300)})
    assert derived["odds_ratio"].shape == (1, 2, 4)
    np.testing.assert_allclose(derived["odds_ratio"][0], ratios, rtol=1e-4)


def test_two_by_two_tables_at_levels_of_a_third_variable() -> None:
    derived = categorical(np.ones(24), shape=(2, 2, 6)).derived({"probabilities": jnp.full(24, 1 / 24)})
    np.testing.assert_allclose(derived["odds_ratio"], np.ones(6), rtol=1e-5)
