"""Real fields that are Normal together, and counts among trials of their own: against SciPy, which shares no code."""

import itertools

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


CHAIN_NOISE = 1.0
CHAIN_GAPS = np.array([[0, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]], bool)
"""Who misses which of four fields: what is left of a record are one to four of them."""

NEAR = np.random.default_rng(2).normal(1.0, 1.5, 6)
CHAIN_VALUES = np.stack([NEAR, -20 * NEAR - 0.3, -10 * NEAR + 0.1, 10 * NEAR + 0.1], axis=1)
CHAIN_VALUES = (CHAIN_VALUES + np.random.default_rng(3).normal(size=(6, 4))).astype(np.float32).astype(float)


def long_chain(n, a=None, b=None, c=None, d=None):
    mean, slope = numpyro.sample("mean", dist.Normal(0.0, 5.0)), numpyro.sample("slope", dist.Normal(0.0, 9.0))
    log_sd = numpyro.sample("log_sd", dist.Normal(0.0, 3.0))
    sd = jnp.exp(log_sd)
    with numpyro.plate("people", n):
        a = numpyro.sample("a", dist.Normal(mean, 1.5), obs=a)
        b = numpyro.sample("b", dist.Normal(slope * a - 0.3, sd), obs=b)
        c = numpyro.sample("c", dist.Normal(0.5 * b + 0.25, 0.5 * sd), obs=c)
        numpyro.sample("d", dist.Normal(c - slope * a, 0.5), obs=d)


def of_chain(mean: float, slope: float, log_sd: float) -> np.longdouble:
    """The log-density of what is seen of the long chain, in extended precision."""
    real = np.longdouble
    step, sd = np.zeros((4, 4), real), np.exp(real(log_sd))
    step[1, 0], step[2, 1], step[3, 2], step[3, 0] = slope, 0.5, 1, -slope
    total = np.eye(4, dtype=real) + step + step @ step + step @ step @ step
    means = total @ np.array([mean, real(-0.3), 0.25, 0])
    scaled = total * np.array([real(1.5), sd, sd / 2, real(0.5)])
    covariance = scaled @ scaled.T + np.eye(4, dtype=real) * real(CHAIN_NOISE) ** 2
    found = real(0)
    for value, gap in zip(CHAIN_VALUES, CHAIN_GAPS, strict=True):
        rest, matrix = (value - means)[~gap], covariance[np.ix_(~gap, ~gap)].copy()
        for _ in range(len(rest)):
            pivot, column = matrix[0, 0], matrix[0, 1:]
            found -= (np.log(2 * real(np.pi) * pivot) + rest[0] ** 2 / pivot) / 2
            rest, matrix = rest[1:] - column * rest[0] / pivot, matrix[1:, 1:] - np.outer(column, column) / pivot
    return found


def test_residuals_far_below_the_noise_keep_their_digits():
    """Catches digits of float32 that a precision matrix loses where a regression is nearly exact: -inf, and NaN."""
    model = dpjax.from_numpyro(long_chain, ["a", "b", "c", "d"])
    fields = {name: (CHAIN_VALUES[:, place], dpjax.Gaussian(CHAIN_NOISE)) for place, name in enumerate("abcd")}
    gaps = {name: CHAIN_GAPS[:, place] for place, name in enumerate("abcd")}
    likelihood = dpjax.marginal_likelihood(model, dpjax.Microdata(fields, gaps))
    evaluate = jax.jit(
        jax.value_and_grad(lambda at: likelihood(dict(zip(("mean", "slope", "log_sd"), at, strict=True))))
    )
    kind = jnp.zeros((), float).dtype
    eps = float(np.finfo(kind).eps)
    for slope, sd in itertools.product((-20.0, -0.5, 0.0), (1e-6, 1e-4, 1e-3, 1e-2, 1.0, 1e3)):
        at = np.array([1.25, slope, np.log(sd)], kind)
        value, slopes = evaluate(tuple(map(jnp.asarray, at)))
        expected = of_chain(*at.tolist())
        np.testing.assert_allclose(value, float(expected), rtol=20 * eps, err_msg=f"{slope}, {sd}")
        for place, found in enumerate(slopes):
            off = np.where(np.arange(3) == place, np.longdouble(1e-5), 0)
            difference = float((of_chain(*(at + off)) - of_chain(*(at - off))) / np.longdouble(2e-5))
            # Residuals of up to 10⁷ of their deviations take part in the slope.
            np.testing.assert_allclose(found, difference, rtol=max(1e3 * eps, 1e-7), atol=max(2e4 * eps, 1e-9))


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


@pytest.mark.x32
@pytest.mark.parametrize("n", [7, 80], ids=["LAPACK", "substitution"])
def test_a_regression_by_dpjax_is_quadratic_in_its_outcome(n):
    """Catches triangular systems that are taken to bend in their right side, and equations for fields not hidden."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    model = dpjax.models.linear_regression(
        covariate_mean=[0.0, 1.0],
        covariate_cov=np.eye(2),
        coef_prior=dpjax.models.NormalPrior(0.0, 2.0),
        noise_variance=dpjax.models.InverseGammaPrior(2.0, 2.0),
    )
    release = dpjax.Microdata({"x": (x, dpjax.Exact()), "y": (y, dpjax.Gaussian(1.5))})
    coef, variance = np.array([0.5, 1.0, -1.0]), 0.7
    found = dpjax.marginal_likelihood(model, release)({"coef": coef, "variance": variance})
    of_y = stats.norm.logpdf(y, coef[0] + x @ coef[1:], np.sqrt(variance + 1.5**2))
    np.testing.assert_allclose(found, of_y.sum() + stats.norm.logpdf(x, [0.0, 1.0]).sum(), rtol=2e-5)
