"""Records in bins: changes of the density, decisions in turn, what privacy promises of them, and what is refused."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import mixture, statistics
from dpjax.mixture.binned import bin_release
from dpjax.mixture.inputs import WITH_VALUES, read_release
from dpjax.mixture.samplers.records import channel_densities
from dpjax.models import GammaPrior
from tests.conftest import FLOAT32
from tests.mixture.global_release import HISTOGRAM, RELEASES, loop
from tests.mixture.two_points import TwoPoints

EPSILON = 1.5
N = 40
ROUNDING = 1e-4 if FLOAT32 else 1e-10
EDGES = np.linspace(0, 1, 6)
BASE = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)


def smoothed(num_draws: int = 7) -> dpjax.Release:
    mechanism = dpjax.SmoothedHistogram(dpjax.mechanisms.smoothing_weight(EPSILON, num_draws, 5, N), num_draws)
    return dpjax.Release(np.linspace(0.05, 0.19, num_draws), mechanism, statistics.histogram("y", EDGES), N)


def noisy() -> dpjax.Release:
    histogram = statistics.histogram("y", EDGES)
    scale = dpjax.laplace_scale(EPSILON, histogram.sensitivity(1, "replace-one"))
    return dpjax.Release([9.2, 3.1, 14.0, -1.3, 10.9], dpjax.Laplace(scale), histogram, N)


PRIVATE = {"smoothed": smoothed(), "noisy": noisy()}


@pytest.mark.parametrize("release", PRIVATE.values(), ids=PRIVATE)
def test_decisions_are_those_by_the_whole_density(release: dpjax.Release) -> None:
    keys = jax.random.split(jax.random.key(3), 3)
    records, proposals = jax.random.uniform(keys[0], (N,)), jax.random.uniform(keys[1], (N,)) ** 2
    thresholds = jnp.log(jax.random.uniform(keys[2], (N,)))
    taken = jax.jit(bin_release(release).decide)(records, proposals, thresholds)
    expected = loop(release, records, proposals, np.asarray(thresholds))
    np.testing.assert_array_equal(taken, expected)
    assert 0.3 * N < expected.sum() < N


def test_one_decision_is_by_the_counts_that_it_changes() -> None:
    """Ratios to a hundredth: uniforms seldom fall between those of neighbouring counts."""
    release = dpjax.Release(noisy().value, dpjax.Gaussian(3.0), noisy().statistic, N)
    keys = jax.random.split(jax.random.key(3))
    records, proposals = jax.random.uniform(keys[0], (N,)), jax.random.uniform(keys[1], (N,))
    decide, density = jax.jit(bin_release(release).decide), jax.jit(lambda y: release.log_likelihood({"y": y}))
    for place in range(5):
        alone = np.arange(N) == place
        ratio = float(density(jnp.where(alone, proposals, records)) - density(records))
        for shift in (-0.01, 0.01):
            taken = decide(records, proposals, jnp.where(alone, ratio + shift, jnp.inf))
            np.testing.assert_array_equal(taken, alone & (shift < 0))


class Draws:
    """Draws of a smoothed histogram by a mechanism that is none of dpjax's, but says how its density adds up."""

    def __init__(self, inner: dpjax.SmoothedHistogram) -> None:
        self.log_density, self.sample = inner.log_density, inner.sample
        self.value_size, self.sums = inner.value_size, inner.sums


def test_what_has_a_density_by_bin_is_read() -> None:
    release = smoothed()
    own = dpjax.Release(release.value, Draws(release.mechanism), release.statistic, N)
    np.testing.assert_array_equal(bin_release(own).gains, bin_release(release).gains)
    uneven = statistics.histogram("y", EDGES**2)
    with pytest.raises(ValueError, match=r"^statistic: given edges from 0 to 1; expected equal bins"):
        bin_release(dpjax.Release(release.value, Draws(release.mechanism), uneven, N))


