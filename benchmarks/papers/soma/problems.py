"""The problems of the paper as models and releases, and its samplers."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers import authors
from dpjax import models, statistics

SAMPLERS = {"imwg_random": dpjax.imwg(scan="random"), "imwg_systematic": dpjax.imwg(), "soma": dpjax.soma()}
"""In the order of the paper's tables."""

COLORS = {"imwg_random": "C0", "imwg_systematic": "C1", "soma": "C2", "soma_equal_indices": "C3", "imwg": "C1"}
"""In all figures."""

COEFFICIENTS, VARIANCE = (-1.79, -2.89, -0.66), 1.13
"""What gave the records of the regressions; Appendix B.3."""

PRINTED = {
    3: (-0.5120, -0.1326, 0.1554, 0.4520, 0.0471, -0.1216, 0.0803, -0.0676, 0.0019),
    30: (-0.5359, -0.1340, 0.0851, 0.4365, 0.1517, -0.1787, 0.0483, -0.0280, 0.0600),
}
"""The released means of 100 records by ε, which Appendix B.3 prints without their number."""

ORDER = (0, 1, 2, 3, 4, 6, 5, 7, 8)
"""Where the paper has each of `statistics.gram`: x₁, x₁², x₂, x₁x₂, x₂² at the end."""

BOUND, SENSITIVITY = 6.0, 13.0
"""Where covariates and response are clamped, and the numerator of the noise's scale: in the authors' code alone."""

RELEASES = "soma_releases.json"
"""The file of the authors' released values."""

BUDGETS = {3: 3, 30: 5}
"""The place of ε in it; the first of the repetitions is taken."""

CONFIDENTIAL = (10.0, 10.0)
"""The shapes of the confidential records of the histogram."""

MEAN = 0.5
"""What is released of two records."""

Problem = tuple[dpjax.Model, dpjax.Release]


def histogram(n: int, epsilon: float, bins: int = 10) -> Problem:
    """Appendix B.1: uniform records and their counts in equal bins, Laplace noise of scale 2 / ε.

    The confidential records are Beta(10, 10), as in the authors' code.
    """
    model = models.beta(1.0, 1.0)._replace(
        sample_records=lambda key, parameters, n: {"y": jax.random.uniform(key, (n,), float)}
    )
    statistic = statistics.histogram("y", tuple(np.linspace(0.0, 1.0, bins + 1)))
    template = dpjax.Release(jnp.zeros(bins), dpjax.Laplace(2 / epsilon), statistic, n)
    records_key, noise_key = jax.random.split(jax.random.key(1))
    return model, template.sample(noise_key, {"y": jax.random.beta(records_key, *CONFIDENTIAL, (n,))})


def two_records(prior: str, epsilon: float | jax.Array) -> Problem:
    """Section 5.1: the mean of two records with Laplace noise of scale 1 / (2 ε), released as 0.5.

    Both are those of the authors' code. The text has the scale 1 / ε and no value.
    """
    model = models.beta(10.0, 10.0) if prior == "beta" else models.exponential(1.0)
    return model, dpjax.Release([MEAN], dpjax.Laplace(1 / (2 * epsilon)), statistics.mean("y", 2), 2)


def regression(n: int, epsilon: int, data: str | None = None) -> Problem:
    """Appendix B.3: clamped at ±6, mapped to [−1, 1], means over records, Laplace noise of scale 13 / (n ε).

    For 100 records the value is the one that is printed. For 10 it is read from the authors' files in the folder
    `data`; without them it is drawn at the true parameters.
    """
    model = models.linear_regression(
        covariate_mean=[0.9, -1.17],
        covariate_cov=np.eye(2),
        noise_variance=models.NormalInverseGammaPrior(np.zeros(3), 0.5 * np.eye(3), 10.0, 10.0),
    )
    products = statistics.gram(lower=[-BOUND] * 2, upper=[BOUND] * 2, response=(-BOUND, BOUND))
    template = dpjax.Release(
        np.zeros(9), dpjax.Laplace(SENSITIVITY / (n * epsilon)), statistics.scaled(products, 1 / n), n
    )
    if n == 100:
        return model, replace(template, value=jnp.asarray(np.take(PRINTED[epsilon], ORDER), float))
    if n == 10 and data is not None:
        means = authors.read(data, RELEASES)["sdp_obs_ckpt_n+20"][BUDGETS[epsilon]][0]
        return model, replace(template, value=jnp.asarray(np.take(means, ORDER), float))
    records_key, noise_key = jax.random.split(jax.random.key(n))
    truth = {"coef": jnp.array(COEFFICIENTS), "variance": jnp.asarray(VARIANCE)}
    return model, template.sample(noise_key, model.sample_records(records_key, truth, n))
