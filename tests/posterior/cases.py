"""The reference posteriors: their inputs as dpjax models and releases, their figures as flat arrays."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from dpjax import models, statistics
from dpjax.base import Model
from dpjax.mechanisms import DiscreteGaussian, Gaussian, Laplace
from dpjax.release import Release

REFERENCES = Path(__file__).parents[1] / "references"
PROBABILITIES = (0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975)


class Case(NamedTuple):
    """A posterior to be met: draws [chain, draw, k] in the order of the rows of ``figures``."""

    model: Model
    release: Release
    flatten: Callable[[dict[str, np.ndarray]], np.ndarray]
    figures: dict[str, tuple[np.ndarray, np.ndarray]]
    """Figure name -> (values [k], Monte Carlo standard errors [k]); NaN where the reference has none."""


def load(name: str) -> dict:
    return json.loads((REFERENCES / f"{name}.json").read_text())


def figures(rows: list[dict]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The reference figures of some parameters, exact ones with a standard error of zero."""

    def quantile(row: dict, probability: float) -> tuple[float, float]:
        entry = row.get("quantiles", {}).get(str(probability), np.nan)
        return (entry["value"], entry["mcse"]) if isinstance(entry, dict) else (entry, 0.0)

    result = {"mean": [(row["mean"], row.get("mcse_mean", 0.0)) for row in rows]}
    result["sd"] = [(row["sd"], row.get("mcse_sd", 0.0)) for row in rows]
    for probability in PROBABILITIES:
        result[str(probability)] = [quantile(row, probability) for row in rows]
    return {name: tuple(np.asarray(pairs, float).T) for name, pairs in result.items()}


def normal_mean() -> Case:
    """A normal mean from a Gaussian release of the unclamped mean."""
    data = load("normal_mean")
    given = data["inputs"]
    model = models.normal(mean_prior=models.NormalPrior(0.0, 2.0), variance=1.0)
    release = Release(given["sdp"], Gaussian(given["noise_sd"]), statistics.mean("y", given["n"]), given["n"])
    return Case(model, release, lambda draws: draws["mean"][..., None], figures([data["posterior"]["theta"]]))


def discrete_gaussian_table() -> Case:
    """A 2 by 2 table from discrete Gaussian counts with a known total."""
    data = load("dgauss_2x2")
    given = data["inputs"]
    model = models.categorical(concentration=jnp.ones(4))
    release = Release(
        np.asarray(given["sdp"]), DiscreteGaussian(given["sigma"]), statistics.cells("cell", 4), given["N"]
    )
    return Case(model, release, lambda draws: draws["probabilities"], figures(list(data["posterior"].values())))


def naive_bayes(name: str) -> Case:
    """A naive-Bayes log-linear model from Laplace counts of features by class."""
    data = load(name)
    given = data["inputs"]
    counts = np.asarray(given["m"])
    num_features, num_levels, num_classes = counts.shape
    prior = np.broadcast_to(given["alp"], num_classes).astype(float)
    model = models.naive_bayes(prior, np.full((num_features, num_classes, num_levels), float(given["alpha"])))
    scale = given.get("laplace_scale", given.get("laplace_scale_b"))
    statistic = statistics.class_features(num_classes, num_features, num_levels)
    release = Release(counts.ravel(), Laplace(float(scale)), statistic, given["N"])
    classes = [row for row in data["posterior"] if row.startswith("p[")]
    features = data["posterior"].get("theta", data["posterior"])
    features = {row: features[row] for row in features if row.startswith("theta[")}
    places = [tuple(int(part.split("=")[1]) - 1 for part in row[6:-1].split(",")) for row in features]

    def flatten(draws: dict[str, np.ndarray]) -> np.ndarray:
        columns = [draws["class_probabilities"][..., int(row[2:-1]) - 1] for row in classes]
        columns += [draws["feature_probabilities"][..., k, i, j] for k, j, i in places]
        return np.stack(columns, axis=-1)

    rows = [data["posterior"][row] for row in classes] + list(features.values())
    return Case(model, release, flatten, figures(rows))


def linear_regression() -> Case:
    """A linear regression from a Laplace release of its clamped Gram matrix, at ε = 1."""
    data = load("lin1")
    given = data["inputs"]
    model = models.linear_regression(
        covariate_mean=given["m"],
        covariate_cov=given["Sigma"],
        coef_prior=models.NormalPrior(0.0, float(given["tau"])),
        noise_variance=float(given["sigma2"]),
    )
    statistic = statistics.gram(lower=[-10, -10], upper=[10, 10], response=(-10, 10))
    release = Release(given["sdp"], Laplace(given["laplace_scale_b"]), statistic, given["n"])
    return Case(model, release, lambda draws: draws["coef"], figures(list(data["posterior"].values())[:3]))
