"""Odds ratios against a reference level, by hand."""

import itertools
from typing import Any

import numpy as np
import pytest

import dpjax
from dpjax.posterior.odds import tabulate_odds

LEVELS: dict[str, tuple[str, ...]] = {
    "smokes": ("none", "some", "much"),
    "ill": ("no", "yes"),
    "sex": ("f", "m"),
}
MODEL = dpjax.models.categorical(fields=list(LEVELS), levels=list(LEVELS.values()))
DRAWS = np.random.default_rng(0).dirichlet(np.ones(12), size=(4, 10))


def tabulate(reference: Any = None) -> Any:
    return tabulate_odds(MODEL, {"probabilities": DRAWS}, dict(MODEL.level_names), reference)


@pytest.mark.parametrize(
    ("given", "smokes", "ill"),
    [(None, "none", "no"), ("some", "some", "no"), ({"ill": "yes"}, "none", "yes"), ({"smokes": "much"}, "much", "no")],
)
def test_they_compare_with_the_reference(given: Any, smokes: str, ill: str) -> None:
    """Of three levels, so that a comparison of adjacent ones is another."""
    table = DRAWS.reshape(4, 10, 3, 2, 2)
    found = tabulate(given)
    rows = [row for row in found if row.startswith("odds_ratio")]
    assert len(rows) == len(found) / 2 == 4
    r, s = LEVELS["smokes"].index(smokes), LEVELS["ill"].index(ill)
    for (i, level), (j, other) in itertools.product(enumerate(LEVELS["smokes"]), enumerate(LEVELS["ill"])):
        if i == r or j == s:
            continue
        for k, sex in enumerate(LEVELS["sex"]):
            p = table[..., k]
            ratio = (p[..., i, j] / p[..., r, j]) / (p[..., i, s] / p[..., r, s])
            row = f"[{level}/{smokes},{other}/{ill},{sex}]"
            assert found[f"odds_ratio{row}"]["50%"] == pytest.approx(np.median(ratio), rel=1e-6)
            assert found[f"log_odds_ratio{row}"]["mean"] == pytest.approx(np.mean(np.log(ratio)), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("given", ["all", {"smokes": "yes"}, {"sex": "f"}, 3])
def test_another_reference_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"^reference: given .* expected a level of 'smokes': one of none, some, much"):
        tabulate(given)


def test_a_table_without_fields_has_numbers_for_names() -> None:
    """Its records have one field, the number of the cell, which was taken for the only variable of the table."""
    plain = dpjax.models.categorical(shape=(3, 2, 2))
    assert plain.entry_labels({"cell": tuple("abcdefghijkl")}) == {"probabilities": (tuple("abcdefghijkl"),)}
    found, named = tabulate_odds(plain, {"probabilities": DRAWS}, {}, {"1": "1"}), tabulate({"ill": "yes"})
    assert [row for row in found if row.startswith("odds")] == [
        f"odds_ratio[{level}/0,0/1,{sex}]" for level in (1, 2) for sex in (0, 1)
    ]
    assert [found[row] for row in found] == [named[row] for row in named]


def test_other_models_have_none() -> None:
    with pytest.raises(TypeError, match=r"^model: given .* expected a table of two or more fields"):
        tabulate_odds(dpjax.models.categorical([1.0, 2.0]), {}, {}, None)
