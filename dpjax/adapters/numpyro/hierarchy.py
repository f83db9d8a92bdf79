"""Group effects as standardised numbers: coordinates in which the parameters of a hierarchy do not hold each other.

A site such as ``theta ~ Normal(mu, tau)``, with parameters mu and tau, is tied to them as records are to parameters: at
a small tau it can hardly move, and tau cannot move because of it (the funnel of Neal 2003). Its standardised value,
(theta - mu) / tau, is free of both.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist
from numpyro.distributions import biject_to

from dpjax.adapters.numpyro.form import along
from dpjax.adapters.numpyro.visit import Layout, draw, unwrap
from dpjax.base import Array, Coordinates, Key, Parameters

FAMILIES = (dist.Normal, dist.Laplace, dist.Cauchy, dist.Logistic, dist.Gumbel, dist.StudentT, dist.LogNormal)
"""Families with a location and a scale on the unconstrained scale."""


def find_coordinates(layout: Layout) -> Coordinates | None:
    """The standardised coordinates, or None if the location and scale of no parameter depend on other parameters."""
    names = find_effects(layout)
    if not names:
        return None
    standardised = Standardised(layout, names)
    return Coordinates(standardised.unconstrain, standardised.constrain, standardised.log_jacobian)


def find_effects(layout: Layout) -> tuple[str, ...]:
    """The sites whose location or scale differs between two draws from the prior."""

    @jax.jit
    def moments(key: Key) -> dict[str, tuple[Array, Array]]:
        found: dict[str, tuple[Array, Array]] = {}
        draws = draw(key)

        def choose(name: str, law: Any) -> Array:
            inner = unwrap(law)
            if type(inner) in FAMILIES and name != layout.parameters[0]:
                found[name] = inner.loc, inner.scale
            return draws(name, law)

        layout.run_parameters(choose)
        return found

    if len(layout.parameters) < 2:
        return ()
    one, other = (jax.device_get(moments(jax.random.key(seed))) for seed in (0, 1))
    return tuple(name for name in one if any(map(np.any, map(np.not_equal, one[name], other[name]))))


class Standardised(NamedTuple):
    """The maps of `Coordinates`, in which the sites of the given names are standardised."""

    layout: Layout
    names: tuple[str, ...]

    def unconstrain(self, parameters: Parameters) -> Parameters:
        """The parameters in these coordinates."""
        coordinates: Parameters = {}

        def choose(name: str, law: Any) -> Array:
            free = biject_to(law.support).inv(parameters[name])
            location, scale = self.moments(name, law, free)
            coordinates[name] = (free - location) / scale
            return parameters[name]

        self.layout.run_parameters(choose)
        return coordinates

    def constrain(self, coordinates: Parameters) -> Parameters:
        """The parameters at these coordinates."""
        parameters: Parameters = {}

        def choose(name: str, law: Any) -> Array:
            location, scale = self.moments(name, law, coordinates[name])
            parameters[name] = biject_to(law.support)(location + scale * coordinates[name])
            return parameters[name]

        self.layout.run_parameters(choose)
        return parameters

    def log_jacobian(self, coordinates: Parameters) -> Array:
        """The log absolute determinant [] of `constrain`, which is triangular in the order of the sites."""
        terms: list[Array] = []

        def choose(name: str, law: Any) -> Array:
            location, scale = self.moments(name, law, coordinates[name])
            transform, free = biject_to(law.support), location + scale * coordinates[name]
            value = transform(free)
            terms.append(jnp.sum(transform.log_abs_det_jacobian(free, value)) + jnp.sum(jnp.log(scale)))
            return value

        self.layout.run_parameters(choose)
        return sum(terms, start=jnp.zeros((), float))

    def moments(self, name: str, law: Any, free: Array) -> tuple[Array, Array]:
        """The location and scale of a site in the shape of its unconstrained value; 0 and 1 for all other sites."""
        if name not in self.names:
            return jnp.zeros_like(free), jnp.ones_like(free)
        inner = unwrap(law)
        return along(inner.loc, free), along(inner.scale, free)
