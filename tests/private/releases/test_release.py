"""One secure release of sums: its value, its promise, and what a reader makes of it."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats

import dpjax
from dpjax import models, private, statistics
from dpjax.private.accounting.composition import composed_epsilon
from dpjax.private.releases.price import Cost, price
from tests.private.releases.paid_sums import ADDED, BOTH, BUDGET, GRAM, RECORDS, TABLE, TOTAL, release, seeded

COST = Cost("gaussian", 0.02)
"""How far from a budget its cost may stay."""


def test_value_is_the_sum_and_noise_of_its_scale():
    draws = [release(TABLE, noise=seeded(seed)).value for seed in range(40)]
    exact = np.bincount(RECORDS["group"])
    residuals = (np.stack(draws) - exact) / float(release(TABLE).mechanism.scale)
    assert stats.kstest(residuals.ravel(), "norm").pvalue > 1e-3
    assert stats.kstest(residuals.ravel() * 2, "norm").pvalue < 1e-3


def test_a_confidential_number_stays_unknown():
    unknown = dpjax.UnknownCount(models.UniformCount(100, 1_000))
    published = release(BOTH, budget=ADDED, n=unknown, noise=seeded())
    assert published.n == unknown
    fewer = {name: leaf[1:] for name, leaf in RECORDS.items()}
    neighbour = release(BOTH, fewer, ADDED, n=unknown, noise=seeded())
    assert jax.tree.structure(neighbour) == jax.tree.structure(published)
    assert dpjax.Release.from_json(published.to_json()).n.prior == unknown.prior


def test_forms_of_records_agree():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": RECORDS["x"][:, 0], "b": RECORDS["x"][:, 1], "wage": RECORDS["y"]})
    columns = {"x": ["a", "b"], "y": "wage"}
    expected = release(noise=seeded()).value
    batches = (frame.iloc[start : start + 64] for start in range(0, 400, 64))  # the last ones are empty
    for records in (frame, batches):
        np.testing.assert_array_equal(release(GRAM, records, columns=columns, noise=seeded()).value, expected)
    pieces = iter([{name: leaf[rows] for name, leaf in RECORDS.items()} for rows in (slice(9), slice(9, None))])
    np.testing.assert_array_equal(release(GRAM, pieces, noise=seeded()).value, expected)
    named = release(TOTAL, frame.rename(columns={"wage": "y"}), noise=seeded()).value
    np.testing.assert_array_equal(named, release(TOTAL, noise=seeded()).value)


@pytest.mark.x32
def test_a_warning_of_precision_loses_nothing_that_was_paid_for():
    """Of records that were not counted before it comes after the charge, and is no error even where warnings are."""
    held = {"y": np.full(40, 1e6, np.float32)}
    statistic, near = statistics.total("y", 0.0, 1e6), private.Budget(1e6, 1e-6, "replace-one")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.all(np.isfinite(release(statistic, held, near).value))
        with pytest.raises(dpjax.release.PrecisionWarning):
            release(statistic, held, near, n=40)
    with pytest.warns(dpjax.release.PrecisionWarning):
        release(statistic, held, near)


def test_what_a_seed_can_repeat_promises_nothing():
    published = release(BOTH, noise=seeded())
    assert published.mechanism.privacy is None
    ledger = private.Ledger(BUDGET)
    private.release(ledger, TABLE, RECORDS, people=None, noise=seeded())
    assert ledger.privacy_spent().grade == "simulation-grade"


def test_promise_is_told_and_read_back():
    published = release(BOTH)
    again = dpjax.from_json(published.to_json(units="persons"))
    assert again.mechanism.privacy == published.mechanism.privacy
    assert "Stated with the release: approximate privacy, ε = 1, δ = 1e-06" in dpjax.describe(again)
    parts = [private.Query("x", part.multiplier, "secure") for part in price(BOTH, COST, "replace-one", None, None)]
    mu = sum((2 / part.noise_multiplier) ** 2 / 2 for part in parts)
    np.testing.assert_allclose(mu, 0.02, rtol=1e-12)
    assert composed_epsilon(parts, 1e-6, "replace-one") < 1


READ = """
import sys
import jax, numpy as np
from tests.private.releases.test_release import posterior_of
np.save(sys.argv[2], posterior_of(open(sys.argv[1]).read()))
"""


def posterior_of(text: str) -> np.ndarray:
    """Draws given a release that is read from its text."""
    model = models.normal(mean_prior=models.NormalPrior(0.0, 2.0), variance=1.0)
    settings = {"num_chains": 2, "num_warmup": 20, "num_samples": 20, "progress": False, "refresh": False}
    return dpjax.sample(jax.random.key(3), model, dpjax.Release.from_json(text), **settings).draws["mean"]


@pytest.mark.x64
def test_another_process_draws_the_same(tmp_path):
    few = {name: leaf[:30] for name, leaf in RECORDS.items()}
    text, result = tmp_path / "release.json", tmp_path / "draws.npy"
    text.write_text(release(TOTAL, few).to_json())
    options = {"PYTHONPATH": str(Path.cwd()), "JAX_ENABLE_X64": str(int(jax.config.jax_enable_x64))}
    subprocess.run([sys.executable, "-c", READ, str(text), str(result)], check=True, env=os.environ | options)
    np.testing.assert_array_equal(np.load(result), posterior_of(text.read_text()))


def test_functions_are_clipped_in_release_and_posterior_alike():
    def far(record):
        return jnp.stack([record["y"], jnp.where(record["y"] > 50, jnp.inf, record["y"] ** 2)])

    short = statistics.clipped(far, 1.5, dimension=2)
    published = release(short, RECORDS | {"y": np.r_[RECORDS["y"][1:], 99.0]}, noise=seeded())
    rows = np.asarray(jax.vmap(short)({"y": jnp.asarray(RECORDS["y"][1:])}), float)
    noise = release(short, {"y": np.zeros(1)}, noise=seeded()).value
    assert np.all(np.linalg.norm(rows, axis=1) <= 1.5 * (1 + 1e-6))
    np.testing.assert_allclose(published.value - noise, rows.sum(axis=0), rtol=1e-5)
    read = dpjax.Release.from_json(published.to_json(), statistic=short)
    np.testing.assert_array_equal(read.value, published.value)


def logistic(n):
    coef = numpyro.sample("coef", dist.Normal(0.0, 2.0).expand([3]).to_event(1))
    with numpyro.plate("people", n):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=coef[0] + x @ coef[1:]))


def precision_of(x, y, prior_sd):
    """The negative Hessian of the log-posterior of a logistic regression at its mode, given the records."""
    rows, coef = np.c_[np.ones(len(x)), x], np.zeros(3)
    for _ in range(20):
        p = 1 / (1 + np.exp(-rows @ coef))
        hessian = (rows * (p * (1 - p))[:, None]).T @ rows + np.eye(3) / prior_sd**2
        coef = coef + np.linalg.solve(hessian, rows.T @ (y - p) - coef / prior_sd**2)
    return hessian


@pytest.mark.slow
@pytest.mark.x64
def test_score_and_curvature_tell_nearly_as_much_as_the_records():
    rng, coef = np.random.default_rng(5), np.array([-0.5, 1.0, -0.7])
    x = rng.normal(size=(20_000, 2))
    y = rng.binomial(1, 1 / (1 + np.exp(-coef[0] - x @ coef[1:])))
    derivatives = statistics.loss_derivatives(statistics.Logistic(norm=3.0), coef + 0.1)
    published = release(statistics.clipped(derivatives, 1.0), {"x": x, "y": y}, noise=seeded())
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        model = dpjax.from_numpyro(logistic, records=("x", "y"))
        sizes = {"num_chains": 2, "num_warmup": 300, "num_samples": 300, "progress": False}
        draws = dpjax.sample(jax.random.key(1), model, published, **sizes).draws["coef"].reshape(-1, 3)
    from_records = np.sqrt(np.diag(np.linalg.inv(precision_of(x, y, 2.0))))
    assert np.all(np.abs(draws.mean(axis=0) - coef) < 4 * draws.std(axis=0))
    assert np.all(draws.std(axis=0) < 1.2 * from_records)
    assert np.all(draws.std(axis=0) > 0.9 * from_records)


def test_a_noisy_count_stands_beside_sums_where_the_number_is_confidential():
    number = dpjax.UnknownCount(models.UniformCount(200, 400))
    counted = statistics.stacked(statistics.count(), TOTAL)
    published = private.release(private.Ledger(ADDED), counted, RECORDS, people=None, n=number, noise=seeded())
    assert abs(float(published.value[0]) - 300) < 6 * published.mechanism.mechanisms[0].scale
    assert dpjax.from_json(published.to_json()).statistic == counted
