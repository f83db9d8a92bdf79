"""The shipped models, with a grid of ordinary and extreme parameters each."""

from typing import Any

from dpjax import models
from dpjax.base import Model

GAMMA = models.GammaPrior(2.0, 1.0)
RARE = [[0.2, 0.3, 0.5], [1e-6, 0.5, 0.499999], [0.999998, 1e-6, 1e-6], [0.1, 0.8, 0.1]]

SHIPPED: dict[str, tuple[Model, dict[str, Any]]] = {
    "normal": (
        models.normal(models.NormalPrior(0.0, 2.0), models.InverseGammaPrior(2.0, 1.0)),
        {"mean": [0.0, 0.5, 1e3, 1e3], "variance": [1.0, 0.7, 1e-2, 1e4]},
    ),
    "linear regression": (
        models.linear_regression(
            covariate_mean=[0.5],
            covariate_cov=[[1.0]],
            coef_prior=models.NormalPrior([0.0, 0.0], [1.0, 1.0]),
            noise_variance=models.InverseGammaPrior(2.0, 1.0),
        ),
        {"coef": [[0.0, 0.0], [0.5, -0.5], [1e3, 1.0], [0.0, 1e3]], "variance": [1.0, 0.7, 1e2, 1e-2]},
    ),
    "exponential": (models.exponential(GAMMA), {"rate": [0.05, 0.06, 1.0, 1.3, 1e3]}),
    "categorical": (models.categorical([1.0, 1.0, 1.0]), {"probabilities": RARE}),
    "naive Bayes": (
        models.naive_bayes([1.0, 1.0], [[[1.0, 1.0, 1.0]] * 2] * 2),
        {
            "class_probabilities": [[0.5, 0.5], [1e-6, 0.999999], [0.4, 0.6]],
            "feature_probabilities": [[RARE[:2]] * 2, [RARE[1:3]] * 2, [RARE[2:]] * 2],
        },
    ),
    "beta": (models.beta(GAMMA, GAMMA), {"a": [2.0, 1.5, 5.0, 1e3], "b": [3.0, 2.5, 0.7, 1e3]}),
    "dirichlet": (models.dirichlet(GAMMA, 3), {"shape": [[1.0, 2.0, 3.0], [0.8, 2.5, 3.0], [1e3, 900.0, 10.0]]}),
}
