"""Bad inputs of one function: numbers at the ends of floats, texts, tables and files."""

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import private, statistics
from dpjax.adapters import census, opendp, pageviews, tumult
from dpjax.private import accounting, noise
from dpjax.runtime.checkpoint import CheckpointFile

BUDGET = private.Budget(1.0, 1e-6, "replace-one")
QUERY = private.Query("sum", 10.0, "secure")
TOTAL = statistics.total("y", 0, 1)
TEXT = dpjax.Release([1.0], dpjax.Laplace(1.0, privacy=dpjax.Privacy("pure", "replace-one", 1.0)), TOTAL, 5).to_json()
DIGITS = "1" * 5_000
FAR = 10**400
SMALLEST, LARGEST = (float(getattr(jnp.finfo(jnp.result_type(float)), name)) for name in ("tiny", "max"))


class Frame:
    """A table of one column, as pandas has it."""

    columns = ("y",)

    def __init__(self, values: Any) -> None:
        self.values = values

    def __getitem__(self, name: str) -> "Frame":
        return self

    def to_numpy(self) -> Any:
        return self.values

    def __array__(self, *options: Any, **keywords: Any) -> Any:
        return self.values


def ledger() -> private.Ledger:
    return private.Ledger(BUDGET)


def release(records: Any, **options: Any) -> dpjax.Release:
    source = noise.Secure(lambda size: bytes(size))
    return private.release(ledger(), TOTAL, records, people=None, noise=source, **options)


def published(tmp_path: Path, content: bytes, **options: Any) -> Any:
    path = tmp_path / "counts.csv"
    path.write_bytes(content)
    known: dict[str, Any] = {"mechanism": dpjax.DiscreteLaplace(1.0), "threshold": 1, "keys": 5, "n": 30}
    return pageviews.read_thresholded_counts(path, columns=["page_id"], **{**known, **options})


def published_at(path: Path) -> Any:
    return pageviews.read_thresholded_counts(
        path, mechanism=dpjax.DiscreteLaplace(1.0), threshold=1, keys=5, n=30, columns=["page_id"]
    )


def measured(tmp_path: Path, content: bytes | None = None, **changes: Any) -> Any:
    """The reading of a file of noisy measurements, of these bytes or of one row."""
    parquet = pytest.importorskip("pyarrow.parquet")
    row = {"geocode": "11", "query_name": "sex", "query_shape": [2], "value": [9.0, 12.0], "variance": 2.5}
    path = tmp_path / "noisy.parquet"
    if content is None:
        parquet.write_table(pytest.importorskip("pyarrow").Table.from_pylist([row, row | changes]), path)
    else:
        path.write_bytes(content)
    return census.read_noisy_measurements(path, histogram=census.Histogram({"sex": 2}, {}), n=20)


def edited(old: str, new: str) -> Callable[[], Any]:
    """The reading of a release's text in which something was replaced."""
    assert old in TEXT
    return lambda: dpjax.from_json(TEXT.replace(old, new, 1))


