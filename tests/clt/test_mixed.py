"""Records with discrete fields among continuous ones: their moments, posteriors, and what is refused."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import integrate, special, stats

import dpjax
from dpjax.clt.inputs import check_problem, find_source
from dpjax.clt.moments import build_moments, make_points

COEF = {"coef": jnp.array([0.4, 1.2])}


@pytest.fixture(autouse=True, scope="module")
def _ranks_and_types_may_differ() -> Iterator[None]:
    """As in NumPyro's own code."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def logistic(n: int = 5) -> None:
    coef = numpyro.sample("coef", dist.Normal(0.0, 1.5).expand([2]).to_event(1))
    with numpyro.plate("records", n):
        x = numpyro.sample("x", dist.Normal(0.5, 1.3))
        numpyro.sample("y", dist.Bernoulli(logits=coef[0] + coef[1] * x))


def groups(n: int = 5) -> None:
    """A group, a size that depends on it, and a number of events that depends on both."""
    centres = numpyro.sample("centres", dist.Normal(0.0, 2.0).expand([3]).to_event(1))
    with numpyro.plate("records", n):
        group = numpyro.sample("group", dist.Categorical(jnp.array([0.2, 0.5, 0.3])))
        size = numpyro.sample("size", dist.Normal(centres[group], 0.8))
        numpyro.sample("events", dist.Binomial(4, logits=size - group))


def known(n: int, z: Any) -> None:
    """Known covariates: each record has a law of its own."""
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", n):
        x = numpyro.sample("x", dist.Normal(z, 1.0))
        numpyro.sample("y", dist.Bernoulli(logits=slope * x))


def products(record: dict[str, jax.Array]) -> jax.Array:
    """The clamped covariate, the answer, and their product."""
    x, y = jnp.clip(record["x"], -4.0, 4.0), record["y"].astype(float)
    return jnp.stack([x, y, x * y])


def by_group(record: dict[str, jax.Array]) -> jax.Array:
    """Size and events of the last group, and the product of size and events."""
    size, events = record["size"], record["events"].astype(float)
    last = (record["group"] == 2).astype(float)
    return jnp.stack([last * size, last * events, size * events])


def moments_of(model: dpjax.Model, statistic: Any, parameters: dict, n: int, num_points: int) -> tuple:
    """Mean and covariance of one record's contribution, as `sample_clt` computes them."""
    release = dpjax.Release(np.linspace(0.0, 5.0, 3), dpjax.Gaussian(3.0), statistic, n)
    source = find_source(model, release)
    assert source.points == "mixed"
    rule = make_points(jax.random.key(0), model, source, num_points)
    offset, covariance = jax.jit(build_moments(model, release, source, rule))(parameters)
    return np.asarray(offset + release.value / n, float), np.asarray(covariance, float)


