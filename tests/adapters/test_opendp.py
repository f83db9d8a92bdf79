"""Mechanisms as OpenDP says them: from texts on file, and from OpenDP itself."""

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.adapters.opendp import mechanism_from_opendp, read_quantile, selection_from_opendp

# What opendp.mod.serialize of version 0.16.0 makes of a vector measurement, shortened by its input metric and versions.
LAPLACE = """{"__function__": "make_laplace", "__module__": "measurements", "__kwargs__": {
"input_domain": {"__function__": "vector_domain", "__module__": "domains", "__kwargs__": {
"atom_domain": {"__function__": "atom_domain", "__kwargs__": {"bounds": null, "nan": false, "T": "f64"}}}},
"scale": 3.0, "k": null, "MO": "MaxDivergence"}}"""


def built(name: str, kind: str = "i32", **arguments: Any) -> dict[str, Any]:
    """How OpenDP describes a measurement of one number."""
    domain = {"__function__": "atom_domain", "__kwargs__": {"T": kind}}
    return {"__function__": name, "__kwargs__": {"input_domain": domain, **arguments}}


@pytest.mark.parametrize(
    ("measurement", "mechanism"),
    [
        (LAPLACE, dpjax.Laplace(3.0)),
        (LAPLACE.replace("f64", "i32"), dpjax.DiscreteLaplace(3.0)),
        (json.dumps(built("make_gaussian", "f64", scale=2.0)), dpjax.Gaussian(2.0)),
        (built("make_gaussian", "u8", scale=2.0, k=None), dpjax.DiscreteGaussian(2.0)),
        (built("make_geometric", scale=2.0, bounds=None), dpjax.DiscreteLaplace(2.0)),
        (built("make_noise", "f32", scale=2.0, output_measure="ZeroConcentratedDivergence"), dpjax.Gaussian(2.0)),
        (built("make_noise", scale=2.0, output_measure="MaxDivergence"), dpjax.DiscreteLaplace(2.0)),
        (built("make_randomized_response", categories=["a", "b"], prob=0.7), dpjax.RandomizedResponse(0.7, 2)),
        (
            {
                "__function__": "make_chain_mt",
                "__kwargs__": {"measurement1": built("make_laplace", scale=4.0), "transformation0": None},
            },
            dpjax.DiscreteLaplace(4.0),
        ),
    ],
)
def test_descriptions_of_opendp_are_read(measurement, mechanism):
    assert mechanism_from_opendp(measurement) == mechanism


@pytest.mark.parametrize(
    ("measurement", "error", "message"),
    [
        (built("make_chain_pm"), ValueError, "make_chain_pm"),
        (built("make_report_noisy_max", scale=1.0), ValueError, "make_report_noisy_max"),
        (built("make_geometric", scale=1.0, bounds=(0, 9)), ValueError, "within"),
        (built("make_laplace", "f64", scale=1.0, k=-2), ValueError, "spacing"),
        (built("make_noise", scale=1.0, output_measure="RenyiDivergence"), ValueError, "RenyiDivergence"),
        ("no JSON", TypeError, "no JSON"),
        (3.0, TypeError, "a measurement of OpenDP"),
    ],
)
def test_what_is_not_known_of_opendp_is_refused(measurement, error, message):
    with pytest.raises(error, match=message):
        mechanism_from_opendp(measurement)


def selection(name: str, **arguments: Any) -> dict[str, Any]:
    """How OpenDP describes a choice among candidates."""
    return {"__function__": name, "__kwargs__": {"scale": 4.0, **arguments}}


SCORES = dpjax.mechanisms.QuantileScores(0.5, 3)


def test_selections_of_opendp_are_read():
    found = selection_from_opendp(selection("make_noisy_max", output_measure="MaxDivergence", negate=False), SCORES)
    assert found == dpjax.PermuteAndFlip(SCORES, 0.5, 1.0)
    found = selection_from_opendp(selection("make_noisy_max", output_measure="ZeroConcentratedDivergence"), SCORES)
    assert found == dpjax.ExponentialMechanism(SCORES, 0.5, 1.0)
    found = selection_from_opendp(selection("make_report_noisy_max_gumbel", optimize="max"), SCORES)
    assert found == dpjax.ExponentialMechanism(SCORES, 0.5, 1.0)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: selection_from_opendp(LAPLACE, SCORES), "make_laplace"),
        (
            lambda: selection_from_opendp(
                selection("make_noisy_max", output_measure="MaxDivergence", negate=True), SCORES
            ),
            "the least score",
        ),
        (lambda: selection_from_opendp(selection("make_report_noisy_max_gumbel", optimize="min"), SCORES), "the least"),
        (lambda: selection_from_opendp(selection("make_noisy_max", output_measure="Renyi"), SCORES), "noise for Renyi"),
        (lambda: read_quantile(1.0, LAPLACE, field="y", n=3), "make_private_quantile"),
    ],
)
def test_what_is_not_known_of_selections_is_refused(read, message):
    with pytest.raises(ValueError, match=message):
        read()


@pytest.mark.x32
@pytest.mark.parametrize("measure", ["max_divergence", "zero_concentrated_divergence"])
def test_quantiles_of_opendp_itself_follow_the_distribution(measure):
    """And not that of the other kind of noise."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    candidates, records = [1.0, 2.0, 3.0], [0.5, 0.7, 1.0, 2.0, 2.2, 2.9, 3.5]
    built = dp.m.make_private_quantile(*space, getattr(dp, measure)(), candidates=candidates, alpha=0.3, scale=1.0)
    drawn = [built(records) for _ in range(8_000)]
    counts = np.array([drawn.count(candidate) for candidate in candidates])
    p_values = {}
    for kind in ("max_divergence", "zero_concentrated_divergence"):
        text = dp.serialize(built).replace(f'"{measure}"', f'"{kind}"')
        release = read_quantile(drawn[0], text, field="y", n=len(records))
        total = np.sum([release.statistic({"y": np.array(record)}) for record in records], axis=0)
        terms = [release.mechanism.log_density(np.array([place]), total) for place in (0.0, 1.0, 2.0)]
        shares = np.exp(np.array(terms, float))
        p_values[kind] = stats.chisquare(counts, shares / np.sum(shares) * counts.sum()).pvalue
    assert p_values.pop(measure) > 1e-4
    assert max(p_values.values()) < 1e-4
    text = dpjax.describe(read_quantile(drawn[0], built, field="y", n=len(records)))
    if measure == "max_divergence":
        assert f"added or removed: ε = {built.map(1):.4g}" in text


def test_measurements_of_opendp_itself_are_read():
    """A count by categories with noise, whose promise per record is that of `describe`."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    counts = dp.t.then_count_by_categories(categories=[0, 1, 2], null_category=False)
    measurement = space >> counts >> dp.m.then_laplace(scale=2.0)
    mechanism = mechanism_from_opendp(measurement)
    assert mechanism == dpjax.DiscreteLaplace(2.0)
    release = dpjax.Release([3, 1, 4], mechanism, dpjax.statistics.cells("cell", 3), n=8)
    assert f"added or removed: ε = {measurement.map(1):g}" in dpjax.describe(release)
    response = dp.m.make_randomized_response(categories=["a", "b", "c"], prob=0.7)
    assert mechanism_from_opendp(response) == dpjax.RandomizedResponse(keep=0.7, num_categories=3)
