"""Tables in counts meet the oracles: means, standard deviations and laws of counts, probabilities and sizes."""

import jax
import numpy as np
import pytest

import dpjax
from dpjax import models
from tests.data_augmentation.counts import cases, oracle
from tests.data_augmentation.counts.accuracy import check_below, check_figures

LENGTHS = {"num_chains": 16, "num_warmup": 200, "num_samples": 2_000, "progress": False}


def draw(key: int, name: str, **options: object) -> dpjax.Posterior:
    case = cases.build(name)
    settings = LENGTHS | {"imputation": dpjax.counts(), "collect": cases.tally(name)} | options
    return dpjax.sample(jax.random.key(key), case.model, case.release, **settings)


FEWER = {"num_samples": 1_000}
"""Enough for the effective draws that `check_figures` asks for, where chains mix well."""

QUICK = "known margins"
"""Swaps, and a start that meets what is known; the cores of all moves are tested by themselves."""

CASES = [pytest.param(name, marks=[pytest.mark.slow] * (name != QUICK)) for name in cases.BUILDS]


@pytest.mark.x32
@pytest.mark.parametrize("name", CASES)
def test_counts_meet_the_oracle(name: str) -> None:
    case, posterior = cases.build(name), draw(1, name, **(FEWER if name == QUICK else {}))
    for figure, moments in case.figures.items():
        check_figures(posterior.collected if figure == "counts" else posterior.draws[figure], moments)
    # Every draw fits what is known.
    lengths = set(case.law.tables.sum(axis=1))
    assert set(np.unique(posterior.collected.sum(axis=-1))) <= lengths


@pytest.mark.slow
def test_whole_laws_meet_the_oracle() -> None:
    """Not only two moments of them: where two cells may be empty, laws are skewed."""
    case, posterior = cases.build("known columns"), draw(2, "known columns")
    points = np.linspace(0.02, 0.6, 8)
    for cell in range(6):
        marginal = np.cumsum(case.law.marginal(cell))
        check_below(posterior.collected[..., cell], np.arange(len(marginal)), marginal)
        below = case.law.share_below(cases.SKEWED, cell, points)
        check_below(posterior.draws["probabilities"][..., cell], points, below)


LARGE_N, LARGE_NOISE = 1_000_000, 15.0
LARGE_ALPHA = np.array([0.5, 1.0, 2.0, 3.0, 1.5, 50.0])
LARGE_COUNTS = np.array([3, 40, 2_000, 250_000, 300_000, 447_957])
LARGE_VALUE = LARGE_COUNTS + np.array([-20, 11, 4, -25, 6, 30])
"""The noises add up to 6: two sums of the noise's own scale, so that the known n tells something."""


@pytest.mark.x64
def test_a_million_records_meet_the_convolution() -> None:
    assert LARGE_COUNTS.sum() == LARGE_N
    laws = oracle.large_table(LARGE_N, LARGE_ALPHA, LARGE_VALUE, oracle.discrete_gaussian(LARGE_NOISE), 200)
    mean = np.array([law @ counts for counts, law in laws])
    sd = np.array([np.sqrt(law @ (counts - at) ** 2) for (counts, law), at in zip(laws, mean, strict=True)])
    posterior = dpjax.sample(
        jax.random.key(4),
        models.categorical(LARGE_ALPHA),
        cases.table_release(LARGE_VALUE, LARGE_N, LARGE_NOISE),
        imputation=dpjax.counts(),
        collect=cases.tally("skewed"),
        **LENGTHS | FEWER,
    )
    check_figures(posterior.collected, (mean, sd))
    for cell, (counts, law) in enumerate(laws):
        some = slice(None, None, 5)
        check_below(posterior.collected[..., cell], counts[some], np.cumsum(law)[some])
    total = LARGE_ALPHA.sum() + LARGE_N
    share, variance = (LARGE_ALPHA + mean) / total, (sd / total) ** 2
    share_sd = np.sqrt(variance + (share * (1 - share) - variance) / (total + 1))
    check_figures(posterior.draws["probabilities"], (share, share_sd))
