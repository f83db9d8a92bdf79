"""The stationary acceptance of a regression with 10 records, by the settings of Table 3 of Xiong and Ju (2025).

Covariates and response are clamped at ±6 and mapped to [−1, 1], the release is the mean of the Gram statistic over
records, and the Laplace scale is 13 / (nε). The releases were simulated by these settings at the paper's parameters. A
program in NumPy, of 200 chains of 1,500 sweeps, accepts 99.229 and 91.985 % (SOMA, IMwG) at ε = 3, and 93.079 and
54.121 % at ε = 30, with standard errors of at most 0.04 percentage points.
"""

import jax
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics

N = 10
# In the order of statistics.gram: X'y, y², then x1, x1², x2, x1x2, x2².
RELEASED = {
    3: [-0.5712, -0.8638, 0.2800, 1.2156, -0.2409, 0.1830, -0.4540, 0.2326, 0.3585],
    30: [-0.8208, -0.1757, 0.0468, 0.6277, 0.1613, 0.0218, -0.1300, -0.0617, 0.1703],
}
TOLERANCE = 0.15


@pytest.mark.slow
@pytest.mark.parametrize(("imputation", "epsilon", "percent"), [
    (dpjax.soma(), 3, 99.23),
    (dpjax.imwg(), 3, 91.985),
    (dpjax.imwg(scan="random"), 3, 91.985),
    (dpjax.soma(), 30, 93.08),
    (dpjax.imwg(), 30, 54.12),
    (dpjax.imwg(scan="random"), 30, 54.12),
])  # fmt: skip
def test_stationary_acceptance(imputation: dpjax.base.Imputation, epsilon: int, percent: float) -> None:
    model = models.linear_regression(
        covariate_mean=[0.9, -1.17],
        covariate_cov=np.eye(2),
        noise_variance=models.NormalInverseGammaPrior(np.zeros(3), 0.5 * np.eye(3), 10.0, 10.0),
    )
    statistic = statistics.scaled(statistics.gram(lower=[-6, -6], upper=[6, 6], response=(-6, 6)), 1 / N)
    release = dpjax.Release(RELEASED[epsilon], dpjax.Laplace(13 / (N * epsilon)), statistic, N)
    posterior = dpjax.sample(
        jax.random.key(7),
        model,
        release,
        num_chains=256,
        num_warmup=500,
        num_samples=4_000,
        imputation=imputation,
        interweave=False,
        progress=False,
    )
    chains = np.mean(posterior.info["acceptance_rate"], axis=1)
    error = 100 * np.std(chains, ddof=1) / np.sqrt(len(chains))
    assert 3 * error < TOLERANCE
    assert abs(100 * np.mean(chains) - percent) < TOLERANCE