def integrated(probabilities: Any, statistic: Any, density: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance by SciPy: integrals over a real field of sums over the levels of a discrete one."""

    def expectation(function: Any) -> float:
        def inner(x: float) -> float:
            return density(x) * sum(p * function(np.array(statistic(x, level))) for level, p in probabilities(x))

        return sum(integrate.quad(inner, a, b, epsabs=1e-12)[0] for a, b in ((-12.0, -4.0), (-4.0, 4.0), (4.0, 13.0)))

    size = len(statistic(0.0, 1))
    mean = np.array([expectation(lambda t, i=i: t[i]) for i in range(size)])
    second = [[expectation(lambda t, i=i, j=j: t[i] * t[j]) for j in range(size)] for i in range(size)]
    return mean, np.array(second) - np.outer(mean, mean)


def logistic_moments(slope: float = 1.2) -> tuple[np.ndarray, np.ndarray]:
    def answers(x: float) -> list[tuple[int, float]]:
        yes = special.expit(0.4 + slope * x)
        return [(0, 1 - yes), (1, yes)]

    def statistic(x: float, y: int) -> list[float]:
        return [np.clip(x, -4, 4), y, np.clip(x, -4, 4) * y]

    return integrated(answers, statistic, stats.norm(0.5, 1.3).pdf)


def test_moments_of_a_logistic_regression_are_those_of_scipy():
    model = dpjax.from_numpyro(logistic, ["x", "y"])
    mean, covariance = moments_of(model, products, COEF, 10, 4_096)
    expected = logistic_moments()
    np.testing.assert_allclose(mean, expected[0], atol=2e-6)
    np.testing.assert_allclose(covariance, expected[1], atol=2e-5)
    assert np.max(np.abs(mean - logistic_moments(1.25)[0])) > 1e-3  # another slope is told apart


def test_moments_of_fields_before_and_after_a_real_one_are_those_of_a_sum_over_all():
    model = dpjax.from_numpyro(groups, ["group", "size", "events"])
    centres = np.array([-1.0, 0.5, 2.0])
    mean, covariance = moments_of(model, by_group, {"centres": jnp.asarray(centres)}, 10, 32)
    nodes, weights = special.roots_hermitenorm(60)
    terms = []
    for group, share in enumerate([0.2, 0.5, 0.3]):
        size = centres[group] + 0.8 * nodes
        for events in range(5):
            weight = share * stats.binom.pmf(events, 4, special.expit(size - group)) * weights / np.sum(weights)
            last = float(group == 2)
            terms.append((weight, np.stack([last * size, np.full_like(size, last * events), size * events])))
    weight = np.concatenate([one for one, _ in terms])
    values = np.concatenate([one for _, one in terms], axis=1)
    expected = values @ weight
    np.testing.assert_allclose(mean, expected, atol=1e-5)
    np.testing.assert_allclose(covariance, (values * weight) @ values.T - np.outer(expected, expected), atol=5e-5)


def test_records_of_laws_of_their_own_have_average_moments():
    z = np.linspace(-1.0, 1.0, 6)
    model = dpjax.from_numpyro(known, ["x", "y"], n=6, z=z)
    mean, covariance = moments_of(model, products, {"slope": jnp.array(0.7)}, 6, 32)
    nodes, weights = special.roots_hermitenorm(60)
    weights /= np.sum(weights)
    means, covariances = [], []
    for centre in z:
        x = centre + nodes
        yes = special.expit(0.7 * x)
        weight = np.concatenate([weights * (1 - yes), weights * yes])
        x, y = np.concatenate([np.clip(x, -4, 4)] * 2), np.repeat([0.0, 1.0], len(nodes))
        values = np.stack([x, y, x * y])
        means.append(values @ weight)
        covariances.append((values * weight) @ values.T - np.outer(means[-1], means[-1]))
    np.testing.assert_allclose(mean, np.mean(means, axis=0), atol=1e-3)  # 32 nodes, and a kink at the clamp
    np.testing.assert_allclose(covariance, np.mean(covariances, axis=0), atol=4e-3)


def test_moments_are_smooth_in_the_parameters():
    """The slope of the mean, which noise for the discrete field would not have."""
    model = dpjax.from_numpyro(logistic, ["x", "y"])
    release = dpjax.Release(np.zeros(3), dpjax.Gaussian(3.0), products, 10)
    source = find_source(model, release)
    moments = build_moments(model, release, source, make_points(jax.random.key(0), model, source, 512))
    slope = jax.jit(jax.jacfwd(lambda parameters: moments(parameters)[0]))(COEF)["coef"][:, 1]
    expected = (logistic_moments(1.2 + 1e-4)[0] - logistic_moments(1.2 - 1e-4)[0]) / 2e-4
    np.testing.assert_allclose(np.asarray(slope, float), expected, atol=2e-4)


def long_counts(n: int = 5) -> None:
    rate = numpyro.sample("rate", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", n):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Poisson(jnp.exp(rate + x)))


def many_levels(n: int = 5) -> None:
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", n):
        x = numpyro.sample("x", dist.Normal(slope, 1.0))
        numpyro.sample("y", dist.Binomial(400, logits=x))


def heavy(n: int = 5) -> None:
    slope = numpyro.sample("slope", dist.Gamma(2.0, 1.0))
    with numpyro.plate("records", n):
        x = numpyro.sample("x", dist.Gamma(slope, 1.0))
        numpyro.sample("y", dist.Bernoulli(logits=x))


@pytest.mark.x64
@pytest.mark.parametrize(
    ("program", "message"),
    [
        (long_counts, r"model: given a model with whole numbers \['y'\] beside others, without a bound"),
        (many_levels, r"num_points: given 1024 points, each with all 401 combinations .* Pass fewer points"),
        (heavy, r"model: given a model without a full non-centred form \(x: standardised on the log scale"),
    ],
)
def test_what_cannot_be_summed_over_is_refused_by_name(program, message):
    release = dpjax.Release(np.zeros(3), dpjax.Gaussian(3.0), products, 1_000)
    with pytest.raises(ValueError, match=message):
        check_problem(dpjax.from_numpyro(program, ["x", "y"]), release)


def test_fewer_points_make_room_for_many_levels():
    release = dpjax.Release(np.zeros(3), dpjax.Gaussian(3.0), products, 1_000)
    assert check_problem(dpjax.from_numpyro(many_levels, ["x", "y"]), release, 200).points == "mixed"


def simulated(n: int) -> dpjax.Release:
    """A release of records drawn at the coefficients above."""
    model = dpjax.from_numpyro(logistic, ["x", "y"])
    design = dpjax.Release(np.zeros(3), dpjax.Laplace(8.0), products, n)
    return design.sample(jax.random.key(1), model.sample_records(jax.random.key(2), COEF, n))


@pytest.mark.slow
@pytest.mark.parametrize("n", [500, 2_000])
def test_a_private_logistic_regression_agrees_with_imputed_records(n):
    """Means within a tenth of a standard deviation, and these within 5 %, beyond three errors of the chains."""
    model, release = dpjax.from_numpyro(logistic, ["x", "y"]), simulated(n)
    options: dict[str, Any] = {"num_warmup": 1_000, "num_samples": 6_000, "progress": False}
    exact = dpjax.sample(jax.random.key(3), model, release, **options).draws["coef"].astype(float)
    draws = dpjax.sample_clt(jax.random.key(4), model, release, num_samples=2_000, progress=False).draws["coef"]
    draws = draws.astype(float)
    sd = np.std(exact, axis=(0, 1))
    error = np.hypot(dpjax.diagnostics.mcse_mean(exact), dpjax.diagnostics.mcse_mean(draws)) / sd
    difference = np.abs(np.mean(draws, axis=(0, 1)) - np.mean(exact, axis=(0, 1))) / sd
    assert np.all(error < 0.05)
    assert np.all(difference < 0.1 + 3 * error)
    error = np.hypot(dpjax.diagnostics.mcse_sd(exact), dpjax.diagnostics.mcse_sd(draws)) / sd
    assert np.all(np.abs(np.std(draws, axis=(0, 1)) / sd - 1) < 0.05 + 3 * error)
