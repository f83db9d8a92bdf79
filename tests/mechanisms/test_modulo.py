"""Noisy sums known modulo p: every residue, chains against enumeration across several wraps, and refusals."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

import dpjax
from dpjax import models, statistics
from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Modulo, SumOf
from tests.mechanisms.published import ALPHA, NOISY_ROWS, ROWS, Part, check_chains, laplace

SPREAD = np.arange(-4_000, 4_001)
NOISES = {
    "Laplace": (DiscreteLaplace(1.3), lambda noise: -np.abs(noise) / 1.3),
    "Gaussian": (DiscreteGaussian(2.0), lambda noise: -np.square(noise / 2.0) / 2),
    "wide": (DiscreteLaplace(60.0), lambda noise: -np.abs(noise) / 60.0),
}


def log_law(name: str, modulus: int) -> np.ndarray:
    """The log-probability of each residue of the noise, by adding up all noise."""
    log_weight = NOISES[name][1](SPREAD)
    log_weight = log_weight - special.logsumexp(log_weight)
    rest = np.mod(SPREAD, modulus)
    return np.array([special.logsumexp(log_weight[rest == value]) for value in range(modulus)])


@pytest.mark.parametrize("modulus", [2, 7, 64, 1_009])
@pytest.mark.parametrize("name", NOISES)
def test_law(name: str, modulus: int) -> None:
    mechanism = Modulo(NOISES[name][0], modulus)
    value = np.arange(modulus)
    for statistic in (0, 3, 5 * modulus + 1):
        terms = mechanism.log_density_terms(jnp.asarray(value, float), jnp.full(modulus, float(statistic)))
        expected = log_law(name, modulus)[np.mod(value - statistic, modulus)]
        np.testing.assert_allclose(
            terms, expected, rtol=2e-5 if jnp.result_type(float) == jnp.float32 else 1e-9, atol=2e-5
        )
        assert abs(np.sum(np.exp(np.asarray(terms, float))) - 1) < 1e-5


def test_draws() -> None:
    mechanism = Modulo(DiscreteLaplace(1.3), 7)
    drawn = np.asarray(mechanism.sample(jax.random.key(1), jnp.full(20_000, 12.0))).astype(int)
    share = np.exp(log_law("Laplace", 7)[np.mod(np.arange(7) - 12, 7)])
    z = (np.bincount(drawn, minlength=7) / 20_000 - share) / np.sqrt(share * (1 - share) / 20_000)
    assert np.max(np.abs(z)) < 4.5


def part(name: str, modulus: int, value: Any, mechanism: Any = None) -> Part:
    law = log_law(name, modulus)
    chosen = Modulo(NOISES[name][0], modulus) if mechanism is None else mechanism
    return Part(chosen, lambda value, sums: law[np.mod(value - sums, modulus).astype(int)], np.asarray(value))


NOISY = Part(dpjax.Laplace(2.0), laplace, NOISY_ROWS, ROWS)
CASES = {
    "many wraps": [part("Laplace", 5, [3, 4, 0, 2]), NOISY],
    "a wrap below zero": [part("Gaussian", 64, [7, 9, 63, 4]), NOISY],
}


@pytest.mark.x32
@pytest.mark.parametrize("name", CASES)
def test_counts_agree_with_enumeration(name: str) -> None:
    check_chains(CASES[name], imputation=dpjax.counts())


@pytest.mark.slow
def test_records_agree_with_enumeration() -> None:
    check_chains(CASES["many wraps"], imputation=dpjax.imwg(), num_samples=8_000)


@pytest.mark.x64
def test_residues_taken_for_sums_are_noticed() -> None:
    """The planted fault: the modulus is left out."""
    planted = part("Laplace", 5, [3, 4, 0, 2], mechanism=DiscreteLaplace(1.3))
    with pytest.raises(AssertionError):
        check_chains([planted, NOISY], imputation=dpjax.counts())


def test_it_is_written_and_described() -> None:
    mechanism = Modulo(SumOf([DiscreteLaplace(2.0)] * 2), 64)
    release = dpjax.Release([3, 60], mechanism, statistics.cells("cell", 2), 9)
    assert dpjax.from_json(release.to_json()).mechanism == mechanism
    words = dpjax.describe(release)
    assert "then taken modulo 64." in words
    assert "ε = 1" in words


def refused(modulus: int, imputation: Any, n: int = 5_000) -> None:
    release = dpjax.Release([1.0, 2.0, 3.0, 4.0], Modulo(DiscreteLaplace(1.0), modulus), statistics.cells("cell", 4), n)
    dpjax.gibbs(models.categorical(ALPHA), release, imputation)


@pytest.mark.x64
def test_what_no_moves_are_known_to_connect_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^imputation: given counts\(\) with residues modulo 1000, .*; expected a whole mod"
    ):
        refused(1_000, dpjax.counts(width=8))
    with pytest.raises(ValueError, match=r"^imputation: given imwg\(...\) with residues modulo 100;"):
        refused(100, dpjax.imwg())
    refused(100_000, dpjax.counts(width=8))


BAD = {
    "noise without tails": (lambda: Modulo(dpjax.mechanisms.VectorLaplace(1.0), 5), "mechanism"),
    "a modulus of 0": (lambda: Modulo(dpjax.Laplace(1.0), 0.0), "modulus"),
    "several moduli": (lambda: Modulo(dpjax.Laplace(1.0), [5.0, 6.0]), "modulus"),
    "an angle beyond": (
        lambda: dpjax.LocalRelease([1.0, 360.0], Modulo(dpjax.Laplace(1.0), 360.0), field="y"),
        "values",
    ),
    "what is clamped": (lambda: Modulo(dpjax.Censored(DiscreteLaplace(1.0), lower=0.0), 5), "mechanism"),
    "no noise": (lambda: Modulo(dpjax.Exact(), 5), "mechanism"),
    "a modulus of 1": (lambda: Modulo(DiscreteLaplace(1.0), 1), "modulus"),
    "a fraction": (lambda: Modulo(DiscreteLaplace(1.0), 2.5), "modulus"),
    "a field of 64 bits": (lambda: Modulo(DiscreteLaplace(1.0), 2**64 - 2**32 + 1), "modulus"),
    "hopeless noise": (lambda: Modulo(DiscreteLaplace(1e6), 5), "modulus"),
    "a traced scale": (lambda: jax.jit(lambda b: Modulo(DiscreteLaplace(b), 5).sample)(1.0), "mechanism"),
    "no residue": (lambda: CASES["many wraps"][0]._replace(value=np.array([5, 0, 0, 0])).release(22), "value"),
    "a negative value": (lambda: CASES["many wraps"][0]._replace(value=np.array([-1, 0, 0, 0])).release(22), "value"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name: str) -> None:
    call, argument = BAD[name]
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given .*; expected .*\. "):
        call()
