"""Checks that the arguments of every distribution meet its constraints over the whole support of the prior.

NumPyro checks arguments only if its validation is on and they are concrete. Outside of the constraints a density is
invalid: unnormalised probabilities, or a probability above 1. Here parameters are drawn from the prior, and also set
close to the ends of their supports. Values at an end pass, as rounding may reach open ends.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import biject_to, constraints
from numpyro.distributions.constraints import is_dependent

from dpjax.adapters.numpyro import refusals
from dpjax.adapters.numpyro.densities import ModelDensities
from dpjax.adapters.numpyro.trace import draw
from dpjax.base import Array, Key, Parameters
from dpjax.models.programs import jit_model
from dpjax.numerics import tree_where

NUM_DRAWS = 512
"""Number of points tried: the first half are prior draws, the others lie at the ends of the supports."""

EDGE = 12.0
"""Unconstrained coordinate that stands for an end of a support."""

FAR = 100.0
"""Absolute value at which an unbounded parameter is tried."""

TOLERANCE = 1e-4
"""Relative distance beyond an end that passes as rounding."""

PARTS = ("base_dist", "_mixing_distribution", "_component_distribution", "_component_distributions", "_vmapped_dist")
"""Attributes of distributions that hold other distributions."""


def check_arguments(densities: ModelDensities) -> None:
    """Raise if an argument of a distribution violates its constraint somewhere in the prior's support."""
    found = jax.device_get(find_all_violations.unoptimized(densities, jax.random.key(0)))
    for (name, family, argument, expected), bad in unpack(found):
        if np.any(bad):
            refusals.refuse(
                f"the site {name!r}, a {family} whose {argument} violates its constraint in the prior's support",
                f"{argument} within its constraint ({expected}) for all parameters",
                "Give the parameters a prior within it, or map them there: Dirichlet or softmax for probabilities, "
                "Beta or a sigmoid for one, exp for a positive number.",
            )


Label = tuple[str, str, str, str]


def unpack(found: dict[str, Array]) -> list[tuple[Label, np.ndarray]]:
    """The labels of the arguments, and whether each violates its constraint at each point."""
    return [(tuple(label.split("|", 3)), np.asarray(bad)) for label, bad in found.items()]  # type: ignore[misc]


@jit_model
def find_all_violations(model: ModelDensities, key: Key) -> dict[str, Array]:
    """Whether each argument of each site violates its constraint, at each point [point]."""
    edges = jnp.arange(NUM_DRAWS) >= NUM_DRAWS // 2
    points = jax.random.split(key, NUM_DRAWS), edges
    return jax.lax.map(lambda point: find_violations(model, *point), points)


def find_violations(densities: ModelDensities, key: Key, edge: Array) -> dict[str, Array]:
    """Whether each argument of each site violates its constraint, at one point."""
    prior_key, sign_key, record_key = jax.random.split(key, 3)
    drawn = densities.sample_prior(prior_key)
    parameters = tree_where(edge, draw_edges(densities, sign_key, drawn), drawn)
    found: dict[str, Array] = {}
    draws = draw(record_key)

    def choose(name: str, distribution: Any) -> Array:
        for family, argument, constraint, value in arguments_of(distribution):
            label = "|".join((name, family, argument, name_of(constraint)))
            found[label] = found.get(label, jnp.array(False)) | violates(constraint, value)
        return parameters[name] if name in parameters else draws(name, distribution)

    densities.layout.run(densities.layout.size, choose)
    return found


def draw_edges(densities: ModelDensities, key: Key, drawn: Parameters) -> Parameters:
    """The parameters at random ends of their supports; unbounded parameters at a large value of either sign."""
    parameters: Parameters = {}

    def choose(name: str, distribution: Any) -> Array:
        transform = biject_to(distribution.support)
        unconstrained = transform.inv(drawn[name])
        signs = jax.random.rademacher(
            jax.random.fold_in(key, len(parameters)), unconstrained.shape, unconstrained.dtype
        )
        real = distribution.support in (constraints.real, constraints.real_vector, constraints.real_matrix)
        edge = FAR * signs if real else transform(EDGE * signs)
        parameters[name] = edge.astype(drawn[name].dtype)
        return parameters[name]

    densities.layout.run_parameters(choose)
    return parameters


def arguments_of(distribution: Any) -> list[tuple[str, str, Any, Any]]:
    """The class, name, constraint and value of each argument of a distribution and its parts."""
    found = []
    for name, constraint in getattr(distribution, "arg_constraints", {}).items():
        value = distribution.__dict__.get(name)
        if value is not None and not is_dependent(constraint) and not isinstance(value, (list, tuple)):
            found.append((type(distribution).__name__, name, constraint, value))
    for part in PARTS:
        inside = distribution.__dict__.get(part)
        for one in inside if isinstance(inside, (list, tuple)) else [inside]:
            found += arguments_of(one) if hasattr(one, "arg_constraints") else []
    return found


def violates(constraint: Any, value: Any) -> Array:
    """Whether a value is clearly outside a constraint; non-finite numbers pass, as the chains reject them.

    NumPyro's own check of a constraint also fails for a positive number that is rounded to 0, such as exp(-104).
    """
    value = jnp.asarray(value)
    base = constraint
    while hasattr(base, "base_constraint"):
        base = base.base_constraint
    if base == constraints.simplex:
        far = jnp.any(value < -TOLERANCE) | jnp.any(jnp.abs(jnp.sum(value, axis=-1) - 1) > 100 * TOLERANCE)
        return far & jnp.all(jnp.isfinite(value))
    low, high = bounds_of(base)
    slack = partial(jnp.multiply, TOLERANCE)
    below = value < low - slack(jnp.where(jnp.isfinite(low), jnp.minimum(jnp.abs(low), 1.0), 0.0))
    above = value > high + slack(jnp.where(jnp.isfinite(high), jnp.minimum(jnp.abs(high), 1.0), 0.0))
    return jnp.any((below | above) & jnp.isfinite(value))


def bounds_of(constraint: Any) -> tuple[Array, Array]:
    """The bounds of an interval constraint; infinite for other constraints."""
    bounds = {"lower_bound": -jnp.inf, "upper_bound": jnp.inf}
    low, high = (jnp.asarray(getattr(constraint, name, none), float) for name, none in bounds.items())
    return low, high


def name_of(constraint: Any) -> str:
    """The name of a constraint."""
    return type(constraint).__name__.strip("_").lower()
