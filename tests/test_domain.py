"""What the records of models can be: each kind of model lists what it says, and only that."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.base import Model
from dpjax.domain import Domain, LevelNumbers
from dpjax.models import categorical, naive_bayes, normal
from dpjax.models.checks import check_fit
from dpjax.models.priors import NormalPrior

FORBIDDEN = np.array([[[1, 1, 0], [1, 0, 1]]], bool)
"""Levels [feature, class, level] that can be."""


def of_functions(**more: Callable) -> Model:
    """A model of functions of pairs, of which it lists what is given."""
    return Model(
        lambda key: {"p": jax.random.uniform(key)},
        lambda parameters: jnp.zeros(()),
        lambda key, parameters, n: {"a": jnp.zeros(n, int), "b": jnp.zeros(n, int)},
        lambda parameters, records: jnp.zeros(len(records["a"])),
        **more,
    )


BITS = LevelNumbers((0, 1), "int32")
PAIRS = {"a": np.array([0, 0, 7]), "b": np.array([1, 2, 2])}
CASES: dict[str, tuple[Callable[[], Model], bool, dict]] = {
    "a table": (
        lambda: categorical(shape=(2, 2), fields=["s", "t"]),
        True,
        {"s": [0, 0, 1, 1], "t": [0, 1, 0, 1]},
    ),
    "impossible cells": (
        lambda: categorical(np.ones(4), possible=[True, False, True, True]),
        True,
        {"cell": [0, 2, 3]},
    ),
    "classes and features": (
        lambda: naive_bayes([1.0, 1.0], np.ones((1, 2, 3)), FORBIDDEN),
        True,
        {"class": [0, 0, 1, 1], "features": [[0], [1], [0], [2]]},
    ),
    "too many features": (lambda: naive_bayes([1.0, 1.0], np.ones((20, 2, 2))), False, {}),
    "numbers other than 0, 1, ...": (
        lambda: of_functions(support=Domain(("a", "b"), (2, 3), numbers=(BITS, LevelNumbers((4, 5, 6), "int32")))),
        True,
        {"a": [0, 0, 0, 1, 1, 1], "b": [4, 5, 6, 4, 5, 6]},
    ),
    "a list": (lambda: of_functions(support=lambda: jax.tree.map(jnp.asarray, PAIRS)), True, PAIRS),
    "a list of one field": (
        lambda: of_functions(discrete_support=lambda: {"a": jnp.arange(3)}),
        False,
        {"a": [0, 1, 2]},
    ),
    "a real number": (lambda: normal(NormalPrior(0.0, 1.0), 1.0), False, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_domain_lists_what_records_can_be(name: str) -> None:
    """Finite or not, its fields, its size and its records agree with each other and with the model."""
    build, is_finite, listed = CASES[name]
    domain = build().domain
    assert domain.is_finite == is_finite
    assert set(domain.fields) == set(listed)
    assert domain.size == (len(next(iter(listed.values()))) if listed else 1)
    found = domain()
    assert set(found) == set(listed)
    assert all(np.array_equal(found[field], values) for field, values in listed.items())


def test_a_table_has_no_category_that_a_field_among_others_never_takes() -> None:
    """Beside fields that are not listed it went unnoticed, while it is refused where all fields are."""
    model = of_functions(discrete_support=lambda: {"a": jnp.arange(2)})
    release = dpjax.Release([3.0, 4.0, 3.0], dpjax.Laplace(1.0), dpjax.statistics.cells("a", 3), n=10)
    with pytest.raises(ValueError, match="a table of 3 categories of 'a', of which no record of the model takes 2"):
        check_fit(model, release)
