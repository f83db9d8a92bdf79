"""Dirichlet-process mixtures of records known through noisy values of each, or one release of all."""

from dpjax.mixture.algorithm import MixturePosition, gibbs
from dpjax.mixture.base import (
    Component,
    Conjugate,
    Mixing,
    MixtureInfo,
    MixtureState,
    NormalRecords,
    OfReleasedValues,
    Tractable,
)
from dpjax.mixture.components.beta import GammaShapes
from dpjax.mixture.components.gaussian import NormalInverseGamma, TruncatedNormalInverseGamma
from dpjax.mixture.components.multivariate import NormalInverseWishart
from dpjax.mixture.components.tractable import find_tractable, register_tractable
from dpjax.mixture.partition import Partition, expected_loss, find_partition
from dpjax.mixture.posterior import Density, MixturePosterior
from dpjax.mixture.sample import sample
from dpjax.mixture.samplers import Sampler, conditional, neal2, neal3, neal5, neal8

__all__ = [
    "Component",
    "Conjugate",
    "Density",
    "GammaShapes",
    "Mixing",
    "MixtureInfo",
    "MixturePosition",
    "MixturePosterior",
    "MixtureState",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "NormalRecords",
    "OfReleasedValues",
    "Partition",
    "Sampler",
    "Tractable",
    "TruncatedNormalInverseGamma",
    "conditional",
    "expected_loss",
    "find_partition",
    "find_tractable",
    "gibbs",
    "neal2",
    "neal3",
    "neal5",
    "neal8",
    "register_tractable",
    "sample",
]
