"""Dirichlet-process mixtures of records known through noisy values of each, or one release of all."""

from dpjax.mixture.base import Component, Mixing, MixtureInfo, MixtureState, Tractable
from dpjax.mixture.beta import GammaShapes
from dpjax.mixture.gaussian import NormalInverseGamma
from dpjax.mixture.multivariate import NormalInverseWishart
from dpjax.mixture.partition import Partition, expected_loss, find_partition
from dpjax.mixture.result import Density, MixturePosterior
from dpjax.mixture.sample import sample
from dpjax.mixture.tractable import find_tractable, register_tractable
from dpjax.mixture.truncated import TruncatedNormalInverseGamma

__all__ = [
    "Component",
    "Density",
    "GammaShapes",
    "Mixing",
    "MixtureInfo",
    "MixturePosterior",
    "MixtureState",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "Partition",
    "Tractable",
    "TruncatedNormalInverseGamma",
    "expected_loss",
    "find_partition",
    "find_tractable",
    "register_tractable",
    "sample",
]
