"""Counts rounded at random: law, starts, chains against enumeration, a joint-distribution test and a mutation test."""

from collections.abc import Iterable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import diagnostics, models, statistics
from dpjax.mechanisms import RandomRounding, frozen_pytree
from tests.data_augmentation.counts import perfect
from tests.mechanisms.published import (
    ALPHA,
    COLUMNS,
    MAX_Z,
    NOISY_ROWS,
    PRIOR,
    ROWS,
    Part,
    check_chains,
    exact,
    laplace,
    posterior_of,
    random_rounding,
)
from tests.tools import perfect_start

THREE = Part(RandomRounding(3), random_rounding(3), np.array([6, 9, 0, 6]))
FIVE = Part(RandomRounding(5), random_rounding(5), np.array([10, 5]), ROWS)
NOISY = Part(dpjax.Laplace(2.0), laplace, NOISY_ROWS, ROWS)
KNOWN = Part(dpjax.Exact(), exact, np.array([8, 14]), COLUMNS)
ROUNDED_ROWS = Part(RandomRounding(3), random_rounding(3), np.array([15, 6]), ROWS)
ROUNDED_COLUMNS = Part(RandomRounding(3), random_rounding(3), np.array([6, 15]), COLUMNS)

TABLE = models.categorical(ALPHA)
NUM_DRAWS, MANY = 40_000, 20


@pytest.mark.parametrize("base", [2, 3, 5])
def test_law(base: int) -> None:
    mechanism, counts = RandomRounding(base), np.arange(MANY)
    value = base * np.arange(MANY)
    terms = jax.jit(mechanism.log_density_terms)(jnp.asarray(value, float)[:, None], jnp.asarray(counts, float)[None])
    probability = np.exp(np.asarray(terms, np.float64))
    np.testing.assert_allclose(probability.sum(axis=0), 1.0, rtol=1e-6)
    np.testing.assert_allclose(value @ probability, counts, atol=1e-5)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(terms, random_rounding(base)(value[:, None], counts[None]), rtol=1e-6, atol=1e-7)
    least, most = map(np.asarray, mechanism.sums.bounds(jnp.asarray(value, float)))
    for place in range(MANY // base - 1):
        possible = counts[probability[place] > 0]
        assert (possible.min(), possible.max()) == (least[place], most[place])


@pytest.mark.parametrize("base", [3, 5])
def test_draws(base: int) -> None:
    counts = jnp.repeat(jnp.arange(10), NUM_DRAWS)
    drawn = np.asarray(jax.jit(RandomRounding(base).sample)(jax.random.key(1), counts)).reshape(10, NUM_DRAWS)
    for count, row in enumerate(drawn):
        rest = count % base
        assert set(np.unique(row - count + rest)) <= {0, base}
        share, error = np.mean(row > count), np.sqrt(rest * (base - rest) / base**2 / NUM_DRAWS)
        assert abs(share - rest / base) <= MAX_Z * error


CASES = {
    "alone": [THREE],
    "beside noisy rows": [THREE, NOISY],
    "with rounded margins": [THREE, ROUNDED_ROWS, ROUNDED_COLUMNS],
    "with known columns": [THREE, KNOWN],
    "of other bases": [THREE, FIVE],
}


def usually(*fast: str, among: Iterable[str] = CASES) -> list:
    """The names of cases; all but these few are slow."""
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in among]


@pytest.mark.x32
@pytest.mark.parametrize("name", usually("with rounded margins"))
def test_counts_agree_with_enumeration(name: str) -> None:
    check_chains(CASES[name], imputation=dpjax.counts())


@pytest.mark.x32
@pytest.mark.parametrize("name", usually("beside noisy rows", among=["beside noisy rows", "with rounded margins"]))
def test_counts_of_unknown_number_agree(name: str) -> None:
    check_chains(CASES[name], dpjax.UnknownCount(PRIOR), imputation=dpjax.counts())


@pytest.mark.x32
@pytest.mark.parametrize("name", usually("with rounded margins", among=["beside noisy rows", "with rounded margins"]))
def test_records_agree_with_enumeration(name: str) -> None:
    check_chains(CASES[name], imputation=dpjax.imwg(), num_samples=8_000)


@pytest.mark.slow
def test_records_of_unknown_number_agree() -> None:
    check_chains([THREE, NOISY], dpjax.UnknownCount(PRIOR), imputation=dpjax.imwg(), num_samples=8_000)


def test_margins_narrow_cells() -> None:
    narrow, wide = (posterior_of(CASES[name], 22).counts()[1] for name in ("with rounded margins", "alone"))
    assert np.all(narrow < wide)


