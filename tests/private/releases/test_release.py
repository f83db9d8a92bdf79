"""One secure release of sums: its value, its price, its promise, and what a reader makes of it."""

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
from dpjax.private.noise.secure import grid_of
from dpjax.private.releases import exact_sum
from dpjax.private.releases.exact_sum import carried, split, sum_on_grid
from dpjax.private.releases.price import Cost, Part, price
from dpjax.private.releases.release import noisy, steps_of
from tests.private.releases.paid_sums import ADDED, BOTH, BUDGET, GRAM, RECORDS, TABLE, TOTAL, read, release, seeded

CLOSE = 1e-9
COST = Cost("gaussian", 0.02)
"""How far from a budget its cost may stay."""


def scales_of(published: dpjax.Release) -> np.ndarray:
    mechanism = published.mechanism
    return np.array([part.scale for part in getattr(mechanism, "mechanisms", [mechanism])])


def test_value_is_the_sum_and_noise_of_its_scale():
    draws = [release(TABLE, noise=seeded(seed)).value for seed in range(40)]
    exact = np.bincount(RECORDS["group"])
    residuals = (np.stack(draws) - exact) / float(release(TABLE).mechanism.scale)
    assert stats.kstest(residuals.ravel(), "norm").pvalue > 1e-3
    assert stats.kstest(residuals.ravel() * 2, "norm").pvalue < 1e-3


def test_noise_is_added_to_whole_steps():
    parts = [Part(1, 1.0, 1.0, scale, "gaussian", float(grid_of(np.asarray(scale)))) for scale in (3.0, 700.0)]
    step, zeros = steps_of(parts), np.zeros(2, object)
    large = np.array([10**25, -7], object)
    noise = noisy(zeros, parts, seeded()) / step
    assert np.all(noise == np.rint(noise))
    expected = [float(int(start) + int(drawn)) for start, drawn in zip(large, noise, strict=True)]
    np.testing.assert_array_equal(noisy(large, parts, seeded()), expected * step)


def test_sums_are_those_of_integers_in_any_order_and_batches():
    step = np.full(GRAM.dimension, 2.0**-30)
    rows = np.asarray(jax.vmap(GRAM)({name: jnp.asarray(RECORDS[name]) for name in ("x", "y")}), float)
    expected = [sum(int(number) for number in column) for column in np.rint(rows / step).T]
    shuffled = {name: leaf[::-1] for name, leaf in RECORDS.items()}
    pieces = ({name: leaf[start : start + 7] for name, leaf in RECORDS.items()} for start in range(0, 301, 7))
    for records in (RECORDS, shuffled, pieces):
        total = sum_on_grid(GRAM, read(records), step)
        assert (total.steps.tolist(), total.num_records) == (expected, 300)


def test_sums_do_not_overflow():
    steps, halves = np.array([[2.0**62, -(2.0**62), -1.0], [2.0**62, -(2.0**62), -(2.0**40)]] * 4_000), 0
    for _ in range(3):
        halves = carried(halves + np.stack([np.sum(half, axis=0) for half in split(steps)]))
    high, low = halves.astype(object)
    assert (high * 2**32 + low).tolist() == [24_000 * 2**62, -24_000 * 2**62, -12_000 * (2**40 + 1)]


@pytest.mark.parametrize("kind", ["table", "stacked", "classes"])
def test_sums_of_large_tables_are_those_of_all_coordinates(kind, monkeypatch):
    table = statistics.grouped("group", [1, -1, 0], 2)
    records = RECORDS | {"class": RECORDS["group"] % 2, "features": np.stack([RECORDS["group"]] * 2, axis=1)}
    chosen = {
        "table": TABLE,
        "stacked": statistics.stacked(TABLE, statistics.scaled(table, -0.3)),
        "classes": statistics.class_features(2, 2, 3),
    }[kind]
    step = np.exp2(-20.0 - np.arange(chosen.dimension) % 3)
    dense = sum_on_grid(chosen, read(records, chosen), step)
    monkeypatch.setattr(exact_sum, "MOST_DENSE", 1)
    listed = sum_on_grid(chosen, read(records, chosen), step)
    assert (listed.steps.tolist(), listed.num_records) == (dense.steps.tolist(), 300)


