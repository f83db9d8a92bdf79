"""The guides run from top to bottom, say what is true, and the reference names everything that is public."""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import dpjax
from dpjax import diagnostics
from tests.tools.printed import run_checked

DOCS = Path(__file__).parents[1] / "docs"
MAX_DEVIATION = 5.0  # standard errors


def code_of(name: str) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", (DOCS / name).read_text(), re.M | re.S))


def run(name: str, error: str | None = None) -> dict[str, Any]:
    """What a guide's code defines; it prints what is shown."""
    return run_checked(DOCS / name, error)


def own_calls(tree: ast.Module) -> list[tuple[Callable, list[str]]]:
    """The functions of dpjax that code calls, which must exist, and the arguments that it passes them by name."""
    imports = [
        node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom) and "dpjax" in ast.unparse(node)
    ]
    names: dict[str, Any] = {}
    exec(compile(ast.Module(imports, []), "imports", "exec"), names)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    dotted = [(ast.unparse(call.func), [word.arg for word in call.keywords if word.arg]) for call in calls]
    return [(eval(name, names), words) for name, words in dotted if name.partition(".")[0] in names]


@pytest.mark.parametrize("name", [page.name for page in sorted(DOCS.glob("*.md")) if "```python" in page.read_text()])
def test_guides_call_what_there_is_by_its_names(name):
    """All guides run in the slow tests; this finds at once what a renaming leaves behind."""
    for function, words in own_calls(ast.parse(code_of(name))):
        accepted = inspect.signature(function).parameters.values()
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted):
            assert set(words) <= {parameter.name for parameter in accepted}, function


