"""Complete-data models: priors, densities of records, and what samplers can use of them."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from dpjax._util.lazy import lazy_names
from dpjax.base import Model, NonCentred
from dpjax.models.beta import beta
from dpjax.models.categorical import categorical
from dpjax.models.checks import check_model
from dpjax.models.dirichlet import dirichlet
from dpjax.models.exponential import exponential
from dpjax.models.hyper_dirichlet import hyper_dirichlet
from dpjax.models.latent_classes import latent_classes
from dpjax.models.laws import check
from dpjax.models.linear_regression import linear_regression
from dpjax.models.log_linear import log_linear
from dpjax.models.naive_bayes import naive_bayes
from dpjax.models.normal import normal
from dpjax.models.priors import (
    GammaPrior,
    InverseGammaPrior,
    NormalInverseGammaPrior,
    NormalInverseWishartPrior,
    NormalPrior,
)
from dpjax.release.unknown_count import NegativeBinomialCount, PoissonCount, UniformCount

if TYPE_CHECKING:
    formula: Callable[..., Model]
else:
    __getattr__, __dir__ = lazy_names(__name__, {"dpjax.adapters.formula": "formula"})

__all__ = [
    "GammaPrior",
    "InverseGammaPrior",
    "Model",
    "NegativeBinomialCount",
    "NonCentred",
    "NormalInverseGammaPrior",
    "NormalInverseWishartPrior",
    "NormalPrior",
    "PoissonCount",
    "UniformCount",
    "beta",
    "categorical",
    "check",
    "check_model",
    "dirichlet",
    "exponential",
    "formula",
    "hyper_dirichlet",
    "latent_classes",
    "linear_regression",
    "log_linear",
    "naive_bayes",
    "normal",
]
