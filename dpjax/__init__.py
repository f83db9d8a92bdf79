"""Exact posteriors from differentially private releases, in JAX."""

from dpjax import coupling, exchangeable, mixture, models, plot, private, releases, statistics
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
from dpjax.batches import BatchPosterior, sample_batch
from dpjax.compilation import enable_compilation_cache
from dpjax.data_augmentation import gibbs, impute
from dpjax.importance import importance_sample
from dpjax.imputation import imwg, pcn, soma
from dpjax.large import large_sample
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
from dpjax.parameters import ParameterKernel, Tuning, initial_tuning, parameter_kernel
from dpjax.plan import SweepPlan
from dpjax.posterior import Posterior
from dpjax.predictive import prior_predict
from dpjax.pytree import frozen_pytree
from dpjax.refereeing import referee
from dpjax.release import (
    LocalRelease,
    PrecisionWarning,
    Release,
    UnknownCount,
    describe,
    from_json,
    joint,
    mechanism_from,
)
from dpjax.sampling import sample, until
from dpjax.simulation_based_calibration import calibrate
from dpjax.states import GibbsState, Position
from dpjax.sweep import GibbsInfo
from dpjax.tables import counts, least_squares
from dpjax.tempering import tempered

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
