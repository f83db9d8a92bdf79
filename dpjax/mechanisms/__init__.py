"""How a statistic was privatized: the distribution of a released value given the statistic, and what they promise."""

from dpjax._util.pytree import frozen_pytree
from dpjax.mechanisms.added_noise import AddedNoise, Tails
from dpjax.mechanisms.additive import Additive, Exact, Gaussian, Laplace
from dpjax.mechanisms.base import Mechanism
from dpjax.mechanisms.calibration import (
    gaussian_delta,
    gaussian_scale,
    laplace_scale,
    zcdp_epsilon,
    zcdp_rho,
    zcdp_scale,
)
from dpjax.mechanisms.cell_keys import CellKeys
from dpjax.mechanisms.censored import Censored, PartitionSelection
from dpjax.mechanisms.coarsened import Coarsened
from dpjax.mechanisms.composite import Independent
from dpjax.mechanisms.count_quotient import CountQuotient
from dpjax.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from dpjax.mechanisms.heaped import Heaped
from dpjax.mechanisms.histogram import SmoothedHistogram, smoothing_weight
from dpjax.mechanisms.interval_quantile import IntervalQuantile
from dpjax.mechanisms.kept_zeros import KeptZeros
from dpjax.mechanisms.local_channel import LocalChannel
from dpjax.mechanisms.modulo import Modulo
from dpjax.mechanisms.multivariate import KNormLinf, MultivariateGaussian
from dpjax.mechanisms.noisy_variance import NoisyVariance
from dpjax.mechanisms.objective import ObjectivePerturbation
from dpjax.mechanisms.poisson_binomial import PoissonBinomial
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.privacy import Privacy
from dpjax.mechanisms.promises import Promised
from dpjax.mechanisms.quotient import Quotient, WholeQuotient
from dpjax.mechanisms.random_rounding import RandomRounding
from dpjax.mechanisms.randomized_response import RandomizedResponse
from dpjax.mechanisms.report_sums import ReportSums
from dpjax.mechanisms.rounded import Rounded
from dpjax.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpjax.mechanisms.staircase import Staircase, Tulap
from dpjax.mechanisms.sum_of import SumOf
from dpjax.mechanisms.suppressed import Suppressed
from dpjax.mechanisms.suppression import PrimarySuppression
from dpjax.mechanisms.truncated import Truncated
from dpjax.mechanisms.utilities import QuantileScores, Utilities
from dpjax.mechanisms.vector_laplace import VectorLaplace
from dpjax.mechanisms.wavelet import HaarWavelet, haar_scale, haar_sensitivity

__all__ = [
    "AddedNoise",
    "Additive",
    "CellKeys",
    "Censored",
    "Coarsened",
    "CountQuotient",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exact",
    "ExponentialMechanism",
    "Gaussian",
    "HaarWavelet",
    "Heaped",
    "Independent",
    "IntervalQuantile",
    "KNormLinf",
    "KeptZeros",
    "Laplace",
    "LocalChannel",
    "Mechanism",
    "Modulo",
    "MultivariateGaussian",
    "NoisyVariance",
    "ObjectivePerturbation",
    "PartitionSelection",
    "PermuteAndFlip",
    "PoissonBinomial",
    "PossibleSums",
    "PrimarySuppression",
    "Privacy",
    "Promised",
    "QuantileScores",
    "Quotient",
    "RandomRounding",
    "RandomizedResponse",
    "ReportNoisyMax",
    "ReportSums",
    "Rounded",
    "SmoothedHistogram",
    "Staircase",
    "SumOf",
    "Suppressed",
    "Tails",
    "Truncated",
    "Tulap",
    "Utilities",
    "VectorLaplace",
    "WholeQuotient",
    "frozen_pytree",
    "gaussian_delta",
    "gaussian_scale",
    "haar_scale",
    "haar_sensitivity",
    "laplace_scale",
    "smoothing_weight",
    "zcdp_epsilon",
    "zcdp_rho",
    "zcdp_scale",
]
