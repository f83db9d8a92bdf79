"""Numbers of mechanisms that are not known: likelihoods by hand, posteriors on grids, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import dpjax
from dpjax import models
from dpjax.mcmc.climb import recentre
from dpjax.mechanisms import ReportSums
from tests.adapters.numpyro.conftest import _ranks_and_types_may_differ

__all__ = ["_ranks_and_types_may_differ"]

IS_SINGLE = jnp.zeros(()).dtype == np.float32
CLOSE = {"rtol": 2e-5} if IS_SINGLE else {"rtol": 1e-11}
Y = np.array([1.2, 3.4, -0.5, 2.2, 5.1, -1.9])
NORMAL = models.normal(models.NormalPrior(0.0, 5.0), variance=4.0)
COUNTS = np.array([3, 12, 7])
ANSWERS = np.array([0, 0, 1, 2, 2, 2, 1])


def visits(y=None):
    rate = numpyro.sample("rate", dist.Gamma(2.0, 0.2))
    with numpyro.plate("units", 3):
        numpyro.sample("y", dist.Poisson(rate), obs=y)


def with_error(y=None):
    mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    numpyro.sample("tau", dist.HalfNormal(2.0))
    with numpyro.plate("units", 6):
        numpyro.sample("y", dist.Normal(mean, 2.0), obs=y)


def campaigns(y=None):
    share = numpyro.sample("share", dist.Uniform())
    with numpyro.plate("units", 3):
        numpyro.sample("y", dist.Binomial(jnp.array([20, 30, 40]), share), obs=y)


def laboratory():
    """An unknown standard deviation, in closed form."""
    release = dpjax.LocalRelease(Y, dpjax.Gaussian(dpjax.unknown("tau", dist.HalfNormal(2.0))), "y")
    return NORMAL, release, {"mean": 1.0, "tau": 0.7}, stats.norm.logpdf(Y, 1.0, np.sqrt(4 + 0.49)).sum()


def of_the_model():
    """The same, where the number is a parameter of the model."""
    release = dpjax.LocalRelease(Y, lambda p: dpjax.Gaussian(p["tau"]), "y")
    model = dpjax.from_numpyro(with_error, ["y"])
    return model, release, {"mean": 1.0, "tau": 0.7}, stats.norm.logpdf(Y, 1.0, np.sqrt(4 + 0.49)).sum()


def whole_noise():
    """An unknown scale of noise on counts, over windows."""
    release = dpjax.LocalRelease(COUNTS, dpjax.DiscreteLaplace(dpjax.unknown("b", models.GammaPrior(3.0, 1.0))), "y")
    numbers, q = np.arange(400), np.exp(-1 / 9.0)
    noise = [(1 - q) / (1 + q) * q ** abs(value - numbers) for value in COUNTS]
    expected = np.log(np.array(noise) @ stats.poisson.pmf(numbers, 10.0)).sum()
    return dpjax.from_numpyro(visits, ["y"]), release, {"rate": 10.0, "b": 9.0}, expected


def answers():
    """A probability of true answers that was estimated, over listed categories."""
    channel = dpjax.RandomizedResponse(dpjax.unknown("keep", dist.Beta(20.0, 5.0)), 3)
    matrix = np.full((3, 3), 0.15) + 0.55 * np.eye(3)
    share = np.array([0.2, 0.3, 0.5])
    release = dpjax.LocalRelease(ANSWERS, channel, "cell")
    return (
        models.categorical(np.ones(3)),
        release,
        {"probabilities": share, "keep": 0.7},
        np.log(share @ matrix)[ANSWERS].sum(),
    )


def channel():
    """A whole matrix of a channel, with a prior on each row."""
    matrix = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]])
    share = np.array([0.2, 0.3, 0.5])
    prior = dist.Dirichlet(jnp.ones((3, 3)) + 5.0 * jnp.eye(3))
    made = dpjax.unknown(lambda p: dpjax.RandomizedResponse(matrix=p["matrix"]), {"matrix": prior})
    release = dpjax.LocalRelease(ANSWERS, made, "cell")
    return (
        models.categorical(np.ones(3)),
        release,
        {"probabilities": share, "matrix": matrix},
        np.log(share @ matrix)[ANSWERS].sum(),
    )


def bits():
    """An estimated probability of bits, where the sum over Binomial counts has a closed form."""
    made = dpjax.unknown(lambda p: ReportSums(p["keep"], 0.2, [20, 30, 40]), {"keep": dist.Beta(30.0, 10.0)})
    release = dpjax.LocalRelease([7, 12, 11], made, "y")
    expected = stats.binom.logpmf([7, 12, 11], [20, 30, 40], 0.2 + (0.8 - 0.2) * 0.3).sum()
    return dpjax.from_numpyro(campaigns, ["y"]), release, {"share": 0.3, "keep": 0.8}, expected


def several_bits():
    """The same of two reports of each person that were added up: sums of those who count and of others."""
    persons, share, keep, flip = np.array([20, 30, 40]), 0.3, 0.8, 0.2
    made = dpjax.unknown(lambda p: ReportSums(p["keep"], flip, persons, reports=2), {"keep": dist.Beta(30.0, 10.0)})
    expected = 0.0
    for total, n in zip([17, 22, 31], persons, strict=True):
        counts = np.arange(n + 1)
        ones = np.array([np.convolve(pmf(2 * one, keep), pmf(2 * (n - one), flip))[total] for one in counts])
        expected += np.log(np.sum(stats.binom.pmf(counts, n, share) * ones))
    release = dpjax.LocalRelease([17, 22, 31], made, "y")
    return dpjax.from_numpyro(campaigns, ["y"]), release, {"share": share, "keep": keep}, expected


def pmf(n, p):
    """The probabilities [n + 1] of a binomial distribution."""
    return stats.binom.pmf(np.arange(n + 1), n, p)


def below_a_threshold():
    """An unknown standard deviation of numbers of which those below a threshold are not shown."""
    noise = dpjax.Gaussian(dpjax.unknown("tau", dist.HalfNormal(2.0)))
    release = dpjax.releases.thresholded_units([1.2, 3.0, np.nan], noise, 1.0)
    law = stats.norm(1.0, np.sqrt(4 + 0.49))
    return NORMAL, release, {"mean": 1.0, "tau": 0.7}, law.logpdf([1.2, 3.0]).sum() + law.logcdf(1.0)


def rounded():
    """The same of numbers that were rounded."""
    noise = dpjax.Rounded(dpjax.Gaussian(dpjax.unknown("tau", dist.HalfNormal(2.0))), 1.0)
    law = stats.norm(1.0, np.sqrt(4 + 0.49))
    values = np.array([1.0, 3.0, -4.0])
    expected = np.log(law.cdf(values + 0.5) - law.cdf(values - 0.5)).sum()
    return NORMAL, dpjax.LocalRelease(values, noise, "y"), {"mean": 1.0, "tau": 0.7}, expected


def two_fields():
    """Answers to two questions, each with a probability of its own, one of them missing once."""
    other, share = np.array([0, 1, 1, 0, 1, 1, 0]), np.array([0.2, 0.3, 0.5])
    given = np.array([[0.4, 0.6], [0.7, 0.3], [0.1, 0.9]])
    keep = {name: dpjax.unknown(name, dist.Beta(20.0, 5.0)) for name in ("first", "second")}
    fields = {
        "a": (ANSWERS, dpjax.RandomizedResponse(keep["first"], 3)),
        "b": (other, dpjax.RandomizedResponse(keep["second"], 2)),
    }
    release = dpjax.LocalRelease(fields, missing={"a": np.arange(7) == 0})
    matrix = {3: np.full((3, 3), 0.15) + 0.55 * np.eye(3), 2: np.full((2, 2), 0.1) + 0.8 * np.eye(2)}
    law = matrix[3].T @ (share[:, None] * given) @ matrix[2]
    expected = np.log(law[ANSWERS, other])[1:].sum() + np.log(law.sum(axis=0)[other[0]])
    parameters = {"share": share, "given": given, "first": 0.7, "second": 0.9}
    return dpjax.from_numpyro(questions, ["a", "b"]), release, parameters, expected


def questions(a=None, b=None):
    share = numpyro.sample("share", dist.Dirichlet(jnp.ones(3)))
    given = numpyro.sample("given", dist.Dirichlet(jnp.ones((3, 2))))
    with numpyro.plate("persons", 7):
        a = numpyro.sample("a", dist.Categorical(share), obs=a)
        numpyro.sample("b", dist.Categorical(given[a]), obs=b)


CASES = [
    laboratory,
    of_the_model,
    whole_noise,
    answers,
    channel,
    bits,
    several_bits,
    below_a_threshold,
    rounded,
    two_fields,
]


@pytest.mark.parametrize("case", CASES)
def test_the_likelihood_has_the_noise_at_its_parameters(case):
    """By hand, for each way of summing out; such numbers could not be passed at all."""
    model, release, parameters, expected = case()
    likelihood = dpjax.marginal_likelihood(model, release)
    given = jax.tree.map(jnp.asarray, parameters)
    np.testing.assert_allclose(likelihood(given), expected, **CLOSE)
    slopes = jax.grad(likelihood)(given)
    assert all(np.all(np.isfinite(slope)) for slope in jax.tree.leaves(slopes))
    assert float(likelihood.left_out(given)) < 1e-6


@pytest.mark.slow
def test_the_posterior_of_a_mean_and_an_error_is_that_of_a_grid():
    """Draws of both under their names, in the summary and in words; noise of a known size was all that was taken."""
    rng = np.random.default_rng(3)
    values = rng.normal(1.0, np.sqrt(4 + 2.0**2), 40)
    prior = dist.HalfNormal(3.0)
    release = dpjax.LocalRelease(values, dpjax.Gaussian(dpjax.unknown("tau", prior)), "y")
    found = dpjax.sample(jax.random.key(4), NORMAL, release, num_warmup=300, num_samples=1_500, progress=False)
    mean, tau = np.meshgrid(np.linspace(-2, 4, 200), np.linspace(0.005, 8, 400))
    scale = np.sqrt(4 + tau**2)
    logs = (
        stats.norm.logpdf(mean, 0, 5)
        - tau**2 / 18
        + stats.norm.logpdf(values, mean[..., None], scale[..., None]).sum(-1)
    )
    weight = special.softmax(logs)
    for name, grid in (("mean", mean), ("tau", tau)):
        draws = np.asarray(found.draws[name], float)
        center = np.sum(weight * grid)
        deviation = np.sqrt(np.sum(weight * (grid - center) ** 2))
        assert abs(draws.mean() - center) < 4.5 * deviation / np.sqrt(draws.size / 5)
        assert abs(draws.std() / deviation - 1) < 0.07
    assert "Numbers of the noise are estimated: tau" in str(found.summary())


def by_groups(y=None):
    level = numpyro.sample("level", dist.Normal(2.0, 1.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", 2):
        effect = numpyro.sample("effect", dist.Normal(0.0, spread))
    with numpyro.plate("units", 3):
        numpyro.sample("y", dist.Poisson(jnp.exp(level + effect[jnp.array([0, 0, 1])])), obs=y)


def test_group_effects_are_found_beside_numbers_of_the_noise():
    """They were looked for with the parameters of the model alone, so that a run ended in an error of JAX."""
    model = dpjax.from_numpyro(by_groups, ["y"])
    likelihood = dpjax.marginal_likelihood(model, whole_noise()[1])
    found = recentre(likelihood.extend(model), likelihood)
    assert list(found.powers) == ["effect"]


def test_what_is_estimated_is_said():
    """In the text of the release."""
    words = dpjax.describe(laboratory()[1])
    assert "Numbers of the noise are estimated: tau." in words
    assert "a function of the parameters" in dpjax.describe(of_the_model()[1])
    written = dpjax.from_json(laboratory()[1].at({"tau": 1.5}).to_json(prior="tau ~ HalfNormal(2)"))
    assert float(written.fields["y"].channel.scale) == 1.5


def ready(release):
    return dpjax.marginal_likelihood(NORMAL, release)


def tau():
    return dpjax.unknown("tau", dist.HalfNormal(2.0))


REFUSED = {
    "a parameter without a prior": (
        lambda: ready(dpjax.LocalRelease(Y, lambda p: dpjax.Gaussian(p["error"]), "y")),
        r"channel: given a parameter 'error' that no prior has; expected one of \['mean'\]",
    ),
    "a function that returns a number": (
        lambda: ready(dpjax.LocalRelease(Y, lambda p: 3.0, "y")),
        "channel: given a function that returns",
    ),
    "imputed records": (
        lambda: dpjax.sample(jax.random.key(0), NORMAL, laboratory()[1], imputation=dpjax.imwg()),
        "release: given noise that is not known; expected known noise, where records are imputed",
    ),
    "maximum likelihood": (
        lambda: dpjax.maximum_likelihood(jax.random.key(0), NORMAL, laboratory()[1]),
        "release: given noise that is not known",
    ),
    "a text": (
        lambda: laboratory()[1].to_json(),
        r"release: given noise that is not known; expected known noise. Write release.at\({'tau': '...'}\)",
    ),
    "several releases at once": (
        lambda: dpjax.sample_batch(jax.random.key(0), NORMAL, [laboratory()[1]] * 2),
        "releases?: given noise that is not known",
    ),
    "a sum": (
        lambda: dpjax.Release([3.0], dpjax.Laplace(tau()), dpjax.statistics.total("y", 0, 1), n=5),
        "mechanism: given a Laplace with the unknown number 'tau'",
    ),
    "a table": (
        lambda: dpjax.Release([3, 4], dpjax.DiscreteLaplace(tau()), dpjax.statistics.cells("cell", 2), n=7),
        "mechanism: given a DiscreteLaplace with the unknown number 'tau'; expected known .* On sums and tables",
    ),
    "a table by a function": (
        lambda: dpjax.Release(
            [3, 4],
            dpjax.unknown(lambda p: dpjax.DiscreteLaplace(p["b"]), {"b": models.GammaPrior(3.0, 1.0)}),
            dpjax.statistics.cells("cell", 2),
            n=7,
        ),
        r"mechanism: given a UnknownChannel with the unknown numbers \['b'\]; expected known numbers",
    ),
    "beside a sum": (
        lambda: dpjax.joint(
            dpjax.LocalRelease(Y, dpjax.Gaussian(tau()), "y"),
            dpjax.Release([3.0], dpjax.Laplace(1.0), dpjax.statistics.total("y", 0, 1), n=6),
        ),
        r"releases\[0\]: given noise that is not known; expected known noise. Pass all fields to one",
    ),
    "several reports of a field": (
        lambda: dpjax.LocalRelease({"y": [(Y, dpjax.Gaussian(tau())), (Y, dpjax.Gaussian(1.0))]}),
        r"fields\['y'\]: given reports in parts, with noise that is not known; expected one report",
    ),
    "a field of microdata": (
        lambda: dpjax.Microdata({"y": (Y, dpjax.Gaussian(tau()))}),
        r"channel of fields\['y'\]: given a Gaussian with the unknown number 'tau'",
    ),
    "a mechanism that computes with it": (
        lambda: ReportSums(dpjax.unknown("keep", dist.Beta(50.0, 20.0)), 0.2, 5),
        "mechanism: given the unknown number",
    ),
    "a list": (lambda: dpjax.Gaussian([tau(), 1.0]), "mechanism: given the unknown number"),
    "twice the number": (lambda: dpjax.Gaussian(2 * tau()), "mechanism: given the unknown number"),
    "a name of the model": (
        lambda: ready(dpjax.LocalRelease(Y, dpjax.Gaussian(dpjax.unknown("mean", dist.HalfNormal(2.0))), "y")),
        "release: given a prior of 'mean', which is a parameter of the model, too",
    ),
    "no prior": (lambda: dpjax.unknown("tau", 3.0), "prior: given"),
    "a prior of counts": (lambda: dpjax.unknown("tau", dist.Poisson(2.0)), "prior: given .*whole numbers"),
    "an array by name": (lambda: dpjax.unknown("q", dist.Dirichlet(jnp.ones(3))), "prior: given one of an array"),
    "a scale that is negative": (
        lambda: ready(dpjax.LocalRelease(Y, dpjax.Gaussian(dpjax.unknown("tau", dist.Normal(-9.0, 0.1))), "y")),
        "scale: given",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_estimated_is_refused_by_name(name):
    """Where it would be taken for a known number, and where the records are not summed out."""
    call, message = REFUSED[name]
    with pytest.raises((ValueError, TypeError), match="^" + message):
        call()
