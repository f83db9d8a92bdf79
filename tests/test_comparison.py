"""Evidence of models against enumeration."""

from itertools import product

import jax
import numpy as np
import pytest
from scipy import special, stats

import dpjax

KEY = jax.random.key(3)
N, SCALE = 6, 1.5
RELEASE = dpjax.Release([5.2, 0.4, 1.9], dpjax.Laplace(SCALE), dpjax.statistics.cells("cell", 3), n=N)
PRIORS = {"even": np.array([20.0, 20.0, 20.0]), "free": np.ones(3), "first": np.array([12.0, 2.0, 4.0])}
MODELS = {name: dpjax.models.categorical(prior) for name, prior in PRIORS.items()}


def evidence_of(prior: np.ndarray) -> float:
    """log p(release) by a sum over all tables of six people."""
    tables = np.array([table for table in product(range(N + 1), repeat=3) if sum(table) == N])
    log_table = stats.dirichlet_multinomial.logpmf(tables, prior, N)
    noise = stats.laplace.logpdf(np.asarray(RELEASE.value), tables, SCALE).sum(axis=1)
    return float(special.logsumexp(log_table + noise))


@pytest.mark.parametrize("method", ["importance", pytest.param("smc", marks=pytest.mark.slow)])
def test_evidence_is_that_of_all_tables(method: str) -> None:
    """Within four of its own errors, which are small enough to tell the models apart; in the order of the exact ones.

    Errors of the difference from the best are checked here alone.
    """
    table = dpjax.compare(KEY, MODELS, RELEASE, method=method, num_particles=400, progress=False)
    exact = {name: evidence_of(prior) for name, prior in PRIORS.items()}
    assert list(table.rows) == sorted(exact, key=exact.__getitem__, reverse=True)
    for name, row in ((name, table[name]) for name in table):
        assert row["se"] < 0.08
        assert abs(row["log_evidence"] - exact[name]) < 4 * row["se"]
    best, second = (table[name] for name in table.rows[:2])
    assert second["difference"] == pytest.approx(second["log_evidence"] - best["log_evidence"])
    assert second["se_difference"] == pytest.approx(np.hypot(best["se"], second["se"]))
    assert best["se_difference"] == 0
    shares = np.exp([table[name]["log_evidence"] for name in table])
    np.testing.assert_allclose([table[name]["probability"] for name in table], shares / shares.sum())


def test_what_cannot_be_compared_is_refused() -> None:
    """Before any model is run."""
    with pytest.raises(ValueError, match=r"^models: given 1; expected two or more"):
        dpjax.compare(KEY, {"free": MODELS["free"]}, RELEASE)
    with pytest.raises(ValueError, match=r"^method: given 'loo'"):
        dpjax.compare(KEY, MODELS, RELEASE, method="loo")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^models: "):
        dpjax.compare(KEY, list(MODELS.values()), RELEASE)  # type: ignore[arg-type]