NUMBERS = {
    "times beyond floats": (lambda: ledger().charge([QUERY], times=FAR), "times"),
    "times of 5,000 digits": (lambda: ledger().charge([QUERY], times=10**5_000), "times"),
    "times that are true": (lambda: ledger().charge([QUERY], times=True), "times"),
    "a count beyond floats": (lambda: private.Query("sum", 10.0, "secure", count=FAR), "count"),
    "affordable numbers": (lambda: ledger().affordable([1.0]), "queries"),
    "iterations beyond floats": (lambda: accounting.mu(FAR, 1.0, 1.0, 1), "num_iterations"),
    "steps beyond floats": (lambda: accounting.mu(1, 1.0, 1.0, FAR), "num_leapfrog"),
    "runs beyond floats": (lambda: accounting.taus_for(1.0, 1e-6, FAR, 1, gradient_share=0.5), "num_iterations"),
    "noise of steps beyond floats": (
        lambda: accounting.taus_for(1.0, 1e-6, 1, FAR, gradient_share=0.5),
        "num_leapfrog",
    ),
    "epsilon at the end of floats": (lambda: dpjax.gaussian_scale(1e308, 1e-6, 1.0), "epsilon"),
    "epsilon that promises nothing": (lambda: dpjax.gaussian_scale(1e10, 1e-6, 1.0), "epsilon"),
    "epsilon at the start of floats": (lambda: dpjax.laplace_scale(1e-310, 1.0), "epsilon"),
    "sensitivity at the end of floats": (lambda: dpjax.laplace_scale(1e-5, 1e308), "sensitivity"),
    "sensitivity at the end of floats, Gaussian": (lambda: dpjax.gaussian_scale(1e-3, 1e-6, 1e308), "sensitivity"),
    "rho at the start of floats": (lambda: dpjax.zcdp_scale(1e-320, 1e200), "rho"),
    "a scale at the start of floats": (lambda: dpjax.mechanisms.zcdp_rho(1e-300, 1.0), "scale"),
    "a loss at the ends of floats": (lambda: accounting.log_delta(1e300, 1e-300), "epsilon"),
    "an epsilon of a loss at the end": (lambda: accounting.epsilon(1e-6, 1e300), "mu"),
    "an epsilon beyond what promises anything": (lambda: accounting.epsilon(1e-6, mu=1e9), "mu"),
    "a budget at the start of floats": (lambda: private.Budget(1e-320, 0.0, "replace-one"), "epsilon"),
    "a loss for an epsilon at the start": (lambda: accounting.largest_mu(1e-320, 1e-6), "epsilon"),
    "a statement at the start of floats": (lambda: dpjax.Privacy("pure", "replace-one", 1e-320), "epsilon"),
    "a choice by an epsilon at the start": (
        lambda: dpjax.ExponentialMechanism(dpjax.mechanisms.QuantileScores(0.5, 3), 1e-320, 1.0),
        "epsilon",
    ),
    "a point by an epsilon at the start": (
        lambda: dpjax.mechanisms.IntervalQuantile(0.5, 0.0, 1.0, 1e-320),
        "epsilon",
    ),
    "a true epsilon of Laplace noise": (lambda: dpjax.laplace_scale(True, 1.0), "epsilon"),
    "a true epsilon of NumPy": (lambda: dpjax.gaussian_scale(np.True_, 1e-6, 1.0), "epsilon"),
    "a true rho": (lambda: dpjax.zcdp_scale(True, 1.0), "rho"),
    "a true scale": (lambda: dpjax.Laplace(True), "scale"),
    "a true epsilon of a choice": (
        lambda: dpjax.ExponentialMechanism(dpjax.mechanisms.QuantileScores(0.5, 3), True, 1.0),
        "epsilon",
    ),
    "more rows of a person than anybody has": (
        lambda: private.target(
            lambda at, record: jnp.zeros(()),
            lambda at: jnp.zeros(()),
            {"y": np.ones(3), "who": np.arange(3)},
            jnp.zeros(1),
            people="who",
            max_rows=10**12,
        ),
        "max_rows",
    ),
    "more rows of a person than anybody has, in a forecast": (
        lambda: private.design(
            jax.random.key(0), dpjax.models.categorical([1.0, 1.0]), TOTAL, BUDGET, 5, max_rows=10**12
        ),
        "max_rows",
    ),
    "a bound at the end of floats": (lambda: accounting.sensitivity(1.7e308, "replace-one"), "bound"),
    "noise at the end of floats": (lambda: accounting.max_iterations(1.0, 1e-6, 1e200, None, 1), "tau_l"),
    "noise at the start of floats": (lambda: accounting.mu(1, 1e-200, None, 1), "tau_l"),
    "a bound that float32 cannot square": (lambda: statistics.clipped(TOTAL, 2 * LARGEST**0.5), "bound"),
    "a bound whose square is zero": (lambda: statistics.clipped(TOTAL, SMALLEST**0.5 / 2), "bound"),
    "a scale that is no normal float": (lambda: dpjax.Gaussian(SMALLEST / 8), "scale"),
    "scales of which one is no normal float": (lambda: dpjax.Laplace([1.0, SMALLEST / 8]), "scale"),
    "a scale beyond the float type": (
        lambda: dpjax.DiscreteLaplace(2 * LARGEST if LARGEST < 1e300 else 10**309),
        "scale",
    ),
    "a privacy that is true": (lambda: dpjax.Privacy("pure", "replace-one", True), "epsilon"),
    "a norm that is true": (lambda: dpjax.Privacy("pure", "replace-one", 1.0, norm=True), "norm"),
    "a mean of n true": (lambda: statistics.mean("y", True, 0.0, 1.0), "n"),
    "a mean of n 1.0": (lambda: statistics.mean("y", 1.0, 0.0, 1.0), "n"),
    "a release of n true": (lambda: dpjax.Release([1.0], dpjax.Laplace(1.0), TOTAL, True), "n"),
    "a release of n 1.0": (lambda: dpjax.Release([1.0], dpjax.Laplace(1.0), TOTAL, 1.0), "n"),
    "a release of n 1.0 of NumPy": (lambda: dpjax.Release([1.0], dpjax.Laplace(1.0), TOTAL, np.float64(1.0)), "n"),
    "a confidential sum of n true": (lambda: release({"y": [0.5]}, n=True), "n"),
    "a confidential sum of n 1.0": (lambda: release({"y": [0.5]}, n=1.0), "n"),
}

