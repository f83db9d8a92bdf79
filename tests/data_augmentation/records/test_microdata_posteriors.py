"""Posteriors of microdata, each against a grid, a closed form or the prior."""

from math import sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from jax.scipy.stats import norm
from numpyro import distributions as dist
from scipy import stats

import dpjax
from dpjax import diagnostics
from dpjax.data_augmentation.records.microdata import hidden_fields

LABELS = np.array([0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0])
OUTCOMES = np.array([-0.3, 0.1, 1.4, 0.9, 0.0, 1.8, -0.5, 1.1, 0.3, 1.6, -0.1, 0.2])
KEEP, SD, PRIOR_SD = 0.75, 0.5, 1.5
CHANNEL = dpjax.RandomizedResponse(keep=KEEP, num_categories=2)
MAX_DEVIATION = 4.0


class Groups(dpjax.Model):
    """A label, and an outcome around the mean of its group."""

    def sample_prior(self, key):
        share_key, mean_key = jax.random.split(key)
        return {"share": jax.random.uniform(share_key), "mu": PRIOR_SD * jax.random.normal(mean_key, (2,))}

    def log_prior(self, parameters):
        return jnp.sum(norm.logpdf(parameters["mu"], 0.0, PRIOR_SD))

    def sample_records(self, key, parameters, n):
        label_key, outcome_key = jax.random.split(key)
        label = jax.random.bernoulli(label_key, parameters["share"], (n,)).astype(int)
        return {"label": label, "y": parameters["mu"][label] + SD * jax.random.normal(outcome_key, (n,))}

    def log_density(self, parameters, records):
        label = records["label"]
        of_label = jnp.log(jnp.where(label == 1, parameters["share"], 1 - parameters["share"]))
        return of_label + norm.logpdf(records["y"], parameters["mu"][label], SD)

    def unconstrain(self, parameters):
        return parameters | {"share": jax.scipy.special.logit(parameters["share"])}

    def constrain(self, numbers):
        return numbers | {"share": jax.nn.sigmoid(numbers["share"])}

    @property
    def discrete_support(self):
        return lambda: {"label": jnp.arange(2)}


MODEL = Groups()


