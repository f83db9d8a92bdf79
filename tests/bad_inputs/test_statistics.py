"""Bad fields, bounds, edges and functions of statistics, and records that do not fit them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import statistics
from dpjax.mechanisms import Laplace
from dpjax.release import Release

TOTAL = statistics.total("y", -2, 2)
NO_NAME = {"none": None, "a number": 3, "bytes": b"y"}
BAD_BOUNDS = {
    "text": "a",
    "missing": np.nan,
    "infinite": -np.inf,
    "a matrix": [[0.0]],
    "nothing": [],
    "ragged": [[0.0], [1.0, 2.0]],
    "a dict": {},
    "complex": 1j,
}


def released(statistic, dimension=1):
    """A release of the statistic, and whether records of this field fit it."""
    return Release(np.zeros(dimension), Laplace(1.0), statistic, 5)


def fits(statistic, records, dimension=1):
    return lambda: released(statistic, dimension).check_records(records)


def broken(record):
    raise RuntimeError("not today")


CASES = {
    **{
        f"{name} of a field {kind}": (lambda make=make, value=value: make(value), "field")
        for name, make in {
            "total": statistics.total,
            "mean": lambda field: statistics.mean(field, 3),
            "histogram": lambda field: statistics.histogram(field, [0, 1, 2]),
            "cells": lambda field: statistics.cells(field, 3),
            "log_composition": lambda field: statistics.log_composition(field, 0.1),
        }.items()
        for kind, value in NO_NAME.items()
    },
    **{
        f"total from {name}": (lambda value=value: statistics.total("y", value, 3.0), "lower")
        for name, value in BAD_BOUNDS.items()
    },
    **{
        f"gram from {name}": (lambda value=value: statistics.gram(value, [1.0]), "lower")
        for name, value in BAD_BOUNDS.items()
    },
    **{
        f"histogram of edges {name}": (lambda value=value: statistics.histogram("y", value), "edges")
        for name, value in {**BAD_BOUNDS, "none": None, "two": [0, 1], "falling": [2, 1, 0], "tied": [0, 1, 1]}.items()
    },
    "total of bounds exchanged": (lambda: statistics.total("y", 1, 0), "upper"),
    "total of unequal bounds": (lambda: statistics.total("y", [0, 0], [1, 1, 1]), "dimension"),
    "total of dimension zero": (lambda: statistics.total("y", 0, 1, dimension=0), "dimension"),
    "total of a fractional dimension": (lambda: statistics.total("y", 0, 1, dimension=1.5), "dimension"),
    "mean of no records": (lambda: statistics.mean("y", 0), "n"),
    "mean of a fraction of records": (lambda: statistics.mean("y", 2.5), "n"),
    "gram of unequal bounds": (lambda: statistics.gram([0, 0], [1]), "upper"),
    "gram of equal bounds": (lambda: statistics.gram([0], [0]), "upper"),
    "gram of one response bound": (lambda: statistics.gram([0], [1], 3), "response"),
    "gram of falling response bounds": (lambda: statistics.gram([0], [1], (1, 0)), "response"),
    "gram of a response of text": (lambda: statistics.gram([0], [1], "ab"), "response"),
    "cells of no categories": (lambda: statistics.cells("c", 0), "num_categories"),
    "cells of one category": (lambda: statistics.cells("c", 1), "num_categories"),
    "cells of half a category": (lambda: statistics.cells("c", 2.5), "num_categories"),
    "cells of none": (lambda: statistics.cells("c", None), "num_categories"),
    "cells of text": (lambda: statistics.cells("c", "ab"), "num_categories"),
    "cells of two numbers for one field": (lambda: statistics.cells("c", [2, 2]), "num_categories"),
    "cells of one number for two fields": (lambda: statistics.cells(["c", "d"], 2), "num_categories"),
    "cells of no fields": (lambda: statistics.cells([], []), "num_categories"),
    "cells of a field that is none": (lambda: statistics.cells(["c", None], [2, 2]), "field"),
    "class_features of no classes": (lambda: statistics.class_features(0, 1, 2), "num_classes"),
    "class_features of one cell": (lambda: statistics.class_features(1, 2, 1), "num_classes, num_levels"),
    "class_features of text": (lambda: statistics.class_features("2", 1, 2), "num_classes"),
    "log_composition from zero": (lambda: statistics.log_composition("y", 0.0), "lower"),
    "log_composition from one": (lambda: statistics.log_composition("y", 1.0), "lower"),
    "log_composition from text": (lambda: statistics.log_composition("y", "a"), "lower"),
    "log_composition from none": (lambda: statistics.log_composition("y", None), "lower"),
    "log_composition from two": (lambda: statistics.log_composition("y", [0.1, 0.2]), "lower"),
    "log_composition of one share": (lambda: statistics.log_composition("y", 0.1, dimension=1), "dimension"),
    "scaled by zero": (lambda: statistics.scaled(TOTAL, 0), "factor"),
    "scaled by a missing number": (lambda: statistics.scaled(TOTAL, np.nan), "factor"),
    "scaled by text": (lambda: statistics.scaled(TOTAL, "2"), "factor"),
    "scaled by none": (lambda: statistics.scaled(TOTAL, None), "factor"),
    "scaled by two": (lambda: statistics.scaled(TOTAL, [1.0, 2.0]), "factor"),
    "scaled of a number": (lambda: statistics.scaled(3, 2.0), "statistic"),
    "scaled of a class": (lambda: statistics.scaled(statistics.Total, 2.0), "statistic"),
    "stacked of nothing": (lambda: statistics.stacked(), "statistics"),
    "stacked of a list": (lambda: statistics.stacked([TOTAL, TOTAL]), "statistics[0]"),
    "stacked of none": (lambda: statistics.stacked(TOTAL, None), "statistics[1]"),
    "sensitivity without bounds": (lambda: statistics.total("y").sensitivity(1, "replace-one"), "lower, upper"),
    "sensitivity in another norm": (lambda: TOTAL.sensitivity(3, "replace-one"), "norm"),
    "sensitivity in no norm": (lambda: TOTAL.sensitivity(None, "replace-one"), "norm"),
    "sensitivity of other neighbours": (lambda: TOTAL.sensitivity(1, "swap"), "neighbours"),
    "sensitivity of a function": (
        lambda: statistics.scaled(lambda record: record["y"], 2.0).sensitivity(1, "replace-one"),
        "statistic",
    ),
    "sensitivity of unknown shares": (
        lambda: statistics.log_composition("y", 0.1).sensitivity(1, "replace-one"),
        "dimension",
    ),
    "a missing field": (fits(TOTAL, {"z": jnp.zeros(5)}), "record['y']"),
    "a field of another shape": (fits(TOTAL, {"y": jnp.zeros((5, 2))}), "record['y']"),
    "a category that is a float": (fits(statistics.cells("y", 2), {"y": jnp.zeros(5)}, 2), "record['y']"),
    "features of another number": (
        fits(statistics.class_features(2, 3, 2), {"class": jnp.zeros(5, int), "features": jnp.zeros((5, 2), int)}, 12),
        "record['features']",
    ),
    "a scaled statistic of a missing field": (
        fits(statistics.scaled(lambda record: record["y"], 2.0), {"z": jnp.zeros(5)}),
        "statistic",
    ),
    "stacked statistics of other shapes": (
        fits(statistics.stacked(TOTAL, lambda record: record["y"]), {"y": jnp.zeros(5)}, 2),
        "statistic",
    ),
    "a statistic that fails": (fits(broken, {"y": jnp.zeros(5)}), "statistic"),
    "a statistic of the values themselves": (
        fits(lambda record: float(record["y"]) * jnp.ones(1), {"y": jnp.zeros(5)}),
        "statistic",
    ),
    "a statistic that branches on values": (
        fits(lambda record: jnp.ones(1) if record["y"] > 0 else jnp.zeros(1), {"y": jnp.zeros(5)}),
        "statistic",
    ),
    "a statistic that is a number": (fits(lambda record: record["y"], {"y": jnp.zeros(5)}), "statistic"),
    "a statistic that returns a float": (fits(lambda record: 3.0, {"y": jnp.zeros(5)}), "statistic"),
    "a statistic that returns nothing": (fits(lambda record: None, {"y": jnp.zeros(5)}), "statistic"),
    "a statistic that returns a dict": (fits(dict, {"y": jnp.zeros(5)}), "statistic"),
    "a statistic that returns a list": (fits(lambda record: [record["y"]], {"y": jnp.zeros(5)}), "statistic"),
    "a statistic that returns a matrix": (fits(lambda record: jnp.ones((1, 1)), {"y": jnp.zeros(5)}), "statistic"),
    "a statistic that returns text": (fits(lambda record: "y", {"y": jnp.zeros(5)}), "statistic"),
    "a statistic that returns keys": (fits(lambda record: jax.random.key(0)[None], {"y": jnp.zeros(5)}), "statistic"),
    "a statistic that returns complex numbers": (
        fits(lambda record: jnp.ones(1, complex), {"y": jnp.zeros(5)}),
        "statistic",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused(refused, case):
    refused(*CASES[case])
