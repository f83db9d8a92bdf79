"""Tables 1 and 2 of the paper, and what their rows read of the kept run."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.papers.rows import Number

MEANS = {"female": (0.4112, 0.0506, 0.5382), "male": (0.3919, 0.0508, 0.5574)}
"""Posterior mean shares by IMwG; those by SOMA differ by .0001 at most."""

ACTIVITIES = ("personal care", "eating and drinking", "other activities")

EFFECTIVE = {"female": {"soma": 2754.5, "imwg": 2373.5}, "male": {"soma": 3406.8, "imwg": 2249.0}}
"""Draws of the first shape after 10⁶ iterations of 20 chains."""


def entry(result: dict[str, Any], sex: str, sampler: str, figure: str, part: str, place: int = 0) -> float:
    """A value or its standard error."""
    return float(result[sex]["samplers"][sampler][figure][part][place])


def table1(sex: str, label: str) -> Number:
    """The ratio of effective sizes, with an error for each of the two."""
    return Number(
        label,
        EFFECTIVE[sex]["soma"] / EFFECTIVE[sex]["imwg"],
        lambda result: float(result[sex]["ratio"]["value"][0]),
        lambda result: float(np.sqrt(2) * result[sex]["ratio"]["standard_error"][0]),
        kind="ratio",
    )


def table2(sex: str, label: str) -> tuple[Number, ...]:
    """The mean shares by SOMA."""
    return tuple(
        Number(
            f"{label}, {activity}",
            MEANS[sex][place],
            partial(entry, sex=sex, sampler="soma", figure="mean", part="value", place=place),
            partial(entry, sex=sex, sampler="soma", figure="mean", part="standard_error", place=place),
            matters=0.01,
        )
        for place, activity in enumerate(ACTIVITIES)
    )
