"""`mixture.sample`: slots that run out, strange values, interruptions, outputs, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import diagnostics, mixture
from dpjax.mixture import run as run_module
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.process import Process
from dpjax.mixture.run import FittedSlots, MixtureRun, StateFields
from dpjax.mixture.samplers.base import Setup, Slots
from dpjax.mixture.samplers.conditional import Conditional
from dpjax.mixture.samplers.weights import posterior_weights, stick_weights
from dpjax.runtime.chunk import Segment
from dpjax.runtime.progress import Progress
from dpjax.runtime.run import Status, run_to_end
from tests.mixture.two_points import TwoPoints

VALUES = np.array([-1.4, -1.0, 0.1, 0.6, 2.0, 2.3])
BASE = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)


def draw(values: np.ndarray = VALUES, **options: Any) -> mixture.MixturePosterior:
    """A short run; all of them share one compiled program."""
    settings = {"num_chains": 2, "num_warmup": 0, "num_samples": 40, "collect": ("labels",), "progress": False}
    settings |= {"component": BASE, "concentration": 0.3}
    channel = options.pop("channel", dpjax.Laplace(0.6))
    return mixture.sample(jax.random.key(3), values, channel, **(settings | options))


@pytest.mark.x64
@pytest.mark.parametrize("discount", [None, 0.6])
@pytest.mark.parametrize("draw_weights", [posterior_weights, stick_weights])
def test_what_a_slot_gets_does_not_depend_on_later_slots(draw_weights: Callable, discount: float | None) -> None:
    counts = jnp.array([3.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    process = Process(jnp.asarray(0.8, float), None if discount is None else jnp.asarray(discount, float))
    jitted = jax.jit(lambda counts: draw_weights(jax.random.key(2), counts, process))
    few, many = jitted(counts[:5]), jitted(counts)
    np.testing.assert_allclose(few.weights, many.weights[:5], rtol=1e-5)
    np.testing.assert_allclose(few.beyond, many.beyond[:5], rtol=1e-5)
    assert float(jnp.sum(many.weights) + many.beyond[-1]) == pytest.approx(1, rel=1e-5)


@pytest.mark.slow
def test_a_sweep_made_again_with_more_slots_is_the_same() -> None:
    problem = MixtureProblem(jnp.asarray(VALUES), dpjax.Laplace(0.6), TwoPoints(), jnp.asarray(0.8, float))
    labels = jnp.array([0, 0, 1, 1, 2, 2], jnp.int32)
    keys = jax.random.split(jax.random.key(1), 2)

    def chains(capacity: int) -> Status:
        setup = Setup(Conditional(proposals=1), Slots(capacity, True))
        states = jax.vmap(lambda key: setup.start(problem, key, labels, problem.values))(keys)
        run = MixtureRun(
            problem=problem,
            setup=setup,
            collect=StateFields(("labels",)),
            start_keys=keys,
            chain_keys=keys,
            schedule=(Segment("sampling", 0, 60, 1),),
        )
        return run_to_end(run, Status(0, 0, FittedSlots(setup), states, ()), None, Progress(False))

    grown, wide = chains(8), chains(16)
    assert grown.kernel.setup.capacity > 8
    first, second = (np.concatenate([chunk.collected["labels"] for chunk in end.draws]) for end in (grown, wide))
    assert len(first) == 60
    np.testing.assert_array_equal(first, second)


@pytest.mark.keys
@pytest.mark.parametrize(
    "values",
    [VALUES, np.zeros(6), np.array([-1e6, 0.0, 0.0, 0.1, 0.2, 1e6])],
    ids=["ordinary", "identical", "far outside"],
)
@pytest.mark.filterwarnings("ignore::dpjax.release.PrecisionWarning")
def test_any_values_give_finite_draws(values: np.ndarray) -> None:
    posterior = draw(values)
    number = posterior.draws["num_clusters"]
    assert number.shape == (2, 40)
    assert 1 <= number.min() <= number.max() <= 6
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(posterior.mixing))
    total = posterior.mixing.weights.sum(axis=-1) + posterior.mixing.remainder
    np.testing.assert_allclose(total, 1, rtol=1e-4)
    assert np.all(posterior.info["num_nonfinite"] == 0)
    labels = posterior.collected["labels"]
    found = [[len(set(row)) for row in chain] for chain in labels]
    np.testing.assert_array_equal(found, number)


@pytest.mark.x32
def test_the_density_integrates_to_one_and_clusters_are_shared() -> None:
    posterior = draw()
    # A cluster of no record may lie anywhere: the grid is as wide as the base measure.
    grid = np.sinh(np.linspace(-9, 9, 2_001))
    density = posterior.density(grid, level=0.9)
    assert np.trapezoid(density.mean, grid) == pytest.approx(1, abs=1e-3)
    assert np.all(density.lower <= density.upper)
    shared = posterior.co_clustering()
    np.testing.assert_array_equal(shared, shared.T)
    assert np.all(np.diag(shared) == 1)
    mean = posterior.functional(mixture_mean)
    assert mean.shape == (2, 40)
    assert posterior.to_arviz() is not None


def test_the_posterior_is_plotted_into_axes() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(9, 3))
    posterior = draw()
    partition = posterior.partition(jax.random.key(1))
    panels = figure.subplots(1, 3)
    found = [
        posterior.plot_density(np.linspace(-8, 8, 21), level=0.9, axes=panels[0]),
        posterior.plot_num_clusters(axes=panels[1]),
        posterior.plot_co_clustering(partition, axes=panels[2]),
    ]
    assert all(axes is panel for axes, panel in zip(found, panels, strict=True))
    assert sum(bar.get_height() for bar in panels[1].patches) == pytest.approx(1)
    shown = np.asarray(panels[2].images[0].get_array())
    np.testing.assert_allclose(np.sort(shown, axis=None), np.sort(posterior.co_clustering(), axis=None))
    figure.draw_without_rendering()
    assert posterior.plot_num_clusters().figure is not figure
    with pytest.raises(ValueError, match=r"^grid: given shape"):
        posterior.plot_density(np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"^collect: given"):
        replace(posterior, collected={}).partition(jax.random.key(1))


def mixture_mean(weights: jax.Array, theta: dict[str, jax.Array]) -> jax.Array:
    return weights @ theta["mean"]


def estimates(posterior: mixture.MixturePosterior) -> tuple[np.ndarray, np.ndarray]:
    """Means with their Monte Carlo errors: of the numbers of clusters, shared clusters, and the mixture's mean."""
    number, labels = posterior.draws["num_clusters"], posterior.collected["labels"]
    weights, means = posterior.mixing.weights, posterior.mixing.theta["mean"]
    found = [number == size for size in (1, 2, 3)]
    found += [labels[..., i] == labels[..., j] for i, j in ((0, 1), (2, 3), (0, 5))]
    found += [np.tanh(np.sum(weights * means, axis=-1) / 2)]
    draws = np.stack(found, axis=-1).astype(float)
    return draws.mean(axis=(0, 1)), diagnostics.mcse_mean(draws)


