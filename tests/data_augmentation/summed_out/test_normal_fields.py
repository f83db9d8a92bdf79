"""Real fields that are Normal together, and counts among trials of their own: against SciPy, which shares no code."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.special import logsumexp

import dpjax
from dpjax.data_augmentation.problem import augment

PARAMETERS = {"mean": 4.0, "slope": 0.5}
NOISE = np.array([1.5, 0.7])
COVARIANCE = np.array([[4.0, 2.0], [2.0, 1.0 + 0.25]])
"""Of x ~ N(4, 2²) and y ~ N(1 + x / 2, 0.5²)."""

X, Y = np.array([3.0, 5.5, 0.0, 4.2]), np.array([2.0, 0.0, 3.1, 2.8])
NO_X, NO_Y = np.array([False, False, True, False]), np.array([False, True, False, False])


def chain(n, x=None, y=None):
    mean, slope = numpyro.sample("mean", dist.Normal(0.0, 5.0)), numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("people", n):
        x = numpyro.sample("x", dist.Normal(mean, 2.0), obs=x)
        numpyro.sample("y", dist.Normal(1.0 + slope * x, 0.5), obs=y)


def released(channel_of_y: dpjax.Mechanism) -> dpjax.Microdata:
    return dpjax.Microdata({"x": (X, dpjax.Gaussian(NOISE[0])), "y": (Y, channel_of_y)}, {"x": NO_X, "y": NO_Y})


@pytest.fixture(scope="module")
def model() -> dpjax.Model:
    return dpjax.from_numpyro(chain, ["x", "y"])


def of_released(noise: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The log-density of what was released of each record, and the mean and the deviation of its x."""
    found = []
    for i in range(4):
        seen = [place for place, gap in enumerate((NO_X[i], NO_Y[i])) if not gap]
        values, means = np.array([X[i], Y[i]])[seen], np.array([4.0, 3.0])[seen]
        total = (COVARIANCE + np.diag(noise**2))[np.ix_(seen, seen)]
        gain = COVARIANCE[0, seen] @ np.linalg.inv(total)
        density = stats.multivariate_normal.logpdf(values, means, total)
        found.append((density, 4.0 + gain @ (values - means), np.sqrt(4.0 - gain @ COVARIANCE[seen, 0])))
    return tuple(np.array(found).T)


@pytest.mark.parametrize("of_y", [dpjax.Gaussian(NOISE[1]), dpjax.Exact()], ids=["gaussian", "exact"])
def test_fields_that_are_normal_together_have_a_closed_form(model, of_y):
    """Catches gaps that are read as values, and an exact value that is integrated over."""
    likelihood = dpjax.marginal_likelihood(model, released(of_y))
    noise = NOISE * [1.0, not isinstance(of_y, dpjax.Exact)]
    density, mean, deviation = of_released(noise)
    np.testing.assert_allclose(likelihood(PARAMETERS), density.sum(), rtol=2e-5)
    assert not likelihood.is_approximate
    draw = jax.jit(jax.vmap(lambda key: likelihood.sample_records(key, PARAMETERS)))
    drawn = jax.tree.map(np.asarray, draw(jax.random.split(jax.random.key(1), 4_000)))
    assert np.all(np.abs(drawn["x"].mean(axis=0) - mean) < 5 * deviation / np.sqrt(4_000))
    np.testing.assert_allclose(drawn["x"].std(axis=0), deviation, rtol=0.06)
    if isinstance(of_y, dpjax.Exact):
        assert np.all(drawn["y"][:, ~NO_Y] == Y[~NO_Y].astype(drawn["y"].dtype))


def test_slopes_and_curvatures_are_those_of_the_closed_form(model):
    """Catches places of the fields that are taken for constants, which is right for the slope alone."""
    release = dpjax.Microdata({"x": (X, dpjax.Gaussian(1.5)), "y": (Y, dpjax.Gaussian(0.7))})
    likelihood = dpjax.marginal_likelihood(model, release)

    def by_hand(slope):
        covariance = jnp.array([[4.0, 4.0 * slope], [4.0 * slope, 4.0 * slope**2 + 0.25]]) + jnp.diag(NOISE**2)
        law = dist.MultivariateNormal(jnp.tile(jnp.array([4.0, 1.0 + 4.0 * slope]), (4, 1)), covariance)
        return jnp.sum(law.log_prob(jnp.stack([X, Y], axis=1)))

    for order in (jax.grad, lambda function: jax.grad(jax.grad(function))):
        found = order(lambda slope: likelihood({"mean": jnp.asarray(4.0), "slope": slope}))(0.5)
        with jax.numpy_dtype_promotion("standard"):  # as NumPyro has it
            expected = order(by_hand)(0.5)
        np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_an_exact_field_with_gaps_is_as_dense_as_what_was_seen():
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    gaps = {"y": np.array([False, True, False])}
    release = dpjax.Microdata({"y": (np.array([1.0, np.nan, 9.0]), dpjax.Exact())}, gaps)
    likelihood = dpjax.marginal_likelihood(model, release)
    expected = stats.norm.logpdf([1.0, 9.0], 0.5, 2.0).sum()
    np.testing.assert_allclose(likelihood({"mean": jnp.asarray(0.5)}), expected, rtol=2e-5)


@pytest.mark.x64
def test_fields_that_are_not_normal_together_are_imputed(model):
    assert augment(model, released(dpjax.Gaussian(0.7)), allow_sums=True).plan.sums_out
    assert not augment(model, released(dpjax.Laplace(0.7)), allow_sums=True).plan.sums_out


TRIALS = np.array([12, 40, 7])


def events(trials=None, y=None):
    logit = numpyro.sample("logit", dist.Normal(0.0, 1.5))
    with numpyro.plate("sites", len(trials)):
        numpyro.sample("y", dist.Binomial(trials, logits=logit), obs=y)


@jax.numpy_dtype_promotion("standard")  # as NumPyro has it
def test_counts_among_trials_of_their_own_are_summed_over():
    """Catches counts whose possible values differ by site, which had to be imputed."""
    model = dpjax.from_numpyro(events, ["y"], trials=TRIALS)
    release = dpjax.releases.suppressed_units([np.nan, 21.0, np.nan], limit=5, field="y")
    assert augment(model, release, allow_sums=True).plan.sums_out
    likelihood = dpjax.marginal_likelihood(model, release)
    share = 1 / (1 + np.exp(0.4))
    possible = [range(5), [21], range(5)]
    expected = [logsumexp(stats.binom.logpmf(list(x), n, share)) for x, n in zip(possible, TRIALS, strict=True)]
    np.testing.assert_allclose(likelihood({"logit": jnp.asarray(-0.4)}), sum(expected), rtol=2e-5)
    assert np.isfinite(jax.grad(lambda logit: likelihood({"logit": logit}))(-0.4))
