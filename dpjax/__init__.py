"""Exact posteriors from differentially private releases, in JAX."""

from dpjax import coupling, exchangeable, mixture, models, plot, private, statistics
from dpjax._util.jit import enable_compilation_cache
from dpjax._util.pytree import frozen_pytree
from dpjax.adapters.numpyro import from_numpyro, private_target
from dpjax.base import (
    Array,
    Imputation,
    ImputationInfo,
    Key,
    Latent,
    Model,
    NonCentred,
    NormalScores,
    SamplingAlgorithm,
)
from dpjax.clt import large_sample
from dpjax.data_augmentation.algorithm import gibbs, impute
from dpjax.data_augmentation.counts import counts, least_squares
from dpjax.data_augmentation.parameters import ParameterKernel, Tuning, initial_tuning, parameter_kernel
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.records import imwg, pcn, soma
from dpjax.data_augmentation.sweep import GibbsInfo
from dpjax.importance import importance_sample
from dpjax.mcmc import sample, sample_batch, until
from dpjax.mechanisms import (
    Censored,
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Gaussian,
    HaarWavelet,
    Independent,
    Laplace,
    Mechanism,
    Privacy,
    RandomizedResponse,
    SmoothedHistogram,
    gaussian_delta,
    gaussian_scale,
    haar_scale,
    haar_sensitivity,
    laplace_scale,
    smoothing_weight,
    zcdp_epsilon,
    zcdp_rho,
    zcdp_scale,
)
from dpjax.models.simulation import GibbsState, Position
from dpjax.posterior import BatchPosterior, Posterior
from dpjax.posterior.predictive import prior_predict
from dpjax.release import (
    LocalRelease,
    PrecisionWarning,
    Release,
    UnknownCount,
    describe,
    from_json,
    joint,
    mechanism_from,
    releases,
)
from dpjax.sampler_tests import calibrate, referee
from dpjax.smc import tempered

__version__ = "0.1.0"

__all__ = [
    "Array",
    "BatchPosterior",
    "Censored",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exact",
    "Gaussian",
    "GibbsInfo",
    "GibbsState",
    "HaarWavelet",
    "Imputation",
    "ImputationInfo",
    "Independent",
    "Key",
    "Laplace",
    "Latent",
    "LocalRelease",
    "Mechanism",
    "Model",
    "NonCentred",
    "NormalScores",
    "ParameterKernel",
    "Position",
    "Posterior",
    "PrecisionWarning",
    "Privacy",
    "RandomizedResponse",
    "Release",
    "SamplingAlgorithm",
    "SmoothedHistogram",
    "SweepPlan",
    "Tuning",
    "UnknownCount",
    "calibrate",
    "counts",
    "coupling",
    "describe",
    "enable_compilation_cache",
    "exchangeable",
    "from_json",
    "from_numpyro",
    "frozen_pytree",
    "gaussian_delta",
    "gaussian_scale",
    "gibbs",
    "haar_scale",
    "haar_sensitivity",
    "importance_sample",
    "impute",
    "imwg",
    "initial_tuning",
    "joint",
    "laplace_scale",
    "large_sample",
    "least_squares",
    "mechanism_from",
    "mixture",
    "models",
    "parameter_kernel",
    "pcn",
    "plot",
    "prior_predict",
    "private",
    "private_target",
    "referee",
    "releases",
    "sample",
    "sample_batch",
    "smoothing_weight",
    "soma",
    "statistics",
    "tempered",
    "until",
    "zcdp_epsilon",
    "zcdp_rho",
    "zcdp_scale",
]