@pytest.mark.slow
@pytest.mark.x64
def test_either_float_type_gives_the_same_posterior() -> None:
    long = {"num_warmup": 500, "num_samples": 8_000}
    wide, other = estimates(draw(**long)), estimates(draw(concentration=0.6, **long))
    with jax.enable_x64(False):
        posterior = draw(**long)
    assert {leaf.dtype for leaf in jax.tree.leaves(posterior.mixing)} == {np.dtype(np.float32)}
    narrow = estimates(posterior)
    scores = [np.max(np.abs(narrow[0] - mean) / np.hypot(narrow[1], error)) for mean, error in (wide, other)]
    assert scores[0] < 5 < scores[1]


def test_an_interruption_keeps_what_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def advance(self: Progress, steps: int, phase: str) -> None:
        if phase == "sampling":
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "advance", advance)
    with pytest.warns(UserWarning, match="interrupted after"):
        part = draw()
    assert part.interrupted
    assert 1 <= part.draws["num_clusters"].shape[1] < 40


def test_thinned_draws_are_those_of_the_whole_run() -> None:
    whole, thinned = draw(), draw(num_samples=13, thin=3)
    np.testing.assert_array_equal(thinned.draws["num_clusters"], whole.draws["num_clusters"][:, 2:39:3])


REFUSED = [
    ({"values": np.array([0.0, np.nan])}, ValueError, "values"),
    ({"values": np.zeros((3, 2, 1))}, ValueError, "values"),
    ({"values": np.zeros((3, 2))}, ValueError, "values"),
    ({"channel": dpjax.HaarWavelet(1.0, 2)}, (TypeError, ValueError), "record"),
    ({"channel": dpjax.Laplace}, TypeError, "channel"),
    ({"component": None}, TypeError, "component"),
    ({"component": "gaussian"}, TypeError, "component"),
    ({"component": object()}, TypeError, "component"),
    ({"concentration": -1.0}, ValueError, "concentration"),
    ({"concentration": [1.0, 2.0]}, ValueError, "concentration"),
    ({"component": TwoPoints(), "sampler": mixture.conditional(proposals=0)}, ValueError, "proposals"),
    ({"collect": ("weights",)}, ValueError, "collect"),
    ({"num_chains": 0}, ValueError, "num_chains"),
]


