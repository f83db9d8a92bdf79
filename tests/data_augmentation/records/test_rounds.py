"""Sweeps in windows: equal to the scan in turn, whatever the proposals; a mutation; the joint distribution."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax._util.pytree import frozen_pytree
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.records import rounds
from dpjax.data_augmentation.records.imwg import systematic_sweep
from dpjax.models.simulation import init_latent
from tests.data_augmentation.records.test_perfect_start import BOUNDED, NORMAL, PARAMETER_LAWS, noise_p
from tests.data_augmentation.records.test_sweeps import RELEASES, N as FEW
from tests.tools.perfect_start import REJECT, parameter_p_value, run

N = 11
PROBLEMS = 10_000


def whole_numbers(record: dict) -> jax.Array:
    return record["t"]


@frozen_pytree
@dataclass(frozen=True)
class Box:
    """Noise that is uniform on a box: proposals are certain, or impossible, and so may the start be."""

    width: jax.Array

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return jnp.where(jnp.all(jnp.abs(value - statistic) <= self.width), 0.0, -jnp.inf)

    def sample(self, key: jax.Array, statistic: jax.Array) -> jax.Array:
        return statistic + self.width * jax.random.uniform(key, statistic.shape, float, -1.0)


MECHANISMS = {"laplace": dpjax.Laplace, "discrete gaussian": dpjax.DiscreteGaussian, "box": Box}


def random_sweep(
    key: jax.Array, template: dpjax.Release, windows: tuple[int, ...], block: int
) -> list[tuple[dpjax.base.Latent, dpjax.base.ImputationInfo]]:
    """One random problem of whole numbers, of which some are none: a sweep of it for each window."""
    keys = jax.random.split(key, 6)
    old, new = (jax.random.randint(key, (N, 2), -3, 4).astype(float) for key in keys[:2])
    new = jnp.where(jax.random.uniform(keys[2], (N, 1)) < 0.05, jnp.array([[jnp.nan, jnp.inf]]), new)
    value = jax.random.randint(keys[3], (2,), -9, 10).astype(float)
    scale = jnp.exp(jax.random.uniform(keys[4], (), float, -1.0, 3.0))
    release = replace(template, value=value, mechanism=jax.tree.map(lambda _: scale, template.mechanism))
    uniforms = jax.random.uniform(keys[5], (-(-N // block),))
    return [systematic_sweep(release, {"t": old}, {"t": new}, uniforms, block, window) for window in windows]


def all_sweeps(name: str, windows: tuple[int, ...], block: int = 1) -> list:
    template = dpjax.Release(jnp.zeros(2), MECHANISMS[name](jnp.array(1.0)), whole_numbers, N)
    keys = jax.random.split(jax.random.key(1), PROBLEMS)
    return jax.jit(jax.vmap(lambda key: random_sweep(key, template, windows, block)))(keys)


@pytest.mark.parametrize(("name", "block"), [("laplace", 1), ("discrete gaussian", 3), ("box", 1)])
def test_windows_decide_as_the_scan_in_turn(name: str, block: int) -> None:
    """Of whole numbers the sums are exact: 10,000 random problems, windows that fill the sweep and that do not."""
    (latent, info), *others = all_sweeps(name, (1, 2, 4, N), block)
    assert info.num_rounds is None
    assert 0.1 < info.acceptance_rate.mean() < 0.9
    # To a discrete mechanism what is no whole number is impossible.
    assert bool(info.num_nonfinite.max() > 0) == (name != "discrete gaussian")
    for (ours, report), window in zip(others, (2, 4, N), strict=True):
        np.testing.assert_array_equal(report.accepted, info.accepted)
        np.testing.assert_array_equal(report.num_nonfinite, info.num_nonfinite)
        np.testing.assert_array_equal(ours.records["t"], latent.records["t"])
        np.testing.assert_array_equal(ours.statistic, latent.statistic)
        np.testing.assert_allclose(ours.log_density, latent.log_density, rtol=1e-5)
        count = -(-N // block)
        windows = -(-count // window)
        assert windows <= report.num_rounds.min()
        assert report.num_rounds.max() <= windows * min(window, count)
        assert report.num_rounds.mean() > 1.1 * windows


@pytest.mark.parametrize("width", [1, 2, 5, 16, 23])
def test_what_is_no_number_reaches_only_what_comes_later(width: int) -> None:
    columns = np.arange(2.0 * width).reshape(2, width) + 1
    sums = np.cumsum(columns, axis=1) - columns
    np.testing.assert_array_equal(rounds.sum_before(jnp.asarray(columns, float)), sums)
    columns[0, width // 2], sums[0, width // 2 + 1 :] = np.nan, np.nan
    np.testing.assert_array_equal(rounds.sum_before(jnp.asarray(columns, float)), sums)


def test_one_round_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: the first guesses stand, as if earlier proposals were accepted."""
    monkeypatch.setattr(rounds, "is_unfinished", lambda last: last.number < 1)
    (_, info), (_, report) = all_sweeps("laplace", (1, 4))
    different = np.any(np.asarray(info.accepted != report.accepted), axis=1)
    assert different.mean() > 0.3


