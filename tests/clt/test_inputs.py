"""What `sample_clt` refuses, and what its posterior says of itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.statistics import cells, histogram, total

MODEL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 10.0), 4.0)
RELEASE = dpjax.Release([130.0], dpjax.Gaussian(20.0), total("y"), 100)
KEY = jax.random.key(1)


class WholeNoise:
    """Whole noise of a user's own."""

    integer_noise = True

    def log_noise(self, noise):
        return jnp.where(jnp.abs(noise) <= 1, -jnp.log(3.0), -jnp.inf)

    def log_density(self, value, statistic):
        return jnp.sum(self.log_noise(value - statistic))

    def sample(self, key, statistic):
        return statistic + jax.random.randint(key, statistic.shape, -1, 2).astype(statistic.dtype)


def mixed(key, parameters, n):
    return {"y": jax.random.normal(key, (n,), float), "group": jnp.zeros(n, int)}


REFUSED = {
    "a local release": (
        MODEL,
        dpjax.LocalRelease(np.zeros(100), dpjax.Laplace(1.0), field="y"),
        r"release: given a LocalRelease; .* use dpjax.sample",
    ),
    "an unknown number of records that differ": (
        MODEL._replace(exchangeable=False),
        dpjax.Release([130.0], dpjax.Gaussian(20.0), total("y"), dpjax.UnknownCount(dpjax.models.UniformCount(1, 200))),
        r"release.n: given an UnknownCount with such a model",
    ),
    "draws given a histogram": (
        MODEL,
        dpjax.Release([0.2, 0.4], dpjax.SmoothedHistogram(0.5, 2), histogram("y", [-1.0, 0.0, 1.0]), 100),
        r"release: given values drawn by SmoothedHistogram",
    ),
    "whole noise of another law": (
        dpjax.models.categorical([1.0, 1.0]),
        dpjax.Release([30.0, 70.0], WholeNoise(), cells("cell", 2), 100),
        r"release: given a release by WholeNoise",
    ),
    "no law to sum over": (
        MODEL._replace(statistic_moments=None, noncentred=None),
        RELEASE,
        r"model: given a model without a full non-centred form; expected Model.statistic_moments",
    ),
    "whole numbers beside others": (
        MODEL._replace(
            statistic_moments=None,
            sample_records=mixed,
            update=None,
            update_log_density=None,
            summarize=None,
            log_likelihood=None,
            normal_field=None,
            noncentred=MODEL.noncentred._replace(
                records=lambda parameters, noise: {"y": noise, "group": jnp.zeros(noise.shape, int)}
            ),
        ),
        RELEASE,
        r"model: given a model with whole numbers \['group'\] beside others",
    ),
    "moments of another size": (
        MODEL._replace(statistic_moments=lambda parameters, statistic: (jnp.zeros(2), None)),
        RELEASE,
        r"Model.statistic_moments: given .* for a statistic of 1 numbers",
    ),
    "no parameters": (dpjax.models.exponential(2.0), RELEASE, r"model: given a model without parameters"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_normal_law_of_the_sum_is_refused_by_name(case):
    model, release, message = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=message):
        dpjax.sample_clt(KEY, model, release, progress=False)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"num_points": 4}, "num_points"),
        ({"num_points": 100.0}, "num_points"),
        ({"num_chains": 0}, "num_chains"),
        ({"num_warmup": -1}, "num_warmup"),
        ({"progress": 1}, "progress"),
    ],
)
def test_numbers_that_make_no_sense_are_refused_by_name(arguments, name):
    with pytest.raises((TypeError, ValueError), match=f"{name}: given"):
        dpjax.sample_clt(KEY, MODEL, RELEASE, **arguments)


@pytest.fixture(scope="module")
def posterior() -> dpjax.Posterior:
    return dpjax.sample_clt(KEY, MODEL, RELEASE, num_chains=2, num_samples=400, progress=False)


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:.*effective sample size")
def test_an_approximate_posterior_says_so(posterior):
    assert posterior.approximate
    assert not dpjax.Posterior.approximate
    assert (posterior.final_states, posterior.tuning, posterior.plan) == (None, None, None)
    for text in (repr(posterior), posterior.describe(), str(posterior.summary()), posterior.summary()._repr_html_()):
        assert "approximate: a Normal distribution of the sum" in text
    assert posterior.info["quadrature_error"].shape == (2,)
    assert "dpjax.sample" in posterior.remedy


def test_predicted_sums_are_those_of_the_normal_law(posterior):
    predicted = posterior.predict(jax.random.key(2))
    assert predicted.values.shape == (800, 1)
    # The prior is wide: predictions spread about the value by the noise, the records and the posterior.
    assert np.mean(predicted.values) == pytest.approx(130, abs=8)
    assert np.std(predicted.values) == pytest.approx(np.sqrt(2 * (4 * 100 + 20.0**2)), rel=0.15)
    np.testing.assert_array_equal(predicted.released, RELEASE.value)


def test_equal_keys_give_equal_draws(posterior):
    again = dpjax.sample_clt(KEY, MODEL, RELEASE, num_chains=2, num_samples=400, progress=False)
    np.testing.assert_array_equal(again.draws["mean"], posterior.draws["mean"])


@pytest.mark.filterwarnings("ignore:.*effective sample size")
def test_divergences_are_reported(posterior):
    posterior.info["num_divergent"] = np.zeros((2, 400))
    posterior.info["num_divergent"][0, :3] = 1
    with pytest.warns(UserWarning, match="3 of 800 trajectories diverged"):
        posterior.summary()
    del posterior.info["num_divergent"]
