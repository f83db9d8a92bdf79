"""Fits of diffprivlib, as record_diffprivlib.py wrote them, follow the density that their readers assign."""

import json
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import dpjax
from dpjax.adapters import diffprivlib
from dpjax.adapters.diffprivlib.models import objective_law

X64 = jax.config.jax_enable_x64


FILED = json.loads(Path(__file__).with_name("diffprivlib.json").read_text())


X, CLASS = np.array(FILED["x"]), np.array(FILED["y"])


N = len(X)


MIN_P, MAX_P = 1e-3, 1e-4
"""Probabilities above which the law passes, and below which a wrong one must lie."""


COUNTED = dpjax.statistics.total("counted", 0, 1)


def linear_terms(name: str, fit: int, penalties: np.ndarray, norm: float = 1.5) -> np.ndarray:
    """The b [m, d] with which recorded coefficients are those that minimise, by the textbook's gradient."""
    filed = FILED[name]
    coef = np.array(filed["draws"])[:, fit]
    design = np.c_[np.ones(N), X / np.maximum(1, np.linalg.norm(X, axis=1) / norm)[:, None]]
    response = fit == CLASS if len(filed["classes_"]) == 3 else CLASS > 0
    gradient = (special.expit(coef @ design.T) - response) @ design + penalties * coef
    return -gradient if filed["fit_intercept"] else -gradient[:, 1:]


def lowest_p(terms: np.ndarray, scale: float) -> float:
    """Of the norm of b being a Gamma, and each part of its direction being that of a uniform direction."""
    size = terms.shape[1]
    norms = np.linalg.norm(terms, axis=1)
    parts = (terms.T / norms + 1) / 2
    law = stats.beta((size - 1) / 2, (size - 1) / 2)
    return min(
        [stats.kstest(norms / scale, "gamma", args=(size,)).pvalue, *(stats.kstest(p, law.cdf).pvalue for p in parts)]
    )


def mechanisms_of(release: dpjax.Release) -> list[dpjax.Mechanism]:
    """Those of the fits, one for each."""
    parts = getattr(release.mechanism, "mechanisms", [release.mechanism])
    return [getattr(part, "drawn", part) for part in parts]


def penalties_of(mechanism: dpjax.Mechanism) -> np.ndarray:
    """The penalties of intercept and slopes."""
    found = np.asarray(mechanism.regularization, float)
    return found if found.size == 3 else np.r_[0.0, found]


@pytest.mark.parametrize("name", ["two_classes", "small_epsilon", "three_classes"])
def test_the_linear_terms_of_fits_follow_the_density(name):
    mechanisms = mechanisms_of(diffprivlib.read_model(FILED[name], n=N))
    assert len(mechanisms) == len(FILED[name]["coef_"])
    for fit, mechanism in enumerate(mechanisms):
        terms = linear_terms(name, fit, penalties_of(mechanism))
        assert lowest_p(terms, float(mechanism.linear_term.scale)) > MIN_P


@pytest.mark.parametrize("wrong", ["scale without intercept", "no added penalty", "budget not split", "other norm"])
def test_the_linear_terms_do_not_follow_a_wrong_law(wrong):
    name = {"no added penalty": "small_epsilon", "budget not split": "three_classes"}.get(wrong, "two_classes")
    mechanism = mechanisms_of(diffprivlib.read_model(FILED[name], n=N))[0]
    scale, penalties, norm = float(mechanism.linear_term.scale), penalties_of(mechanism), 1.5
    if wrong == "scale without intercept":
        scale = objective_law(2.0, 1.5, 1.0, intercept=False).scale
    elif wrong == "no added penalty":
        penalties = np.array([0.0, 1.0, 1.0])
    elif wrong == "budget not split":
        scale = objective_law(6.0, 1.5, 1.0, intercept=False).scale
    else:
        norm = 0.3
    assert lowest_p(linear_terms(name, 0, penalties, norm), scale) < MAX_P


@pytest.mark.parametrize("name", ["two_classes", "small_epsilon"])
def test_the_density_of_a_fit_is_that_of_the_textbook(name):
    filed = FILED[name]
    release = diffprivlib.read_model(object_of(filed), n=N)
    records = {"x": jnp.asarray(X), "y": jnp.asarray(CLASS > 0, int)}
    total = release.total(records)
    theta = np.r_[filed["intercept_"], filed["coef_"][0]]
    design = np.c_[np.ones(N), X / np.maximum(1, np.linalg.norm(X, axis=1) / 1.5)[:, None]]
    norm, chance = np.sqrt(1.5**2 + 1), special.expit(design @ theta)
    left = filed["epsilon"] - 2 * np.log(1 + norm / 4)
    extra = 0.0 if left > 0 else norm / 4 / np.expm1(filed["epsilon"] / 4) - 1
    rate = (left if left > 0 else filed["epsilon"] / 2) / (2 * norm)
    penalty = np.array([0.0, 1, 1]) + extra
    size = np.linalg.norm(design.T @ (chance - (CLASS > 0)) + penalty * theta)
    hessian = (design.T * chance * (1 - chance)) @ design + np.diag(penalty)
    expected = -rate * size + 3 * np.log(rate) - np.log(8 * np.pi) + np.linalg.slogdet(hessian)[1]
    found = float(release.mechanism.log_density(release.value, total))
    np.testing.assert_allclose(found, expected, rtol=1e-10 if X64 else 1e-5)