@pytest.mark.parametrize("name", RELEASES)
def test_other_sums_differ_by_rounding(name: str) -> None:
    release, draw = RELEASES[name], np.random.default_rng(3)
    old, new = ({"y": jnp.asarray(draw.normal(size=FEW), float)} for _ in range(2))
    uniforms = jnp.asarray(draw.uniform(size=FEW), float)
    latent, info = systematic_sweep(release, old, new, uniforms)
    ours, report = systematic_sweep(release, old, new, uniforms, window=3)
    np.testing.assert_array_equal(report.accepted, info.accepted)
    precision = 1e-10 if release.value.dtype == jnp.float64 else 1e-4
    np.testing.assert_allclose(ours.statistic, latent.statistic, rtol=precision)
    np.testing.assert_allclose(ours.log_density, latent.log_density, rtol=precision)


@pytest.mark.x32
def test_the_joint_law_is_invariant() -> None:
    replicates = run(jax.random.key(21), NORMAL, BOUNDED, dpjax.imwg(window=3))
    assert noise_p(BOUNDED, replicates.noise) > REJECT
    assert parameter_p_value(replicates, PARAMETER_LAWS[id(NORMAL)]) > REJECT


@pytest.mark.x32
def test_one_round_breaks_the_joint_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "is_unfinished", lambda last: last.number < 1)
    release = dpjax.Release(BOUNDED.value, dpjax.Laplace(0.5), BOUNDED.statistic, BOUNDED.n)
    assert noise_p(release, run(jax.random.key(21), NORMAL, release, dpjax.imwg(window=3)).noise) < REJECT


@pytest.mark.parametrize("build", [dpjax.imwg, lambda window: dpjax.pcn(2, 0.0, window)], ids=["imwg", "pcn"])
def test_the_backend_chooses_the_window(build: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """In turn on a CPU, in windows elsewhere, and as asked where asked."""
    theta = NORMAL.sample_prior(jax.random.key(1))
    latent = init_latent(BOUNDED, NORMAL.sample_records(jax.random.key(2), theta, BOUNDED.n))

    def reports_rounds(window: int | None) -> bool:
        kernel = build(window=window)(NORMAL, BOUNDED)
        return jax.eval_shape(kernel, jax.random.key(3), latent, theta)[1].num_rounds is not None

    assert [reports_rounds(window) for window in (None, 1, 5_000)] == [False, False, True]
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert [reports_rounds(window) for window in (None, 1)] == [True, False]


def test_a_tuned_plan_keeps_its_window() -> None:
    open_choice = augment(NORMAL, BOUNDED, dpjax.pcn(window=7))
    assert open_choice.imputation_with_defaults == dpjax.pcn(1, 0.0, window=7)


@pytest.mark.x64
@pytest.mark.parametrize(("numbers", "chosen"), [(1e9, 16), (1e-9, 2)], ids=["steps cost", "numbers cost"])
def test_the_warm_up_chooses_the_window(monkeypatch: pytest.MonkeyPatch, numbers: float, chosen: int) -> None:
    """The wider where only rounds cost, as a window of 16 takes fewer than eight of 2; the narrower where work does."""
    monkeypatch.setattr(rounds, "WIDTHS", (2, 16))
    monkeypatch.setattr(rounds, "NUMBERS_PER_STEP", numbers)
    release = dpjax.Release([3.0], dpjax.Laplace(5.0), BOUNDED.statistic, 64)
    budget = {"num_chains": 2, "num_warmup": 8, "num_samples": 2, "progress": False}
    posterior = dpjax.sample(jax.random.key(5), NORMAL, release, imputation=dpjax.imwg(window="auto"), **budget)
    assert posterior.plan.imputation == dpjax.imwg(window=chosen)


def test_records_with_noise_of_their_own_need_no_window() -> None:
    local = dpjax.LocalRelease(jnp.zeros(3), dpjax.Laplace(1.0), "y")
    theta = {"mean": jnp.zeros(2), "variance": jnp.ones(2)}
    records = {"y": jnp.zeros((2, 3))}
    latent = jax.vmap(lambda records: init_latent(local, records))(records)
    assert dpjax.imwg(window="auto").tune(jax.random.key(1), NORMAL, local, latent, theta) == dpjax.imwg(window=1)


def test_an_open_window_makes_no_kernel() -> None:
    with pytest.raises(ValueError, match="window: given 'auto'; expected a number once the kernel is built"):
        dpjax.imwg(window="auto")(NORMAL, BOUNDED)


@pytest.mark.parametrize(("build", "options", "message"), [
    (dpjax.imwg, {"window": 0}, "window: given 0; expected a whole number"),
    (dpjax.imwg, {"window": 2.5}, "window: given 2.5"),
    (dpjax.imwg, {"scan": "random", "window": 4}, "window: given 4; expected None with scan='random'"),
    (dpjax.imwg, {"scan": "random", "window": "auto"}, "window: given auto; expected None with scan='random'"),
    (dpjax.pcn, {"window": -1}, "window: given -1; expected a whole number"),
])  # fmt: skip
def test_bad_windows_are_refused(build: object, options: dict, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        build(**options)
