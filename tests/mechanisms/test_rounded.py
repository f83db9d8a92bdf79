"""Chains given rounded and truncated values: against enumeration, a joint-distribution test and mutation tests."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models, statistics
from dpjax.mechanisms import DiscreteLaplace, Laplace, Rounded, Truncated, frozen_pytree
from tests.mechanisms.published import (
    NOISY_ROWS,
    PRIOR,
    ROWS,
    Part,
    check_chains,
    laplace,
    rounded_laplace,
    truncated_lattice,
)
from tests.tools import perfect_start

ROUNDED = Part(Rounded(Laplace(1.5), 5.0), rounded_laplace(1.5, 5.0), np.array([10, 5, 0, 5]))
TRUNCATED = Part(Truncated(DiscreteLaplace(2.0), lower=1.0), truncated_lattice(2.0, 1), np.array([7, 9, 1, 4]))
NOISY = Part(Laplace(2.0), laplace, NOISY_ROWS, ROWS)
CASES = {"rounded": ROUNDED, "truncated": TRUNCATED}


@pytest.mark.x32
@pytest.mark.parametrize("name", CASES)
def test_counts_agree_with_enumeration(name: str) -> None:
    check_chains([CASES[name], NOISY], imputation=dpjax.counts())


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_counts_of_unknown_number_agree(name: str) -> None:
    check_chains([CASES[name], NOISY], dpjax.UnknownCount(PRIOR), imputation=dpjax.counts())


@pytest.mark.x32
@pytest.mark.parametrize("name", CASES)
def test_records_agree_with_enumeration(name: str) -> None:
    check_chains([CASES[name]], imputation=dpjax.imwg(), num_samples=8_000)


@frozen_pytree
@dataclass(frozen=True)
class Unnormalized(Truncated):
    """A mutation: the normaliser is left out."""

    def log_share(self, statistic: jax.Array) -> jax.Array:
        return jnp.zeros_like(statistic)


@frozen_pytree
@dataclass(frozen=True)
class AtTheValue(Rounded):
    """A mutation: the density of the noise at the rounded value."""

    def log_density_terms(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return self.mechanism.log_density_terms(value, statistic)


MEAN, N = 0.5, 6
NORMAL = models.normal(models.NormalPrior(MEAN, 1.0), variance=1.0)


def p_value(mechanism: dpjax.Mechanism) -> float:
    """That perfectly started chains of a Normal mean keep the prior, given the sum of the records."""
    template = dpjax.Release([0.0], mechanism, statistics.total("y"), N)
    ends = perfect_start.run(jax.random.key(3), NORMAL, template, dpjax.imwg(), num_sweeps=6)
    return perfect_start.parameter_p_value(ends, {"mean": lambda mean: (mean, stats.norm(MEAN, 1.0))})


@pytest.mark.x32
def test_perfect_start_of_rounded() -> None:
    assert p_value(Rounded(Laplace(1.0), 12.0)) > perfect_start.REJECT
    assert p_value(AtTheValue(Laplace(1.0), 12.0)) < perfect_start.REJECT


@pytest.mark.x32
def test_perfect_start_of_truncated() -> None:
    assert p_value(Truncated(Laplace(3.0), lower=0.0)) > perfect_start.REJECT
    assert p_value(Unnormalized(Laplace(3.0), lower=0.0)) < perfect_start.REJECT
