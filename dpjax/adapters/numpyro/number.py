"""Whether a model that takes any number of records is the same one for the number of a release.

A model is inspected with few records, where no branch on their number and no covariate by their place need show.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.jit import jit_quickly
from dpjax._util.validation import fail, is_traced
from dpjax.adapters.numpyro.densities import ModelDensities
from dpjax.adapters.numpyro.refusals import same
from dpjax.base import Array, Key, Parameters

NUM_DRAWS = 4
"""Draws of the parameters at which densities are compared."""

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
        if is_traced(jnp.zeros(())):
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
    if differs(densities, n, ModelDensities.log_prior):
        return "the prior's densities are"
    if quantities and differs(densities, n, lambda one, parameters: one.derived(quantities, parameters)):
        return f"the values of {', '.join(quantities)} are"
    return "the densities of records are" if records_differ(densities, min(n, MOST_RECORDS)) else ""


def differs(densities: ModelDensities, n: int, function: Callable[[ModelDensities, Parameters], Any]) -> bool:
    """Whether a function of the parameters is another one for a model of n records."""
    layout = densities.layout
    functions = [partial(function, ModelDensities(layout._replace(size=size))) for size in (layout.size, n)]
    shapes = jax.eval_shape(densities.sample_prior, jax.random.key(0))
    programs = [jax.make_jaxpr(one)(shapes) for one in functions]
    if len({str(program) + repr(program.consts) for program in programs}) == 1:
        return False
    both = jit_quickly(lambda parameters: [jax.tree.leaves(one(parameters)) for one in functions])
    values = both(jit_quickly(densities.sample_prior)(jax.random.key(0)))
    return not all(same(*pair) for pair in zip(*values, strict=True))


def records_differ(densities: ModelDensities, n: int) -> bool:
    """Whether the density of one record alone is not that of each of n records that are equal to it."""

    def compare(key: Key) -> tuple[Array, Array, Array]:
        prior_key, record_key = jax.random.split(key)
        parameters = densities.sample_prior(prior_key)
        one = densities.sample_records(record_key, parameters, 1)
        many = densities.log_density(parameters, jax.tree.map(lambda field: jnp.repeat(field, n, axis=0), one))
        return densities.log_density(parameters, one)[0], jnp.min(many), jnp.max(many)

    alone, least, most = jit_quickly(partial(jax.lax.map, compare))(jax.random.split(jax.random.key(0), NUM_DRAWS))
    return not (same(alone, least) and same(alone, most))
