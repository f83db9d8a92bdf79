"""Noise sources: right law, on the grid, never twice the same, within jit, scan and vmap."""

import os
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from dpjax.private import events, noise
from dpjax.private.noise.base import at_least
from dpjax.private.noise.secure import (
    FLOAT_ERROR,
    GRID_BITS,
    Secure,
    add_noise,
    extended,
    in_steps,
    keystream,
    rounded_normal,
    settle,
)

pytest.importorskip("cryptography")

LEAST_P = 1e-4
SCALE = 3.0


def scripted(seed: int):
    """A keystream for tests: the bytes of a seeded generator."""
    return np.random.default_rng(seed).bytes


def add(keystream, value, scale):
    """`add_noise` to one array."""
    return add_noise(keystream, (value,), scale, value.dtype)


def coarse(keystream, value, scale):
    """A wrong source: doubles, neither rounded nor on a grid."""
    return value + scale * np.random.default_rng(list(keystream(16))).standard_normal(value.shape)


def on_grid(values: np.ndarray, scale: float) -> bool:
    step = 2.0 ** (np.frexp(scale)[1] - 1 - GRID_BITS)
    return bool(np.all(values / step == np.rint(values / step)))


@pytest.mark.x64
@pytest.mark.parametrize("scale", [SCALE, 1e-7, 2.0**20])
def test_secure_noise_is_gaussian_on_a_grid(scale):
    value = np.full(40_000, 0.1 * scale)
    draws = add(scripted(1), value, np.asarray(scale))
    assert stats.kstest(draws / scale, stats.norm(0.1).cdf).pvalue > LEAST_P
    assert stats.kstest(draws / scale, stats.norm(0.1, 1.05).cdf).pvalue < LEAST_P
    assert on_grid(draws, scale)
    assert not on_grid(coarse(scripted(1), value, scale), scale)
    # The grid is that of the scale, whatever was added.
    others = add(scripted(1), value + 1e-3 * scale * np.pi, np.asarray(scale))
    assert on_grid(others, scale)


@pytest.mark.x64
def test_the_value_moves_the_release_by_whole_steps_and_nothing_else():
    values = np.random.default_rng(0).standard_normal(1_000)
    step = 2.0 ** (1 - GRID_BITS)
    first = add(scripted(5), np.zeros(1_000), np.asarray(SCALE))
    second = add(scripted(5), values, np.asarray(SCALE))
    np.testing.assert_array_equal(second - first, np.rint(values / step) * step)


def test_rounding_is_that_of_the_real_number():
    """Double precision with its error bound decides as 110-digit arithmetic does, from guesses far off."""
    ratio = 1.9 * 2.0**32
    words = np.random.default_rng(2).bytes(8 * 40)
    stream = iter([words])
    draws = rounded_normal(lambda count: next(stream, bytes(count)), np.full(40, ratio))
    for word, draw in zip(np.frombuffer(words, "<u8"), draws, strict=True):
        uniform = extended(int(word) % 2**63, bytes)
        guesses = (abs(int(draw)), abs(int(draw)) + 7, max(abs(int(draw)) - 1_000, 0))
        assert {settle(uniform, ratio, guess) for guess in guesses} == {abs(int(draw))}
        assert (draw < 0) == (word >= 2**63 and draw != 0)


def test_close_decisions_are_left_to_more_digits():
    """A grid so fine that every rounding is in doubt still gives normal draws."""
    ratio = np.full(300, 2.0**49)
    draws = rounded_normal(scripted(3), ratio)
    assert stats.kstest(draws / ratio, "norm").pvalue > LEAST_P


def test_the_quantile_is_far_within_the_error_that_is_allowed_for():
    ratio = 2.0**50
    settled = np.abs(rounded_normal(scripted(4), np.full(200, ratio)))
    tail = np.frombuffer(scripted(4)(8 * 200), "<u8") & np.uint64(2**63 - 1)
    quantile = -ndtri(tail.astype(np.float64) * 2.0**-64)
    assert np.max(np.abs(settled / ratio - quantile) / np.maximum(quantile, 1)) < FLOAT_ERROR / 8


