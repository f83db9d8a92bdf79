"""Ranks, odds ratios of regressions and transformed summaries, by hand."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax

EFFECTS = np.array([[[0.1, 0.5, -1.0], [0.7, 0.2, 0.3]], [[0.0, 0.9, -0.2], [0.4, 0.6, 0.5]]])
PATIENTS = {"age": [0.1, 0.5, 0.9, 0.3], "ward": ["a", "b", "b", "c"], "x": [1.0, 0.0, 1.0, 0.5]}


def test_ranks_count_how_often_each_is_highest(posterior):
    """Finds ranks in the other order, or of draws that were mixed between entries."""
    table = replace(posterior, draws={"effect": EFFECTS}).ranks("effect", quantiles=(0.5,))
    ranks = np.array([[2, 1, 3], [1, 3, 2], [2, 1, 3], [3, 1, 2]])
    for place in range(3):
        row = table[f"effect[{place}]"]
        assert row["mean"] == pytest.approx(ranks[:, place].mean())
        assert (row["highest"], row["lowest"]) == (np.mean(ranks[:, place] == 1), np.mean(ranks[:, place] == 3))
        assert row["50%"] == np.sort(ranks[:, place])[1]


def test_a_summary_shows_functions_of_parameters(posterior):
    """Finds the mean of a function taken for the function of the mean."""
    draws = {
        "rate": np.random.default_rng(1).normal(size=(4, 200)),
        "other": np.random.default_rng(2).normal(size=(4, 200)),
    }
    table = replace(posterior, draws=draws).summary(transform={"rate": jnp.exp})
    assert table["rate"]["mean"] == pytest.approx(np.exp(draws["rate"]).mean(), rel=1e-5)
    assert table["other"]["mean"] == pytest.approx(draws["other"].mean(), rel=1e-5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda one: one.ranks("other"), "name: given 'other', which is one number"),
        (lambda one: one.ranks("effects"), "name: given 'effects'"),
        (lambda one: one.summary(transform={"effects": jnp.exp}), "transform: given 'effects'"),
        (
            lambda one: one.summary(transform={"effect": lambda x: x[0]}),
            r"transform\['effect'\]: given a result of shape",
        ),
        (lambda one: one.summary(transform=jnp.exp), "transform: given"),
    ],
)
def test_what_cannot_be_compared_is_refused(posterior, call, words):
    """Finds errors of NumPy in place of words."""
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        call(replace(posterior, draws={"effect": EFFECTS, "other": EFFECTS[..., 0]}))


def test_a_logistic_regression_has_odds_ratios(posterior):
    """Finds the intercept, or effects of groups, among the odds ratios; and those of other families."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):  # as formulae has it
        model = dpjax.models.formula("p(y, 10) ~ age + x + (1 | ward)", PATIENTS, family="binomial")
        poisson = dpjax.models.formula("y ~ age", PATIENTS, family="poisson")
    effects = np.tile(EFFECTS, (1, 3, 1))
    draws = dict.fromkeys(("Intercept", "age", "x", "1|ward_sigma"), effects[..., 0]) | {"1|ward": effects}
    table = replace(posterior, model=model, draws=draws).odds_ratios()
    assert list(table) == ["age", "x"]
    assert table["x"]["mean"] == pytest.approx(np.exp(effects[..., 0]).mean())
    with pytest.raises(TypeError, match=r"^model: given"):
        replace(posterior, model=poisson, draws=draws).odds_ratios()
