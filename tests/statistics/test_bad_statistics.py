"""Bad arguments and records: each error names the argument, what was given, what was expected and the remedy."""

import jax.numpy as jnp
import pytest

from dpjax import statistics


@pytest.mark.parametrize(
    ("build", "argument"),
    [
        (lambda: statistics.gram([0, 0], [1], (0, 1)), "upper"),
        (lambda: statistics.gram([0, 2], [1, 1]), "upper"),
        (lambda: statistics.gram([0, float("nan")], [1, 1]), "lower"),
        (lambda: statistics.gram([], []), "lower"),
        (lambda: statistics.gram([0], [1], (0, 1, 2)), "response"),
        (lambda: statistics.gram([0], [1], (2, 1)), "response"),
        (lambda: statistics.gram(["low"], [1]), "lower"),
        (lambda: statistics.total("y", 1, 0), "upper"),
        (lambda: statistics.total("y", 0, float("inf")), "upper"),
        (lambda: statistics.total("y", [0, 0], [1, 1], dimension=3), "dimension"),
        (lambda: statistics.total("y", [0, 0, 0], [1, 1]), "dimension"),
        (lambda: statistics.total("y", dimension=0), "dimension"),
        (lambda: statistics.mean("y", 0, 0, 1), "n"),
        (lambda: statistics.mean("y", 2.5, 0, 1), "n"),
        (lambda: statistics.cells("a", 1), "num_categories"),
        (lambda: statistics.cells("a", 2.0), "num_categories"),
        (lambda: statistics.cells(["a", "b"], [2]), "num_categories"),
        (lambda: statistics.histogram("y", [0, 1]), "edges"),
        (lambda: statistics.histogram("y", [0, 2, 1]), "edges"),
        (lambda: statistics.grouped("a", [0, -2]), "groups"),
        (lambda: statistics.grouped("a", [0, 1], 1), "groups"),
        (lambda: statistics.grouped("a", [-1, -1]), "groups"),
        (lambda: statistics.grouped("a", [0.0, 1.0]), "groups"),
        (lambda: statistics.grouped("a", [[0], [1]]), "groups"),
        (lambda: statistics.grouped("a", []), "groups"),
        (lambda: statistics.grouped("a", None), "groups"),
        (lambda: statistics.grouped("a", [0, 1], 0), "num_groups"),
        (lambda: statistics.grouped(3, [0, 1]), "field"),
        (lambda: statistics.class_features(1, 3, 1), "num_classes, num_levels"),
        (lambda: statistics.class_features(2, 0, 2), "num_features"),
        (lambda: statistics.log_composition("share", 0), "lower"),
        (lambda: statistics.log_composition("share", 1.0), "lower"),
        (lambda: statistics.log_composition("share", 0.1, dimension=1), "dimension"),
        (lambda: statistics.scaled(statistics.total("y"), 0), "factor"),
        (lambda: statistics.scaled(statistics.total("y"), float("inf")), "factor"),
        (lambda: statistics.stacked(), "statistics"),
    ],
)
def test_bad_arguments_are_named(build, argument):
    with pytest.raises((ValueError, TypeError), match=f"^{argument}: given .*; expected .*\\. .+\\.$"):
        build()


@pytest.mark.parametrize(
    ("statistic", "record", "field"),
    [
        (statistics.gram([0, 0], [1, 1], (0, 1)), {"x": jnp.ones(2)}, "y"),
        (statistics.gram([0, 0], [1, 1], (0, 1)), {"x": jnp.ones(3), "y": jnp.ones(())}, "x"),
        (statistics.gram([0, 0], [1, 1], (0, 1)), {"x": jnp.ones(2), "y": jnp.ones(1)}, "y"),
        (statistics.total("y", 0, 1), {"y": jnp.ones(3)}, "y"),
        (statistics.total("y", dimension=2), {"y": jnp.ones(3)}, "y"),
        (statistics.cells("a", 3), {"a": jnp.ones(())}, "a"),
        (statistics.cells("a", 3), {"a": jnp.ones(2, int)}, "a"),
        (statistics.cells("a", 3), {"b": jnp.ones((), int)}, "a"),
        (statistics.histogram("y", [0, 1, 2]), {"y": jnp.ones(1)}, "y"),
        (statistics.class_features(2, 3, 2), {"class": jnp.ones((), int), "features": jnp.ones(2, int)}, "features"),
        (statistics.log_composition("share", 0.1, dimension=2), {"share": jnp.ones(3)}, "share"),
    ],
)
def test_records_that_do_not_fit_are_named(statistic, record, field):
    with pytest.raises((ValueError, TypeError), match=rf"^record\['{field}'\]: given .*; expected .*\. .+\.$"):
        statistic(record)
