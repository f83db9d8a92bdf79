"""Mechanisms and statistics are data: copies and pickles are equal, other numbers are not, and JAX maps over them."""

import copy
import pickle
from typing import Any

import jax
import pytest

from tests.release.test_json import MECHANISMS, STATISTICS


@pytest.mark.x64
@pytest.mark.parametrize("value", [*MECHANISMS, *STATISTICS], ids=lambda value: type(value).__name__)
def test_copies_are_equal(value: Any) -> None:
    for same in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert same == value
        assert hash(same) == hash(value)
    assert type(value).__name__ in repr(value)


@pytest.mark.x64
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda value: type(value).__name__)
def test_mechanisms_that_differ_in_numbers_share_programs(mechanism: Any) -> None:
    other = jax.tree.map(lambda leaf: leaf * 2, mechanism)
    assert jax.tree.structure(other) == jax.tree.structure(mechanism)
    assert (other == mechanism) == (not jax.tree.leaves(mechanism))
