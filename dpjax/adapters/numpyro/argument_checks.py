"""Whether the arguments of every distribution meet its constraints, over the whole of the prior's support.

NumPyro looks at arguments only where its validation is on and they are known. Beyond the constraints a density is no
density: unnormalised probabilities, or a probability above 1. Parameters are drawn from the prior, and set close to the
ends of their supports. There rounding takes open ends for closed ones, so that a value at an end passes.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import biject_to, constraints
from numpyro.distributions.constraints import is_dependent

from dpjax._util.jit import jit_quickly
from dpjax.adapters.numpyro import refusals
from dpjax.adapters.numpyro.laws import Laws
from dpjax.adapters.numpyro.visit import draw
from dpjax.base import Array, Key, Parameters
from dpjax.numerics import take_if

NUM_DRAWS = 512
"""Points tried: the first half are prior draws, the others stand at the ends of the supports."""

EDGE = 12.0
"""The unconstrained place of an end."""

FAR = 100.0
"""How far out a parameter is tried that may be any real number."""

TOLERANCE = 1e-4
PARTS = ("base_dist", "_mixing_distribution", "_component_distribution", "_component_distributions", "_vmapped_dist")


def check_arguments(laws: Laws) -> None:
    """Refuse distributions whose arguments leave their constraints somewhere in the prior's support."""
    keys = jax.random.split(jax.random.key(0), NUM_DRAWS)
    edges = jnp.arange(NUM_DRAWS) >= NUM_DRAWS // 2
    program = jit_quickly(lambda keys, edges: jax.lax.map(lambda one: violations(laws, *one), (keys, edges)))
    for (name, family, argument, expected), bad in unpack(jax.device_get(program(keys, edges))):
        if np.any(bad):
            refusals.refuse(
                f"the site {name!r}, a {family} whose {argument} leaves its constraint in the prior's support",
                f"{argument} within its constraint ({expected}) for all parameters",
                "Give the parameters a prior within it, or map them there: Dirichlet or softmax for probabilities, "
                "Beta or a sigmoid for one, exp for a positive number.",
            )


Label = tuple[str, str, str, str]


def unpack(found: dict[str, Array]) -> list[tuple[Label, np.ndarray]]:
    """The labels of the arguments, and whether each left its constraint at each point."""
    return [(tuple(label.split("|", 3)), np.asarray(bad)) for label, bad in found.items()]  # type: ignore[misc]


def violations(laws: Laws, key: Key, edge: Array) -> dict[str, Array]:
    """Whether each argument of each site leaves its constraint, at one point."""
    prior_key, sign_key, record_key = jax.random.split(key, 3)
    drawn = laws.sample_prior(prior_key)
    parameters = take_if(edge, at_edges(laws, sign_key, drawn), drawn)
    found: dict[str, Array] = {}
    draws = draw(record_key)

    def choose(name: str, law: Any) -> Array:
        for family, argument, constraint, value in arguments_of(law):
            label = "|".join((name, family, argument, name_of(constraint)))
            found[label] = found.get(label, jnp.array(False)) | leaves(constraint, value)
        return parameters[name] if name in parameters else draws(name, law)

    laws.layout.run(laws.layout.size, choose)
    return found


def at_edges(laws: Laws, key: Key, drawn: Parameters) -> Parameters:
    """The parameters at random ends of their supports; those that may be any real number far out on either side."""
    parameters: Parameters = {}

    def choose(name: str, law: Any) -> Array:
        transform = biject_to(law.support)
        free = transform.inv(drawn[name])
        signs = jax.random.rademacher(jax.random.fold_in(key, len(parameters)), free.shape, free.dtype)
        real = law.support in (constraints.real, constraints.real_vector, constraints.real_matrix)
        edge = FAR * signs if real else transform(EDGE * signs)
        parameters[name] = edge.astype(drawn[name].dtype)
        return parameters[name]

    laws.layout.run_parameters(choose)
    return parameters


def arguments_of(law: Any) -> list[tuple[str, str, Any, Any]]:
    """The class, name, constraint and value of each argument of a law and of those it is made of."""
    found = []
    for name, constraint in getattr(law, "arg_constraints", {}).items():
        value = law.__dict__.get(name)
        if value is not None and not is_dependent(constraint) and not isinstance(value, (list, tuple)):
            found.append((type(law).__name__, name, constraint, value))
    for part in PARTS:
        inside = law.__dict__.get(part)
        for one in inside if isinstance(inside, (list, tuple)) else [inside]:
            found += arguments_of(one) if hasattr(one, "arg_constraints") else []
    return found


def leaves(constraint: Any, value: Any) -> Array:
    """Whether a value is clearly outside a constraint; numbers that are not finite are left to the chains."""
    value = jnp.asarray(value)
    base = constraint
    while hasattr(base, "base_constraint"):
        base = base.base_constraint
    if base in (constraints.simplex,):
        far = jnp.any(value < -TOLERANCE) | jnp.any(jnp.abs(jnp.sum(value, axis=-1) - 1) > 100 * TOLERANCE)
        return far & jnp.all(jnp.isfinite(value))
    low, high = bounds_of(base)
    slack = partial(jnp.multiply, TOLERANCE)
    below = value < low - slack(jnp.where(jnp.isfinite(low), jnp.minimum(jnp.abs(low), 1.0), 0.0))
    above = value > high + slack(jnp.where(jnp.isfinite(high), jnp.minimum(jnp.abs(high), 1.0), 0.0))
    return jnp.any((below | above) & jnp.isfinite(value))


def bounds_of(constraint: Any) -> tuple[Array, Array]:
    """The least and greatest values of an interval; infinite where a constraint is none."""
    positive = (constraints.positive, constraints.nonnegative, constraints.softplus_positive)
    whole = (constraints.positive_integer, constraints.nonnegative_integer)
    low = 0.0 if constraint in (*positive, *whole) else getattr(constraint, "lower_bound", -jnp.inf)
    high = jnp.inf if constraint in (*positive, *whole) else getattr(constraint, "upper_bound", jnp.inf)
    return jnp.asarray(low, float), jnp.asarray(high, float)


def name_of(constraint: Any) -> str:
    """What a constraint is called."""
    return type(constraint).__name__.strip("_").lower()
