"""The problem that most benchmarks share: private linear regression with two covariates and nine noisy sums."""

import json
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import dpjax

REFERENCE = json.loads((Path(__file__).parents[1] / "tests/references/lin1.json").read_text())
INPUTS = REFERENCE["inputs"]

VALUES = {
    1: tuple(INPUTS["sdp"]),
    # The release at ε = 10 of Ju, Awan, Gong and Rao (2022), section 4, from the authors' published inputs.
    10: (
        -38.2439750507168,
        -6.67830047347547,
        3.19974339018786,
        27.1985244896387,
        9.8834761467374,
        2.18818009095853,
        -13.8503306257084,
        -2.28842283550773,
        3.40915314907154,
    ),
}
"""The released sums of 100 records, by ε."""

SENSITIVITY = INPUTS["sensitivity_used"]
COEFFICIENTS = (-1.795, -2.889, -0.662)
"""The coefficients that gave the records of both releases."""

STATISTIC = dpjax.statistics.gram(lower=(-10, -10), upper=(10, 10), response=(-10, 10))


def make_model() -> dpjax.Model:
    """Known covariate law and noise variance, and a Normal prior of the three coefficients."""
    return dpjax.models.linear_regression(
        covariate_mean=INPUTS["m"],
        covariate_cov=INPUTS["Sigma"],
        coef_prior=dpjax.models.NormalPrior(0.0, float(INPUTS["tau"])),
        noise_variance=float(INPUTS["sigma2"]),
    )


def make_mechanism(epsilon: float) -> dpjax.Laplace:
    """The noise at a privacy budget."""
    return dpjax.Laplace(SENSITIVITY / epsilon)


def published_release(epsilon: int) -> dpjax.Release:
    """The release of 100 records."""
    return dpjax.Release(VALUES[epsilon], make_mechanism(epsilon), STATISTIC, INPUTS["n"])


def simulated_release(model: dpjax.Model, n: int) -> dpjax.Release:
    """A release of n records at ε = 1, drawn at the true coefficients."""
    return simulate(model, n, 1)[1]


def simulate(model: dpjax.Model, n: int, epsilon: float) -> tuple[dict[str, jax.Array], dpjax.Release]:
    """Records [n] drawn at the true coefficients, and a release of them."""
    record_key, noise_key = jax.random.split(jax.random.key(n))
    records = jax.jit(model.sample_records, static_argnums=2)(record_key, parameters(), n)
    return records, privatize(noise_key, make_mechanism(epsilon), STATISTIC, records, n)


def privatize(key: jax.Array, mechanism: dpjax.mechanisms.Mechanism, statistic, records, n: int) -> dpjax.Release:
    """A release of given records; that float32 rounds large sums does not matter to its cost."""
    total = np.sum(jax.jit(jax.vmap(statistic))(records), axis=0, dtype=float)
    value = mechanism.sample(key, jnp.asarray(total, float))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpjax.release.PrecisionWarning)
        return dpjax.Release(value, mechanism, statistic, n)


def parameters() -> dict[str, jax.Array]:
    """The true coefficients."""
    return {"coef": jnp.array(COEFFICIENTS)}