@pytest.mark.slow
def test_getting_started_gives_the_same_posterior_twice():
    names = run("getting-started.md")
    row = names["weighted"].summary()["log_odds_ratio"]
    error = np.hypot(diagnostics.mcse_mean(names["log_odds_ratio"]), row["se_mean"])
    assert abs(np.mean(names["log_odds_ratio"]) - row["mean"]) < MAX_DEVIATION * error
    np.testing.assert_array_equal(names["the_same"].draws["log_odds_ratio"], names["posterior"].draws["log_odds_ratio"])
    assert np.all((names["share_above"] > 0.05) & (names["share_above"] < 0.95))
    assert 35 < np.mean(names["number"]) < 47
    assert 1.8 < np.mean(names["seen"].draws["mean"]) < 2.9
    assert names["share"].shape == (4, 1_000)
    assert 0.15 < np.mean(names["share"]) < 0.4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_models_are_compared_by_units_and_as_wholes():
    names = run("which-model.md")
    table, evidence = names["table"], names["evidence"]
    assert table.loc["cases ~ 1", "elpd_diff"] > 4 * table.loc["cases ~ 1", "dse"]
    assert evidence.rows == ("any shares", "nearly equal")
    assert -evidence["nearly equal"]["difference"] > 3 * evidence["nearly equal"]["se_difference"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_series_are_sampled_near_what_they_were_made_with():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        names = run("series.md")
        assert abs(names["rates"]["fall"]["mean"] - 0.15) < 4 * names["rates"]["fall"]["sd"]
        assert abs(names["rates"]["recover"]["mean"] - 0.4) < 4 * names["rates"]["recover"]["sd"]
        for name, parameter in (("walk", "step"), ("epidemic", "contacts"), ("series", "step")):
            assert names[name].summary()[parameter]["r_hat"] < 1.05


@pytest.mark.slow
def test_likelihood_inference_estimates_what_was_released():
    names = run("likelihood.md")
    assert abs(names["fit"].estimate["mean"] - 0.603) < 0.02
    assert abs(names["fit"].standard_errors["variance"] - 0.399) < 0.05
    assert names["smaller"].num_parameters == 1


@pytest.mark.slow
def test_numpyro_models_are_sampled_from():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        names = run("numpyro.md")
    assert names["posterior"].draws["odds_ratio"].shape == (4, 1_000)
    # The published product of x and y is far above what no relation would give.
    assert np.mean(names["posterior"].draws["coef"][..., 1] > 0) > 0.99
    assert not names["of_known_age"].exchangeable
    # Trajectories move the coefficients alone: the answers are summed out.
    assert np.mean(names["answered"].info["acceptance_rate"]) > 0.8
    assert "centred_num_trajectory_expansions" in names["answered"].info


@pytest.mark.slow
def test_records_seen_in_part_have_the_posterior_that_the_guide_says():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        names = run("microdata.md")
    means = {"share": 0.391, "mu": np.array([0.102, 1.272])}
    for name, mean in means.items():
        draws = names["posterior"].draws[name]
        assert np.all(np.abs(draws.mean((0, 1)) - mean) < MAX_DEVIATION * diagnostics.mcse_mean(draws))
    assert names["model"].has("mixed")
    assert abs(np.mean(names["earned"].draws["slope"]) - 1.2) < 0.5
    # The total says 6.2, and the answers alone 4.7.
    assert np.mean(names["joined"].draws["share"]) > np.mean(names["posterior"].draws["share"])


@pytest.mark.slow
def test_counts_of_areas_are_summed_out():
    """The page's regression finds the slope that its data were made with, and the withheld counts are summed out."""
    names = run("areas.md")
    assert "summed out" in names["posterior"].plan.describe()
    slope = names["posterior"].draws["poverty"]
    assert np.quantile(slope, 0.005) < 0.05 < np.quantile(slope, 0.995)


@pytest.mark.slow
def test_blackjax_runs_the_sampler_unchanged():
    names = run("blackjax.md")
    assert names["means"].shape == (4, 2_000)
    assert names["more"]["mean"].shape == (1_000,)
    exact = dpjax.importance_sample(jax.random.key(4), names["model"], names["release"], 50_000).summary()["mean"]
    settled = np.asarray(names["means"])[:, 200:]
    for draws in (settled, np.asarray(names["history"]["mean"])[None, 200:]):
        error = np.hypot(diagnostics.mcse_mean(draws), exact["se_mean"])
        assert abs(np.mean(draws) - exact["mean"]) < MAX_DEVIATION * error


@pytest.mark.x32
def test_convergence_bounds_and_estimates_hold():
    names = run("convergence.md")
    assert names["meetings"].num_censored == 0
    assert names["bounds"][0] > names["bounds"][-1]
    exact = dpjax.importance_sample(jax.random.key(4), names["model"], names["release"], 50_000).summary()["mean"]
    error = np.hypot(names["estimate"].standard_error, exact["se_mean"])
    assert abs(names["estimate"].mean - exact["mean"]) < MAX_DEVIATION * error


@pytest.mark.slow
@pytest.mark.x64
def test_published_tables_are_read_and_drawn():
    pytest.importorskip("pyarrow")
    pytest.importorskip("matplotlib")
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        names = run("published-tables.md")
    assert names["read"].shape == (2, 2, 3)
    assert len(names["axes"]) == 6
    shares = np.mean(names["posterior"].draws["probabilities"], axis=(0, 1))
    np.testing.assert_allclose(shares * names["made_up"].sum(), names["made_up"].ravel(), atol=8)
    views = 2_600 * np.mean(names["pages"].draws["probabilities"], axis=(0, 1))
    np.testing.assert_allclose(views, [455, 330, 1201, 612], atol=60)


@pytest.mark.x32
def test_tables_of_agencies_are_drawn():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        names = run("agency.md")
    people = names["people"].ravel()
    for posterior in (names["posterior"], names["small"]):
        shares = np.mean(posterior.draws["probabilities"], axis=(0, 1))
        # A count is off its rounded value by -2, ..., 2 with weights 1, 2, 3, 2, 1, whose standard deviation is 1.155.
        np.testing.assert_allclose(shares * 102, people + 1, atol=4 * 1.155)
    assert names["contrasts"].mechanism.covariance.shape == (2, 2)


@pytest.mark.slow
@pytest.mark.x64
def test_published_draws_are_those_of_the_posterior_and_spend_the_budget():
    with (
        pytest.warns(UserWarning, match="effective sample size below 400"),
        jax.numpy_rank_promotion("allow"),
        jax.numpy_dtype_promotion("standard"),
    ):
        names = run("private-chains.md")
    spent = names["published"].privacy_spent()
    assert (spent.grade, spent.neighbours) == ("secure", "replace-one")
    assert 3.99 < spent.epsilon <= 4.0
    assert names["ledger"].affordable(names["kernel"].queries) == 0
    assert names["plan"].effective_draws > 100
    draws = names["published"].draws[:, names["plan"].num_warmup :]
    for draw, exact in zip(np.moveaxis(draws, -1, 0), names["confidential"].mean(axis=0), strict=True):
        assert abs(np.mean(draw) - exact) < MAX_DEVIATION * diagnostics.mcse_mean(draw)
    deviations = (names["reached"].draws[0, -1] - names["confidential"].mean(axis=0)) * np.sqrt(100_000)
    assert np.max(np.abs(deviations)) < MAX_DEVIATION
    assert names["ledger_of_both"].privacy_spent().epsilon < 1.0


def publish(page: str, truth: dict[str, float]) -> dict[str, Any]:
    """What a page defines: its budget is spent, a larger one narrows intervals, and a reader finds the truth.

    Its noise comes from the operating system, so that each run releases other sums.
    """
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        names = run(page, error="sd")
    budget = names["ledger"].budget.epsilon
    assert 0.999 * budget < names["ledger"].privacy_spent().epsilon <= budget
    for widths in names["expected"].widths.values():
        expected = widths.mean(axis=2)  # [candidate, budget, ...]
        assert np.all(expected[:, 1] < expected[:, 0])
    summary = names["posterior"].summary()
    for name, true in truth.items():
        assert abs(summary[name]["mean"] - true) < MAX_DEVIATION * summary[name]["sd"]
    return names


@pytest.mark.slow
@pytest.mark.x64
def test_released_sums_spend_the_budget_and_give_the_posterior():
    widths = publish("private.md", {"intercept": -1.0, "slope": 1.0})["expected"].widths["slope"]
    assert np.all(widths[1].mean(axis=1) < widths[0].mean(axis=1))


@pytest.mark.slow
@pytest.mark.x64
def test_a_regression_is_published_under_a_budget():
    publish("publish-a-regression.md", {"coef[0]": 0.5, "coef[1]": -0.8})


def test_a_ledger_that_is_read_has_the_queries_of_the_ledger():
    names = run("private-guarantees.md")
    assert names["copy"].queries == names["ledger"].queries
    assert names["ledger"].affordable((names["query"],)) > 0
    assert 5.99 < names["accounting"].epsilon(1e-6, names["mu"]) < 6.01


@pytest.mark.slow
@pytest.mark.x64
def test_many_records_are_sampled_from():
    names = run("many-records.md")
    assert names["incomes"].approximate
    assert abs(np.mean(names["incomes"].draws["mean"]) - 3.1) < 0.1
    assert np.max(names["incomes"].info["quadrature_error"]) < 0.1


@pytest.mark.slow
@pytest.mark.x64
def test_draws_are_tested():
    pytest.importorskip("matplotlib")
    assert run("testing.md")["tested"].passed  # the sum of Normal records is Normal


@pytest.mark.slow
def test_mixtures_are_sampled_from():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        names = run("mixtures.md")
    density, grid = names["density"], np.linspace(-10, 10, 201)
    assert np.interp([-5, 5], grid, density.mean).min() > 3 * np.interp(0, grid, density.mean)
    assert names["number"].shape == (4, 500)
    from_counts = names["from_counts"].density(grid).mean
    assert np.interp([-5, 5], grid, from_counts).min() > 2 * np.interp(0, grid, from_counts)
    assert names["waits"].draws["num_clusters"].shape == (4, 100)
    assert not np.any(names["overflow"])
    assert abs(np.mean(names["num_clusters"][50:]) - np.mean(names["number"])) < 2


@pytest.mark.parametrize(
    "module",
    [
        dpjax,
        dpjax.models,
        dpjax.statistics,
        dpjax.coupling,
        dpjax.exchangeable,
        dpjax.mixture,
        dpjax.plot,
        dpjax.private,
        dpjax.releases,
    ],
)
def test_reference_names_everything_public(module):
    entries = re.findall(r"^::: (\S+)", "\n".join(page.read_text() for page in (DOCS / "reference").glob("*.md")), re.M)
    documented = {entry.rpartition(".")[2] for entry in entries}
    own_contract = {
        "Array",
        "Key",
        "SamplingAlgorithm",
        "models",
        "statistics",
        "check_model",
        "coupling",
        "diagnostics",
        "exchangeable",
        "mechanisms",
        "mixture",
        "plot",
        "private",
        "releases",
        "theory",
    }
    kept_for_types = {name for name in dpjax.statistics.__all__ if name[0].isupper()}
    assert set(module.__all__) - own_contract - kept_for_types <= documented


@pytest.mark.slow
def test_scaling_runs_on_one_device():
    names = run("scaling.md")
    assert names["everything"].draws["mean"].shape == (24, 500)
    assert names["covered"].shape == (20,)
