"""Quotients of noisy sums: their density against quadrature, posteriors against enumeration, and joint tests."""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import dpjax
from dpjax import statistics
from dpjax.mechanisms import Quotient, frozen_pytree
from tests.conftest import FLOAT32
from tests.tools import perfect_start
from tests.tools.category_oracle import MODEL, PRIOR, check, moments

N = 7
NUMERATOR, DENOMINATOR = statistics.grouped("cell", [-1, -1, 0]), statistics.grouped("cell", [-1, 0, 0])
NOISES = {
    "Gaussian": dpjax.Gaussian,
    "Laplace": dpjax.Laplace,
}
LAWS = {"Gaussian": stats.norm, "Laplace": stats.laplace}
KINDS = [(top, bottom) for top in LAWS for bottom in LAWS]
pytestmark = pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")

RUN = {"num_warmup": 500, "num_samples": 4_000, "progress": False}


@cache
def log_density(kind: tuple[str, str], value: float, sums: tuple[float, float], scales: tuple[float, float]) -> float:
    """The log of ∫ |b| f(value b − A) g(b − B) db by SciPy, in pieces around each kink and the mode."""
    top, bottom = (LAWS[name](scale=scale) for name, scale in zip(kind, scales, strict=True))
    slope = value if abs(value) > 1e-6 else 0.0
    mode = (sums[0] * slope / scales[0] ** 2 + sums[1] / scales[1] ** 2) / ((slope / scales[0]) ** 2 + scales[1] ** -2)
    kinks = [sums[1], 0.0, mode] + ([sums[0] / slope] if slope else [])

    def log_integrand(b: float) -> float:
        return float(top.logpdf(value * b - sums[0]) + bottom.logpdf(b - sums[1]))

    peak = max(map(log_integrand, kinks))
    steps = [sign * scales[1] * step for sign in (-1, 1) for step in (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)]
    cuts = sorted({place + step for place in kinks for step in steps})
    pieces = [
        integrate.quad(lambda b: abs(b) * np.exp(log_integrand(b) - peak), *ends, epsabs=0, epsrel=1e-12)[0]
        for ends in pairwise(cuts)
    ]
    return float(np.log(np.sum(pieces)) + peak)


PLACES = [
    (2.1, (80.0, 40.0), (4.0, 1.0)),
    (0.0, (2.0, 5.0), (1.0, 2.0)),
    (-3.0, (2.0, 1.0), (1.0, 1.0)),
    (100.0, (1.0, 1.0), (1.0, 1.0)),
    (1e-9, (3.0, 2.0), (1.0, 1.0)),
    (1.0, (40.0, 0.0), (1.0, 1.0)),
    (0.4, (0.0, 0.0), (2.0, 1.0)),
    (3.0, (3.0, 50.0), (0.3, 2.0)),
    (0.5, (100.0, 300.0), (0.5, 1.0)),
    (0.01, (3.0, 500.0), (5.0, 20.0)),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_density(kind: tuple[str, str]) -> None:
    """Also far in the tails, at a quotient of 0, and where the kinks coincide or are far away."""
    computed = []
    for value, sums, scales in PLACES:
        mechanism = Quotient(*(NOISES[name](scale) for name, scale in zip(kind, scales, strict=True)))
        computed.append(float(mechanism.log_density(jnp.array([value]), jnp.array(sums))))
    expected = [log_density(kind, *place) for place in PLACES]
    # Near 0 the rounding of a logarithm is that of the terms of which it is the sum.
    np.testing.assert_allclose(computed, expected, rtol=2e-6 if FLOAT32 else 1e-10, atol=2e-6 if FLOAT32 else 0)


@pytest.mark.x32
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_draws(kind: tuple[str, str]) -> None:
    """Shares of draws in bins are those of the density: it is normalised, and the sampler has it."""
    mechanism = Quotient(NOISES[kind[0]](1.0), NOISES[kind[1]](0.7))
    sums = jnp.array([3.0, 2.0])
    drawn = np.asarray(jax.vmap(mechanism.sample, (0, None))(jax.random.split(jax.random.key(2), 20_000), sums))
    grid = np.linspace(-4.0, 8.0, 24 * 64 + 1)
    density_at = jax.jit(jax.vmap(mechanism.log_density, (0, None)))
    density = np.exp(np.asarray(density_at(jnp.asarray(grid)[:, None], sums), np.float64))
    cdf = integrate.cumulative_simpson(density, x=grid, initial=0)[::64]
    expected = np.append(np.diff(cdf), 1 - cdf[-1]) * len(drawn)
    observed = np.histogram(drawn, grid[::64])[0]
    observed = np.append(observed, len(drawn) - observed.sum())
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-4


def test_without_noise_below_it_is_a_noisy_sum() -> None:
    """As the denominator's noise vanishes: noise on the numerator, divided by B."""
    for kind, law in LAWS.items():
        found = Quotient(NOISES[kind](2.0), NOISES[kind](1e-5)).log_density(jnp.array([0.4]), jnp.array([3.0, 5.0]))
        np.testing.assert_allclose(found, law(3.0, 2.0).logpdf(0.4 * 5.0) + np.log(5.0), atol=1e-4)


def test_several_quotients_are_independent() -> None:
    both = Quotient(dpjax.Laplace([1.0, 2.0]), dpjax.Laplace(0.5), size=2)
    found = both.log_density(jnp.array([0.3, 0.8]), jnp.array([2.0, 4.0, 5.0, 6.0]))
    one = Quotient(dpjax.Laplace(1.0), dpjax.Laplace(0.5)).log_density(jnp.array([0.3]), jnp.array([2.0, 5.0]))
    two = Quotient(dpjax.Laplace(2.0), dpjax.Laplace(0.5)).log_density(jnp.array([0.8]), jnp.array([4.0, 6.0]))
    np.testing.assert_allclose(found, one + two, rtol=1e-5)


def release_of(kind: tuple[str, str], n=N) -> dpjax.Release:
    noises = {"numerator_noise": NOISES[kind[0]](0.5), "denominator_noise": NOISES[kind[1]](0.8)}
    return dpjax.releases.quotient([0.7], NUMERATOR, DENOMINATOR, **noises, n=n)


def by_enumeration(kind: tuple[str, str]):
    return lambda table: log_density(kind, 0.7, (float(table[2]), float(table[1] + table[2])), (0.5, 0.8))


@pytest.mark.x32
@pytest.mark.parametrize(
    "kind",
    [
        KINDS[3],
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS[:2]),
    ],
    ids=str,
)
def test_posterior(kind: tuple[str, str]) -> None:
    posterior = dpjax.sample(jax.random.key(1), MODEL, release_of(kind), imputation=dpjax.imwg(), **RUN)
    check(posterior.draws["probabilities"], moments(by_enumeration(kind), [N]))


