"""Dirichlet-process mixtures of records that were each released through a channel."""

from dpjax.mixture.base import Component, Mixing, MixtureInfo, MixtureState, Tractable
from dpjax.mixture.gaussian import NormalInverseGamma
from dpjax.mixture.result import Density, MixturePosterior
from dpjax.mixture.sample import sample
from dpjax.mixture.tractable import find_tractable, register_tractable

__all__ = [
    "Component",
    "Density",
    "Mixing",
    "MixtureInfo",
    "MixturePosterior",
    "MixtureState",
    "NormalInverseGamma",
    "Tractable",
    "find_tractable",
    "register_tractable",
    "sample",
]
