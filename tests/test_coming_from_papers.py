"""The page for owners of the papers' scripts: its code is right about their conventions."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "coming-from" / "papers.md").read_text()
CODE = compile("\n".join(re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)), "papers", "exec")


def defined_without_sampling(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the page's code defines but for its draws."""
    monkeypatch.setattr(dpjax, "sample", lambda *_, **__: SimpleNamespace())
    names: dict[str, Any] = {"__name__": "papers"}
    exec(CODE, names)
    return names


def test_the_sums_of_the_regression_script_are_in_our_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """x'y, y'y and x'x of clamped data, as the script forms them from a design with a column of ones."""
    names = defined_without_sampling(monkeypatch)
    rng = np.random.default_rng(3)
    x, y = rng.normal(0, 8, (20, 2)), rng.normal(0, 8, 20)
    design = np.column_stack([np.ones(20), np.clip(x, -10, 10) / 10])
    response = np.clip(y, -10, 10) / 10
    theirs = names["released"](design.T @ response, response @ response, design.T @ design)
    ours = jnp.sum(jax.vmap(names["products"])({"x": jnp.asarray(x), "y": jnp.asarray(y)}), axis=0)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert names["products"].sensitivity(1, "replace-one") == pytest.approx(9.375)
    assert names["release"].value.shape == theirs.shape


def test_the_counts_of_the_log_linear_script_are_in_our_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of class i whose feature k has level j adds to row j, column i of matrix k."""
    names = defined_without_sampling(monkeypatch)
    counted = np.zeros(np.shape(names["mijk"]))
    label, levels = 1, (0, 1, 1)
    for feature, level in enumerate(levels):
        counted[feature, level, label] += 1
    ours = names["features"]({"class": jnp.asarray(label), "features": jnp.asarray(levels)})
    np.testing.assert_array_equal(ours, counted.ravel())


def test_what_the_page_names_in_backticks_is_there() -> None:
    for name in re.findall(r"`(?:dpjax\.)?(private|coupling|mixture)\.(\w+)", TEXT):
        assert hasattr(getattr(dpjax, name[0]), name[1]), name


@pytest.mark.slow
def test_the_page_samples() -> None:
    names: dict[str, Any] = {"__name__": "papers"}
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        exec(CODE, names)
    assert names["regression"].draws["coef"].shape == (4, 500, 3)
    assert np.all(np.isfinite(names["log_linear"].draws["class_probabilities"]))
