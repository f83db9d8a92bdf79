"""Progression of diabetes: a regression from clamped sums and products with Laplace noise."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.random import Generator

import dpjax
from dpjax.base import Array, Key, Records
from dpjax.demo.comparison import Answer, Comparison, announce
from dpjax.models import NormalInverseGammaPrior, NormalInverseWishartPrior

# Public bounds of body mass index and progression score. Both are mapped to [-1, 1], the unit of model and release.
BMI_BOUNDS, SCORE_BOUNDS = (15.0, 45.0), (0.0, 360.0)
TYPICAL_BMI = 25.0
EPSILON = 1.0
NUM_DRAWS = 20_000
PRIOR_PRECISION, PRIOR_SHAPE, PRIOR_SCALE = 0.1, 2.0, 0.3  # uniform numbers on [-1, 1] have the variance 1/3


def compare(key: Key, random: Generator) -> Comparison:
    """Publish the moments and infer how the score after a year depends on body mass index."""
    bmi, score = load()
    records = {"x": rescale(bmi, BMI_BOUNDS)[:, None], "y": rescale(score, SCORE_BOUNDS)}
    n = len(score)
    statistic = dpjax.statistics.gram([-1], [1], response=(-1, 1))
    sensitivity = statistic.sensitivity(1, "replace-one")
    mechanism = dpjax.Laplace(dpjax.mechanisms.laplace_scale(EPSILON, sensitivity))
    announce(
        "Progression of diabetes after one year",
        released=f"{statistic.dimension} sums over {n} patients: first and second moments of two clamped variables",
        mechanism=f"Laplace noise, b = {mechanism.scale:.3g}",
        promise=f"{EPSILON:g}-differential privacy for replacing one patient (L1 sensitivity {sensitivity:.3g})",
    )
    noise_key, chain_key = jax.random.split(key)
    moments = sum_up(statistic, records)
    release = dpjax.Release(mechanism.sample(noise_key, moments), mechanism, statistic, n)
    posterior = dpjax.sample(chain_key, build_model(), release, num_warmup=500, num_samples=2_000, refresh=False)
    return Comparison(
        title="Diabetes, 5 moments",
        promise=f"Laplace noise, {EPSILON:g}-DP",
        measure="progression score, 0 to 360",
        non_private=to_units(*draw_given_moments(random, moments, n)),
        naive=to_units(*draw_given_moments(random, release.value, n)),
        dpjax=to_units(posterior.draws["coef"], posterior.draws["variance"]),
    )


def load() -> tuple[np.ndarray, np.ndarray]:
    """Body mass index [n] in kg/m² and progression score [n] of 442 patients.

    Efron, Hastie, Johnstone and Tibshirani (2004), Least angle regression, Annals of Statistics 32, 407-499.
    """
    from sklearn.datasets import load_diabetes

    data = load_diabetes(scaled=False)
    return data.data[:, data.feature_names.index("bmi")], data.target


def rescale(column: np.ndarray, bounds: tuple[float, float]) -> Array:
    """A column clamped to its bounds and mapped to [-1, 1]."""
    low, high = bounds
    return jnp.asarray((2 * np.clip(column, low, high) - low - high) / (high - low), float)


def sum_up(statistic: dpjax.statistics.Gram, records: Records) -> Array:
    """The confidential sum [d] of the statistic over the records."""
    return jnp.sum(jax.vmap(statistic)(records), axis=0)


def build_model() -> dpjax.Model:
    """A regression on a Normal covariate of unknown mean and variance."""
    return dpjax.models.linear_regression(
        covariate_prior=NormalInverseWishartPrior(
            jnp.zeros(1), precision=1.0, degrees=3.0, scale=PRIOR_SCALE * jnp.eye(1)
        ),
        noise_variance=NormalInverseGammaPrior(0.0, PRIOR_PRECISION, PRIOR_SHAPE, PRIOR_SCALE),
    )


def draw_given_moments(random: Generator, moments: Array, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients [draw, 2] and variances [draw] under the model's prior, given the moments as if they were exact."""
    y, xy, yy, x, xx = np.asarray(moments, float)
    precision = np.array([[n, x], [x, xx]]) + PRIOR_PRECISION * np.eye(2)
    mean = np.linalg.solve(precision, [y, xy])
    scale = PRIOR_SCALE + (yy - mean @ [y, xy]) / 2
    variance = scale / random.gamma(PRIOR_SHAPE + n / 2, size=NUM_DRAWS)
    normal = random.multivariate_normal(np.zeros(2), np.linalg.inv(precision), NUM_DRAWS)
    return mean + np.sqrt(variance)[:, None] * normal, variance


def to_units(coef: np.ndarray, variance: np.ndarray) -> Answer:
    """The regression in the units of the data, from coefficients [..., 2] and variances [...]."""
    (low, high), (lowest, highest) = BMI_BOUNDS, SCORE_BOUNDS
    typical, half = (2 * TYPICAL_BMI - low - high) / (high - low), (highest - lowest) / 2
    return {
        f"mean at {TYPICAL_BMI:g} kg/m²": (lowest + highest) / 2 + half * (coef[..., 0] + coef[..., 1] * typical),
        "slope per kg/m²": half * coef[..., 1] * 2 / (high - low),
        "residual sd": half * np.sqrt(variance),
    }
