"""Results of SmartNoise SQL, whose scales follow from its accuracies."""

import enum
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.adapters.smartnoise import mechanism_from_smartnoise, read_result
from dpjax.mechanisms import Censored

ROWS = [("sex", "n", "income", "mean"), ("m", 71, 812.5, 3.1), ("f", 80, 910.25, 3.4)]
ACCURACIES = [None, 6.0, 120.0, None]


class Kind(enum.Enum):
    """As that library has it."""

    laplace = 2
    discrete_gaussian = 5


def income(record):
    """The income of a person, at the group."""
    return np.arange(2) == record["sex"]


income.dimension = 2


def read(result=ROWS, accuracies=ACCURACIES, **options):
    """Counts and incomes by sex."""
    given = {"statistics": {"n": dpjax.statistics.cells("sex", 2)}, "by": "sex", "levels": ["f", "m"], "alpha": 0.05}
    return read_result(result, accuracies, **(given | options), n=150)


def test_scales_follow_from_accuracies_and_rows_from_levels():
    """Catches rows in the order of the result, and integer noise whose accuracy is read by its own tails."""
    release = read()
    assert release.value.tolist() == [80.0, 71.0]
    assert isinstance(release.mechanism, dpjax.DiscreteLaplace)
    assert stats.laplace.sf(6.0, scale=float(release.mechanism.scale)) == pytest.approx(0.025)
    both = read(statistics={"n": dpjax.statistics.cells("sex", 2), "income": income}, gaussian=["income"])
    counts, incomes = both.mechanism.mechanisms
    assert counts == release.mechanism
    assert isinstance(incomes, dpjax.Gaussian)
    assert stats.norm.sf(120.0, scale=float(incomes.scale)) == pytest.approx(0.025)
    assert both.value.tolist() == [80.0, 71.0, 910.25, 812.5]
    assert isinstance(read(clamped=["n"]).mechanism, Censored)


def test_a_data_frame_is_read_by_its_columns():
    """Catches a frame whose first row is taken for names."""
    rows = [SimpleNamespace(), *ROWS[1:]]
    frame = SimpleNamespace(columns=list(ROWS[0]), itertuples=lambda index: iter(rows[1:]))
    assert read(frame).value.tolist() == [80.0, 71.0]


def test_mechanisms_are_read_by_their_attributes():
    """Catches a variance that is taken for a scale."""
    assert mechanism_from_smartnoise(SimpleNamespace(mechanism=Kind.laplace, scale=3)) == dpjax.Laplace(3.0)
    given = SimpleNamespace(mechanism=Kind.discrete_gaussian, scale=2.0)
    assert mechanism_from_smartnoise(given) == dpjax.DiscreteGaussian(2.0)
    with pytest.raises(ValueError, match="mechanism: given 'gumbel'; expected one of"):
        mechanism_from_smartnoise(SimpleNamespace(mechanism="gumbel", scale=2.0))
    with pytest.raises(TypeError, match=r"mechanism: given .* without \['scale'\]"):
        mechanism_from_smartnoise(SimpleNamespace(mechanism="laplace"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistics": {"mean": income}}, r"accuracies\[3\]: given None; expected that of the column 'mean'"),
        ({"statistics": {"size": income}}, r"statistics: given \['size'\]; expected some of the columns"),
        ({"levels": ["f", "m", "x"]}, "levels: given .*; expected the groups of the result, each once"),
        ({"by": None, "levels": None}, "by: given None; expected the column by which the query groups"),
        ({"by": "age"}, "by, levels: given 'age'"),
        ({"alpha": 1.5}, "alpha: given"),
        ({"accuracies": [6.0]}, "accuracies: given .*; expected one for each of the columns"),
        ({"result": [("n",)]}, "result: given"),
        ({"statistics": {"n": dpjax.statistics.cells("sex", 3)}}, "value: given"),
    ],
)
def test_what_is_refused(options, message):
    """Catches a group that was withheld and not missed, and an average that is read as a sum."""
    with pytest.raises((TypeError, ValueError), match=message):
        read(**options)
