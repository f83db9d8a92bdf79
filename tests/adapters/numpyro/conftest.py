"""NumPyro's own code promotes ranks and types; all other tests hold dpjax's code to the strict setting."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def _ranks_and_types_may_differ() -> Iterator[None]:
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield
