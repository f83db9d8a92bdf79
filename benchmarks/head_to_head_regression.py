"""The linear regression of Xiong, Ju and Zhang (2023, arXiv 2310.12781), and the releases that they print.

Their 13 / n is the sensitivity of means: the sums have Laplace noise of scale 13 / ε.
"""

import dpjax
from problems.regression import INPUTS, STATISTIC, make_mechanism

N = INPUTS["n"]

PRINTED = {
    10.0: (-38.2440, -6.6783, 3.1997, 27.1985, 9.8835, -13.8503, 2.1882, -2.2884, 3.4092),
    1.0: (-55.1400, -6.0000, 15.0400, 23.7800, 41.3000, -16.2100, -9.4600, -11.3300, 35.9500),
    0.1: (-333.8400, -106.5100, -1.3100, 399.9300, 229.9800, 19.6700, 84.5900, -55.4100, 88.9000),
}
"""The printed sums by ε: y, x1 y, x2 y, y², x1, x2, x1², x1 x2, x2²."""

ORDER = (0, 1, 2, 3, 4, 6, 5, 7, 8)
"""Where `dpjax.statistics.gram` has each of its own: y, x1 y, x2 y, y², x1, x1², x2, x1 x2, x2²."""


def make_model() -> dpjax.Model:
    """Known covariates and noise variance, and a standard Normal prior of the three coefficients."""
    return dpjax.models.linear_regression(
        covariate_mean=INPUTS["m"],
        covariate_cov=INPUTS["Sigma"],
        coef_prior=dpjax.models.NormalPrior(0.0, 1.0),
        noise_variance=float(INPUTS["sigma2"]),
    )


def release_at(epsilon: float) -> dpjax.Release:
    """The printed release of 100 records."""
    value = [PRINTED[epsilon][place] for place in ORDER]
    return dpjax.Release(value, make_mechanism(epsilon), STATISTIC, N)