def grid(
    label_density: np.ndarray, outcomes: np.ndarray, of_number: np.ndarray | None = None
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The posterior means and standard deviations by a grid over share, mu0 and mu1.

    Parameters
    ----------
    label_density : [n, 2]
        The density of what was released of each label, given each label; ones where it is missing.
    outcomes : [n]
        NaN where they are missing.
    of_number : [n + 1]
        The density of a released sum given how many labels are 1.
    """
    n = len(outcomes)
    of_number = np.ones(n + 1) if of_number is None else of_number
    shares, weights = np.polynomial.legendre.leggauss(60)
    shares, weights = (shares + 1) / 2, weights / 2
    mu = np.linspace(-7.0, 7.0, 141)
    densities = np.where(np.isnan(outcomes)[:, None], 1.0, stats.norm.pdf(outcomes[:, None], mu, SD))
    prior = stats.norm.pdf(mu, 0.0, PRIOR_SD)
    total = np.empty((len(shares), len(mu), len(mu)))
    for place, share in enumerate(shares):
        likelihood = np.zeros((n + 1, len(mu), len(mu)))
        likelihood[0] = np.outer(prior, prior) * weights[place]
        for seen, density in zip(label_density, densities, strict=True):
            one_more = np.concatenate([np.zeros((1, len(mu), len(mu))), likelihood[:-1]])
            likelihood = (1 - share) * seen[0] * density[:, None] * likelihood
            likelihood += share * seen[1] * density[None] * one_more
        total[place] = np.tensordot(of_number, likelihood, 1)
    total /= total.sum()
    marginals = {"share": (shares, total.sum((1, 2))), "mu0": (mu, total.sum((0, 2))), "mu1": (mu, total.sum((0, 1)))}
    found = {}
    for name, (values, weight) in marginals.items():
        mean = values @ weight
        found[name] = mean, sqrt((values - mean) ** 2 @ weight)
    return {
        "share": tuple(map(np.asarray, found["share"])),
        "mu": tuple(np.stack(pair) for pair in zip(found["mu0"], found["mu1"], strict=True)),
    }


def seen_through(labels: np.ndarray) -> np.ndarray:
    """P(answer | label) [n, 2]."""
    return np.where(labels[:, None] == np.arange(2), KEEP, 1 - KEEP)


def check(draws: dict[str, Any], oracle: dict[str, Any], sd_tolerance: float = 0.05) -> None:
    """Means within four standard errors, deviations within some per cent."""
    for name, (mean, sd) in oracle.items():
        found = np.asarray(draws[name], float)
        assert np.all(np.abs(found.mean((0, 1)) - mean) < MAX_DEVIATION * diagnostics.mcse_mean(found)), name
        np.testing.assert_allclose(found.std((0, 1)), sd, rtol=sd_tolerance, err_msg=name)


def sample(release: Any, model: dpjax.Model = MODEL, num_samples: int = 8_000, **options: Any) -> dpjax.Posterior:
    options = {"num_warmup": 500, "num_samples": num_samples, "progress": False, "refresh": False} | options
    return dpjax.sample(jax.random.key(2), model, release, **options)


def test_the_grid_has_the_known_figures():
    """Catches a grid that is too coarse or too narrow."""
    found = grid(seen_through(LABELS), OUTCOMES)
    np.testing.assert_allclose(found["share"], (0.391, 0.157), atol=3e-3)
    np.testing.assert_allclose(found["mu"], [[0.102, 1.273], [0.281, 0.400]], atol=3e-3)


def test_a_perturbed_label_and_an_exact_outcome():
    """The spelling by LocalRelease; catches an exact field whose density does not reach the parameters."""
    release = dpjax.LocalRelease({"label": (LABELS, CHANNEL), "y": (OUTCOMES, dpjax.Exact())})
    posterior = sample(release, num_samples=15_000, imputation=dpjax.imwg())
    assert posterior.plan.interweave
    check(posterior.draws, grid(seen_through(LABELS), OUTCOMES))
    np.testing.assert_array_equal(
        np.asarray(posterior.final_states.latent.records["y"]), np.broadcast_to(release.fields["y"].values, (4, 12))
    )


@pytest.mark.parametrize(
    "answers",
    [pytest.param(LABELS, marks=pytest.mark.x32), pytest.param(None, marks=pytest.mark.x64)],
    ids=["perturbed", "missing"],
)
def test_labels_are_summed_out_by_default(answers):
    """Catches labels that are not weighted by their channel, or a missing label that is taken for a known one."""
    fields = {"label": (LABELS, CHANNEL), "y": (OUTCOMES, dpjax.Exact())}
    missing = {} if answers is not None else {"label": np.ones(12, bool)}
    posterior = sample(dpjax.Microdata(fields, missing), num_samples=2_000)
    assert posterior.plan.sums_out
    assert posterior.final_states.latent.records == {}
    seen = seen_through(LABELS) if answers is not None else np.ones((12, 2))
    check(posterior.draws, grid(seen, OUTCOMES), sd_tolerance=0.1)


def groups(n, y=None):
    share = numpyro.sample("share", dist.Beta(1.0, 1.0))
    mu = numpyro.sample("mu", dist.Normal(0.0, PRIOR_SD).expand([2]).to_event(1))
    with numpyro.plate("people", n):
        label = numpyro.sample("label", dist.Bernoulli(share))
        numpyro.sample("y", dist.Normal(mu[label], SD), obs=y)


@pytest.mark.x32
def test_the_same_model_in_numpyro():
    """Catches levels of a program's discrete sites that do not reach the exact draws."""
    release = dpjax.Microdata({"label": (LABELS, CHANNEL), "y": (OUTCOMES, dpjax.Exact())})
    with jax.numpy_dtype_promotion("standard"):
        model = dpjax.from_numpyro(groups, ["label", "y"])
        posterior = sample(release, model, num_samples=12_000, imputation=dpjax.imwg())
    check(posterior.draws, grid(seen_through(LABELS), OUTCOMES))


@pytest.mark.x64
def test_an_observed_site_takes_its_values_from_the_release():
    """Catches an exact field that is drawn anew, as an observed site without data would be, and data given twice."""
    release = dpjax.Microdata({"label": (LABELS, CHANNEL), "y": (OUTCOMES, dpjax.Exact())})
    with jax.numpy_dtype_promotion("standard"):
        posterior = sample(release, dpjax.from_numpyro(groups, ["label", "y"]), num_samples=4_000)
    assert posterior.plan.sums_out
    check(posterior.draws, grid(seen_through(LABELS), OUTCOMES))
    given_twice = r"obs=None.*Microdata\(\{'y': \(values, dpjax.Exact"
    with jax.numpy_dtype_promotion("standard"), pytest.raises(ValueError, match=given_twice):
        dpjax.from_numpyro(groups, ["label", "y"], y=OUTCOMES)


def readings(age):
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("people", len(age)):
        level = numpyro.sample("level", dist.Normal(age, 1.0))
        numpyro.sample("y", dist.Normal(slope * level, 1.0))


@pytest.mark.x64
def test_known_covariates_of_a_program_are_not_hidden():
    """Catches covariates among the records that would move, as no density holds them."""
    model = dpjax.from_numpyro(readings, ["age", "level", "y"], age=np.linspace(-1.0, 1.0, 12))
    release = dpjax.Microdata({"level": (OUTCOMES, dpjax.Gaussian(0.3)), "y": (OUTCOMES, dpjax.Exact())})
    assert set(hidden_fields(model, release)) == {"level"}


@pytest.mark.x64
def test_missing_labels_and_outcomes_as_a_table_has_them():
    """Catches NaN that is read as a number, and a missing label that is drawn without its outcome."""
    labels, outcomes = LABELS.astype(float), OUTCOMES.copy()
    labels[[1, 2, 7]], outcomes[[0, 2]] = np.nan, np.nan
    gaps = {"label": np.isnan(labels), "y": np.isnan(outcomes)}
    release = dpjax.Microdata({"label": (labels, dpjax.Exact()), "y": (outcomes, dpjax.Exact())}, gaps)
    known = np.where(np.isnan(labels)[:, None], 1.0, labels[:, None] == np.arange(2))
    check(sample(release, interweave=False).draws, grid(known, outcomes))


@pytest.mark.x64
def test_a_local_release_and_a_sum_of_the_same_people():
    """Catches a sum whose density is left out, or counted twice: answers say five ones, the sum says ten."""
    total = dpjax.Release([10.0], dpjax.Laplace(0.7), dpjax.statistics.total("label", 0.0, 1.0), 12)
    answers = dpjax.LocalRelease(LABELS, CHANNEL, field="label")
    both = dpjax.joint(answers, dpjax.Microdata({"y": (OUTCOMES, dpjax.Exact())}), total)
    of_number = stats.laplace.pdf(10.0, np.arange(13), 0.7)
    check(sample(both, thin=4).draws, grid(seen_through(LABELS), OUTCOMES, of_number), sd_tolerance=0.08)


@pytest.mark.x64
def test_perturbed_values_and_their_sum_move_with_the_parameters():
    """Catches a non-centred step that reads the values alone, or the sum alone; all is Normal."""
    n, variance, prior, own, noise, value = 12, 1.0, 4.0, 0.7, 2.0, 14.0
    release = dpjax.joint(
        dpjax.LocalRelease(OUTCOMES, dpjax.Gaussian(own), "y"),
        dpjax.Release([value], dpjax.Gaussian(noise), dpjax.statistics.total("y"), n),
    )
    seen = np.vstack([np.eye(n), np.ones(n)])
    of_noise = np.diag([*[own**2] * n, noise**2])
    weights = np.linalg.solve(variance * seen @ seen.T + of_noise, np.append(np.ones(n), n))
    precision = 1 / prior + weights @ np.append(np.ones(n), n)
    mean = weights @ np.append(OUTCOMES, value) / precision
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, sqrt(prior)), variance)
    posterior = sample(release, model, num_samples=4_000)
    assert posterior.plan.interweave
    check(posterior.draws, {"mean": (mean, 1 / sqrt(precision))})


