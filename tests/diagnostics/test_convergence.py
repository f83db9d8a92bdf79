"""Diagnostics agree with ArviZ, and with closed forms."""

import warnings

import numpy as np
import pytest

from dpjax import diagnostics


def autoregression(shape: tuple[int, ...], correlation: float = 0.6, seed: int = 3) -> np.ndarray:
    """Chains [chain, draw, ...] of a stationary autoregression with unit variance."""
    noise = np.random.default_rng(seed).normal(size=shape)
    draws = noise.copy()
    for step in range(1, shape[1]):
        draws[:, step] = correlation * draws[:, step - 1] + np.sqrt(1 - correlation**2) * noise[:, step]
    return draws


@pytest.fixture(scope="module")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("arviz")
    if not hasattr(module, "mcse"):
        pytest.skip("needs the statistics of arviz 0.x")
    return module


DRAWS = {
    "even": autoregression((4, 200)),
    "odd": autoregression((4, 201)),
    "short": autoregression((2, 4)),
    "five": autoregression((3, 5)),
    "antithetic": autoregression((4, 200), -0.7),
    "slow": autoregression((4, 200), 0.98),
    "ties": np.round(autoregression((4, 200))),
    "shifted": autoregression((4, 200)) + np.arange(4.0)[:, None],
    "scaled": autoregression((4, 200)) * np.array([1.0, 1, 1, 5])[:, None],
    "offset": 1e6 + autoregression((4, 200)),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (diagnostics.split_r_hat, lambda arviz, draws: arviz.rhat(draws)),
        (diagnostics.ess_bulk, lambda arviz, draws: arviz.ess(draws)),
        (diagnostics.ess_tail, lambda arviz, draws: arviz.ess(draws, method="tail")),
        (diagnostics.ess_mean, lambda arviz, draws: arviz.ess(draws, method="mean")),
        (diagnostics.mcse_mean, lambda arviz, draws: arviz.mcse(draws)),
        (diagnostics.mcse_sd, lambda arviz, draws: arviz.mcse(draws, method="sd")),
        (
            lambda draws: diagnostics.mcse_quantile(draws, 0.25),
            lambda arviz, draws: arviz.mcse(draws, method="quantile", prob=0.25),
        ),
    ],
    ids=["r_hat", "ess_bulk", "ess_tail", "ess_mean", "mcse_mean", "mcse_sd", "mcse_quantile"],
)
def test_agrees_with_arviz(arviz, name, ours, theirs):
    np.testing.assert_allclose(ours(DRAWS[name]), theirs(arviz, DRAWS[name]), rtol=1e-8)


STATISTICS = [
    diagnostics.split_r_hat,
    diagnostics.ess_bulk,
    diagnostics.ess_tail,
    diagnostics.mcse_mean,
    diagnostics.mcse_sd,
    lambda draws: diagnostics.mcse_quantile(draws, 0.5),
]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_each_trailing_entry_stands_alone(statistic):
    draws = autoregression((4, 60, 2, 3))
    alone = [[statistic(draws[:, :, i, j]) for j in range(3)] for i in range(2)]
    np.testing.assert_allclose(statistic(draws), alone, rtol=1e-12)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_draw_that_is_not_finite_spoils_its_entry_only(statistic):
    draws = autoregression((4, 60, 2))
    draws[1, 7, 0] = np.inf
    result = statistic(draws)
    assert np.isnan(result[0])
    assert np.isfinite(result[1])


def test_effective_size_of_an_autoregression():
    """In a long run the size tends to S (1 - ρ) / (1 + ρ); a gate of 10 % is over five standard errors here."""
    draws = autoregression((4, 20_000), 0.5)
    assert diagnostics.ess_mean(draws) == pytest.approx(draws.size / 3, rel=0.1)


def test_one_chain_has_an_r_hat_of_its_halves():
    steady = autoregression((1, 1_000), 0.0)
    assert abs(diagnostics.split_r_hat(steady) - 1) < 0.02
    assert diagnostics.split_r_hat(steady + np.linspace(0, 2, 1_000)) > 1.1


def test_constant_draws():
    draws = np.full((4, 50), 2.5)
    assert np.isnan(diagnostics.split_r_hat(draws))
    assert np.isnan(diagnostics.ess_bulk(draws))
    assert diagnostics.mcse_mean(draws) == 0


def test_too_few_draws_are_refused():
    with pytest.raises(ValueError, match=r"draws: given shape .* at least 4 draws"):
        diagnostics.split_r_hat(np.zeros((4, 3)))
