"""What counts cannot do raises an error that names the argument before anything is compiled."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics

SIX = models.categorical(np.ones(6))
TABLE = dpjax.Release(np.full(6, 5.0), dpjax.DiscreteGaussian(2.0), statistics.cells("cell", 6), 30)
ROWS, COLUMNS = [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]


def known(values: list[float], groups: list[int], n: Any = 30) -> dpjax.Release:
    """Known totals of groups of cells."""
    return dpjax.Release(values, dpjax.Exact(), statistics.grouped("cell", groups), n)


def three_by_three() -> dpjax.Release:
    """Both margins of a table whose diagonal is known to be empty: swaps do not connect such tables."""
    table = dpjax.Release(np.full(9, 2.0), dpjax.Gaussian(2.0), statistics.cells("cell", 9), 12)
    place = np.arange(9)
    diagonal = np.where(place // 3 == place % 3, 0, -1).tolist()
    margins = [known([4.0, 4.0, 4.0], (place // 3).tolist(), 12), known([4.0, 4.0, 4.0], (place % 3).tolist(), 12)]
    return dpjax.joint(table, *margins, known([0.0], diagonal, 12))


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "continuous records": (
        models.normal(models.NormalPrior(0.0, 1.0), variance=1.0),
        dpjax.Release([3.0], dpjax.Laplace(1.0), statistics.total("y", -2, 2), 10),
        "listed support",
    ),
    "one value a record": (
        SIX,
        dpjax.LocalRelease([0, 1, 2], dpjax.RandomizedResponse(keep=0.6, num_categories=6), "cell"),
        "LocalRelease",
    ),
    "more draws than bins": (
        models.categorical(np.ones(2)),
        dpjax.Release([0.1, 0.4, 0.7], dpjax.SmoothedHistogram(0.3, 3), statistics.histogram("cell", [0, 1, 2]), 10),
        "3 values of 2 sums; expected no more values than sums",
    ),
    "many cells of one chosen value": (
        models.categorical(np.ones(300)),
        dpjax.releases.median(3, candidates=300, field="cell", epsilon=1.0, n=1_000),
        "at most 256 possible records",
    ),
    "totals that contradict n": (SIX, dpjax.joint(TABLE, known([20.0, 11.0], ROWS)), "contradict"),
    "totals that contradict each other": (
        SIX,
        dpjax.joint(TABLE, known([20.0, 10.0], ROWS), known([25.0, 5.0, 1.0], COLUMNS)),
        "contradict",
    ),
    "totals that are not whole": (SIX, dpjax.joint(TABLE, known([19.5, 10.5], ROWS)), "contradict"),
    "margins with an empty diagonal": (models.categorical(np.ones(9)), three_by_three(), "decomposable"),
}


@pytest.mark.x64
@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_by_name(name: str) -> None:
    model, release, words = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=words):
        dpjax.sample(jax.random.key(0), model, release, imputation=dpjax.counts(), progress=False)


@pytest.mark.parametrize("width", [0, -1, 2.5, "wide", None, True])
def test_a_width_is_a_whole_number(width: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="width"):
        dpjax.counts(width)


def test_collapsing_is_a_choice_of_two() -> None:
    with pytest.raises(TypeError, match="collapse"):
        dpjax.counts(collapse="yes")  # type: ignore[arg-type]


def test_only_conjugate_models_are_collapsed() -> None:
    model = SIX._replace(conjugate=None)
    with pytest.raises(ValueError, match="conjugate"):
        dpjax.gibbs(model, TABLE, dpjax.counts(8, collapse=True))


def test_too_many_possible_records_are_not_listed() -> None:
    model = SIX._replace(support=lambda: {"cell": jnp.arange(2**18)}, conjugate=None)
    with pytest.raises(ValueError, match="possible records"):
        dpjax.gibbs(model, TABLE, dpjax.counts(8))


def test_a_width_left_open_needs_a_warm_up() -> None:
    with pytest.raises(ValueError, match="imputation"):
        dpjax.gibbs(SIX, TABLE, dpjax.counts())
