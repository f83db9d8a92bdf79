"""Counts perturbed by a table, and counts of which small ones are suppressed: laws, starts, chains, refusals."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models, releases, statistics
from dpjax.mechanisms import CellKeys, PrimarySuppression, frozen_pytree
from tests.data_augmentation.counts import perfect
from tests.mechanisms.published import (
    ALPHA,
    COLUMNS,
    NOISY_ROWS,
    PRIOR,
    ROWS,
    Part,
    cell_keys,
    check_chains,
    exact,
    laplace,
    posterior_of,
    suppression,
)

TABLE = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.3, 0.4, 0.2, 0.1, 0.0],
        [0.2, 0.0, 0.5, 0.3, 0.0],
        [0.0, 0.1, 0.2, 0.4, 0.3],
    ]
)


KEYS = Part(CellKeys(TABLE), cell_keys(TABLE), np.array([7, 10, 0, 3]))


KEYS_OF_ROWS = Part(CellKeys(TABLE), cell_keys(TABLE), np.array([16, 6]), ROWS)


NOISY = Part(dpjax.Laplace(2.0), laplace, NOISY_ROWS, ROWS)


SMALL = Part(PrimarySuppression(7, least=1), suppression(7, 1), np.array([10, -1, -1, -1]))


ROW_SUMS = Part(dpjax.Exact(), exact, np.array([12, 10]), ROWS)


SUPPRESSED_ROWS = Part(PrimarySuppression(8), suppression(8, 0), np.array([14, 8]), ROWS)


SUPPRESSED_COLUMNS = Part(PrimarySuppression(8), suppression(8, 0), np.array([10, 12]), COLUMNS)


LOW = Part(PrimarySuppression(9), suppression(9, 0), np.array([-1, -1, -1, -1]))


MODEL = models.categorical(ALPHA)


CELLS = statistics.cells("cell", 2)


NUM_DRAWS, COUNTS = 20_000, np.arange(12)


CASES = {
    "cell keys": [KEYS, NOISY],
    "cell keys of margins too": [KEYS, KEYS_OF_ROWS],
    "suppressed": [SMALL],
    "suppressed beside noisy rows": [SMALL, NOISY],
    "suppressed with known rows": [SMALL, ROW_SUMS],
    "suppressed with published margins": [LOW, SUPPRESSED_ROWS, SUPPRESSED_COLUMNS],
}


def test_law_of_cell_keys() -> None:
    value = np.arange(20)
    given = jnp.asarray(value, float)[:, None], jnp.asarray(COUNTS, float)[None]
    terms = jax.jit(CellKeys(TABLE).log_density_terms)(*given)
    probability = np.exp(np.asarray(terms, np.float64))
    np.testing.assert_allclose(probability.sum(axis=0), 1.0, rtol=1e-6)
    expected = cell_keys(TABLE)(value[:, None], np.broadcast_to(COUNTS, (20, 12)))
    np.testing.assert_allclose(terms, expected, rtol=1e-6, atol=1e-7)
    least, most = map(np.asarray, CellKeys(TABLE).sums.bounds(jnp.asarray(value, float)))
    for place in range(9):
        possible = COUNTS[probability[place] > 0]
        assert (possible.min(), possible.max()) == (least[place], most[place])


def test_draws_of_cell_keys() -> None:
    counts = jnp.repeat(jnp.arange(6), NUM_DRAWS)
    drawn = np.asarray(jax.jit(CellKeys(TABLE).sample)(jax.random.key(1), counts)).reshape(6, NUM_DRAWS)
    for count, row in enumerate(drawn.astype(int)):
        expected = np.exp(cell_keys(TABLE)(np.arange(9), np.full(9, count))) * NUM_DRAWS
        observed = np.bincount(row, minlength=9)
        assert np.all(observed[expected == 0] == 0)
        some = expected > 0
        if some.sum() > 1:
            assert stats.chisquare(observed[some], expected[some]).pvalue > 1e-4


def test_a_table_in_columns() -> None:
    i, j = np.nonzero(TABLE)
    assert CellKeys.from_columns(i, j, TABLE[i, j]) == CellKeys(TABLE)
    shuffled = np.random.default_rng(0).permutation(len(i))
    assert CellKeys.from_columns(i[shuffled], j[shuffled], TABLE[i, j][shuffled]) == CellKeys(TABLE)


def test_law_of_suppression() -> None:
    mechanism = PrimarySuppression(5, least=1, code=-9)
    published = np.asarray(mechanism.sample(jax.random.key(0), jnp.arange(8.0)))
    np.testing.assert_array_equal(published, [0, -9, -9, -9, -9, 5, 6, 7])
    terms = np.asarray(mechanism.log_density_terms(jnp.asarray(published)[:, None], jnp.arange(8.0)[None]))
    np.testing.assert_array_equal(np.exp(terms), published[:, None] == published[None])


@pytest.mark.x32
@pytest.mark.parametrize("name", CASES)
def test_counts_agree_with_enumeration(name: str) -> None:
    check_chains(CASES[name], imputation=dpjax.counts())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cell keys", "suppressed beside noisy rows"])
def test_counts_of_unknown_number_agree(name: str) -> None:
    check_chains(CASES[name], dpjax.UnknownCount(PRIOR), imputation=dpjax.counts())


@pytest.mark.x32
def test_records_agree_with_enumeration() -> None:
    check_chains([KEYS], imputation=dpjax.imwg(), num_samples=8_000)


def test_a_table_with_gaps() -> None:
    gaps = np.where(SMALL.value < 0, np.nan, SMALL.value)
    release = dpjax.releases.suppressed(gaps, statistics.cells("cell", 4), 7, 22, least=1)
    np.testing.assert_array_equal(release.value, SMALL.value)
    assert release.mechanism == SMALL.mechanism


def test_zeros_that_are_published_matter() -> None:
    """A mutation, zeros among the suppressed counts, gives means that the chains' errors tell apart."""
    wrong = SMALL._replace(law=suppression(7, 0))
    means = [posterior_of([part], 22).counts()[0] for part in (SMALL, wrong)]
    assert np.max(np.abs(means[0] - means[1])) > 0.1