@pytest.mark.slow
def test_posterior_by_counts() -> None:
    """Counts are read together, as the density is no sum over cells."""
    kind = ("Laplace", "Laplace")
    posterior = dpjax.sample(jax.random.key(2), MODEL, release_of(kind), imputation=dpjax.counts(), **RUN)
    check(posterior.draws["probabilities"], moments(by_enumeration(kind), [N]))


@pytest.mark.slow
def test_unknown_number() -> None:
    kind = ("Gaussian", "Gaussian")
    release = release_of(kind, dpjax.UnknownCount(dpjax.models.UniformCount(4, 7)))
    posterior = dpjax.sample(jax.random.key(3), MODEL, release, imputation=dpjax.imwg(), **RUN)
    check(posterior.draws["probabilities"], moments(by_enumeration(kind), range(4, 8)))


@pytest.mark.slow
def test_beside_a_noisy_count() -> None:
    kind = ("Laplace", "Laplace")
    counts = dpjax.Release([5.0], dpjax.Laplace(1.0), statistics.grouped("cell", [0, -1, -1]), N)
    both = dpjax.joint(release_of(kind), counts)
    exact = moments(lambda table: by_enumeration(kind)(table) - abs(5.0 - table[0]), [N])
    check(dpjax.sample(jax.random.key(4), MODEL, both, **RUN).draws["probabilities"], exact)
    assert dpjax.from_json(both.to_json()).mechanism == both.mechanism


@frozen_pytree
@dataclass(frozen=True)
class WithoutJacobian(Quotient):
    """Draws as it should; the density is that of the noise alone, without |b|."""

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        width = jnp.hypot(self.numerator.scale, value * self.denominator.scale)
        distance = (value * statistic[1:] - statistic[:1]) / width
        return jnp.sum(-jnp.square(distance) / 2 - jnp.log(width))


def kept_p_value(mechanism: Quotient, numerator: statistics.Grouped = NUMERATOR) -> float:
    """That parameters keep their prior, and the quotient its place among the sums, over four sweeps."""
    template = dpjax.Release([0.5], mechanism, statistics.stacked(numerator, DENOMINATOR), N)
    found = perfect_start.run(jax.random.key(6), MODEL, template, dpjax.imwg(), interweave=True)
    laws = {"probabilities": lambda draws: (draws[:, 0], stats.beta(PRIOR[0], PRIOR[1:].sum()))}
    rng = np.random.default_rng(1)
    counts = np.array([rng.multinomial(N, share) for share in rng.dirichlet(PRIOR, size=40_000)])
    sums = np.stack([counts[:, 2], counts[:, 1] + counts[:, 2]], axis=1)
    keys = jax.random.split(jax.random.key(7), len(sums))
    fresh = np.asarray(jax.vmap(mechanism.sample)(keys, jnp.asarray(sums, float))) - sums
    p_values = [stats.ks_2samp(found.noise[:, place], fresh[:, place]).pvalue for place in range(2)]
    return perfect_start.corrected([*p_values, perfect_start.parameter_p_value(found, laws)])


@pytest.mark.x32
def test_perfect_start() -> None:
    noises = dpjax.Gaussian(0.5), dpjax.Gaussian(0.8)
    assert kept_p_value(Quotient(*noises)) > perfect_start.REJECT
    assert kept_p_value(WithoutJacobian(*noises)) < perfect_start.REJECT


def test_words_and_text() -> None:
    for kind in KINDS:
        release = release_of(kind)
        again = dpjax.from_json(release.to_json())
        assert (again.mechanism, again.statistic, again.n) == (release.mechanism, release.statistic, N)
    words = dpjax.describe(release_of(("Laplace", "Laplace")))
    assert "on the numerator of each quotient Laplace of scale 0.5, on its denominator Laplace of scale 0.8" in words
    assert "added or removed: ε = 4" in words
    assert "ρ = " in dpjax.describe(release_of(("Gaussian", "Laplace")))


def quotient(value=(0.7,), numerator=NUMERATOR, denominator=DENOMINATOR, top=None, bottom=None, n=N):
    noises = {"numerator_noise": top or dpjax.Laplace(1.0), "denominator_noise": bottom or dpjax.Laplace(1.0)}
    return dpjax.releases.quotient(value, numerator, denominator, **noises, n=n)
