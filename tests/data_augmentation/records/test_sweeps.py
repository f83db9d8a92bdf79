"""Sweeps as functions of their innovations, against plain loops that recompute every density from all records."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import imwg, pcn, soma
from dpjax._util.validation import name_of
from dpjax.base import Imputation
from dpjax.data_augmentation.records import proposals
from dpjax.data_augmentation.records.imwg import random_sweep, systematic_sweep
from dpjax.data_augmentation.records.soma import sweep, window_starts
from dpjax.mechanisms import DiscreteGaussian, Gaussian, Laplace
from dpjax.models import NormalPrior, normal
from dpjax.models.simulation import init_latent
from dpjax.release import Release

pytestmark = pytest.mark.x64
N = 7


def moments(record: dict) -> jax.Array:
    return jnp.stack([record["y"], record["y"] ** 2])


def counts(record: dict) -> jax.Array:
    return (record["y"] > jnp.array([0.0, 1.0])).astype(float)


class UserMechanism:
    """A mechanism in the fewest lines: a Cauchy noise whose density is known only as a whole."""

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return jnp.sum(jax.scipy.stats.cauchy.logpdf(value, statistic, 2.0))

    def sample(self, key: jax.Array, statistic: jax.Array) -> jax.Array:
        return statistic + 2.0 * jax.random.cauchy(key, statistic.shape)


jax.tree_util.register_static(UserMechanism)


def plain_log_density(release: Release) -> Callable[[np.ndarray], float]:
    """log η of all records y [n], by SciPy where there is such a law."""
    value = np.asarray(release.value)
    laws = {"Laplace": stats.laplace, "Gaussian": stats.norm, "UserMechanism": stats.cauchy}
    law = laws.get(name_of(release.mechanism))
    scale = getattr(release.mechanism, "scale", 2.0)

    def log_density(y: np.ndarray) -> float:
        if law is None:  # the discrete Gaussian up to its constant, which no ratio sees
            total = np.array([np.sum(y > 0.0), np.sum(y > 1.0)])
            return -np.sum((value - total) ** 2) / (2 * scale**2)
        return np.sum(law.logpdf(value, [np.sum(y), np.sum(y**2)], scale))

    return log_density


RELEASES = {
    "laplace": Release(jnp.array([1.0, 9.0]), Laplace(2.0), moments, N),
    "laplace by coordinate": Release(jnp.array([1.0, 9.0]), Laplace(jnp.array([2.0, 2.0])), moments, N),
    "gaussian": Release(jnp.array([1.0, 9.0]), Gaussian(1.5), moments, N),
    "discrete gaussian": Release(jnp.array([5.0, 1.0]), DiscreteGaussian(1.2), counts, N),
    "user mechanism": Release(jnp.array([1.0, 9.0]), UserMechanism(), moments, N),
}


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> Release:
    return RELEASES[request.param]


@pytest.fixture
def innovations() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(3)
    return {
        "records": draw.normal(size=N),
        "proposals": draw.normal(size=N),
        "uniforms": draw.uniform(size=N),
        "others": draw.uniform(size=N),
        "places": draw.integers(0, N, size=N),
    }


def same(latent: object, info: object, y: np.ndarray, accepted: np.ndarray, release: Release) -> None:
    np.testing.assert_allclose(latent.records["y"], y, atol=1e-10)
    np.testing.assert_array_equal(info.accepted, accepted)
    np.testing.assert_allclose(latent.statistic, release.total({"y": jnp.asarray(y)}), atol=1e-10)
    np.testing.assert_allclose(latent.log_density, release.log_density(latent.statistic), atol=1e-10)
    assert float(info.acceptance_rate) == accepted.sum() / N
    assert int(info.num_nonfinite) == 0


def plain_imwg(release: Release, places: np.ndarray, innovations: dict) -> tuple[np.ndarray, np.ndarray]:
    log_density, y, accepted = plain_log_density(release), innovations["records"].copy(), np.zeros(N, int)
    for proposal, uniform, place in zip(innovations["proposals"], innovations["uniforms"], places, strict=True):
        proposed = y.copy()
        proposed[place] = proposal
        if np.log(uniform) < log_density(proposed) - log_density(y):
            y, accepted[place] = proposed, accepted[place] + 1
    return y, accepted


def test_systematic_sweep(release: Release, innovations: dict) -> None:
    y, accepted = plain_imwg(release, np.arange(N), innovations)
    records, proposals = ({"y": jnp.asarray(innovations[name])} for name in ("records", "proposals"))
    same(*systematic_sweep(release, records, proposals, jnp.asarray(innovations["uniforms"])), y, accepted, release)


def test_random_sweep(release: Release, innovations: dict) -> None:
    y, accepted = plain_imwg(release, innovations["places"], innovations)
    records, proposals = ({"y": jnp.asarray(innovations[name])} for name in ("records", "proposals"))
    uniforms, places = jnp.asarray(innovations["uniforms"]), jnp.asarray(innovations["places"])
    same(*random_sweep(release, records, proposals, uniforms, places), y, accepted, release)


@pytest.mark.parametrize("attempts", [1, 3, N])
def test_soma_sweep(release: Release, innovations: dict, attempts: int) -> None:
    log_density, y, accepted = plain_log_density(release), innovations["records"].copy(), np.zeros(N, int)
    steps = zip(innovations["proposals"], innovations["others"], innovations["uniforms"], strict=True)
    for (proposal, select, accept), start in zip(steps, window_starts(N, attempts), strict=True):
        tried = [np.where(np.arange(N) == place, proposal, y) for place in range(start, start + attempts)]
        weights = np.exp([log_density(candidate) for candidate in tried])
        chosen = np.searchsorted(np.cumsum(weights), select * weights.sum(), side="right")
        if accept < weights.sum() / (weights.sum() + np.exp(log_density(y)) - weights[chosen]):
            y = tried[chosen]
            accepted[start + chosen] += 1
    records, old = ({"y": jnp.asarray(innovations[name])} for name in ("proposals", "records"))
    uniforms = [jnp.asarray(innovations[name]) for name in ("others", "uniforms")]
    same(*sweep(release, old, records, *uniforms, attempts), y, accepted, release)


def test_one_record_makes_soma_and_imwg_one_kernel(innovations: dict) -> None:
    release = Release(jnp.array([0.3, 0.8]), Laplace(0.3), moments, 1)
    decisions = []
    for record, proposal, uniform in zip(*(innovations[k] for k in ("records", "proposals", "uniforms")), strict=True):
        old, new = {"y": jnp.array([record])}, {"y": jnp.array([proposal])}
        imwg, _ = systematic_sweep(release, old, new, jnp.array([uniform]))
        soma, _ = sweep(release, old, new, jnp.array([0.5]), jnp.array([uniform]), 1)
        np.testing.assert_allclose(soma.records["y"], imwg.records["y"], atol=1e-10)
        decisions.append(float(imwg.records["y"][0]) == proposal)
    assert 0 < sum(decisions) < N


def test_a_density_that_is_not_a_number_is_a_rejection_and_counted(innovations: dict) -> None:
    release = Release(jnp.array([1.0, 9.0]), Laplace(2.0), moments, N)
    old = {"y": jnp.asarray(innovations["records"])}
    broken = {"y": jnp.full(N, jnp.nan)}
    half, ones = jnp.full(N, 0.5), jnp.full(N, 1e-300)
    for latent, info in (
        systematic_sweep(release, old, broken, ones),
        random_sweep(release, old, broken, ones, jnp.arange(N)),
        sweep(release, old, broken, half, ones, N),
    ):
        np.testing.assert_array_equal(latent.records["y"], old["y"])
        assert int(info.num_nonfinite) == N
        assert float(info.acceptance_rate) == 0.0


@pytest.mark.parametrize("proposed", [np.inf, np.nan])
def test_what_is_no_density_is_not_accepted(proposed: float) -> None:
    """An infinite density would be accepted for ever; densities of shipped mechanisms never are."""
    accepted, broken = proposals.accept(jnp.array(proposed), jnp.array(-1.0), jnp.array(-5.0))
    assert not accepted
    assert broken


@pytest.mark.parametrize("imputation", [imwg(), imwg(window=3), imwg("random"), soma(3), pcn(2, 0.5)], ids=repr)
def test_kernels_take_no_sum_from_the_sweep_before(imputation: Imputation, innovations: dict) -> None:
    """The sum in the state is of the same records: only one that is wrong shows whether a kernel reads it."""
    kernel = jax.jit(imputation(normal(NormalPrior(0.0, 1.0), variance=1.0), RELEASES["laplace"]))
    latent = init_latent(RELEASES["laplace"], {"y": jnp.asarray(innovations["records"])})
    wrong = latent._replace(statistic=latent.statistic + 3.0, log_density=latent.log_density + 3.0)
    ends = [kernel(jax.random.key(1), start, {"mean": jnp.array(0.5)}) for start in (latent, wrong)]
    jax.tree.map(np.testing.assert_array_equal, *ends)


def test_the_sum_is_taken_afresh_in_each_sweep() -> None:
    """In float32 a sum carried over sweeps drifts; here each sweep ends within the rounding of one sum."""
    with jax.enable_x64(False):
        n, num_sweeps = 2_000, 50
        release = Release(jnp.zeros(2), Laplace(1e3), moments, n)

        def step(records: dict, key: jax.Array) -> tuple[dict, tuple]:
            proposal_key, accept_key = jax.random.split(key)
            proposals = {"y": 100 * jax.random.normal(proposal_key, (n,))}
            latent, _ = systematic_sweep(release, records, proposals, jax.random.uniform(accept_key, (n,)))
            return latent.records, (latent.records["y"], latent.statistic[0])

        keys = jax.random.split(jax.random.key(1), num_sweeps)
        _, (y, totals) = jax.lax.scan(step, {"y": jnp.zeros(n)}, keys)
    errors = np.abs(np.asarray(y, float).sum(axis=1) - np.asarray(totals, float))
    # One sum of n terms, and n additions to a residual: the largest partial sum is below 2e4, so is each term's ulp.
    one_sweep = 2 * n * 2e4 * 2.0**-24
    assert errors.max() < one_sweep
    assert errors[-10:].mean() < 3 * errors[5:15].mean() + one_sweep / n