def test_gains_are_differences_of_the_density() -> None:
    for release in RELEASES.values():
        gains = np.asarray(bin_release(release).gains)
        counts = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0]])
        before, *after = np.asarray(jax.jit(jax.vmap(release.log_density))(counts))
        found = np.array([gains[1, 0] - gains[0, 0], gains[0, 1] - gains[2, 1]])
        np.testing.assert_allclose(found, np.array(after) - before, rtol=10 * ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("release", PRIVATE.values(), ids=PRIVATE)
def test_an_proposal_is_taken_with_probability_above_the_bound(release: dpjax.Release) -> None:
    """Whatever the counts: a record less here and more there changes the log-density by ε at most."""
    gains = np.asarray(bin_release(release).gains)
    worst = gains.max() - gains.min()
    assert worst <= EPSILON * (1 + ROUNDING)
    assert worst > 0.9 * EPSILON


def test_an_proposal_that_is_no_number_is_refused() -> None:
    binned = bin_release(noisy())
    records = jnp.full(N, 0.5)
    ratios = channel_densities(binned, binned.gains, records.at[3].set(jnp.nan))
    assert np.isnan(ratios[3])
    taken = binned.decide(records, records, -1.0 - ratios)
    np.testing.assert_array_equal(np.flatnonzero(~np.asarray(taken)), [3])


def test_a_release_brings_its_mechanism() -> None:
    local = dpjax.LocalRelease([0.1, 0.7], dpjax.Laplace(0.3), "y")
    assert read_release(local, WITH_VALUES) == (local.values, local.channel)
    assert read_release(NOISY, WITH_VALUES) == (NOISY.value, NOISY)
    assert read_release([0.1, 0.7], None) == ([0.1, 0.7], None)


@pytest.mark.slow
def test_both_samplers_find_the_same_density() -> None:
    """Through the one call; the acceptance they report lies above the bound."""
    found = []
    for sampler in (mixture.conditional(), mixture.neal5()):
        posterior = mixture.sample(
            jax.random.key(4),
            noisy(),
            component=mixture.GammaShapes(3.0, 1.0),
            concentration=GammaPrior(2.0, 2.0),
            sampler=sampler,
            num_warmup=300,
            num_samples=1_500,
            collect=("records",),
            progress=False,
        )
        assert posterior.collected["records"].shape == (4, 1_500, N)
        assert posterior.info["acceptance_rate"].mean() > np.exp(-EPSILON)
        assert np.all(posterior.info["num_nonfinite"] == 0)
        found.append(posterior.density(np.linspace(0.05, 0.95, 10)))
    errors = np.hypot(found[0].mcse, found[1].mcse)
    assert np.max(np.abs(found[0].mean - found[1].mean) / errors) < 4


class Rounded:
    """A user's mechanism that does not tell what each bin adds."""

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return -jnp.sum(jnp.abs(value - statistic))

    def sample(self, key: jax.Array, statistic: jax.Array) -> jax.Array:
        del key
        return statistic


@dpjax.mechanisms.frozen_pytree
@dataclass(frozen=True)
class Exact(Rounded):
    """One that adds no noise."""

    def log_density_terms(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return jnp.where(value == statistic, 0.0, -jnp.inf)


TOTAL = dpjax.Release([3.0], dpjax.Laplace(1.0), statistics.total("y", 0, 1), 5)
NOISY = RELEASES["noisy counts"]
WIDE = dpjax.Release([0.1, 0.9], dpjax.SmoothedHistogram(0.5, 2), HISTOGRAM, 5)
TRUNCATED = mixture.TruncatedNormalInverseGamma(0.0, 0.1, 3.0, 3.0)

REFUSED: list[tuple[dict[str, Any], Any, str]] = [
    ({"values": TOTAL}, TypeError, "statistic"),
    ({"values": WIDE}, ValueError, "statistic"),
    ({"values": dpjax.Release([1.0, 2.0, 0.0], Rounded(), HISTOGRAM, 3)}, TypeError, "mechanism"),
    ({"values": dpjax.Release([1.0, 2.0, 0.0], Exact(), HISTOGRAM, 3)}, ValueError, "mechanism"),
    ({"channel": dpjax.Laplace(1.0)}, TypeError, "channel"),
    ({"channel": None}, TypeError, "channel"),
    ({"values": np.zeros(3)}, TypeError, "channel"),
    ({"sampler": mixture.conditional(proposals=0)}, ValueError, "proposals"),
    ({"sampler": mixture.conditional(proposals=3)}, ValueError, "proposals"),
    ({"sampler": mixture.neal5(2)}, ValueError, "auxiliaries"),
    ({"sampler": mixture.neal8()}, ValueError, "sampler"),
    ({"sampler": mixture.neal3()}, ValueError, "sampler"),
    ({"component": TRUNCATED}, TypeError, "channel"),
]


@pytest.mark.parametrize(("change", "error", "argument"), REFUSED)
def test_what_a_mixture_cannot_read_is_refused(change: dict[str, Any], error: Any, argument: str) -> None:
    settings = {"values": NOISY, "component": BASE, "concentration": 1.0, "progress": False}
    with pytest.raises(error, match=rf"^{argument}: given"):
        mixture.sample(jax.random.key(0), **(settings | change))


def test_a_record_of_several_numbers_is_refused() -> None:
    class Pair(TwoPoints):
        def sample(self, key: jax.Array, theta: dict[str, jax.Array]) -> jax.Array:
            return jnp.stack([super().sample(key, theta)] * 2, axis=-1)

        def log_density(self, record: jax.Array, theta: dict[str, jax.Array]) -> jax.Array:
            return super().log_density(record[0], theta)

        def features(self, record: jax.Array) -> jax.Array:
            return super().features(record[0])

    with pytest.raises((TypeError, ValueError), match="given"):
        mixture.sample(jax.random.key(0), NOISY, component=Pair(), concentration=1.0, progress=False)
