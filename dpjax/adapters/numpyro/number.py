"""Whether a model that takes any number of records is the same one for the number of a release.

A model is inspected with few records, where no branch on their number and no covariate by their place need show.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.validation import fail, is_tracing
from dpjax.adapters.numpyro.densities import ModelDensities
from dpjax.adapters.numpyro.refusals import same
from dpjax.base import Array, Key
from dpjax.models.programs import jit_model
from dpjax.runtime.identity import identify

NUM_EXAMPLES = 8
"""Number of draws from the prior at which models are compared."""

UNKNOWN_NUMBER = 2**12
"""With how many records a model is tried whose number of records is unknown."""

MOST_RECORDS = 2**20
"""Most records whose densities are compared: the counts of a table may be those of more than there is memory for."""


def build_number_check(densities: ModelDensities, quantities: tuple[str, ...]) -> Callable[[Any], None] | None:
    """A function of a number of records that raises where the model is another one with so many.

    Parameters
    ----------
    quantities
        The names of the derived quantities.
    """
    if densities.layout.fixed or not densities.layout.takes_size:
        return None
    find = cache(partial(find_difference, densities, quantities))

    def check(n: Any) -> None:
        # Within another program nothing can be compared.
        if is_tracing():
            return
        number = n if isinstance(n, int) else UNKNOWN_NUMBER
        if found := find(number):
            given = f"n = {n}, where {found} not those of {densities.layout.size} records, with which fn was inspected"
            fail("release", given, "a model of any number", f"Pass n={number} to dpjax.from_numpyro.")

    return check


def find_difference(densities: ModelDensities, quantities: tuple[str, ...], n: int) -> str:
    """What is different about the model with n records; empty if nothing is."""
    if n == densities.layout.size:
        return ""
    found = jax.device_get(compare_numbers.unoptimized(densities, quantities, n))
    if not same(*found.log_prior):
        return "the prior's densities are"
    if not all(same(*pair) for pair in found.quantities.values()):
        return f"the values of {', '.join(quantities)} are"
    return "" if all(same(found.log_density, each) for each in found.extremes) else "the densities of records are"


class Comparison(NamedTuple):
    """Values of a model, at draws from its prior, with the number of records that it was inspected with and another.

    Attributes
    ----------
    log_prior
        The log-density [draw] of the parameters, for both numbers.
    quantities
        Each derived quantity [draw, ...], for both numbers.
    log_density
        The log-density [draw] of one record.
    extremes
        The smallest and the largest log-density [draw] of the other number of records that are equal to it.
    """

    log_prior: tuple[Array, Array]
    quantities: dict[str, tuple[Array, Array]]
    log_density: Array
    extremes: tuple[Array, Array]


@partial(jit_model, static_argnames=("quantities", "n"))
def compare_numbers(model: ModelDensities, quantities: tuple[str, ...], n: int) -> Comparison:
    """The model compared with the same one of n records."""
    other = with_size(model, n)

    def compare(key: Key) -> Comparison:
        prior_key, record_key = jax.random.split(key)
        parameters = model.sample_prior(prior_key)
        records = model.sample_records(record_key, parameters, model.layout.size)
        one = jax.tree.map(lambda field: field[:1], records)
        equal = jax.tree.map(lambda field: jnp.repeat(field, min(n, MOST_RECORDS), axis=0), one)
        density = model.log_density(parameters, equal)
        derived = [each.quantities(quantities, parameters) for each in (model, other)]
        return Comparison(
            (model.log_prior(parameters), other.log_prior(parameters)),
            {name: (derived[0][name], derived[1][name]) for name in quantities},
            model.log_density(parameters, records)[0],
            (jnp.min(density), jnp.max(density)),
        )

    return jax.lax.map(compare, jax.random.split(jax.random.key(0), NUM_EXAMPLES))


def with_size(densities: ModelDensities, n: int) -> ModelDensities:
    """The model with another number of records."""
    return ModelDensities(replace(densities.layout, size=n))


def has_prior_of_size(densities: ModelDensities) -> bool:
    """Whether the density of the prior is another one for one record more."""
    both = densities, with_size(densities, densities.layout.size + 1)
    parameters = jax.eval_shape(densities.sample_prior, jax.random.key(0))
    if len({identify("prior", jax.make_jaxpr(one.log_prior)(parameters)) for one in both}) == 1:
        return False
    found = compare_numbers.unoptimized(densities, (), densities.layout.size + 1)
    return not same(*found.log_prior)