@pytest.mark.parametrize("budget", [BUDGET, ADDED], ids=["replace-one", "add-or-remove"])
@pytest.mark.parametrize("statistic", [GRAM, BOTH], ids=["gram", "stacked"])
def test_budget_is_spent_to_the_last_digit(budget, statistic):
    ledger = private.Ledger(budget)
    given = {"n": 300} if budget is ADDED else {}
    published = private.release(ledger, statistic, RECORDS, people=None, **given)
    spent = ledger.privacy_spent()
    assert budget.epsilon * (1 - CLOSE) < spent.epsilon <= budget.epsilon
    assert spent.grade == "secure"
    promise = published.mechanism.privacy
    assert (promise.epsilon, promise.delta, promise.neighbours) == (spent.epsilon, 1e-6, budget.neighbours)
    with pytest.raises(private.BudgetExceeded, match="all of which is spent"):
        private.release(ledger, statistic, RECORDS, people=None, **given)
    assert ledger.privacy_spent() == spent


def test_parts_of_a_budget_are_spent_one_after_the_other():
    ledger, part = private.Ledger(BUDGET), private.Budget(0.4, 1e-6, "replace-one")
    first = private.release(ledger, TABLE, RECORDS, people=None, budget=part, name="table")
    assert 0.4 * (1 - CLOSE) < first.mechanism.privacy.epsilon == ledger.privacy_spent().epsilon <= 0.4
    rest = private.release(ledger, TOTAL, RECORDS, people=None)
    assert 1 - CLOSE < ledger.privacy_spent().epsilon <= 1
    assert rest.mechanism.privacy.epsilon < 1
    assert [query.name for query in ledger.queries] == ["table", "release"]
    ledger = private.Ledger(BUDGET)
    with pytest.raises(private.BudgetExceeded):
        private.release(ledger, TABLE, RECORDS, people=None, budget=private.Budget(1.1, 1e-6, "replace-one"))
    assert ledger.queries == ()


def test_shares_set_the_scales_that_pay_for_them():
    equal, skewed = scales_of(release(BOTH)), scales_of(release(BOTH, shares=[0.2, 0.8]))
    np.testing.assert_allclose(skewed / equal, np.sqrt([0.5 / 0.2, 0.5 / 0.8]), rtol=1e-6)
    np.testing.assert_allclose(equal[0] / equal[1], 4.0 / np.sqrt(2), rtol=1e-5)
    alone = [
        private.release(private.Ledger(BUDGET), one, RECORDS, people=None).mechanism.scale for one in (TOTAL, TABLE)
    ]
    np.testing.assert_allclose(equal / alone, np.sqrt(2), rtol=1e-5)


def test_weights_give_the_least_weighted_variance():
    weights, sizes = np.array([1.0, 5.0]), np.array([1, 3])

    def cost(shares):
        parts = price(BOTH, COST, "replace-one", shares, None)
        return sum(weights * sizes * np.square([part.scale for part in parts]))

    best = np.square([part.scale for part in price(BOTH, COST, "replace-one", None, weights)])
    grid = np.linspace(0.01, 0.99, 99)
    assert sum(weights * sizes * best) <= min(cost([share, 1 - share]) for share in grid)
    assert sum(weights * sizes * best) < 0.999 * min(cost([0.5, 0.5]), cost([0.8, 0.2]))


def test_relations_differ_by_what_a_record_can_do():
    replaced, added = release(TOTAL), release(TOTAL, budget=ADDED, n=300)
    np.testing.assert_allclose(replaced.mechanism.scale / added.mechanism.scale, 2.0, rtol=1e-5)
    assert (replaced.n, added.n) == (300, 300)


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
