"""Exact posteriors from differentially private releases, in JAX."""

from dpjax import coupling, exchangeable, models, statistics
from dpjax.base import (
    Array,
    Imputation,
    ImputationInfo,
    Key,
    Latent,
    Mechanism,
    Model,
    NonCentred,
    NormalScores,
    SamplingAlgorithm,
)
from dpjax.gibbs import GibbsInfo, GibbsState, Position, gibbs
from dpjax.importance import importance_sample
from dpjax.imputation import imwg, soma
from dpjax.mechanisms import (
    Censored,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Privacy,
    RandomizedResponse,
    gaussian_delta,
    gaussian_scale,
    laplace_scale,
    zcdp_epsilon,
    zcdp_rho,
    zcdp_scale,
)
from dpjax.parameters import Tuning, initial_tuning
from dpjax.posterior import Posterior
from dpjax.pytree import frozen_pytree
from dpjax.release import LocalRelease, PrecisionWarning, Release, from_json, mechanism_from
from dpjax.sampling import sample

__version__ = "0.1.0"

__all__ = [
    "Array",
    "Censored",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "GibbsInfo",
    "GibbsState",
    "Imputation",
    "ImputationInfo",
    "Key",
    "Laplace",
    "Latent",
    "LocalRelease",
    "Mechanism",
    "Model",
    "NonCentred",
    "NormalScores",
    "Position",
    "Posterior",
    "PrecisionWarning",
    "Privacy",
    "RandomizedResponse",
    "Release",
    "SamplingAlgorithm",
    "Tuning",
    "coupling",
    "exchangeable",
    "from_json",
    "frozen_pytree",
    "gaussian_delta",
    "gaussian_scale",
    "gibbs",
    "importance_sample",
    "imwg",
    "initial_tuning",
    "laplace_scale",
    "mechanism_from",
    "models",
    "sample",
    "soma",
    "statistics",
    "zcdp_epsilon",
    "zcdp_rho",
    "zcdp_scale",
]