def test_single_records_cannot_move() -> None:
    with pytest.raises(ValueError, match=r"^imputation: given .*exact in part.*imputation=dpjax\.counts\(\)"):
        dpjax.gibbs(MODEL, SMALL.release(22), dpjax.imwg())


def test_contradictions_are_refused() -> None:
    release = SMALL._replace(value=np.array([10, 12, -1, -1])).release(22)
    with pytest.raises(ValueError, match=r"^release: given known or rounded totals that contradict"):
        dpjax.sample(jax.random.key(1), MODEL, release, progress=False)


@frozen_pytree
@dataclass(frozen=True)
class OtherWay(CellKeys):
    """A mutation: large counts are moved in the other direction."""

    def log_density_terms(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return super().log_density_terms(2 * statistic - value, statistic)


def p_value(mechanism: CellKeys) -> float:
    """That perfectly started chains of counts keep the law of the table, and that of what was published."""
    template = dpjax.Release(jnp.zeros(4), mechanism, statistics.cells("cell", 4), 12)
    ends = perfect.run(
        jax.random.key(2), MODEL, template, num_chains=3_000, num_sweeps=3, imputation=dpjax.counts(width=8)
    )
    p_values = [
        perfect.lattice_p_value(ends.counts[:, cell], perfect.beta_binomial(12, ALPHA, cell), range(13))
        for cell in range(4)
    ]
    for count in (1, 2, 5):
        noise = np.rint(ends.noise[ends.counts == count]).astype(int)
        chance = np.exp(cell_keys(TABLE)(np.arange(9), np.full(9, count)))
        p_values += [perfect.lattice_p_value(noise + count, chance.__getitem__, range(9))]
    return perfect.corrected(p_values)


@pytest.mark.x32
def test_perfect_start() -> None:
    assert p_value(CellKeys(TABLE)) > perfect.REJECT
    assert p_value(OtherWay(TABLE)) < perfect.REJECT


@pytest.mark.parametrize("part", [KEYS, SMALL], ids=["cell keys", "suppression"])
def test_it_is_written_and_described(part: Part) -> None:
    release = part.release(22)
    assert dpjax.from_json(release.to_json()).mechanism == part.mechanism
    words = dpjax.describe(release)
    assert words.count("no promise is known") == 2
    assert "cell keys" in words or "counts from 1 to 6 are suppressed" in words


BAD = {
    "rows that do not sum to 1": (lambda: CellKeys([[1.0, 0.0], [0.5, 0.4]]), "transition"),
    "negative probabilities": (lambda: CellKeys([[1.0, 0.0], [1.5, -0.5]]), "transition"),
    "a missing probability": (lambda: CellKeys([[1.0, 0.0], [np.nan, 0.5]]), "transition"),
    "a vector": (lambda: CellKeys([0.5, 0.5]), "transition"),
    "rows of unequal length": (lambda: CellKeys([[1.0], [0.5, 0.5]]), "transition"),
    "no table": (lambda: CellKeys(None), "transition"),
    "columns of unequal length": (lambda: CellKeys.from_columns([0, 1], [0, 1], [1.0]), "i, j, p"),
    "a pair twice": (lambda: CellKeys.from_columns([0, 0], [0, 0], [0.5, 0.5]), "i, j"),
    "a missing row": (lambda: CellKeys.from_columns([0, 2], [0, 2], [1.0, 1.0]), "i"),
    "fractional counts": (lambda: CellKeys.from_columns([0, 0.5], [0, 1], [1.0, 1.0]), "i"),
    "negative counts": (lambda: CellKeys.from_columns([0, 1], [0, -1], [1.0, 1.0]), "j"),
    "a negative probability": (lambda: CellKeys.from_columns([0, 0], [0, 1], [1.5, -0.5]), "p"),
    "a negative published count": (lambda: KEYS._replace(value=np.array([7, 9, -1, 3])).release(22), "value"),
    "a fraction": (lambda: KEYS._replace(value=np.array([7, 9, 0.5, 3])).release(22), "value"),
    "a whole number that no count becomes": (
        lambda: dpjax.LocalRelease(np.array([1]), CellKeys([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), "y"),
        "values",
    ),
    "a limit of 0": (lambda: PrimarySuppression(0), "limit"),
    "a limit of nothing": (lambda: PrimarySuppression(None), "limit"),
    "a limit at the least": (lambda: PrimarySuppression(1, least=1), "limit"),
    "a least of 2": (lambda: PrimarySuppression(5, least=2), "least"),
    "a code that is a count": (lambda: PrimarySuppression(5, code=7), "code"),
    "a code that is 0": (lambda: PrimarySuppression(5, least=1, code=0), "code"),
    "a missing code": (lambda: PrimarySuppression(5, code=np.nan), "code"),
    "a small count": (lambda: SMALL._replace(value=np.array([10, 3, -1, -1])).release(22), "value"),
    "gaps among negative numbers": (lambda: releases.suppressed([np.nan, -1.0], CELLS, 5, 9), "value"),
    "gaps among text": (lambda: releases.suppressed(["x", 7.0], CELLS, 5, 9), "value"),
    "gaps among small counts": (lambda: releases.suppressed([np.nan, 3.0], CELLS, 5, 9), "value"),
    "an unknown code": (lambda: SMALL._replace(value=np.array([10, -2, -1, -1])).release(22), "value"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name: str) -> None:
    call, argument = BAD[name]
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given .*; expected .*\. "):
        call()
