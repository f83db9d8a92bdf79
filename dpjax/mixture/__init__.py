"""Dirichlet-process mixtures of records known through noisy values of each, or one release of all."""

from dpjax.mixture.base import Component, Mixing, MixtureInfo, MixtureState, Tractable
from dpjax.mixture.components.beta import GammaShapes
from dpjax.mixture.components.gaussian import NormalInverseGamma
from dpjax.mixture.components.multivariate import NormalInverseWishart
from dpjax.mixture.components.tractable import find_tractable, register_tractable
from dpjax.mixture.components.truncated import TruncatedNormalInverseGamma
from dpjax.mixture.results.partition import Partition, expected_loss, find_partition
from dpjax.mixture.results.posterior import Density, MixturePosterior
from dpjax.mixture.sample import sample

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
