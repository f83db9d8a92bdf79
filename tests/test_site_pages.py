"""The pages by which a reader enters run from top to bottom, as the guides do."""

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

import dpjax
from tests.tools.hooks import load_hook
from tests.tools.printed import run_checked

DOCS = Path(__file__).parents[1] / "docs"


def code_of(name: str) -> Any:
    """A page's code."""
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / name).read_text(), re.M | re.S)
    return compile("\n".join(blocks), name, "exec")


def run(name: str) -> dict[str, Any]:
    """What a page's code defines; it prints what is shown."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        return run_checked(DOCS / name)


def test_links_work_in_the_checkout():
    """Files that only the site has cannot be followed there."""
    root, missing = DOCS.parent, []
    for page in [*root.glob("*.md"), *DOCS.rglob("*.md")]:
        links = re.findall(r"(?:\]\(|src(?:set)?=\")([^)#\"\s]+)", page.read_text())
        missing += [f"{page}: {link}" for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_formulas_are_set_by_files_of_the_site():
    """By none of another server; browsers that read these formulas read fonts of this format."""
    named = re.findall(r"^  - (\S+\.(?:css|js))$", (DOCS.parent / "mkdocs.yml").read_text(), re.M)
    fonts = re.findall(r"url\((fonts/\S+?\.woff2)\)", (DOCS / "assets/katex/katex.min.css").read_text())
    files = [DOCS / name for name in named] + [DOCS / "assets/katex" / name for name in fonts]
    assert len(named) == 4
    assert [file for file in files if not file.exists()] == []


def test_indices_within_sentences_are_set():
    """Names with an underscore, code and tags stay as they are."""
    text = '<p title="x_i">x_i ~ N(θ_(c_i), e^(ε/2)), 2σ_k², r_hat, dp_hmc; <code>x_i</code></p>'
    assert load_hook("indices").on_page_content(text) == (
        '<p title="x_i">x<sub>i</sub> ~ N(θ<sub>c<sub>i</sub></sub>, e<sup>ε/2</sup>), 2σ<sub>k</sub>², '
        "r_hat, dp_hmc; <code>x_i</code></p>"
    )


def test_figures_are_links():
    """A figure can be enlarged on a telephone; thumbnails are links already."""
    html = '<p><img alt="A forest." src="figure-1.png" /></p>'
    assert load_hook("figures").on_page_content(html).startswith('<p><a class="figure" href="figure-1.png"><img ')
    card = '<p><a href="page/"><img src="thumbnail.png" /></a></p>'
    assert load_hook("figures").on_page_content(card) == card


def test_the_first_page_calls_what_there_is():
    """The wheel is tried with its code (.ci/smoke.py)."""
    assert {"Release", "DiscreteGaussian", "sample"} <= set(code_of("index.md").co_names) & set(dpjax.__all__)


def test_which_release(capsys):
    assert run("which-release.md")["together"].value.size == 6
    assert "a table of `cell` (4)" in capsys.readouterr().out


@pytest.mark.slow
def test_a_regression_from_a_formula():
    posterior = run("formulas.md")["posterior"]
    assert abs(posterior.draws["poverty"].mean() - 0.047) < 0.001
    assert next(name for name in posterior.summary() if name.startswith("1|region[")) == "1|region[centre]"


@pytest.mark.slow
def test_a_question_that_few_answer_openly():
    """The slope is what the answers were made with, and not that of the answers as they stand."""
    slope = run("domains.md")["posterior"].draws["decades"]
    assert np.quantile(slope, 0.025) < 0.5 < np.quantile(slope, 0.975)


@pytest.mark.slow
def test_fitted_models(capsys):
    posterior = run("fitted_model.md")["posterior"]
    assert abs(posterior.draws["coef"][..., 1].mean() - 0.92) < 0.1
    assert "2 coefficients fitted with penalties of 0, 1" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["opendp", "tumult", "diffprivlib", "dppack"])
def test_tools_that_release(name, capsys):
    run(f"coming-from/{name}.md")
    assert "If one record is added or removed" in capsys.readouterr().out


@pytest.mark.slow
def test_counts_of_least_squares_are_possible():
    counts = np.asarray(run("coming-from/least-squares.md")["counts"])
    assert counts.min() >= 0
    np.testing.assert_array_equal(counts[..., :2].sum(axis=-1), 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal-sums", "stan", "pipelinedp", "prio"])
def test_tools_that_infer(name):
    draws = run(f"coming-from/{name}.md")["posterior"].draws
    assert np.all(np.isfinite(next(iter(draws.values()))))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*effective sample size.*:UserWarning")
def test_calls_from_r_are_calls_of_python() -> None:
    """The only code of the pages that is in another language; vectors of R come as lists."""
    code = re.search(r"^```r\nlibrary\(reticulate\)\n(.*?)^```", (DOCS / "coming-from/r.md").read_text(), re.M | re.S)
    assert code is not None
    python = re.sub(r"^use_virtualenv.*\n", "", code[1], flags=re.M).replace("areas$published", "published")
    for r, its in [
        ("<-", "="),
        ("$", "."),
        ("FALSE", "False"),
        ("import(", "__import__("),
        ("1000L", "20"),
        ("1L", "1"),
    ]:
        python = python.replace(r, its)
    areas = {"region": ["a", "a", "b", "b"], "poverty": [5.0, 9.0, 7.0, 12.0], "population": [900, 800, 700, 600]}
    names: dict[str, Any] = {"__name__": "r", "areas": pd.DataFrame(areas), "published": [4.0, 7.0, 2.0, 9.0]}
    exec(python, names)
    assert names["fit"].draws["poverty"].shape == (4, 20)


@pytest.mark.slow
def test_a_file_of_counts_becomes_a_file_of_intervals():
    names = run("from-a-csv.md")
    lines = (names["folder"] / "results.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["quantity", "female", "male", "difference"]
    # The counts without their noise, whose standard deviation of 7 adds to that of the sample.
    np.testing.assert_allclose(names["smokers"].mean(axis=0), [41 / 244, 93 / 259], atol=0.05)


@pytest.mark.slow
def test_a_larger_budget_leaves_readers_a_narrower_posterior(capsys):
    names = run("before-releasing.md")
    assert names["widths"][1.0] < names["widths"][0.1]
    assert "ε = 1" in capsys.readouterr().out