def releases(source: noise.Noise, keys: jax.Array, value: jax.Array, rounds: int) -> np.ndarray:
    """Releases [round, chain, ...] of one value by a loop within vmap within jit."""

    def chain(key: jax.Array) -> jax.Array:
        def step(carry: jax.Array, index: jax.Array) -> tuple[jax.Array, jax.Array]:
            return carry, source.release(jax.random.fold_in(key, index), value, jnp.asarray(SCALE, value.dtype))

        return jax.lax.scan(step, jnp.zeros(()), jnp.arange(rounds))[1]

    return np.asarray(jax.jit(jax.vmap(chain, out_axes=1))(keys))


@pytest.mark.keys
@pytest.mark.parametrize("source", [noise.jax, Secure(scripted(11))], ids=["jax", "secure"])
def test_each_release_of_each_chain_has_noise_of_its_own(source):
    draws = releases(source, jax.random.split(jax.random.key(0), 4), jnp.full(3, 2.0), 500)
    assert draws.shape == (500, 4, 3)
    assert len(np.unique(draws)) > 0.999 * draws.size
    scaled = (draws.astype(np.float64) - 2) / SCALE
    assert stats.kstest(scaled.ravel(), "norm").pvalue > LEAST_P
    correlations = np.corrcoef(scaled.reshape(500, 12), rowvar=False)[np.triu_indices(12, 1)]
    assert np.max(np.abs(correlations)) < 5 / np.sqrt(500)


def test_secure_noise_ignores_the_key_and_repeats_nothing():
    release = jax.jit(partial(noise.secure.release, scale=jnp.asarray(1.0)))
    value = jnp.zeros(4)
    again = [release(jax.random.key(7), value) for _ in range(3)]
    assert len(np.unique(np.concatenate(again))) == 12
    one, other = Secure(scripted(3)), Secure(scripted(3))
    scale = jnp.asarray(1.0)
    first = one.release(jax.random.key(1), value, scale)
    np.testing.assert_array_equal(first, other.release(jax.random.key(2), value, scale))


@pytest.mark.filterwarnings("ignore")  # Python and JAX warn of forks; the child touches neither JAX nor threads.
def test_keystreams_never_repeat_even_in_a_copy_of_the_process():
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, keystream(32))
        os._exit(0)
    os.waitpid(child, 0)
    assert len({os.read(reading, 32), *(keystream(32) for _ in range(10))}) == 11


def test_each_keystream_has_a_fresh_key_of_256_bits(monkeypatch):
    asked = []
    monkeypatch.setattr(os, "urandom", lambda count: asked.append(count) or bytes(count))
    assert keystream(100)[:16] == keystream(16)
    assert asked == [32, 32]
    # The first block of RFC 8439, appendix A.1: key, counter and nonce all zero.
    assert keystream(8).hex() == "76b8e0ada0f13d90"


@pytest.mark.x64
def test_values_and_scales_that_are_no_numbers_tell_nothing():
    value = np.asarray([np.nan, np.inf, -np.inf, 1.0])
    draws = add(scripted(6), value, np.asarray(1.0))
    assert np.all(np.isfinite(draws))
    assert abs(draws[0]) < 10
    assert draws[1] > 1e8
    for scale in (0.0, -1.0, np.nan, np.inf):
        assert np.all(np.isnan(add(scripted(6), value, np.asarray(scale))))


def test_each_lane_has_its_own_scale_and_grid():
    scales = np.asarray([1.0, 1e-3, 1e3])
    draws = add(scripted(7), np.zeros((3, 4_000)), scales)
    np.testing.assert_allclose(draws.std(axis=1) / scales, 1.0, atol=5 / np.sqrt(2 * 4_000))


