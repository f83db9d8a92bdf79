"""Progression of diabetes: a regression from a clamped Gram matrix with Laplace noise."""

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from dpjax.base import Array, Key, Records
from dpjax.demo.comparison import Answer, Comparison, announce
from dpjax.models import NormalInverseGammaPrior, NormalInverseWishartPrior

TITLE = "Progression of diabetes after one year"

# Public bounds. Within them every variable is mapped to [-1, 1], the unit of model and release.
BOUNDS = {"bmi": (15.0, 45.0), "bp": (60.0, 140.0), "progression": (0.0, 360.0)}
EPSILON = 3.0
SEED = 3
NUM_DRAWS = 20_000
PRIOR_PRECISION, PRIOR_SHAPE, PRIOR_SCALE = 0.1, 2.0, 0.1


def compare() -> Comparison:
    """Publish the second moments and infer how progression depends on body mass index and blood pressure."""
    records = load()
    n = len(records["y"])
    statistic = dpjax.statistics.gram([-1, -1], [1, 1], response=(-1, 1))
    sensitivity = statistic.sensitivity(1, "replace-one")
    mechanism = dpjax.Laplace(dpjax.laplace_scale(EPSILON, sensitivity))
    announce(
        TITLE,
        released=f"{statistic.dimension} sums over {n} patients: first and second moments of three clamped variables",
        mechanism=f"Laplace noise, b = {mechanism.scale:.3g}",
        promise=f"{EPSILON:g}-differential privacy for replacing one patient (L1 sensitivity {sensitivity:.3g})",
    )
    noise_key, chain_key, exact_key, naive_key = jax.random.split(jax.random.key(SEED), 4)
    moments = jnp.sum(jax.vmap(statistic)(records), axis=0)
    release = dpjax.Release(mechanism.sample(noise_key, moments), mechanism, statistic, n)
    posterior = dpjax.sample(chain_key, build_model(), release, num_samples=2_000)
    return Comparison(
        title=TITLE,
        measure="change of the progression score",
        non_private=slopes(draw_coefficients(exact_key, moments, n)),
        naive=slopes(draw_coefficients(naive_key, release.value, n)),
        dpjax=slopes(posterior.draws["coef"]),
        reference=0.0,
    )


def load() -> Records:
    """Body mass index and blood pressure as covariates, progression as response, all mapped to [-1, 1].

    442 patients of Efron, Hastie, Johnstone and Tibshirani (2004), Least angle regression, Annals of Statistics 32.
    """
    from sklearn.datasets import load_diabetes

    data = load_diabetes(scaled=False)
    columns = {name: data.data[:, data.feature_names.index(name)] for name in ("bmi", "bp")}
    x = np.stack([rescale(name, column) for name, column in columns.items()], axis=1)
    return {"x": jnp.asarray(x, float), "y": jnp.asarray(rescale("progression", data.target), float)}


def rescale(name: str, column: np.ndarray) -> np.ndarray:
    """A column clamped to its bounds and mapped to [-1, 1]."""
    low, high = BOUNDS[name]
    return (2 * np.clip(column, low, high) - low - high) / (high - low)


def build_model() -> dpjax.Model:
    """A regression whose covariates have an unknown Normal law."""
    return dpjax.models.linear_regression(
        covariate_prior=NormalInverseWishartPrior(jnp.zeros(2), precision=1.0, degrees=4.0, scale=0.1 * jnp.eye(2)),
        noise_variance=NormalInverseGammaPrior(0.0, PRIOR_PRECISION, PRIOR_SHAPE, PRIOR_SCALE),
    )


def draw_coefficients(key: Key, moments: Array, n: int) -> np.ndarray:
    """Coefficients [draw, 3] given the moments, taken at their word, under the model's prior: a multivariate t law."""
    normal_key, gamma_key = jax.random.split(key)
    x1, x1_x1, x2, x1_x2, x2_x2 = moments[4:]
    gram = jnp.array([[float(n), x1, x2], [x1, x1_x1, x1_x2], [x2, x1_x2, x2_x2]])
    precision = gram + PRIOR_PRECISION * jnp.eye(3)
    mean = jnp.linalg.solve(precision, moments[:3])
    shape, scale = PRIOR_SHAPE + n / 2, PRIOR_SCALE + (moments[3] - mean @ moments[:3]) / 2
    variance = scale / jax.random.gamma(gamma_key, shape, (NUM_DRAWS,))
    normal = jax.random.multivariate_normal(normal_key, jnp.zeros(3), jnp.linalg.inv(precision), (NUM_DRAWS,))
    return np.asarray(mean[None] + jnp.sqrt(variance)[:, None] * normal)


def slopes(coefficients: np.ndarray) -> Answer:
    """The slopes in the units of the data, from draws of coefficients [..., 3]."""
    width = {name: high - low for name, (low, high) in BOUNDS.items()}
    return {
        "per kg/m² of body mass index": coefficients[..., 1] * (width["progression"] / width["bmi"]),
        "per mmHg of blood pressure": coefficients[..., 2] * (width["progression"] / width["bp"]),
    }
