"""The demo: its data are those published, its reference answers those of the model, and it prints and draws them."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax.demo
from dpjax import diagnostics
from dpjax.demo import admissions, diabetes, titanic
from dpjax.demo.comparison import Comparison, describe_draws, draw_tables
from dpjax.demo.figure import draw
from dpjax.models import NormalInverseGammaPrior

MAX_DEVIATION = 5.0  # standard errors
PNG_HEADER = b"\x89PNG"


def synthetic(quantities: dict[str, float]) -> Comparison:
    """Answers around given numbers."""
    random = np.random.default_rng(1)

    def answer(*shape: int) -> dict[str, np.ndarray]:
        return {name: value + random.normal(size=shape) for name, value in quantities.items()}

    return Comparison("A title", "a promise", "some unit", answer(500), answer(500), answer(4, 200))


@pytest.fixture(scope="module")
def comparisons() -> list[Comparison]:
    lines = {"mean at 25 kg/m²": 140.0, "slope per kg/m²": 10.0, "residual sd": 60.0}
    return [synthetic({"department A": -1.0, "department B": 0.5}), synthetic({"women": 0.7}), synthetic(lines)]


def test_counts_have_the_published_margins():
    table = np.array(admissions.COUNTS)
    assert table.shape == (2, 2, 6)
    assert table.sum() == 4_526
    assert table.sum(axis=2).tolist() == [[1_198, 1_493], [557, 1_278]]
    assert np.reshape(titanic.COUNTS, (2, 2)).sum(axis=0).tolist() == [1_490, 711]
    assert sum(titanic.COUNTS) == 2_201


def test_patients_are_within_the_public_bounds():
    bmi, score = diabetes.load()
    assert len(bmi) == len(score) == 442
    for column, (low, high) in ((bmi, diabetes.BMI_BOUNDS), (score, diabetes.SCORE_BOUNDS)):
        assert low < np.min(column) < np.max(column) < high
        rescaled = diabetes.rescale(column, (low, high))
        np.testing.assert_allclose((rescaled + 1) / 2 * (high - low) + low, column, rtol=1e-5)


def test_departments_and_survival_are_read_in_the_right_order():
    table = np.array(admissions.COUNTS, float)
    expected = np.log(table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0]))
    np.testing.assert_allclose(admissions.log_odds_ratios(table.reshape(1, -1) / table.sum())[0], expected)
    model = dpjax.models.categorical(jnp.ones(24), shape=table.shape)
    reported = model.derived({"probabilities": jnp.asarray(table.ravel() / table.sum())})["log_odds_ratio"]
    np.testing.assert_allclose(reported, expected, rtol=1e-4)
    shares = titanic.survival(np.array(titanic.COUNTS) / sum(titanic.COUNTS))
    assert shares == pytest.approx({"women": 344 / 470, "men": 367 / 1_731})


def test_tables_are_drawn_from_the_dirichlet_posterior():
    counts = jnp.array([30.0, -4.0, 5.0])
    draws = draw_tables(np.random.default_rng(1), counts)
    alpha = np.array([31.0, 1.0, 6.0])
    mean = alpha / alpha.sum()
    error = np.sqrt(mean * (1 - mean) / (alpha.sum() + 1) / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < MAX_DEVIATION * error)


def test_regressions_are_drawn_from_the_posterior_that_the_model_has_given_the_records():
    bmi, score = diabetes.load()
    x, y = diabetes.rescale(bmi, diabetes.BMI_BOUNDS), diabetes.rescale(score, diabetes.SCORE_BOUNDS)
    moments = diabetes.sum_up(dpjax.statistics.gram([-1], [1], response=(-1, 1)), {"x": x[:, None], "y": y})
    coef, variance = diabetes.draw_given_moments(np.random.default_rng(1), moments, len(y))
    settings = (diabetes.PRIOR_PRECISION, diabetes.PRIOR_SHAPE, diabetes.PRIOR_SCALE)
    exact = NormalInverseGammaPrior(0.0, *settings).posterior(jnp.stack([jnp.ones_like(x), x]), y)
    coef_error = np.std(coef, axis=0) / np.sqrt(len(coef))
    variance_error = np.std(variance) / np.sqrt(len(variance))
    assert np.all(np.abs(np.mean(coef, axis=0) - exact.mean) < MAX_DEVIATION * coef_error)
    assert abs(np.mean(variance) - exact.scale / (exact.shape - 1)) < MAX_DEVIATION * variance_error


def test_answers_are_in_the_units_of_the_data():
    bmi, score = diabetes.load()
    slope, intercept = np.polyfit(bmi, score, 1)
    x, y = diabetes.rescale(bmi, diabetes.BMI_BOUNDS), diabetes.rescale(score, diabetes.SCORE_BOUNDS)
    rescaled = np.polyfit(x, y, 1)[::-1]
    level, steepness, residual = diabetes.to_units(rescaled, np.var(score) / 180**2).values()
    assert [level, steepness] == pytest.approx([intercept + 25 * slope, slope], rel=1e-4)
    assert residual == pytest.approx(np.std(score))


def test_table_is_aligned_and_complete(comparisons):
    title, header, *rows, convergence = str(comparisons[0]).splitlines()
    assert title == "  some unit: mean and 95 % interval"
    assert header.split() == ["non-private", "naive", "dpjax"]
    assert {len(row) for row in rows} == {len(header)}
    assert re.fullmatch(r"  R-hat is at most 1\.\d{3}, the effective sample size at least [\d,]+\.", convergence)


def test_draws_are_described_by_mean_and_interval():
    assert describe_draws(np.linspace(0.0, 1.0, 1_001)) == "0.50 [0.03, 0.97]"


def test_main_prints_all_and_saves_the_figure(comparisons, monkeypatch, tmp_path, capsys):
    for module, comparison in zip((admissions, titanic, diabetes), comparisons, strict=True):
        monkeypatch.setattr(module, "compare", lambda key, random, comparison=comparison: comparison)
    dpjax.demo.main(tmp_path / "new")
    for name in ("demo.png", "demo-upright.png"):
        assert (tmp_path / "new" / name).read_bytes().startswith(PNG_HEADER)
    printed = capsys.readouterr().out
    assert all(str(comparison) in printed for comparison in comparisons)
    assert str(tmp_path / "new/demo.png") in printed


def test_figure_has_a_panel_for_each_comparison(comparisons):
    figure = draw(comparisons)
    assert [axes.get_title() for axes in figure.axes] == ["A title"] * 3
    assert len(figure.legends) == 1


@pytest.mark.parametrize(("module", "extra"), [("matplotlib", "plots"), ("sklearn", "data")])
def test_missing_library_is_named_with_its_extra(module, extra, monkeypatch, tmp_path):
    monkeypatch.setattr(dpjax.demo, "find_spec", lambda name: None if name == module else object())
    with pytest.raises(ImportError, match=rf"^{module}: not installed; .*`{extra}`.*pip install"):
        dpjax.demo.main(tmp_path)


@pytest.mark.slow
def test_chains_of_the_demo_converge():
    keys, random = jax.random.split(jax.random.key(dpjax.demo.SEED), 3), np.random.default_rng(dpjax.demo.SEED)
    for compare, key in zip((admissions.compare, titanic.compare, diabetes.compare), keys, strict=True):
        for name, draws in compare(key, random).dpjax.items():
            assert diagnostics.split_r_hat(draws) < 1.01, name
            assert diagnostics.ess_bulk(draws) > 400, name
