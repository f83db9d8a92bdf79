"""Writes diffprivlib.json: results of diffprivlib 0.6.6, with scikit-learn 1.5.2 and NumPy 2.4.6, at stated seeds.

Run where that library is installed: ``python tests/adapters/diffprivlib/record_diffprivlib.py``.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("diffprivlib.json")
REPEATS = 400
KEPT = ("coef_", "intercept_", "n_iter_", "classes_", "epsilon", "data_norm", "C", "fit_intercept", "tol", "max_iter")


def records() -> tuple[np.ndarray, np.ndarray]:
    """Covariates [40, 2], and one of three classes [40] for each."""
    rng = np.random.default_rng(1)
    return np.round(rng.normal(size=(40, 2)), 2), np.arange(40) % 3


def written(fitted: Any) -> dict[str, Any]:
    """The attributes that a reader needs."""
    values = {name: getattr(fitted, name) for name in KEPT}
    return {"model": type(fitted).__name__} | {k: np.asarray(v).tolist() for k, v in values.items()}


def fits(x: np.ndarray, y: np.ndarray, **options: Any) -> dict[str, Any]:
    """One fit in full, and the coefficients of many with other seeds."""
    from diffprivlib.models import LogisticRegression

    models = [LogisticRegression(**options, random_state=seed).fit(x, y) for seed in range(REPEATS)]
    offsets = [model.intercept_ for model in models]
    coefs = [np.concatenate([a[:, None], m.coef_], axis=1) for a, m in zip(offsets, models, strict=True)]
    return written(models[0]) | {"draws": np.round(coefs, 7).tolist()}


def main() -> None:
    """Draw everything and write it."""
    from diffprivlib import tools

    x, y = records()
    y2 = (y > 0).astype(int)
    values = np.round(x[:, 0], 1)
    options = {"bounds": (-1.0, 1.0), "epsilon": 0.5}
    calls = {
        "mean": lambda seed: tools.mean(values, **options, random_state=seed),
        "sum": lambda seed: tools.sum(values, **options, random_state=seed),
        "integer_sum": lambda seed: tools.sum(y, bounds=(0, 2), epsilon=0.5, dtype=int, random_state=seed),
        "count": lambda seed: tools.count_nonzero(y, epsilon=0.2, random_state=seed),
        "var": lambda seed: tools.var(values, **options, random_state=seed),
        "std": lambda seed: tools.std(values, **options, random_state=seed),
        "quantile": lambda seed: tools.quantile(values, 0.3, **options, random_state=seed),
        "histogram": lambda seed: tools.histogram(y, bins=2, range=(0, 1), epsilon=0.2, random_state=seed)[0],
    }
    result: dict[str, Any] = {"x": x.tolist(), "y": y.tolist()}
    for name, call in calls.items():
        result[name] = np.round([call(seed) for seed in range(REPEATS)], 7).tolist()
    common = {"data_norm": 1.5, "C": 1.0, "max_iter": 1000, "tol": 1e-8}
    result["two_classes"] = fits(x, y2, epsilon=2.0, **common)
    result["small_epsilon"] = fits(x, y2, epsilon=0.3, **common)
    result["three_classes"] = fits(x, y, epsilon=6.0, fit_intercept=False, **common)
    FILE.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
