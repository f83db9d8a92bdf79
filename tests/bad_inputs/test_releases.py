"""Bad values, mechanisms and numbers of records in releases, and texts that hold none."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import Censored, DiscreteLaplace, Gaussian, Laplace, LocalRelease, RandomizedResponse, Release, statistics

TOTAL = statistics.total("y", [0, 0], [1, 1])
KEEP = RandomizedResponse(0.9, 3)
RELEASE = Release([1.0, 2.0], Laplace(1.0), TOTAL, 5)
LOCAL = LocalRelease([0, 1, 2], KEEP)
NO_VALUE = {
    "none": None,
    "nothing": [],
    "text": "1.0",
    "missing": [1.0, np.nan],
    "infinite": [1.0, np.inf],
    "a matrix": [[1.0, 2.0]],
    "three of two": [1.0, 2.0, 3.0],
    "one of two": [1.0],
    "ragged": [[1.0], [1.0, 2.0]],
    "a dict": {"y": 1.0},
    "a set": {1.0, 2.0},
    "a function": np.sqrt,
    "complex": [1j, 2.0],
    "objects": np.array([None, 1.0]),
    "a release": RELEASE,
}
NO_COUNT = {"none": None, "zero": 0, "negative": -1, "a fraction": 2.5, "a whole float": 5.0, "text": "5", "true": True}
NO_MECHANISM = {
    "none": None,
    "a number": 1.0,
    "a class": Laplace,
    "text": "Laplace",
    "a dict": {},
    "a function": np.sqrt,
}
TEXT = RELEASE.to_json()
LOCAL_TEXT = LOCAL.to_json()


class Returns:
    """A mechanism whose log-density or sample is wrong."""

    def __init__(self, density, sample):
        self.density, self.drawn = density, sample

    def log_density(self, value, statistic):
        return self.density

    def sample(self, key, statistic):
        return self.drawn


class Fails:
    def log_density(self, value, statistic):
        raise RuntimeError("not today")

    def sample(self, key, statistic):
        raise RuntimeError("not today")


def edited(text, **changes):
    """JSON text with entries replaced; None removes one."""
    content = json.loads(text) | changes
    return json.dumps({key: value for key, value in content.items() if key not in changes or value is not None})


def read(text):
    return lambda: dpjax.from_json(text)


CASES = {
    **{
        f"Release of {name}": (lambda value=value: Release(value, Laplace(1.0), TOTAL, 5), "value")
        for name, value in NO_VALUE.items()
    },
    **{
        f"Release of n {name}": (lambda value=value: Release([1.0, 2.0], Laplace(1.0), TOTAL, value), "n")
        for name, value in NO_COUNT.items()
    },
    **{
        f"Release by {name}": (lambda value=value: Release([1.0, 2.0], value, TOTAL, 5), "mechanism")
        for name, value in NO_MECHANISM.items()
    },
    "Release by a channel": (lambda: Release([1.0, 2.0], KEEP, TOTAL, 5), "mechanism"),
    "Release by a density for each coordinate": (
        lambda: Release([1.0, 2.0], Returns(jnp.zeros(2), jnp.zeros(2)), TOTAL, 5),
        "mechanism",
    ),
    "Release by samples of another shape": (
        lambda: Release([1.0, 2.0], Returns(jnp.zeros(()), jnp.zeros(3)), TOTAL, 5),
        "mechanism",
    ),
    "Release by a mechanism that fails": (lambda: Release([1.0, 2.0], Fails(), TOTAL, 5), "mechanism"),
    "Release by a mechanism that returns nothing": (
        lambda: Release([1.0, 2.0], Returns(None, None), TOTAL, 5),
        "mechanism",
    ),
    "Release by noise of three": (lambda: Release([1.0, 2.0], Laplace(np.ones(3)), TOTAL, 5), "mechanism.scale"),
    **{
        f"Release of the statistic {name}": (
            lambda value=value: Release([1.0, 2.0], Laplace(1.0), value, 5),
            "statistic",
        )
        for name, value in {"none": None, "a number": 3, "a class": statistics.Total, "text": "total"}.items()
    },
    "Release of a fraction under integer noise": (lambda: Release([1.5, 2.0], DiscreteLaplace(1.0), TOTAL, 5), "value"),
    "Release of a clamped fraction under integer noise": (
        lambda: Release([1.5, 2.0], Censored(DiscreteLaplace(1.0), lower=0), TOTAL, 5),
        "value",
    ),
    "Release below its clamp": (lambda: Release([-1.0, 2.0], Censored(Laplace(1.0), lower=0), TOTAL, 5), "value"),
    "Release above its clamp": (lambda: Release([1.0, 2.0], Censored(Laplace(1.0), upper=1.5), TOTAL, 5), "value"),
    "Release below one of its clamps": (
        lambda: Release([1.0, 2.0], Censored(Laplace(1.0), lower=[0, 3]), TOTAL, 5),
        "value",
    ),
    "Release of fewer draws than drawn": (
        lambda: Release([0.5], dpjax.SmoothedHistogram(0.5, 2), statistics.histogram("y", [0, 0.5, 1]), 5),
        "value",
    ),
    "Release of draws beyond the interval": (
        lambda: Release([0.5, 1.5], dpjax.SmoothedHistogram(0.5, 2), statistics.histogram("y", [0, 0.5, 1]), 5),
        "value",
    ),
    "Release of draws of an unknown histogram": (
        lambda: Release([0.5], dpjax.SmoothedHistogram(0.5, 1), lambda record: record["y"], 5),
        "statistic",
    ),
    **{
        f"LocalRelease of {name}": (lambda value=value: LocalRelease(value, Laplace(1.0), "y"), "values")
        for name, value in NO_VALUE.items()
        if name not in ("a matrix", "three of two", "one of two")
    },
    "LocalRelease of a number": (lambda: LocalRelease(1.0, Laplace(1.0), "y"), "values"),
    "LocalRelease of a cube": (lambda: LocalRelease(np.zeros((2, 2, 2)), Laplace(1.0), "y"), "values"),
    "LocalRelease of fractional codes": (lambda: LocalRelease([0.5, 1.0], KEEP), "values"),
    "LocalRelease of codes as floats": (lambda: LocalRelease([0.0, 1.0], KEEP), "values"),
    "LocalRelease of a code too large": (lambda: LocalRelease([0, 3], KEEP), "values"),
    "LocalRelease of a negative code": (lambda: LocalRelease([0, -1], KEEP), "values"),
    "LocalRelease of a fraction under integer noise": (
        lambda: LocalRelease([0.5, 1.0], DiscreteLaplace(1.0), "y"),
        "values",
    ),
    "LocalRelease below its clamp": (lambda: LocalRelease([-0.5, 1.0], Censored(Laplace(1.0), lower=0), "y"), "values"),
    "LocalRelease of coefficients too few": (
        lambda: LocalRelease(np.zeros((4, 6)), dpjax.HaarWavelet(1.0, 2), "y").check_records({"y": jnp.zeros(4)}),
        "record['y']",
    ),
    **{
        f"LocalRelease by {name}": (lambda value=value: LocalRelease([1.0, 2.0], value, "y"), "channel")
        for name, value in NO_MECHANISM.items()
        if name != "a function"  # noise may depend on the parameters
    },
    **{
        f"LocalRelease of the field {name}": (lambda value=value: LocalRelease([0, 1], KEEP, value), "field")
        for name, value in {"none": None, "a number": 3, "a list": ["cell"]}.items()
    },
    "LocalRelease of a missing field": (lambda: LOCAL.check_records({"y": jnp.zeros(3)}), "field"),
    "LocalRelease of a real field": (lambda: LOCAL.check_records({"cell": jnp.zeros(3)}), "record['cell']"),
    "LocalRelease of no records": (lambda: LOCAL.check_records(jnp.zeros(3)), "records"),
    "Release of no records": (lambda: RELEASE.check_records(jnp.zeros((5, 2))), "records"),
    "Release of records without rows": (lambda: RELEASE.check_records({"y": 3.0}), "records['y']"),
    "a sample of other records": (lambda: RELEASE.sample(jax.random.key(0), {"y": jnp.zeros((4, 2))}), "records['y']"),
    "a local sample of other records": (
        lambda: LOCAL.sample(jax.random.key(0), {"cell": jnp.zeros(4, int)}),
        "records['cell']",
    ),
    **{
        f"a text that is {name}": (read(value), argument)
        for name, (value, argument) in {
            "none": (None, "text"),
            "a number": (3, "text"),
            "a path": ("release.json", "text"),
            "empty": ("", "text"),
            "bytes": (b"\xff", "text"),
            "a list": ("[]", "schema"),
            "of another schema": (edited(TEXT, schema="other"), "schema"),
            "of another version": (edited(TEXT, version=99), "version"),
            "of another kind": (edited(TEXT, kind="other"), "kind"),
            "of a kind that is a list": (edited(TEXT, kind=["release"]), "kind"),
            "without a value": (edited(TEXT, value=None), "text"),
            "with more": (edited(TEXT, more=1), "text"),
            "of an infinite value": (TEXT.replace("1.0", "Infinity", 1), "text"),
            "of a value of text": (edited(TEXT, value=["1.0", 2.0]), "value"),
            "of a value that is true": (edited(TEXT, value=[True, 2.0]), "value"),
            "of n of text": (edited(TEXT, n="5"), "n"),
            "of a mechanism without a name": (edited(TEXT, mechanism={"scale": 1.0}), "mechanism"),
            "of an unknown mechanism": (edited(TEXT, mechanism={"name": "renyi"}), "mechanism"),
            "of a mechanism with more": (
                edited(TEXT, mechanism={"name": "laplace", "scale": 1.0, "b": 2}),
                "b",
            ),
            "of a mechanism without a scale": (edited(TEXT, mechanism={"name": "laplace"}), "mechanism"),
            "of a negative scale": (edited(TEXT, mechanism={"name": "laplace", "scale": -1.0}), "scale"),
            "of privacy that is text": (
                edited(TEXT, mechanism={"name": "laplace", "scale": 1.0, "privacy": "pure"}),
                "privacy",
            ),
            "of an unknown statistic": (edited(TEXT, statistic={"name": "median"}), "statistic"),
            "of a statistic that is a list": (edited(TEXT, statistic=[1]), "statistic"),
            "of a statistic with more": (edited(TEXT, statistic={"name": "total", "column": "y"}), "column"),
            "of a function by name": (
                edited(TEXT, statistic={"name": "function", "function": "os.system"}),
                "statistic",
            ),
            "of codes of text": (edited(LOCAL_TEXT, values=["a"]), "values"),
            "of a channel that is a number": (edited(LOCAL_TEXT, channel=3), "mechanism"),
            "of a field that is a number": (edited(LOCAL_TEXT, field=3), "field"),
        }.items()
    },
    "a sum that is true": (lambda: Release(True, Laplace(1.0), statistics.count(), 5), "value"),
    "sums that are true and false": (lambda: Release([True, False], Laplace(1.0), TOTAL, 5), "value"),
    "a sum beyond floats": (lambda: Release([1.0, 10**400], Laplace(1.0), TOTAL, 5), "value"),
    "whole numbers beyond any type": (lambda: LocalRelease(np.array([2**63, 1], np.uint64), KEEP), "values"),
    "a mask of one field": (lambda: LocalRelease([0, 1], KEEP, missing=[False, True]), "missing"),
    "a text of the other kind": (lambda: LocalRelease.from_json(TEXT), "kind"),
    "a text with another statistic": (
        lambda: dpjax.from_json(TEXT, statistic=statistics.total("y", [0, 0], [2, 2])),
        "statistic",
    ),
    "JSON of a mechanism of one's own": (
        lambda: Release([1.0, 2.0], Returns(jnp.zeros(()), jnp.zeros(2)), TOTAL, 5).to_json(),
        "mechanism",
    ),
    "JSON with metadata of objects": (lambda: RELEASE.to_json(source=object()), "metadata"),
    "an unknown convention": (lambda: dpjax.mechanism_from_published("laplace", 1.0), "convention"),
    "a convention that is none": (lambda: dpjax.mechanism_from_published(None, 1.0), "convention"),
    "a convention that is a list": (lambda: dpjax.mechanism_from_published(["laplace_scale"], 1.0), "convention"),
    "a published text": (lambda: dpjax.mechanism_from_published("laplace_scale", "1"), "published"),
    "nothing published": (lambda: dpjax.mechanism_from_published("gaussian_variance", None), "published"),
    "a published zero": (lambda: dpjax.mechanism_from_published("gaussian_variance", 0.0), "published"),
    "a ratio above one": (lambda: dpjax.mechanism_from_published("geometric_alpha", 1.5), "published"),
    "an epsilon without sensitivity": (lambda: dpjax.mechanism_from_published("laplace_epsilon", 1.0), "sensitivity"),
    "a negative sensitivity": (
        lambda: dpjax.mechanism_from_published("laplace_epsilon", 1.0, sensitivity=-1.0),
        "sensitivity",
    ),
    "a sensitivity of no use": (
        lambda: dpjax.mechanism_from_published("laplace_scale", 1.0, sensitivity=1.0),
        "sensitivity",
    ),
    "a privacy that is text": (lambda: dpjax.mechanism_from_published("laplace_scale", 1.0, privacy="pure"), "privacy"),
    "a mechanism whose privacy is a number": (lambda: Gaussian(1.0, privacy=1.0), "privacy"),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused(refused, case):
    refused(*CASES[case])


@pytest.mark.x32
@pytest.mark.skipif(jnp.result_type(float) == jnp.float64, reason="float64 holds them")
@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: Release([1e300, 1.0], Laplace(1.0), TOTAL, 5), "value"),
        (lambda: LocalRelease([1e300, 1.0], Laplace(1.0), "y"), "values"),
        (lambda: dpjax.Microdata({"y": (np.array([2**40, 1]), dpjax.Exact())}), "values of fields"),
        (lambda: dpjax.mechanisms.MultivariateGaussian(np.eye(2) * 1e300), "covariance"),
    ],
)
def test_numbers_that_single_precision_does_not_hold_are_refused(refused, call, argument):
    """Of which ∞ was made, and 0 of 2^40: a value that nothing later can tell from one that was published."""
    refused(call, argument)


@pytest.mark.x32
def test_whole_numbers_under_noise_become_floats():
    """2^40 is a float of single precision, but wrapped to 0 on the way there."""
    assert LocalRelease(np.array([2**40, 1]), dpjax.DiscreteLaplace(1e7), "y").values[0] == 2.0**40


def test_a_local_release_takes_its_default_mask():
    """What a program passes on may be the default."""
    assert LocalRelease([0, 1], KEEP, missing=None).n == 2