TEXTS = {
    "deep nesting": (lambda: dpjax.from_json("[" * 100_000), "text"),
    "deep nesting in a release": (edited("[\n  1.0", "[" * 100_000), "text"),
    "a number of 5,000 digits": (edited('"n": 5', f'"n": {DIGITS}'), "text"),
    "a value of 5,000 digits": (edited("1.0", DIGITS), "text"),
    "a value beyond floats": (edited("1.0", "1e999"), "value"),
    "a name twice": (edited('"n": 5', '"n": 5, "n": 6'), "text"),
    "a name twice in a mechanism": (edited('"scale": 1.0', '"scale": 1.0, "scale": 2.0'), "text"),
    "a true epsilon": (edited('"epsilon": 1.0', '"epsilon": true'), "epsilon"),
    "a true n": (edited('"n": 5', '"n": true'), "n"),
    "n 5.0": (edited('"n": 5', '"n": 5.0'), "n"),
    "a null n": (edited('"n": 5', '"n": null'), "n"),
    "n beyond floats": (edited('"n": 5', f'"n": {FAR}'), "n"),
    "a notion that is a list": (edited('"pure"', '["pure"]'), "notion"),
    "neighbours that are null": (edited('"replace-one"', "null"), "neighbours"),
    "a mechanism that is null": (edited('"laplace"', "null"), "mechanism"),
    "a cut text": (lambda: dpjax.from_json(TEXT[:-20]), "text"),
    "a byte-order mark": (lambda: dpjax.from_json("\ufeff" + TEXT), "text"),
    "bytes that are no UTF-8": (lambda: dpjax.from_json(b"\xff\xfe\x00"), "text"),
    "a ledger that is null": (lambda: private.Ledger.from_json("null"), "ledger"),
    "a ledger of deep nesting": (lambda: private.Ledger.from_json("[" * 100_000), "ledger"),
    "a ledger of 5,000 digits": (lambda: private.Ledger.from_json(f'{{"format": {DIGITS}}}'), "ledger"),
    "no ledger": (lambda: private.Ledger.from_json(None), "text"),
}

RECORDS = {
    "columns of unequal length": (lambda: release({"y": [0.1, 0.2], "z": [0.1]}), "records"),
    "an empty column beside one": (lambda: release({"y": [0.1], "z": []}), "records"),
    "no records": (lambda: release({"y": []}), "records"),
    "no fields": (lambda: release({}), "records"),
    "a field that is None": (lambda: release({"y": None}), "records"),
    "another field that is None": (lambda: release({"y": [0.1], "z": None}), "records"),
    "a number": (lambda: release({"y": 0.5}), "records"),
    "a field with a number for a name": (lambda: release({0: [0.5]}), "records"),
    "keys": (lambda: release({"y": jax.random.split(jax.random.key(0), 2)}), "records"),
    "traced": (lambda: jax.jit(lambda y: release({"y": y}).value)(jnp.ones(2)), "records"),
    "objects in a table": (lambda: release(Frame(np.array([0.5, None]))), "records"),
    "ragged in a table": (lambda: release(Frame(np.array([[1], [1, 2]], object))), "records"),
    "dates": (lambda: release({"y": np.array(["2020-01-01"], "datetime64[D]")}), "records"),
    "a target of a table": (lambda: target(Frame(np.ones(2))), "records"),
    "a target of None": (lambda: target({"y": None}), "records"),
    "a target of a field of None": (lambda: target({"y": np.ones(2), "z": None}), "records"),
    "a target of ragged rows": (lambda: target({"y": [[1.0], [1.0, 2.0]]}), "records"),
    "a target of keys": (lambda: target(jax.random.split(jax.random.key(0), 2)), "records"),
    "a release checked against None": (
        lambda: dpjax.Release([1.0], dpjax.Laplace(1.0), TOTAL, 1).check_records({"y": None}),
        "records",
    ),
}