def test_float32_values_stay_float32():
    value = jnp.zeros(3, jnp.float32)
    assert noise.secure.release(jax.random.key(0), value, jnp.asarray(1.0, jnp.float32)).dtype == jnp.float32


def test_noise_of_bytes_that_can_be_repeated_is_not_secure():
    assert noise.secure.grade == Secure().grade == "secure"
    for source in (Secure(scripted(1)), Secure(os.urandom), noise.jax):
        assert source.grade == source.query("gradient", 1.0, dimension=1).grade == "simulation-grade"


@pytest.mark.parametrize("source", [noise.jax, Secure(scripted(12))], ids=["jax", "secure"])
def test_integers_get_noise_of_the_scale_asked_for(source):
    value = jnp.full(20_000, 3)
    draws = jax.jit(lambda key: source.release(key, value, 0.4))(jax.random.key(1))
    assert draws.dtype == jnp.result_type(float)
    assert stats.kstest((np.asarray(draws, float) - 3) / 0.4, "norm").pvalue > LEAST_P


def test_integers_and_sums_of_two_floats_are_protected_exactly():
    """Beyond 2^53 the release still moves by what the value moves."""
    for parts, scale, dtype in (((2.0**40, 1.0), 2.0**24, np.float32), ((2**54, 1), 2.0**32, np.int64)):
        high, low = (np.full(100, part, dtype) for part in parts)
        one, other = (in_steps(value, np.asarray(0.5)) for value in ((high, low), (high, 0 * low)))
        np.testing.assert_array_equal(one - other, 2)
        draws = add_noise(scripted(13), (high, low), np.asarray(scale), np.float64)
        assert abs(np.mean(draws - parts[0])) < 5 * scale / 10


def test_a_scale_is_never_rounded_down():
    for scale in (0.1, 1 / 3, 0.5, 1e9 + 1):
        assert float(at_least(scale, jnp.float32)) >= scale
        assert float(at_least(scale, jnp.float32)) == pytest.approx(scale, rel=2**-23)


def test_queries_carry_the_grade_and_the_cost_of_rounding():
    plain = noise.jax.query("gradient", 350.0, dimension=10_000, count=26, sampling_rate=0.5)
    assert (plain.noise_multiplier, plain.grade, plain.count, plain.sampling_rate) == (350, "simulation-grade", 26, 0.5)
    rounded = noise.secure.query("gradient", 350.0, dimension=10_000, count=26)
    assert rounded.grade == "secure"
    # With bound b = 1 the step is 350 / 2^32 at most, and rounding moves the sum by that times the root of d.
    assert 350.0 / rounded.noise_multiplier == pytest.approx(1 + 100 * 350 * 2.0**-32, rel=1e-15)
    with pytest.raises(ValueError, match="noise_multiplier"):
        noise.secure.query("gradient", 0.0, dimension=1)
    with pytest.raises(ValueError, match="dimension"):
        noise.secure.query("gradient", 1.0, dimension=0)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers", None)
    with pytest.raises(ImportError, match=r"pip install cryptography dp-accounting"):
        noise.secure.release(jax.random.key(0), jnp.zeros(2), jnp.asarray(1.0))
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match=r"pip install cryptography dp-accounting"):
        events.event([noise.jax.query("gradient", 1.0, dimension=1)])


def test_an_accelerator_without_a_host_is_refused_before_the_charge(monkeypatch):
    """JAX_PLATFORMS=cuda leaves no CPU for the callback, which failed while the program ran, after the charge."""

    def missing(**_: object) -> list[jax.Device]:
        raise RuntimeError("Unknown backend cpu")

    monkeypatch.setattr(jax, "local_devices", missing)
    with pytest.raises(
        ValueError, match=r"noise: given noise\.secure without a CPU .* JAX_PLATFORMS, such as cuda,cpu"
    ):
        noise.secure.query("mean", noise_multiplier=20.0, dimension=3)
