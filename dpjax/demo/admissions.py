"""Graduate admissions at Berkeley: a table of counts, published with discrete Gaussian noise."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.random import Generator

import dpjax
from dpjax.base import Key
from dpjax.demo.comparison import Answer, Comparison, announce, draw_tables

# Applicants by sex (men, women), outcome (admitted, rejected) and department (A to F): UCBAdmissions of R's `datasets`,
# from Bickel, Hammel and O'Connell (1975), Sex bias in graduate admissions, Science 187, 398-403.
COUNTS = (
    ((512, 353, 120, 138, 53, 22), (313, 207, 205, 279, 138, 351)),
    ((89, 17, 202, 131, 94, 24), (19, 8, 391, 244, 299, 317)),
)
RHO = 0.04


def compare(key: Key, random: Generator) -> Comparison:
    """Publish the 24 counts and infer the odds ratio of admission in each department."""
    table = jnp.asarray(COUNTS, float)
    statistic = dpjax.statistics.cells("cell", table.size)
    sensitivity = statistic.sensitivity(2, "replace-one")
    mechanism = dpjax.DiscreteGaussian(dpjax.mechanisms.zcdp_scale(RHO, sensitivity))
    n = int(table.sum())
    announce(
        "Admissions at Berkeley, autumn 1973",
        released=f"{table.size} counts of {n:,} applicants, by sex, outcome and department",
        mechanism=f"discrete Gaussian noise, σ = {mechanism.scale:.3g}",
        promise=f"{RHO}-zCDP for replacing one applicant (L2 sensitivity {sensitivity:.3g})",
    )
    noise_key, chain_key = jax.random.split(key)
    release = dpjax.Release(mechanism.sample(noise_key, table.ravel()), mechanism, statistic, n)
    model = dpjax.models.categorical(jnp.ones(table.size), shape=table.shape)
    # With this much noise the sampler mixes well without interweaving and refreshes, and compiles faster.
    posterior = dpjax.sample(
        chain_key, model, release, num_warmup=200, num_samples=1_000, interweave=False, refresh=False
    )
    return Comparison(
        title="Berkeley admissions, 24 counts",
        promise=f"discrete Gaussian noise, {RHO}-zCDP",
        measure="log odds ratio of admission, men against women",
        non_private=by_department(log_odds_ratios(draw_tables(random, table.ravel()))),
        naive=by_department(log_odds_ratios(draw_tables(random, release.value))),
        dpjax=by_department(posterior.draws["log_odds_ratio"]),
    )


def log_odds_ratios(probabilities: np.ndarray) -> np.ndarray:
    """The log odds ratios [draw, 6] of cell probabilities [draw, 24]."""
    log_table = np.log(probabilities).reshape(-1, *np.shape(COUNTS))
    return log_table[:, 0, 0] - log_table[:, 0, 1] - log_table[:, 1, 0] + log_table[:, 1, 1]


def by_department(draws: np.ndarray) -> Answer:
    """Draws [..., 6] by department."""
    return {f"department {letter}": draws[..., index] for index, letter in enumerate("ABCDEF")}
