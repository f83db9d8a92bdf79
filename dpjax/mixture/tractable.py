"""Pairs of a channel and a component whose marginal is known, so that no record need be guessed at."""

from collections.abc import Callable
from typing import Any

from dpjax.base import Mechanism
from dpjax.mechanisms import Gaussian, Laplace
from dpjax.mixture.base import Component, Tractable
from dpjax.mixture.gaussian import NormalInverseGamma

__all__ = ["find_tractable", "register_tractable"]

Build = Callable[[Any, Any], Tractable]

PAIRS: dict[tuple[type, type], Build] = {}


def register_tractable(channel: type, component: type) -> Callable[[Build], Build]:
    """Make the samplers use the known marginal of a channel and a component; a decorator.

    The function below it takes an instance of each and returns a `Tractable`.

    Parameters
    ----------
    channel, component
        Their types.
    """

    def register(build: Build) -> Build:
        PAIRS[channel, component] = build
        return build

    return register


def find_tractable(channel: Mechanism, component: Component) -> Tractable | None:
    """The known marginal of a channel and a component, None where there is none."""
    build = PAIRS.get((type(channel), type(component)))
    return None if build is None else build(channel, component)


@register_tractable(Laplace, NormalInverseGamma)
@register_tractable(Gaussian, NormalInverseGamma)
def normal_behind_noise(channel: Any, component: Any) -> Tractable:
    """A Normal record behind Laplace or Gaussian noise."""
    return Tractable(
        lambda value, theta: channel.log_marginal_normal(value, *component.normal_field(theta)),
        lambda key, values, theta: channel.sample_latent_normal(key, values, *component.normal_field(theta)),
    )