def target(records: Any) -> private.Target:
    return private.target(lambda at, record: jnp.zeros(()), lambda at: jnp.zeros(()), records, jnp.zeros(1))


FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "CSV that is not UTF-8": (lambda at: published(at, b"page_id,private_count\n\xff\xfe,12\n"), "path"),
    "CSV with NUL": (lambda at: published(at, b"page_id,private_count\na\x00,12\n1,x\n"), "path"),
    "a field of 200 kB": (lambda at: published(at, b"page_id,private_count\n" + b"1" * 200_000 + b",5\n"), "path"),
    "a delimiter of two characters": (lambda at: published(at, b"page_id", delimiter=";;"), "delimiter"),
    "no delimiter": (lambda at: published(at, b"page_id", delimiter=""), "delimiter"),
    "a line end as delimiter": (lambda at: published(at, b"page_id", delimiter="\n"), "delimiter"),
    "an empty CSV": (lambda at: published(at, b""), "path"),
    "a short line": (lambda at: published(at, b"page_id,private_count\n1\n"), "path"),
    "a short line without its key": (lambda at: published(at, b"private_count,page_id\n12\n"), "path"),
    "a line with more than the header": (lambda at: published(at, b"page_id,private_count\n1,12,7\n"), "path"),
    "a column twice": (lambda at: published(at, b"page_id,page_id,private_count\n1,2,12\n"), "path"),
    "a count as Python writes it": (lambda at: published(at, b"page_id,private_count\n1,1_2\n"), "path"),
    "a threshold below 0": (lambda at: published(at, b"page_id,private_count\n1,12\n", threshold=-1), "threshold"),
    "a threshold of 0": (lambda at: published(at, b"page_id,private_count\n1,12\n", threshold=0), "threshold"),
    "a threshold between whole numbers": (
        lambda at: published(at, b"page_id,private_count\n1,120\n", threshold=90.5),
        "threshold",
    ),
    "a name of counts with NUL": (
        lambda at: published_at(at / "a\0b"),
        "path",
    ),
    "a name with NUL to load": (lambda at: dpjax.load(str(at / "a\0b")), "path"),
    "a count that is NaN": (lambda at: published(at, b"page_id,private_count\n1,nan\n"), "values"),
    "a folder of counts": (
        lambda at: pageviews.read_thresholded_counts(at, mechanism=None, threshold=1, keys=5, n=1),
        "path",
    ),
    "a Parquet file of garbage": (lambda at: measured(at, b"PAR1" + bytes(100) + b"PAR1"), "path"),
    "an empty Parquet file": (lambda at: measured(at, b""), "path"),
    "a cut Parquet file": (lambda at: measured(at, b"PAR1"), "path"),
    "a null query name": (lambda at: measured(at, query_name=None), "path"),
    "a null value": (lambda at: measured(at, value=None), "path"),
    "a null variance": (lambda at: measured(at, variance=None), "variance"),
    "a null shape": (lambda at: measured(at, query_shape=None), "path"),
    "a null geocode": (lambda at: measured(at, geocode=None), "path"),
    "a query of another table": (lambda at: measured(at, query_name="age"), "histogram"),
    "a folder to load": (lambda at: dpjax.load(at), "path"),
    "this folder to load": (lambda at: dpjax.load("."), "path"),
    "a name of 300 characters for a ledger": (lambda at: private.Ledger(BUDGET, at / ("a" * 300)), "path"),
    "a folder for a ledger": (lambda at: private.Ledger(BUDGET, at), "path"),
    "a name with NUL for a ledger": (lambda at: private.Ledger(BUDGET, str(at / "a\0b")), "path"),
    "a ledger in no folder": (lambda at: private.Ledger(BUDGET, at / "none" / "ledger.json"), "path"),
}


def measurement(name: Any, **arguments: Any) -> Any:
    return opendp.mechanism_from_opendp({"__function__": name, "__kwargs__": arguments})


def noise_of(mechanism: Any, parameter: Any) -> Any:
    return tumult.mechanism_from_tumult({"noise_mechanism": mechanism, "noise_parameter": parameter})


