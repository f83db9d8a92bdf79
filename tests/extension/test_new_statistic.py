"""A new statistic, one class of a user's own, is everywhere what a shipped one is: words, JSON and sensitivity."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.statistics import RecordStatistic
from tests.extension.two_cells import MODEL, N, agrees


@dataclass(frozen=True)
class Weighted(RecordStatistic):
    """The weight of a record's cell."""

    weights: tuple[float, ...]
    json_name: ClassVar[str | None] = "weighted-cell"
    dimension: ClassVar[int] = 1

    def __call__(self, record: dict[str, jax.Array]) -> jax.Array:
        return jnp.asarray(self.weights)[record["cell"]][None]

    def words(self) -> str:
        return f"the sum of the weights {list(self.weights)} of the records' cells"

    @classmethod
    def _from_json_fields(cls, weights: list[float]) -> "Weighted":
        return cls(tuple(weights))

    def diameter(self, norm: int) -> float:
        return max(self.weights) - min(self.weights)

    def radius(self, norm: int) -> float:
        return max(map(abs, self.weights))


STATISTIC = Weighted((0.5, 2.0))
RELEASE = dpjax.Release([9.0], dpjax.Laplace(2.0), STATISTIC, N)


@pytest.fixture(autouse=True, scope="module")
def forget_the_name() -> Iterator[None]:
    """Other tests list the names of the statistics that come with dpjax."""
    yield
    RecordStatistic.by_json_name.pop("weighted-cell")


@pytest.mark.x32
def test_chains_agree_with_enumeration() -> None:
    options = {"num_warmup": 50, "num_samples": 500, "progress": False}
    assert agrees(dpjax.sample(jax.random.key(1), MODEL, RELEASE, **options))


def test_it_is_written_and_read() -> None:
    again = dpjax.from_json(RELEASE.to_json())
    assert again.statistic == STATISTIC
    np.testing.assert_array_equal(again.value, RELEASE.value)


def test_it_is_described() -> None:
    words = str(dpjax.describe(RELEASE))
    assert "The sum of the weights [0.5, 2.0] of the records' cells" in words
    assert "ε = 0.75" in words  # the largest change of the sum over the scale


def test_its_sensitivity_sets_noise() -> None:
    assert dpjax.laplace_scale(0.5, STATISTIC.sensitivity(1, "add-or-remove")) == 4.0