class LogisticRegression(SimpleNamespace):
    """A fitted object that has its attributes."""


def object_of(filed: dict) -> LogisticRegression:
    """The fitted object of what was filed."""
    return LogisticRegression(
        **{name: np.asarray(part) if isinstance(part, list) else part for name, part in filed.items()}
    )


FITTED = {name: part for name, part in FILED["two_classes"].items() if name != "draws"}


GOOD = {"field": "y", "epsilon": 1.0, "n": 20}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: diffprivlib.read_mean(0.5, None, **GOOD), ValueError, "bounds taken from the records"),
        (lambda: diffprivlib.read_mean(0.5, (1, 0), **GOOD), ValueError, "two increasing numbers"),
        (lambda: diffprivlib.read_mean(1.5, (0, 1), **GOOD), ValueError, "clamped"),
        (lambda: diffprivlib.read_mean(np.nan, (0, 1), **GOOD), ValueError, "NaN says nothing"),
        (lambda: diffprivlib.read_mean(0.5, (0, 1), **GOOD | {"n": 20.0}), TypeError, "whole number"),
        (lambda: diffprivlib.read_mean(0.5, (0, 1), **GOOD | {"epsilon": 0.0}), ValueError, "epsilon"),
        (lambda: diffprivlib.read_sum(3, (0, 0.5), integer=True, **GOOD), ValueError, "no dtype=int"),
        (lambda: diffprivlib.read_count(21, COUNTED, epsilon=1.0, n=20), ValueError, "clamped"),
        (lambda: diffprivlib.read_histogram([0.2, 0.8], [0, 1, 2], **GOOD), ValueError, "without density"),
        (lambda: diffprivlib.read_histogram([2, 8, 1], [0, 1, 2], **GOOD), ValueError, "one a bin"),
        (lambda: diffprivlib.read_histogram([2, 8], [0, 1, 1], **GOOD), ValueError, "increasing"),
        (
            lambda: diffprivlib.read_quantile([1, 2], [0.2, 0.8], (0, 9), num_bins=9, **GOOD),
            ValueError,
            "several quantiles one by one",
        ),
        (lambda: diffprivlib.read_model({"model": "GaussianNB"}, n=20), ValueError, "noisy class counts"),
        (lambda: diffprivlib.read_model({"model": "LinearRegression"}, n=20), ValueError, "polynomial"),
        (lambda: diffprivlib.read_model({"coef_": [[1.0]]}, n=20), TypeError, "without model"),
        (lambda: diffprivlib.read_model(3.0, n=20), TypeError, "given 3.0"),
        (lambda: diffprivlib.read_model(LogisticRegression(C=1.0), n=20), ValueError, "Call fit"),
        (lambda: diffprivlib.read_model(FITTED | {"n_iter_": [1000]}, n=20), ValueError, "larger max_iter"),
        (lambda: diffprivlib.read_model(FITTED | {"C": -1.0}, n=20), ValueError, "fitted.C"),
        (lambda: diffprivlib.read_model(FITTED | {"classes_": [0, 1, 2]}, n=20), ValueError, "One row for each fit"),
    ],
)
def test_what_cannot_be_read_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_coarse_tolerance_is_warned_of():
    with pytest.warns(UserWarning, match="smaller tol"):
        diffprivlib.read_model(FITTED | {"tol": 1e-2}, n=2_000)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of SciPy, which the library calls
def test_objects_of_the_library_itself_are_read():
    """A fit with the seed of the one on file gives the same release."""
    library = pytest.importorskip("diffprivlib.models")
    fitted = library.LogisticRegression(epsilon=2.0, data_norm=1.5, tol=1e-8, max_iter=1000, random_state=0)
    release = diffprivlib.read_model(fitted.fit(X, CLASS > 0), n=N)
    filed = diffprivlib.read_model(FITTED, n=N)
    np.testing.assert_allclose(release.value, filed.value, atol=1e-5)
    assert release.mechanism.linear_term == filed.mechanism.linear_term
