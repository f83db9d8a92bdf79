"""The problem of the mixtures' experiments, and their measuring at small sizes."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.papers.mixture import numbers, problems, samplers, speed


def test_the_problem_is_the_one_described() -> None:
    problem = problems.make_problem(60, 10.0)
    assert problem.values.shape == (60,)
    assert float(problem.channel.scale) == pytest.approx(2.0)
    exact = problems.simulate_values(3_000, 1e9)  # without noise
    shares = np.histogram(exact, [-10, -2.5, 2.5, 10])[0] / 3_000
    np.testing.assert_allclose(shares, 1 / 3, atol=0.05)


@pytest.mark.slow
def test_rows_hold_what_was_measured() -> None:
    rows = speed.measure_rows(40, "metropolis", {1: 120, 3: 40}, repeats=2)
    assert [(row["n"], row["chains"], row["sweeps"]) for row in rows] == [(40, 1, 240), (40, 3, 240)]
    for row in rows:
        assert row["sweeps_per_second"] > 0
        assert np.exp(-10) < row["acceptance"] <= 1
    result = {"epsilon": 10.0, "reference_sweeps": speed.REFERENCE, "rows": rows}
    figure = pytest.importorskip("matplotlib.figure").Figure()
    speed.draw(result, figure.subplots())
    figure.draw_without_rendering()


def test_the_sweeps_of_chains_fit_the_time() -> None:
    """After the first pass the others go as far as the time allows, and no further than asked."""
    began = time.monotonic()
    run = SimpleNamespace(sweeps=0, seconds=0.0)
    passes = samplers.stops({(20, "exact"): run}, 62_500, began + 100.0)  # type: ignore[dict-item]
    assert next(passes) == samplers.FIRST
    run.sweeps, run.seconds = 1_000, 5.0
    assert list(passes) == pytest.approx([10_500, 21_000], rel=0.02)


def test_laws_of_the_number_of_clusters_are_compared_with_what_chance_makes_of_them() -> None:
    """Independent chains of one law are about as far apart as their halves tell, and shifted ones further."""
    generator = np.random.default_rng(1)

    def figures(shift: int) -> dict[str, np.ndarray]:
        clusters = np.minimum(generator.poisson(4.0, (40, 2_000)) + 1 + shift, samplers.MOST_CLUSTERS)
        whole, *halves = (samplers.histogram(part) for part in (clusters, *np.array_split(clusters, 2, axis=1)))
        means = clusters.mean(axis=1)[:, None]
        return {"histogram": whole[:, None], "halves": samplers.variation(*halves)[:, None], "clusters": means}

    (alike,) = samplers.compare(figures(0), figures(0))
    assert alike["variation"] == pytest.approx(alike["by_chance"], rel=0.25)
    assert abs(alike["difference"]) < 4 * alike["error"]
    (shifted,) = samplers.compare(figures(0), figures(1))
    assert shifted["variation"] > 4 * shifted["by_chance"]
    assert shifted["difference"] == pytest.approx(-1, abs=5 * shifted["error"])


def test_errors_of_ratios_are_those_that_they_have_over_runs() -> None:
    """From data sets, from means of them and from quartiles: each beside the spread of the ratio over 2,000 runs."""
    generator, repeats = np.random.default_rng(2), 40

    def run() -> dict[str, object]:
        shared = generator.normal(size=repeats)
        rows = []
        for name, mean in (("top", 6.0), ("bottom", 3.0)):
            found = mean + 0.3 * (shared if name == "top" else 1) * generator.normal(size=repeats)
            low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
            rows.append({"name": name, "far_each": found.tolist(), "far": middle, "far_quartiles": [low, high]})
        return {"rows": rows, "settings": {"repeats": repeats}}

    runs = [run() for _ in range(2_000)]
    chosen = {"name": "top"}, {"name": "bottom"}
    for read in (numbers.over, numbers.over_means):
        found = read("far", *chosen)
        ratios, errors = (np.array([found[part](each) for each in runs]) for part in ("read", "error"))
        assert np.mean(ratios) == pytest.approx(2.0, abs=0.01)
        assert np.sqrt(np.mean(errors**2)) == pytest.approx(np.std(ratios), rel=0.08)
    normal = [each | {"rows": [each["rows"][1] | chosen[0], each["rows"][1]]} for each in runs]
    found = numbers.over_medians("far", *chosen, spread="quartiles")
    assert [found["read"](each) for each in normal] == [1.0] * len(normal)
    medians = [each["rows"][1]["far"] for each in runs]
    expected = np.sqrt(2) * np.std(medians) / np.mean(medians)
    assert np.mean([found["error"](each) for each in normal]) == pytest.approx(expected, rel=0.1)
