"""Sweeps over pieces of the records: as one over all with the same innovations; invariance; a mutation."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.data_augmentation.records.imwg import WindowProgress, systematic_sweep
from dpjax.models.simulation import init_latent
from dpjax.numerics import arrays, decision_uniforms
from tests.data_augmentation.records.test_perfect_start import BOUNDED, NORMAL, PARAMETER_LAWS, noise_p
from tests.tools.perfect_start import REJECT, parameter_p_value, run

N, PIECE = 11, 5
RELEASE = dpjax.Release(jnp.array([2.0]), dpjax.Laplace(0.3), BOUNDED.statistic, N)
THETA = {"mean": jnp.array(0.3), "variance": jnp.array(1.5)}


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "PIECE", PIECE)


def innovations(key: jax.Array, block: int, size: int) -> tuple[dict, jax.Array]:
    """The proposals [n] and uniforms of the sweep: each piece has keys of its own."""
    proposals, uniforms = [], []
    for index, start in enumerate(range(0, N, size)):
        proposal_key, accept_key = jax.random.split(jax.random.fold_in(key, index))
        count = min(size, N - start)
        proposals.append(NORMAL.sample_records(proposal_key, THETA, count)["y"])
        uniforms.append(decision_uniforms(accept_key, (-(-count // block),)))
    return {"y": jnp.concatenate(proposals)}, jnp.concatenate(uniforms)


@pytest.mark.parametrize(("block", "size", "window"), [(1, 5, 1), (2, 4, 1), (1, 5, 3), (7, 7, 1)])
def test_pieces_decide_as_one_sweep(block: int, size: int, window: int) -> None:
    """Pieces hold whole blocks; what is left over at the end is a piece of its own."""
    key = jax.random.key(4)
    latent = init_latent(RELEASE, NORMAL.sample_records(jax.random.key(3), THETA, N))
    kernel = dpjax.pcn(block, 0.0, window)(NORMAL, RELEASE)
    ours, report = jax.jit(kernel)(key, latent, THETA)
    whole, info = systematic_sweep(RELEASE, latent.records, *innovations(key, block, size), block, window)
    precision = 1e-10 if RELEASE.value.dtype == jnp.float64 else 1e-5
    np.testing.assert_allclose(ours.records["y"], whole.records["y"], rtol=precision)
    np.testing.assert_array_equal(report.accepted, info.accepted)
    np.testing.assert_allclose(ours.statistic, whole.statistic, rtol=precision)
    np.testing.assert_allclose(ours.log_density, whole.log_density, rtol=precision)
    assert 0 < report.acceptance_rate < 1 or block > 5
    assert (report.num_rounds is None) == (window == 1)
    assert window == 1 or report.num_rounds >= -(-N // window)


def clamped(record: dict) -> jax.Array:
    """A statistic of the user's own, which does not say how long it is."""
    return jnp.clip(record["y"], -2.0, 2.0)[None]


@pytest.mark.parametrize("statistic", [BOUNDED.statistic, clamped], ids=["ours", "own"])
@pytest.mark.parametrize("n", [PIECE, 2 * PIECE, 2 * PIECE + 1])
def test_sums_by_pieces(n: int, statistic: Callable) -> None:
    y = np.random.default_rng(1).normal(size=n)
    release = dpjax.Release([2.0], dpjax.Laplace(0.3), statistic, n)
    np.testing.assert_allclose(release.total({"y": jnp.asarray(y, float)}), [np.clip(y, -2, 2).sum()], rtol=1e-5)


def shorter(release: dpjax.Release, monkeypatch: pytest.MonkeyPatch) -> dpjax.Release:
    """The release of five records, which are now two pieces."""
    monkeypatch.setattr(arrays, "PIECE", 3)
    return release


@pytest.mark.x32
def test_the_joint_law_is_invariant(monkeypatch: pytest.MonkeyPatch) -> None:
    replicates = run(jax.random.key(31), NORMAL, shorter(BOUNDED, monkeypatch), dpjax.imwg())
    assert noise_p(BOUNDED, replicates.noise) > REJECT
    assert parameter_p_value(replicates, PARAMETER_LAWS[id(NORMAL)]) > REJECT


@pytest.mark.x32
def test_a_forgotten_residual_breaks_the_joint_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: a piece does not know what the one before it did to the sum."""
    after = WindowProgress.after

    def forget(self: WindowProgress, *arguments: object) -> WindowProgress:
        return after(self, *arguments)._replace(residual=self.residual, log_density=self.log_density)

    monkeypatch.setattr(WindowProgress, "after", forget)
    release = dpjax.Release(BOUNDED.value, dpjax.Laplace(0.3), BOUNDED.statistic, BOUNDED.n)
    replicates = run(jax.random.key(31), NORMAL, shorter(release, monkeypatch), dpjax.imwg())
    assert noise_p(release, replicates.noise) < REJECT
