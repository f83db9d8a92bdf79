"""Sums on a grid: those of integers, in any order and batches, without overflow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import statistics
from dpjax.private.noise.secure import grid_of
from dpjax.private.releases import exact_sum
from dpjax.private.releases.exact_sum import carried, split, sum_on_grid
from dpjax.private.releases.price import Part
from dpjax.private.releases.release import noisy, steps_of
from tests.private.releases.paid_sums import GRAM, RECORDS, TABLE, read, seeded


def test_noise_is_added_to_whole_steps():
    parts = [Part(1, 1.0, 1.0, scale, "gaussian", float(grid_of(np.asarray(scale)))) for scale in (3.0, 700.0)]
    step, zeros = steps_of(parts), np.zeros(2, object)
    large = np.array([10**25, -7], object)
    noise = noisy(zeros, parts, seeded()) / step
    assert np.all(noise == np.rint(noise))
    expected = [float(int(start) + int(drawn)) for start, drawn in zip(large, noise, strict=True)]
    np.testing.assert_array_equal(noisy(large, parts, seeded()), expected * step)


def test_sums_are_those_of_integers_in_any_order_and_batches():
    step = np.full(GRAM.dimension, 2.0**-30)
    rows = np.asarray(jax.vmap(GRAM)({name: jnp.asarray(RECORDS[name]) for name in ("x", "y")}), float)
    expected = [sum(int(number) for number in column) for column in np.rint(rows / step).T]
    shuffled = {name: leaf[::-1] for name, leaf in RECORDS.items()}
    pieces = ({name: leaf[start : start + 7] for name, leaf in RECORDS.items()} for start in range(0, 301, 7))
    for records in (RECORDS, shuffled, pieces):
        total = sum_on_grid(GRAM, read(records), step)
        assert (total.steps.tolist(), total.num_records) == (expected, 300)


def test_sums_do_not_overflow():
    steps, halves = np.array([[2.0**62, -(2.0**62), -1.0], [2.0**62, -(2.0**62), -(2.0**40)]] * 4_000), 0
    for _ in range(3):
        halves = carried(halves + np.stack([np.sum(half, axis=0) for half in split(steps)]))
    high, low = halves.astype(object)
    assert (high * 2**32 + low).tolist() == [24_000 * 2**62, -24_000 * 2**62, -12_000 * (2**40 + 1)]


@pytest.mark.parametrize("kind", ["table", "stacked", "classes"])
def test_sums_of_large_tables_are_those_of_all_coordinates(kind, monkeypatch):
    table = statistics.grouped("group", [1, -1, 0], 2)
    records = RECORDS | {"class": RECORDS["group"] % 2, "features": np.stack([RECORDS["group"]] * 2, axis=1)}
    chosen = {
        "table": TABLE,
        "stacked": statistics.stacked(TABLE, statistics.scaled(table, -0.3)),
        "classes": statistics.class_features(2, 2, 3),
    }[kind]
    step = np.exp2(-20.0 - np.arange(chosen.dimension) % 3)
    dense = sum_on_grid(chosen, read(records, chosen), step)
    monkeypatch.setattr(exact_sum, "MOST_DENSE", 1)
    listed = sum_on_grid(chosen, read(records, chosen), step)
    assert (listed.steps.tolist(), listed.num_records) == (dense.steps.tolist(), 300)
