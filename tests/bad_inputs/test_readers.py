"""Bad files, texts and results of other tools: what a reader once let through, or failed on with a raw error."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpjax
from dpjax import private, statistics
from dpjax.adapters import census, diffprivlib, dppack, opendp, pageviews, pipelinedp, tumult
from dpjax.private.accounting.ledger_file import checksum

TOTAL = statistics.total("y", 0.0, 1.0)
TEXT = dpjax.Release([1.0], dpjax.Laplace(1.0), TOTAL, 5).to_json()
LEDGER = json.loads(private.Ledger(private.Budget(1.0, 1e-6, "replace-one")).to_json())
REGRESSION = {
    "model": "LogisticRegression",
    "classes_": [0, 1],
    "coef_": [[0.875]],
    "intercept_": [0.125],
    "epsilon": 2.0,
    "data_norm": 1.0,
    "C": 1.0,
    "fit_intercept": True,
    "tol": 1e-4,
    "n_iter_": [7],
    "max_iter": 100,
}
FITTED = {"model": "LogisticRegressionDP", "coeff": [0.5, -1.0], "eps": 1.0, "gamma": 1.0}
FITTED["perturbation.method"] = "objective"
SEX = {"sex": 2}

Case = tuple[Callable[[], Any], str]


def measured(kind: Any) -> Callable[[], Any]:
    domain = {"__function__": "atom_domain", "__kwargs__": {"T": kind}}
    built = {"__function__": "make_laplace", "__kwargs__": {"scale": 1.0, "input_domain": domain}}
    return lambda: opendp.mechanism_from_opendp(built)


def regression(part: str, value: Any) -> Callable[[], Any]:
    return lambda: diffprivlib.read_model({**REGRESSION, part: value}, n=500)


def fitted(part: str, value: Any) -> Callable[[], Any]:
    return lambda: dppack.read_model({**FITTED, part: value}, [-1, 0], [1, 4], n=500)


def text_with(part: str, value: Any) -> Callable[[], Any]:
    return lambda: dpjax.from_json(json.dumps({**json.loads(TEXT), part: value}))


def ledger_with(part: str, value: Any) -> Callable[[], Any]:
    """The reading of a ledger with a part replaced, and the checksum of that."""
    content = {**LEDGER, part: value}
    del content["sha256"]
    return lambda: private.Ledger.from_json(json.dumps(content | {"sha256": checksum(content)}))


def histogram(breaks: Any) -> Callable[[], Any]:
    return lambda: dppack.read_histogram({"breaks": breaks, "counts": [1]}, field="y", eps=1.0, n=5)


def quantile(bins: int) -> Callable[[], Any]:
    return lambda: tumult.read_quantile(41.3, 0.5, 0, 100, field="y", n=9, num_bins=bins, epsilon=1.0)


CASES: dict[str, Case] = {
    "OpenDP: a type that is a list": (measured(["f64"]), "measurement"),
    "OpenDP: a type of texts": (measured("String"), "measurement"),
    "OpenDP: a category twice": (
        lambda: opendp.mechanism_from_opendp(
            {"__function__": "make_randomized_response", "__kwargs__": {"prob": 0.7, "categories": ["a", "a"]}}
        ),
        "measurement",
    ),
    "Tumult: bins beyond any memory": (quantile(10**12), "num_bins"),
    "PipelineDP: bounds that are true and false": (
        lambda: pipelinedp.centred_sum(2.5, 40.3, (False, True)),
        "bounds",
    ),
    "PipelineDP: two means and three counts": (
        lambda: pipelinedp.centred_sum([1.0, 2.0], [1.0, 2.0, 3.0], (0.0, 4.0)),
        "mean, count",
    ),
    "diffprivlib: an epsilon at the start of floats": (
        lambda: diffprivlib.read_var(0.5, (0.0, 1.0), field="y", epsilon=1e-320, n=20),
        "epsilon",
    ),
    "diffprivlib: a deviation whose square is no float": (
        lambda: diffprivlib.read_std(1e308, (0.0, 1.0), field="y", epsilon=1.0, n=9),
        "value",
    ),
    "DPpack: a deviation whose square is no float": (
        lambda: dppack.read_sd(1e308, (0.0, 1.0), field="y", eps=1.0, n=9),
        "value",
    ),
    **{
        f"{reader.__module__}.{reader.__name__} of {value!r}": (
            lambda reader=reader, value=value, name=name: reader(value, (0.0, 1.0), field="y", n=9, **{name: 1.0}),
            "value",
        )
        for module, name, readers in (
            (diffprivlib, "epsilon", ("read_mean", "read_sum", "read_var", "read_std")),
            (dppack, "eps", ("read_mean", "read_var", "read_sd")),
        )
        for reader in (getattr(module, each) for each in readers)
        for value in (False, range(2), {0.5}, np.array([True]), [0.5])
    },
    **{
        f"diffprivlib: {part} {value!r}": (regression(part, value), name)
        for part, value, name in (
            ("classes_", 5, "fitted.classes_"),
            ("classes_", "ab", "fitted.classes_"),
            ("classes_", [0], "fitted.classes_"),
            ("coef_", [[1.0], [1.0, 2.0]], "fitted.coef_"),
            ("coef_", [[]], "fitted.coef_"),
            ("data_norm", 1e308, "fitted.data_norm"),
            ("C", 1e308, "fitted.C"),
            ("n_iter_", "x", "fitted.n_iter_"),
            ("n_iter_", [], "fitted.n_iter_"),
            ("n_iter_", [np.nan], "fitted.n_iter_"),
            ("max_iter", "x", "fitted.max_iter"),
            ("fit_intercept", "yes", "fitted.fit_intercept"),
            ("model", ["LogisticRegression"], "fitted"),
        )
    },
    "diffprivlib: a response that is its covariate": (
        lambda: diffprivlib.read_model(REGRESSION, n=500, covariates="x", response="x"),
        "response",
    ),
    **{
        f"DPpack: {part} {value!r}": (fitted(part, value), name)
        for part, value, name in (
            ("coeff", "x", "fitted.coeff"),
            ("coeff", [[1.0], [1.0, 2.0]], "fitted.coeff"),
            ("coeff", {"a": 1.0}, "fitted.coeff"),
            ("perturbation.method", [], "fitted"),
            ("model", ["LogisticRegressionDP"], "fitted"),
        )
    },
    "DPpack: no breaks": (histogram(None), "breaks"),
    "DPpack: a number of breaks": (histogram(5), "breaks"),
    "DPpack: a field twice": (lambda: dppack.read_table([[1, 2], [3, 4]], ("a", "a"), eps=1.0, n=9), "field"),
    "DPpack: counts that are true": (lambda: dppack.read_table([True, False], "a", eps=1.0, n=9), "counts"),
    **{
        f"JSON: {part} {value!r}": (text_with(part, value), part)
        for part, value in (("version", True), ("units", 5), ("units", {}), ("metadata", []), ("metadata", "x"))
    },
    "names under noise on numbers": (
        lambda: dpjax.LocalRelease(["a", "b"], dpjax.Gaussian(1.0), "y", levels=["a", "b"]),
        "levels",
    ),
    **{
        f"a ledger with {part} {value!r}": (ledger_with(part, value), "ledger")
        for part, value in (
            ("keys", {"a": ["x", "y"]}),
            ("parts", {"a": "x"}),
            ("charges", {"a": "x"}),
            ("charges", {"a": -1}),
        )
    },
    "more step sizes than a device holds": (
        lambda: private.halton_steps(1.0, low=0.5, high=1.5, length=10**13, rng=np.random.default_rng(0)),
        "length",
    ),
    "categories beyond any memory": (
        lambda: dpjax.releases.quantile(1, 0.5, candidates=10**13, field="y", n=10, epsilon=1.0),
        "candidates",
    ),
    "a Langevin step that underflows": (lambda: private.largest_langevin_noise(1e300, 1e300, 1e300), "step_size"),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused(refused, case):
    refused(*CASES[case])


@pytest.mark.parametrize(
    ("content", "options", "argument"),
    [
        ("1,120\n", {"columns": ["page_id", "page_id"]}, "columns"),
        ('1,"120\n', {}, "path"),
    ],
    ids=["a column twice", "a quote that is not closed"],
)
def test_a_table_of_counts_is_refused(refused, tmp_path: Path, content, options, argument):
    path = tmp_path / "counts.csv"
    path.write_text("page_id,private_count\n" + content)
    known = {"mechanism": dpjax.DiscreteLaplace(1.0), "threshold": 90, "keys": 5, "n": 300, "columns": ["page_id"]}
    refused(lambda: pageviews.read_thresholded_counts(path, **known | options), argument)


ROWS = {
    "a value that is a number": ({"value": 9.0}, "path"),
    "a variance that is a list": ({"variance": [1.0]}, "variance"),
    "a shape that is a number": ({"query_shape": 2}, "path"),
    "a sign that is a list": ({"sign": ["="]}, "path"),
    "no geocode": ({"geocode": ""}, "path"),
}

HISTOGRAMS = {
    "a list of attributes": census.Histogram(["sex"], {}),  # type: ignore[arg-type]
    "a size that is a text": census.Histogram({"sex": "2"}, {}),  # type: ignore[dict-item]
    "no category": census.Histogram({"sex": 0}, {}),
    "no codings": census.Histogram(SEX, None),  # type: ignore[arg-type]
    "a coding of no attribute": census.Histogram(SEX, {"half": ("age", (0, 1))}),
    "a coding of too few": census.Histogram(SEX, {"half": ("sex", (0,))}),
    "a coding without groups": census.Histogram(SEX, {"half": ("sex", (-1, -1))}),
}


@pytest.mark.parametrize("case", [*ROWS, *HISTOGRAMS])
def test_noisy_measurements_are_refused(refused, tmp_path: Path, case: str):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    changes, argument = ROWS.get(case, ({}, "histogram"))
    row = {"geocode": "11", "query_name": "sex", "query_shape": [2], "value": [9.0, 12.0], "variance": 2.5}
    path = tmp_path / "noisy.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([row | changes]), path)
    table = HISTOGRAMS.get(case, census.Histogram(SEX, {}))
    refused(lambda: census.read_noisy_measurements(path, histogram=table, n=20), argument)
