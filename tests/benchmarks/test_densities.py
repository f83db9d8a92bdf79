"""The data that the mixtures' experiments ship, the deconvoluting kernel estimate and the distances of densities."""

import json

import numpy as np
import pytest
from scipy import stats

from benchmarks.experiments import main
from benchmarks.papers.mixture.deconvolution import choose_bandwidth, estimate_density, laplace_noise, no_noise
from benchmarks.papers.mixture.densities import as_density, measure_distances
from benchmarks.papers.mixture.problems import read_records


def test_shipped_records_are_the_published_ones() -> None:
    galaxies, eruptions = read_records("galaxies"), read_records("faithful")
    assert (len(galaxies), galaxies.min(), galaxies.max(), galaxies[77]) == (82, 9172, 34279, 26960)
    assert len(eruptions) == 272
    assert eruptions.mean() == pytest.approx(3.487783, abs=1e-6)
    assert eruptions.std(ddof=1) == pytest.approx(1.141371, abs=1e-6)


def test_without_noise_the_estimate_is_that_of_its_kernel() -> None:
    """The kernel is the inverse transform of (1 - t²)³ on [-1, 1], with mass 1 and value 16 / (35 π) at zero."""
    grid = np.linspace(-60, 60, 1_601)
    kernel = estimate_density(np.zeros(1), grid, no_noise, 1.0)
    assert np.trapezoid(kernel, grid) == pytest.approx(1.0, abs=1e-4)
    assert kernel[800] == pytest.approx(16 / (35 * np.pi), rel=1e-5)
    shifted = estimate_density(np.array([3.0, -6.0]), grid, no_noise, 2.0)
    expected = np.mean([np.interp((grid - place) / 2, grid, kernel) / 2 for place in (3.0, -6.0)], axis=0)
    np.testing.assert_allclose(shifted[400:1_200], expected[400:1_200], atol=1e-4)


def test_laplace_noise_takes_off_the_second_derivative() -> None:
    """1 / φ = 1 + b² t²: the estimate is that without noise less b² times its second derivative."""
    values, scale, bandwidth = np.random.default_rng(1).normal(size=50), 0.7, 0.4
    grid = np.linspace(-3, 3, 1_201)
    plain = estimate_density(values, grid, no_noise, bandwidth)
    second = np.gradient(np.gradient(plain, grid), grid)
    found = estimate_density(values, grid, laplace_noise(scale), bandwidth)
    np.testing.assert_allclose(found[5:-5], (plain - scale**2 * second)[5:-5], atol=1e-5)
    wrong = plain - scale * second
    assert np.max(np.abs(found - wrong)) > 0.01


def test_the_chosen_bandwidth_is_close_to_the_best() -> None:
    generator = np.random.default_rng(2)
    values = generator.normal(size=500) + generator.laplace(scale=0.5, size=500)
    noise, grid = laplace_noise(0.5), np.linspace(-5, 5, 101)
    target = stats.norm.pdf(grid)

    def far(bandwidth: float) -> float:
        estimate = as_density(estimate_density(values, grid, noise, bandwidth), grid)
        return measure_distances(estimate, target, grid)["squared"]

    chosen = far(choose_bandwidth(values, noise, 0.5))
    tried = [far(bandwidth) for bandwidth in np.geomspace(0.1, 2, 20)]
    assert chosen < 3 * min(tried)
    assert chosen < 0.1 * max(tried)


def test_distances_are_those_of_normal_laws() -> None:
    grid = np.linspace(-12, 12, 2_001)
    far = measure_distances(stats.norm.pdf(grid), stats.norm.pdf(grid, 1), grid)
    assert far["hellinger"] == pytest.approx(np.sqrt(1 - np.exp(-1 / 8)), abs=1e-6)
    assert far["absolute"] == pytest.approx(2 * (2 * stats.norm.cdf(0.5) - 1), abs=1e-4)
    assert far["squared"] == pytest.approx((1 - np.exp(-1 / 4)) / np.sqrt(np.pi), abs=1e-6)


@pytest.mark.slow
def test_an_experiment_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """At the size of ``--quick``: others run at tiny ones alone."""
    monkeypatch.setattr("benchmarks.machine.use_one_core", lambda: None)
    main("mixture", ["real-data", "--quick", "--json", "-"])
    assert json.loads(capsys.readouterr().out)["rows"]
