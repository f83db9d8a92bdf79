"""Sums on a grid: those of integers, in any order and batches, without overflow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import statistics
from dpjax.private.noise.secure import grid_of
from dpjax.private.people import EACH_RECORD
from dpjax.private.releases import exact_sum
from dpjax.private.releases.exact_sum import carried, find, find_fixed, split
from dpjax.private.releases.layout import lay_out
from dpjax.private.releases.price import Part
from dpjax.private.releases.release import noisy, steps_of
from tests.private.releases.paid_sums import GRAM, RECORDS, TABLE, exact, seeded


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
        total = exact(records, GRAM, step)
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
    dense = exact(records, chosen, step)
    monkeypatch.setattr(exact_sum, "MOST_DENSE", 1)
    listed = exact(records, chosen, step)
    assert (listed.steps.tolist(), listed.num_records) == (dense.steps.tolist(), 300)


STATISTICS = {
    "total": statistics.total("y", 4.0, 5.0),
    "vector": statistics.total("x", [4.0, -9.0], [5.0, -8.0]),
    "gram": statistics.gram([4.0, -9.0], [5.0, -8.0], (7.0, 9.0)),
    "powers": statistics.powers("y", 4.0, 9.0),
    "histogram": statistics.histogram("y", [4.0, 5.0, 6.0]),
    "quantile": statistics.linear(statistics.around("y", [4.0, 5.0]), np.arange(10.0).reshape(2, 5)),
    "linear": statistics.linear(statistics.cells("y", levels=["a", "b"]), [[3.0, 4.0], [-5.0, 5.0]]),
    "shares": statistics.log_composition("share", 0.1, dimension=2),
    "scaled": statistics.scaled(statistics.grouped("y", [0, 0, 1]), 3.0),
    "classes": statistics.class_features(2, 2, 3),
}


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("kind", STATISTICS)
def test_a_replaced_contribution_is_one_that_the_sensitivities_are_about(kind, norm):
    """Of every statistic: a contribution of 0 is 5 from those of a total from 4 to 5, which differ by 1 at most."""
    statistic, rng = STATISTICS[kind], np.random.default_rng(0)
    types = statistic.leaves[0].field_types
    draw = rng.integers if next(iter(types.values())).base.kind == "i" else rng.uniform
    records = {name: draw(-2 if draw is rng.integers else -10, 10, (400, *of.shape)) for name, of in types.items()}
    records |= {"share": rng.dirichlet([0.5, 0.5], 400)} if "share" in records else {}
    layout = lay_out(records, statistic, None, None, EACH_RECORD)
    fixed = find_fixed(statistic, layout.fixed, norm).parts[0]
    held = {name: leaf.astype(layout.fields[name].reading.dtype) for name, leaf in records.items()}
    distance = np.linalg.norm(find(statistic, held, 400, norm).parts[0] - fixed, norm, axis=1)
    assert np.max(distance) <= statistic.diameter(norm) * (1 + 1e-5)
    assert np.linalg.norm(fixed, norm) <= statistic.radius(norm) * (1 + 1e-5)