OTHERS = {
    "deep nesting of OpenDP": (lambda: opendp.mechanism_from_opendp("[" * 100_000), "measurement"),
    "OpenDP without arguments": (lambda: measurement("make_laplace"), "measurement"),
    "OpenDP with a list for a name": (lambda: measurement(["make_laplace"]), "measurement"),
    "OpenDP with arguments that are null": (
        lambda: opendp.mechanism_from_opendp('{"__function__": "make_laplace", "__kwargs__": null}'),
        "measurement",
    ),
    "OpenDP with a measure of another form": (
        lambda: measurement("make_noise", scale=1.0, input_domain="x", output_measure={"a": 1}),
        "measurement",
    ),
    "OpenDP without a probability": (lambda: measurement("make_randomized_response_bool"), "measurement"),
    "OpenDP with a number of categories": (
        lambda: measurement("make_randomized_response", prob=0.75, categories=3),
        "measurement",
    ),
    "OpenDP with a scale of 0": (lambda: measurement("make_geometric", scale=0), "measurement"),
    "OpenDP with a scale as text": (lambda: measurement("make_geometric", scale="1"), "measurement"),
    "OpenDP with a chain that ends nowhere": (lambda: measurement("make_chain_mt"), "measurement"),
    "OpenDP with a chain that does not end": (lambda: opendp.mechanism_from_opendp(endless()), "measurement"),
    "a list of Tumult for a name": (lambda: noise_of(["LAPLACE"], 1.0), "noise_mechanism"),
    "a parameter of Tumult that is true": (lambda: noise_of("LAPLACE", True), "noise_parameter"),
    "several parameters of Tumult": (lambda: noise_of("LAPLACE", [1.0, 2.0]), "noise_parameter"),
}


def endless() -> dict[str, Any]:
    """A chain that is its own first part."""
    chain: dict[str, Any] = {"__function__": "make_chain_mt"}
    chain["__kwargs__"] = {"measurement1": chain}
    return chain


CASES = NUMBERS | TEXTS | RECORDS | OTHERS


@pytest.mark.parametrize("case", CASES)
def test_is_refused(refused, case):
    refused(*CASES[case])


@pytest.mark.parametrize("case", FILES)
def test_a_file_is_refused(refused, case, tmp_path):
    call, argument = FILES[case]
    refused(lambda: call(tmp_path), argument)


@pytest.mark.parametrize("read", [dpjax.load, published_at], ids=["result", "CSV"])
def test_a_file_that_cannot_be_opened_is_named_in_an_error_of_the_system_s_type(read, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"path: given .*none', which cannot be opened .*; expected a file\. "):
        read(tmp_path / "none")


def test_what_a_stranger_s_file_unpacks_is_no_longer_than_the_file(refused, tmp_path):
    """A few kilobytes unpacked to as much as the machine had."""
    path, zeros = tmp_path / "bomb", np.zeros(1_000_000)
    np.savez_compressed(path.with_suffix(".npz"), result=zeros)
    refused(lambda: dpjax.load(path.with_suffix(".npz")), "path")
    with pytest.raises(ValueError, match="its arrays are longer than the file"):
        CheckpointFile(path.with_suffix(".npz"), {}).take_up(lambda *read: read)


def test_integer_noise_of_several_sources_is_described_on_sums_that_may_not_be_whole():
    """`min` of nothing was raised; one source says as much as the mechanism itself."""
    alone, sources = dpjax.DiscreteLaplace(3.0), dpjax.mechanisms.SumOf([dpjax.DiscreteLaplace(3.0)])
    told = [dpjax.describe(dpjax.Release([3.0], one, TOTAL, 5)).splitlines()[2:] for one in (alone, sources)]
    assert told[0] == told[1]
    assert "on whole-valued sums alone" in told[0][0]


def test_an_epsilon_up_to_the_largest_is_found():
    """It was sought beyond the largest of all, and refused."""
    found = accounting.epsilon(1e-6, mu=9e8)
    assert 9e8 < found <= 1e9
    assert accounting.log_delta(found, 9e8) == pytest.approx(np.log(1e-6), rel=1e-6)


def test_an_error_of_the_records_themselves_is_named_after_the_charge():
    """It told before how far the file was read. A KeyError of a generator was once taken for a missing field."""

    def batches() -> Iterator[dict[str, list[float]]]:
        yield {"y": [0.5]}
        raise KeyError("column")

    budget = ledger()
    with pytest.raises(ValueError, match=r"^records: given what raised KeyError .*was charged") as caught:
        private.release(budget, TOTAL, batches(), people=None, noise=noise.Secure(lambda size: bytes(size)))
    assert traceback.extract_tb(caught.value.__cause__.__traceback__)[-1].name == "batches"
    assert len(budget.queries) == 1