@frozen_pytree
@dataclass(frozen=True)
class Nearest(RandomRounding):
    """A mutation: up or down with probability 1/2, however near the count is."""

    def log_density_terms(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        terms = super().log_density_terms(value, statistic)
        return jnp.where((terms < 0) & (terms > -jnp.inf), -jnp.log(2.0), terms)


def rounding_p_value(mechanism: RandomRounding) -> float:
    """That perfectly started chains of counts keep the law of the table, and round up with probability r / b."""
    template = dpjax.Release(jnp.zeros(4), mechanism, statistics.cells("cell", 4), 12)
    ends = perfect.run(
        jax.random.key(2), TABLE, template, num_chains=3_000, num_sweeps=3, imputation=dpjax.counts(width=8)
    )
    p_values = [
        perfect.lattice_p_value(ends.counts[:, cell], perfect.beta_binomial(12, ALPHA, cell), range(13))
        for cell in range(4)
    ]
    up, rest = ends.noise > 0, ends.counts % mechanism.base
    p_values += [
        stats.binomtest(int(up[rest == r].sum()), int((rest == r).sum()), r / mechanism.base).pvalue
        for r in range(1, mechanism.base)
    ]
    return perfect.corrected(p_values)


@pytest.mark.x32
def test_perfect_start() -> None:
    assert rounding_p_value(RandomRounding(3)) > perfect.REJECT
    assert rounding_p_value(Nearest(3)) < perfect.REJECT


def records_p_value(mechanism: RandomRounding) -> float:
    """That perfectly started chains of records keep the prior of the probabilities."""
    template = dpjax.Release(jnp.zeros(4), mechanism, statistics.cells("cell", 4), 12)
    ends = perfect_start.run(jax.random.key(4), TABLE, template, dpjax.imwg(), num_chains=3_000)
    shares, noise = ends.parameters["probabilities"], np.rint(ends.noise)
    p_values = [
        stats.kstest(shares[:, place], stats.beta(alpha, ALPHA.sum() - alpha).cdf).pvalue
        for place, alpha in enumerate(ALPHA)
    ]
    for near, far in [(1, -2), (-1, 2)]:  # of base 3 the nearer multiple has probability 2/3
        number = np.sum(noise == near), np.sum((noise == near) | (noise == far))
        p_values += [stats.binomtest(int(number[0]), int(number[1]), 2 / 3).pvalue]
    return perfect_start.corrected(p_values)


@pytest.mark.x32
def test_perfect_start_of_records() -> None:
    assert records_p_value(RandomRounding(3)) > perfect.REJECT
    assert records_p_value(Nearest(3)) < perfect.REJECT


@pytest.mark.slow
def test_a_large_table_with_rounded_margins_mixes() -> None:
    """6 × 20 cells of a million records, in float32 as well: a thousand draws are enough for R-hat below 1.01."""
    rows, columns, n = np.repeat(np.arange(6), 20), np.tile(np.arange(20), 6), 1_000_000
    rng = np.random.default_rng(1)
    table = rng.multinomial(n, rng.dirichlet(np.full(120, 0.5)))
    parts = [(table, np.arange(120)), *[(np.bincount(groups, table), groups) for groups in (rows, columns)]]
    keys = jax.random.split(jax.random.key(1), 3)
    releases = [
        dpjax.Release(RandomRounding(3).sample(key, jnp.asarray(sums, float)), RandomRounding(3), by, n)
        for key, (sums, groups) in zip(keys, parts, strict=True)
        for by in [statistics.grouped("cell", groups)]
    ]
    options = {"num_warmup": 500, "num_samples": 4_000, "progress": False, "imputation": dpjax.counts()}
    collect = {"collect": lambda state: state.latent.records["counts"][0]}
    found = dpjax.sample(
        jax.random.key(2), models.categorical(np.ones(120)), dpjax.joint(*releases), **options | collect
    )
    counts = np.asarray(found.collected, np.float64)
    assert np.all(np.abs(counts - np.asarray(releases[0].value)) < 3)
    assert max(diagnostics.split_r_hat(counts[..., cell]) for cell in range(120)) < 1.01


@pytest.mark.x32
@pytest.mark.parametrize("imputation", [dpjax.counts(), dpjax.imwg()], ids=["counts", "records"])
def test_starts_are_found_at_the_ends(imputation: dpjax.base.Imputation) -> None:
    """With 26 records each published 6 stands for 8, 8, 8 and 2, or the like: few tables are left."""
    release = dpjax.Release([6.0, 6.0, 6.0, 0.0], RandomRounding(3), statistics.cells("cell", 4), 26)
    options = {"num_warmup": 5, "num_samples": 5, "progress": False, "collect": lambda state: state.latent.log_density}
    found = dpjax.sample(jax.random.key(1), TABLE, release, imputation=imputation, **options)
    assert np.all(np.isfinite(found.collected))


@pytest.mark.x64
def test_contradictions_are_refused() -> None:
    release = dpjax.Release([6.0, 6.0, 6.0, 0.0], RandomRounding(3), statistics.cells("cell", 4), 27)
    with pytest.raises(ValueError, match=r"^release: given known or rounded totals that contradict.*number of records"):
        dpjax.sample(jax.random.key(1), TABLE, release, imputation=dpjax.counts(), progress=False)


def test_it_is_no_privacy() -> None:
    release = THREE.release(22)
    assert "Noise: random rounding to multiples of 3, without bias." in dpjax.describe(release)
    assert dpjax.describe(release).count("no promise is known") == 2
    assert dpjax.from_json(release.to_json()).mechanism == RandomRounding(3)


BAD = {
    "a base of 1": (lambda: RandomRounding(1), "base"),
    "a fractional base": (lambda: RandomRounding(2.5), "base"),
    "no base": (lambda: RandomRounding(None), "base"),
    "a list of bases": (lambda: RandomRounding([3, 5]), "base"),
    "no multiples": (lambda: THREE._replace(value=np.array([6, 8, 0, 6])).release(22), "value"),
    "negative counts": (lambda: THREE._replace(value=np.array([6, -3, 0, 6])).release(22), "value"),
    "fractions": (lambda: THREE._replace(value=np.array([6, 1.5, 0, 6])).release(22), "value"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name: str) -> None:
    call, argument = BAD[name]
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given .*; expected .*\. "):
        call()
