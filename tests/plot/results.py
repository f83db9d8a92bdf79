"""Posteriors built from random numbers, without a sampler."""

import jax.numpy as jnp
import numpy as np

import dpjax

N = 30
STATISTIC = dpjax.statistics.total("y", lower=-2.0, upper=2.0)
MODEL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 1.0), 1.0)
RELEASE = dpjax.Release([12.0], dpjax.Laplace(4.0), STATISTIC, n=N)


def make_posterior(release=RELEASE, model=MODEL, imputation=None, num_draws=40):
    """Two chains of normal draws, and acceptance that rises from record to record."""
    rng = np.random.default_rng(1)
    draws = {"mean": rng.normal(0.4, 0.2, (2, num_draws)).astype(jnp.zeros(()).dtype)}
    rates = np.linspace(0.5, 0.9, release.n) + np.array([[-0.05], [0.05]])
    info = {"acceptance_rate": np.full((2, num_draws), 0.7), "acceptance_rate_per_record": rates}
    plan = dpjax.data_augmentation.SweepPlan(dpjax.imwg() if imputation is None else imputation, False, None)
    return dpjax.Posterior(draws, info, None, False, model, release, None, None, plan)