@pytest.mark.parametrize(("change", "error", "argument"), REFUSED)
def test_unusable_input_is_refused(change: dict[str, Any], error: Any, argument: str) -> None:
    settings = {"values": VALUES, "channel": dpjax.Laplace(1.0), "component": BASE, "concentration": 1.0}
    with pytest.raises(error, match=rf"^{argument}[^:]*: given"):
        mixture.sample(jax.random.key(0), progress=False, **(settings | change))


BAD_CHOICES = [({"weights": "sticks"}, "weights"), ({"truncation": 1}, "truncation"), ({"proposals": -1}, "proposals")]


@pytest.mark.parametrize(("choice", "argument"), BAD_CHOICES)
def test_unusable_choices_are_refused(choice: dict[str, Any], argument: str) -> None:
    with pytest.raises(ValueError, match=rf"^{argument}: given"):
        mixture.conditional(**choice)


@pytest.mark.parametrize("name", ["mean", "precision", "shape", "scale"])
def test_unusable_base_measures_are_refused(name: str) -> None:
    numbers = {"mean": 0.0, "precision": 1.0, "shape": 2.0, "scale": 1.0}
    with pytest.raises(ValueError, match=rf"^{name}: given"):
        mixture.NormalInverseGamma(**(numbers | {name: np.nan}))


def test_too_many_slots_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "MAX_SLOTS", 16)
    status = Status(0, 0, FittedSlots(Setup(Conditional(proposals=0), Slots(16))), None)
    with pytest.raises(RuntimeError, match="more than 16 slots"):
        run_module.grow(status)


def test_the_evidence_of_a_cluster_is_the_chain_of_its_predictives() -> None:
    """log m(y_1, ..., y_n) by the formula and as a product of Student t densities."""
    records = jnp.asarray(VALUES)
    features = jax.vmap(BASE.features)(records)
    total = 0.0
    for i in range(len(VALUES)):
        counts, totals = jnp.array([float(i)]), features[:i].sum(axis=0)[None]
        mean, precision, shape, scale = (float(np.asarray(leaf).ravel()[0]) for leaf in BASE.posterior(counts, totals))
        width = np.sqrt(scale * (precision + 1) / (shape * precision))
        total += stats.t.logpdf(VALUES[i], 2 * shape, loc=mean, scale=width)
    found = BASE.log_evidence(jnp.array([float(len(VALUES))]), features.sum(axis=0)[None])
    assert float(found[0]) == pytest.approx(total, rel=1e-4)
