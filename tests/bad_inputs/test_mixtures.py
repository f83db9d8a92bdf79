"""Bad values, measures and options of mixtures, and bad questions about partitions."""

import jax
import numpy as np
import pytest

import dpjax
from dpjax import Laplace, LocalRelease, Release, mixture, statistics
from dpjax.mixture import GammaShapes, NormalInverseGamma, NormalInverseWishart, TruncatedNormalInverseGamma
from dpjax.models import GammaPrior

KEY = jax.random.key(0)
BASE = NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
VALUES = np.array([-1.0, 0.5, 2.0])
LABELS = np.array([[0, 0, 1], [0, 1, 1]])
HISTOGRAM = Release([2.0, 1.0], Laplace(1.0), statistics.histogram("record", [0, 0.5, 1]), 3)
NO_POSITIVE = {"none": None, "zero": 0.0, "negative": -1.0, "missing": np.nan, "text": "1", "a dict": {}}
NO_COUNT = {"none": None, "zero": 0, "negative": -1, "a fraction": 2.5, "text": "4", "true": True}


def sample(**changes):
    arguments = {"key": KEY, "values": VALUES, "channel": Laplace(1.0), "component": BASE, "concentration": 1.0}
    return lambda: mixture.sample(**(arguments | changes))


CASES = {
    **{
        f"{kind.__name__} whose {names[place]} is {name}": (
            lambda kind=kind, place=place, value=value, good=good: kind(*good[:place], value, *good[place + 1 :]),
            names[place],
        )
        for kind, names, good in [
            (NormalInverseGamma, ("mean", "precision", "shape", "scale"), (0.0, 0.1, 3.0, 3.0)),
            (TruncatedNormalInverseGamma, ("mean", "precision", "shape", "scale"), (0.0, 0.1, 3.0, 3.0)),
            (GammaShapes, ("shape", "rate"), (2.0, 1.0)),
        ]
        for place in range(len(names))
        for name, value in NO_POSITIVE.items()
        if names[place] != "mean" or name not in ("zero", "negative")
    },
    "a truncated measure of a small shape": (lambda: TruncatedNormalInverseGamma(0.0, 0.1, 0.5, 3.0), "shape"),
    "a truncated measure of negative noise": (
        lambda: TruncatedNormalInverseGamma(0.0, 0.1, 3.0, 3.0, -1.0),
        "noise_variance",
    ),
    **{
        f"NormalInverseWishart of {name}": (lambda arguments=arguments: NormalInverseWishart(*arguments), said)
        for name, (arguments, said) in {
            "a mean that is a number": ((0.0, 1.0, 4.0, np.eye(2)), "mean"),
            "no mean": ((None, 1.0, 4.0, np.eye(2)), "mean"),
            "a missing mean": (([0.0, np.nan], 1.0, 4.0, np.eye(2)), "mean"),
            "no precision": (([0.0, 1.0], 0.0, 4.0, np.eye(2)), "precision"),
            "few degrees": (([0.0, 1.0], 1.0, 1.0, np.eye(2)), "degrees"),
            "another scale": (([0.0, 1.0], 1.0, 4.0, np.eye(3)), "scale"),
            "an indefinite scale": (([0.0, 1.0], 1.0, 4.0, -np.eye(2)), "scale"),
            "no scale": (([0.0, 1.0], 1.0, 4.0, None), "scale"),
        }.items()
    },
    **{
        f"a mixture of the key {name}": (sample(key=value), "key")
        for name, value in {"none": None, "a seed": 0}.items()
    },
    **{
        f"a mixture of {argument} {name}": (sample(**{argument: value}), argument)
        for argument in ("num_chains", "num_warmup", "num_samples", "thin")
        for name, value in NO_COUNT.items()
        if (argument, name) != ("num_warmup", "zero")
    },
    **{
        f"a mixture of values {name}": (sample(values=value), "values")
        for name, value in {
            "none": None,
            "text": "1.0",
            "missing": [0.0, np.nan],
            "infinite": [0.0, np.inf],
            "in no rows": 1.0,
            "in a table": VALUES[:, None],
            "ragged": [[1.0], [1.0, 2.0]],
            "nothing": [],
            "complex": [1j, 2.0, 3.0],
            "a dict": {"record": VALUES},
        }.items()
    },
    **{
        f"a mixture of records {name}": (sample(values=value, channel=None), "values")
        for name, value in {
            "none": None,
            "missing": [0.0, np.nan],
            "in no rows": 1.0,
            "in a table": VALUES[:, None],
        }.items()
    },
    "a beta mixture of records outside": (
        sample(values=[0.2, 1.5], channel=None, component=GammaShapes(2.0, 1.0)),
        "values",
    ),
    "a mixture behind a class": (sample(channel=Laplace), "channel"),
    "a mixture behind a number": (sample(channel=1.0), "channel"),
    "a mixture behind text": (sample(channel="laplace"), "channel"),
    "a mixture behind integer noise": (sample(values=[1, 2, 3], channel=dpjax.DiscreteLaplace(1.0)), "channel"),
    "a mixture behind clamped integer noise": (
        sample(values=[1, 2, 3], channel=dpjax.Censored(dpjax.DiscreteLaplace(1.0), lower=0)),
        "channel",
    ),
    "a mixture behind randomized response": (
        sample(values=[0, 1, 1], channel=dpjax.RandomizedResponse(0.9, 2)),
        "",
    ),
    "a mixture of a release behind a channel": (sample(values=HISTOGRAM), "channel"),
    "a mixture of a local release behind a channel": (
        sample(values=LocalRelease(VALUES, Laplace(1.0), "record")),
        "channel",
    ),
    "a mixture of a released sum": (
        lambda: mixture.sample(
            KEY, Release([1.0], Laplace(1.0), statistics.total("record"), 3), component=BASE, concentration=1.0
        ),
        "statistic",
    ),
    "a mixture of values without a channel": (
        lambda: mixture.sample(KEY, VALUES, component=BASE, concentration=1.0),
        "channel",
    ),
    **{
        f"a mixture of {name}": (sample(component=component), "component")
        for name, component in {
            "no component": None,
            "a component by name": "gaussian",
            "a component that is a class": NormalInverseGamma,
            "a component that is a number": 1.0,
        }.items()
    },
    **{
        f"a mixture of concentration {name}": (sample(concentration=value), "concentration")
        for name, value in {**NO_POSITIVE, "two": [1.0, 2.0], "a class": GammaPrior}.items()
    },
    **{
        f"a mixture of discount {name}": (sample(discount=value), "discount")
        for name, value in {
            **{name: value for name, value in NO_POSITIVE.items() if name != "zero"},
            "one": 1.0,
            "nearly one": 1 - 1e-17,
            "two": [0.2, 0.3],
            "a prior": GammaPrior(1.0, 1.0),
        }.items()
    },
    **{
        f"a mixture by {argument} {name}": (sample(**{argument: value}), argument)
        for argument, values in {
            "sampler": {"gibbs": "gibbs", "none": None, "a number": 3, "a function": mixture.neal8},
            "collect": {"a number": 3, "unknown": "weights", "two, one unknown": ("labels", "weights")},
            "progress": {"text": "yes", "none": None},
            "checkpoint": {
                "a number": 3,
                "a folder": "/",
                "a file in no folder": "/no/such/run.npz",
                "a name that no file can have": "run\0.npz",
            },
        }.items()
        for name, value in values.items()
    },
    **{
        f"the conditional sampler with {argument} {name}": (
            lambda argument=argument, value=value: mixture.conditional(**{argument: value}),
            argument,
        )
        for argument, values in {
            "weights": {"equal": "equal", "none": None},
            "truncation": {"one": 1, "half": 2.5, "text": "10"},
            "proposals": {"negative": -1, "half": 0.5, "text": "many"},
        }.items()
        for name, value in values.items()
    },
    **{
        f"{make.__name__} with {name} auxiliaries": (lambda make=make, value=value: make(value), "auxiliaries")
        for make in (mixture.neal5, mixture.neal8)
        for name, value in NO_COUNT.items()
    },
    **{
        f"a partition by {name}": (
            lambda key=key, labels=labels, more=more: mixture.find_partition(key, labels, **more),
            said,
        )
        for name, (key, labels, more, said) in {
            "a seed": (0, LABELS, {}, "key"),
            "labels of text": (KEY, np.array(["a", "b"]), {}, "labels"),
            "labels that are none": (KEY, None, {}, "labels"),
            "no labels": (KEY, np.zeros((2, 0), int), {}, "labels"),
            "labels that are fractions": (KEY, LABELS + 0.5, {}, "labels"),
            "another loss": (KEY, LABELS, {"loss": "square"}, "loss"),
            "a loss that is none": (KEY, LABELS, {"loss": None}, "loss"),
            "no starts": (KEY, LABELS, {"num_starts": 0}, "num_starts"),
            "half a cluster": (KEY, LABELS, {"max_clusters": 0.5}, "max_clusters"),
        }.items()
    },
    "the loss of a partition of other records": (lambda: mixture.expected_loss(LABELS, [0, 1]), "partition"),
    "the loss of a partition of fractions": (lambda: mixture.expected_loss(LABELS, [0.5, 1, 1]), "partition"),
    "the loss of no partition": (lambda: mixture.expected_loss(LABELS, None), "partition"),
    "another loss of a partition": (lambda: mixture.expected_loss(LABELS, [0, 0, 1], loss="square"), "loss"),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused(refused, case):
    refused(*CASES[case])
