"""Records seen field by field: every move leaves the joint distribution as it is, and planted faults do not.

Parameters, records and release start from their joint distribution. After some sweeps the parameters still have their
prior; the residuals of the records given the parameters, and the noise of each channel, are still independent and of
their distributions.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm
from scipy import stats

import dpjax
from dpjax import statistics
from dpjax.models.simulation import init_latent
from tests.tools.perfect_start import REJECT, corrected, noise_p_value, run

N = 5
KEEP = 0.75
SD = 0.5
GAPS = np.array([True, False, True, False, False])
OTHER_GAPS = np.array([True, True, False, False, False])
ANSWERS = (np.zeros(N, int), dpjax.RandomizedResponse(keep=KEEP, num_categories=2))


def normal_draw(key: jax.Array, precision: jax.Array, weighted: jax.Array) -> jax.Array:
    """A draw from the posterior of a mean with prior N(0, 1), given a total precision and weighted sum of data."""
    return weighted / (1 + precision) + jax.random.normal(key, jnp.shape(weighted)) / jnp.sqrt(1 + precision)


class People(dpjax.Model):
    """A label, an income around the mean of its label, and an outcome around slope · income + label."""

    def sample_prior(self, key):
        share_key, mean_key, slope_key = jax.random.split(key, 3)
        share = jax.random.beta(share_key, 2.0, 2.0)
        return {"share": share, "mean": jax.random.normal(mean_key, (2,)), "slope": jax.random.normal(slope_key)}

    def log_prior(self, parameters):
        share = jnp.log(parameters["share"]) + jnp.log1p(-parameters["share"])
        return share + jnp.sum(norm.logpdf(parameters["mean"])) + norm.logpdf(parameters["slope"])

    def sample_records(self, key, parameters, n):
        label_key, income_key, outcome_key = jax.random.split(key, 3)
        label = jax.random.bernoulli(label_key, parameters["share"], (n,)).astype(int)
        income = parameters["mean"][label] + jax.random.normal(income_key, (n,))
        center = parameters["slope"] * income + label.astype(income.dtype)
        outcome = center + SD * jax.random.normal(outcome_key, (n,))
        return {"label": label, "income": income, "outcome": outcome}

    def log_density(self, parameters, records):
        label, income = records["label"], records["income"]
        of_label = jnp.log(jnp.where(label == 1, parameters["share"], 1 - parameters["share"]))
        center = parameters["slope"] * income + label.astype(income.dtype)
        of_income = norm.logpdf(income, parameters["mean"][label])
        return of_label + of_income + norm.logpdf(records["outcome"], center, SD)

    def update(self, key, parameters, records):
        return update(key, parameters, records)

    def reported(self, records):
        return records

    @property
    def discrete_support(self):
        return lambda: {"label": jnp.arange(2)}


def update(key: jax.Array, parameters: dict[str, Any], records: dict[str, Any]) -> dict[str, Any]:
    """An exact draw of all parameters given the records."""
    share_key, mean_key, slope_key = jax.random.split(key, 3)
    label, income = records["label"], records["income"]
    groups = jnp.stack([label == 0, label == 1]).astype(income.dtype)
    ones, rest = jnp.sum(groups[1]), records["outcome"] - groups[1]
    slope = normal_draw(slope_key, jnp.sum(income**2) / SD**2, jnp.sum(income * rest) / SD**2)
    return {
        "share": jax.random.beta(share_key, 2.0 + ones, 2.0 + N - ones),
        "mean": normal_draw(mean_key, groups.sum(axis=1), groups @ income),
        "slope": slope,
    }


PEOPLE = People()
INCOME = np.zeros(N)
EXACT = (INCOME, dpjax.Exact())
TOTAL = dpjax.Release([0.0], dpjax.Laplace(0.5), statistics.total("income", -2.0, 2.0), N)
CASES = {
    "a label": dpjax.Microdata({"label": ANSWERS, "income": EXACT, "outcome": EXACT}),
    "an income": dpjax.Microdata({"label": EXACT, "income": (INCOME, dpjax.Gaussian(0.7)), "outcome": EXACT}),
    "all with gaps": dpjax.Microdata(
        {"label": ANSWERS, "income": (INCOME, dpjax.Laplace(0.7)), "outcome": EXACT},
        {"label": OTHER_GAPS, "income": GAPS, "outcome": GAPS},
    ),
    "exact labels with gaps": dpjax.Microdata({"label": EXACT, "income": EXACT, "outcome": EXACT}, {"label": GAPS}),
    "no field exact": dpjax.Microdata(
        {"label": ANSWERS, "income": (INCOME, dpjax.Gaussian(0.7))}, {"income": OTHER_GAPS}
    ),
    "nothing": dpjax.Microdata({"income": EXACT}, {"income": np.ones(N, bool)}),
    "a sum beside": dpjax.Microdata({"label": ANSWERS, "outcome": EXACT}, summed=TOTAL),
}


def p_value(release: dpjax.Microdata, replicates: Any) -> float:
    """The smallest corrected p-value of parameters, residuals and noise."""
    parameters, records = replicates.parameters, replicates.reported
    label, income, outcome = (records[name] for name in ("label", "income", "outcome"))
    own = np.take_along_axis(parameters["mean"], label, axis=1)
    normal = [
        *parameters["mean"].T,
        parameters["slope"],
        income - own,
        (outcome - parameters["slope"][:, None] * income - label) / SD,
    ]
    found = [stats.kstest(np.ravel(values), stats.norm.cdf).pvalue for values in normal]
    found.append(stats.kstest(parameters["share"], stats.beta(2.0, 2.0).cdf).pvalue)
    ones = stats.betabinom(N, 2.0, 2.0).pmf(np.arange(N + 1)) * len(label)
    found.append(stats.chisquare(np.bincount(label.sum(axis=1), minlength=N + 1), ones).pvalue)
    if release.summed is not None:
        return corrected([*found, noise_p_value(replicates.noise, stats.laplace(scale=0.5))])
    columns = dict(zip(release.fields, np.split(replicates.noise, len(release.fields), axis=1), strict=True))
    for name, field in release.fields.items():
        seen = ~np.asarray(release.missing.get(name, np.zeros(N, bool)))
        given, truth = columns[name][:, seen].ravel(), records[name][:, seen].ravel()
        if field.channel.sums.known:
            np.testing.assert_array_equal(given, truth.astype(given.dtype))
        elif name == "label":
            found.append(stats.binomtest(int(np.sum(given == truth)), len(given), KEEP).pvalue)
        else:
            law = stats.norm(scale=0.7) if isinstance(field.channel, dpjax.Gaussian) else stats.laplace(scale=0.7)
            found.append(stats.kstest(given - truth, law.cdf).pvalue)
    return corrected(found)


@pytest.mark.keys
@pytest.mark.parametrize("name", CASES)
def test_the_joint_distribution_is_invariant(name):
    replicates = run(jax.random.key(3), PEOPLE, CASES[name], dpjax.imwg(), num_chains=3_000, num_sweeps=3)
    assert p_value(CASES[name], replicates) > REJECT


@dataclass(frozen=True)
class Faulty:
    """The imputation of a release that was changed, or by a density that was."""

    change: Callable[[Any], Any]
    log_density: Callable[..., Any] | None = None

    def __call__(self, model: dpjax.Model, release: dpjax.Microdata) -> Any:
        if self.log_density is not None:
            model = model._replace(log_density=self.log_density)
        impute = dpjax.imwg()(model, self.change(release))

        def step(key: jax.Array, latent: Any, parameters: Any) -> Any:
            moved, info = impute(key, latent, parameters)
            return init_latent(release, moved.records), info

        return step


def same(release: Any) -> Any:
    return release


def without_sum(release: dpjax.Microdata) -> dpjax.Microdata:
    return replace(release, summed=None)


def without_gaps(release: dpjax.Microdata) -> dpjax.Microdata:
    income = release.fields["income"]
    filled = jnp.where(release.missing["income"], 1.5, income.values)
    return replace(release, fields=release.fields | {"income": replace(income, values=filled)}, missing={})


def without_outcome(parameters: dict[str, Any], records: dict[str, Any]) -> jax.Array:
    expected = parameters["slope"] * records["income"] + records["label"].astype(records["income"].dtype)
    return PEOPLE.log_density(parameters, records | {"outcome": expected})


def forgetful(key: jax.Array, parameters: dict[str, Any], records: dict[str, Any]) -> dict[str, Any]:
    """The update of the parameters without the density of the outcome."""
    return update(key, parameters, records) | {"slope": jax.random.normal(jax.random.fold_in(key, 1))}


FAULTS = {
    "the density of an exact field is left out of the update": (
        "a label",
        PEOPLE._replace(update=forgetful),
        same,
        None,
    ),
    "missing labels are drawn without the exact fields": ("exact labels with gaps", PEOPLE, same, without_outcome),
    "incomes are drawn without the exact fields": ("an income", PEOPLE, same, without_outcome),
    "missing values count as released": ("no field exact", PEOPLE, without_gaps, None),
    "the density of the sum is left out": ("a sum beside", PEOPLE, without_sum, None),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_rejected(fault):
    name, model, change, log_density = FAULTS[fault]
    replicates = run(jax.random.key(3), model, CASES[name], Faulty(change, log_density), num_chains=3_000, num_sweeps=3)
    assert p_value(CASES[name], replicates) < REJECT


NORMAL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 1.0), dpjax.models.InverseGammaPrior(4.0, 3.0))
CLASSES = dpjax.models.naive_bayes([2.0, 1.0], np.full((2, 2, 3), 1.5))


@pytest.mark.parametrize("channel", [dpjax.Gaussian(0.7), dpjax.Exact()], ids=["Gaussian", "exact"])
def test_a_normal_field_with_gaps_keeps_its_distribution(channel):
    """Catches a missing value that is drawn through its channel, where the whole field is drawn at once."""
    model = NORMAL._replace(reported=lambda records: records)
    release = dpjax.Microdata({"y": (INCOME, channel)}, {"y": GAPS})
    replicates = run(jax.random.key(5), model, release, dpjax.imwg(), num_chains=2_000, num_sweeps=2)
    mean, variance = replicates.parameters["mean"], replicates.parameters["variance"]
    residuals = (replicates.reported["y"] - mean[:, None]) / np.sqrt(variance)[:, None]
    found = [stats.kstest(mean, stats.norm.cdf).pvalue, stats.kstest(residuals.ravel(), stats.norm.cdf).pvalue]
    found.append(stats.kstest(variance, stats.invgamma(4.0, scale=3.0).cdf).pvalue)
    if not channel.sums.known:
        noise = (replicates.noise - replicates.reported["y"])[:, ~GAPS].ravel()
        found.append(stats.kstest(noise, stats.norm(scale=0.7).cdf).pvalue)
    assert corrected(found) > REJECT


def test_finite_records_are_drawn_given_what_is_seen_of_each():
    """Catches an exact field that moves, or a missing one that does not, where whole records are listed."""
    key = jax.random.key(7)
    parameters = CLASSES.sample_prior(key)
    records = CLASSES.sample_records(key, parameters, N)
    values = {name: np.asarray(leaf) for name, leaf in records.items()}
    channel = dpjax.RandomizedResponse(keep=KEEP, num_categories=2)
    release = dpjax.Microdata(
        {"class": (values["class"], channel), "features": (values["features"], dpjax.Exact())}, {"features": GAPS}
    )
    algorithm = dpjax.impute(CLASSES, release, parameters)
    start = algorithm.init(records)
    drawn = jax.vmap(lambda key: algorithm.step(key, start)[0].records)(jax.random.split(key, 20_000))
    support = CLASSES.support()
    weights = np.exp(CLASSES.log_density(parameters, support))
    for i in range(N):
        seen = np.where(np.asarray(support["class"]) == values["class"][i], KEEP, 1 - KEEP)
        if not GAPS[i]:
            seen = seen * np.all(np.asarray(support["features"]) == values["features"][i], axis=1)
        expected = weights * seen / np.sum(weights * seen)
        code = np.asarray(support["class"]) * 100 + np.asarray(support["features"]) @ np.array([10, 1])
        own = np.asarray(drawn["class"])[:, i] * 100 + np.asarray(drawn["features"])[:, i] @ np.array([10, 1])
        counts = np.array([np.sum(own == one) for one in code])
        possible = expected > 0
        assert counts[~possible].sum() == 0
        assert stats.chisquare(counts[possible], expected[possible] * counts.sum()).pvalue > REJECT


COVARIATE = np.linspace(-1.0, 1.0, N)


class Readings(dpjax.Model):
    """Two readings of each person around one mean, and an outcome that weighs them by a known covariate."""

    def sample_prior(self, key):
        return {"mean": jax.random.normal(key)}

    def log_prior(self, parameters):
        return norm.logpdf(parameters["mean"])

    def sample_records(self, key, parameters, n):
        reading_key, outcome_key = jax.random.split(key)
        reading = parameters["mean"] + jax.random.normal(reading_key, (n, 2))
        covariate = jnp.asarray(COVARIATE, reading.dtype)[:n]
        outcome = reading[:, 0] + covariate * reading[:, 1] + SD * jax.random.normal(outcome_key, (n,))
        return {"covariate": covariate, "reading": reading, "outcome": outcome}

    def log_density(self, parameters, records):
        reading = records["reading"]
        center = reading[:, 0] + records["covariate"] * reading[:, 1]
        of_reading = jnp.sum(norm.logpdf(reading, parameters["mean"]), axis=1)
        return of_reading + norm.logpdf(records["outcome"], center, SD)

    def update(self, key, parameters, records):
        return {"mean": normal_draw(key, 2.0 * N, jnp.sum(records["reading"]))}

    @property
    def num_records(self):
        return N

    @property
    def exchangeable(self):
        return False

    def reported(self, records):
        return records


def test_vectors_move_number_by_number_and_covariates_do_not():
    """Catches a known covariate that is taken to be hidden, and a coordinate that moves by the density of another."""
    release = dpjax.Microdata({"reading": (np.zeros((N, 2)), dpjax.Laplace(0.7)), "outcome": EXACT})
    replicates = run(jax.random.key(9), Readings(), release, dpjax.imwg(), num_chains=2_000, num_sweeps=2)
    mean, records = replicates.parameters["mean"], replicates.reported
    np.testing.assert_array_equal(records["covariate"][0], COVARIATE.astype(records["covariate"].dtype))
    assert np.ptp(records["covariate"], axis=0).max() == 0
    reading = records["reading"]
    residuals = (records["outcome"] - reading[..., 0] - COVARIATE * reading[..., 1]) / SD
    given = replicates.noise.reshape(-1, 3, N)[:, 1:]
    noise = given.transpose(0, 2, 1) - reading
    normal = [mean, residuals, *(reading - mean[:, None, None]).transpose(2, 0, 1)]
    found = [stats.kstest(np.ravel(values), stats.norm.cdf).pvalue for values in normal]
    found += [stats.kstest(np.ravel(one), stats.laplace(scale=0.7).cdf).pvalue for one in noise.transpose(2, 0, 1)]
    assert corrected(found) > REJECT