@pytest.mark.x64
def test_a_sum_beside_known_records_of_other_people():
    """Catches known people who are counted in the sum, or whose density is left out; all is Normal."""
    own, n, value, noise, variance, prior = OUTCOMES[:5], 10, 12.0, 3.0, 4.0, 25.0
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, sqrt(prior)), variance)
    release = dpjax.Release([value], dpjax.Gaussian(noise), dpjax.statistics.total("y"), n)
    of_sum = n * variance + noise**2
    precision = 1 / prior + len(own) / variance + n**2 / of_sum
    mean = (own.sum() / variance + n * value / of_sum) / precision
    posterior = sample(dpjax.releases.with_observed(release, {"y": own}), model, num_samples=4_000)
    check(posterior.draws, {"mean": (mean, 1 / sqrt(precision))})


@pytest.mark.x64
def test_noise_on_a_normal_field_with_gaps():
    """Catches gaps that count as values, where the field is drawn at once: all is Normal."""
    values = np.where(np.arange(12) < 4, np.nan, OUTCOMES)
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), 1.0)
    precision = 1 / 4 + 8 / (1 + 0.7**2)
    mean = np.nansum(values) / (1 + 0.7**2) / precision
    release = dpjax.Microdata({"y": (values, dpjax.Gaussian(0.7))}, {"y": np.isnan(values)})
    posterior = sample(release, model, num_samples=4_000)
    check(posterior.draws, {"mean": (mean, 1 / sqrt(precision))})


@pytest.mark.x64
def test_all_exact_is_the_plain_model_and_all_missing_the_prior():
    """Catches a sampler that needs something hidden, or something known."""
    known = dpjax.Microdata({"label": (LABELS, dpjax.Exact()), "y": (OUTCOMES, dpjax.Exact())})
    check(
        sample(known, num_samples=4_000, imputation=dpjax.imwg()).draws, grid(LABELS[:, None] == np.arange(2), OUTCOMES)
    )
    nothing = np.ones(12, bool)
    unknown = dpjax.Microdata(
        {"label": (LABELS, CHANNEL), "y": (OUTCOMES, dpjax.Exact())}, {"label": nothing, "y": nothing}
    )
    prior = {"share": (0.5, sqrt(1 / 12)), "mu": (np.zeros(2), np.full(2, PRIOR_SD))}
    check(sample(unknown).draws, prior)
