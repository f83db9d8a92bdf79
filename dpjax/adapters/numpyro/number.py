"""Whether a model that takes any number of records is the same one for the number of a release.

A model is inspected with few records, where no branch on their number and no covariate by their place need show.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.jit import jit_unoptimized
from dpjax._util.validation import fail, is_tracing
from dpjax.adapters.numpyro.densities import ModelDensities
from dpjax.adapters.numpyro.refusals import same
from dpjax.base import Array, Parameters, Records

UNKNOWN_NUMBER = 2**12
"""With how many records a model is tried whose number of records is unknown."""

MOST_RECORDS = 2**20
"""Most records whose densities are compared: the counts of a table may be those of more than there is memory for."""


class Examples(NamedTuple):
    """Parameters drawn from the prior [draw, ...], a record for each [draw, 1, ...], and its log-density [draw, 1]."""

    parameters: Parameters
    records: Records
    log_density: np.ndarray


def build_number_check(
    densities: ModelDensities, quantities: tuple[str, ...], examples: Examples
) -> Callable[[Any], None] | None:
    """A function of a number of records that raises where the model is another one with so many.

    Parameters
    ----------
    quantities
        The names of the derived quantities.
    examples
        The model as it was inspected.
    """
    if densities.layout.fixed or not densities.layout.takes_size:
        return None
    find = cache(partial(find_difference, densities, quantities, examples))

    def check(n: Any) -> None:
        # Within another program nothing can be compared.
        if is_tracing():
            return
        number = n if isinstance(n, int) else UNKNOWN_NUMBER
        if found := find(number):
            given = f"n = {n}, where {found} not those of {densities.layout.size} records, with which fn was inspected"
            fail("release", given, "a model of any number", f"Pass n={number} to dpjax.from_numpyro.")

    return check


def find_difference(densities: ModelDensities, quantities: tuple[str, ...], examples: Examples, n: int) -> str:
    """What is different about the model with n records; empty if nothing is."""
    if n == densities.layout.size:
        return ""
    if differs(densities, examples, n, ModelDensities.log_prior):
        return "the prior's densities are"
    if quantities and differs(densities, examples, n, lambda one, parameters: one.derived(quantities, parameters)):
        return f"the values of {', '.join(quantities)} are"
    different = records_differ(densities, examples, min(n, MOST_RECORDS))
    return "the densities of records are" if different else ""


def differs(
    densities: ModelDensities, examples: Examples, n: int, function: Callable[[ModelDensities, Parameters], Any]
) -> bool:
    """Whether a function of the parameters is another one for a model of n records."""
    layout = densities.layout
    functions = [partial(function, ModelDensities(layout._replace(size=size))) for size in (layout.size, n)]
    programs = [jax.make_jaxpr(one)(jax.tree.map(lambda leaf: leaf[0], examples.parameters)) for one in functions]
    if len({str(program) + repr(program.consts) for program in programs}) == 1:
        return False
    both = jit_unoptimized(partial(jax.lax.map, lambda drawn: [jax.tree.leaves(one(drawn)) for one in functions]))
    return not all(same(*pair) for pair in zip(*both(examples.parameters), strict=True))


def records_differ(densities: ModelDensities, examples: Examples, n: int) -> bool:
    """Whether the density of a record is not that of each of n records that are equal to it."""

    def extremes(example: Examples) -> tuple[Array, Array]:
        equal = jax.tree.map(lambda field: jnp.repeat(field, n, axis=0), example.records)
        found = densities.log_density(example.parameters, equal)
        return jnp.min(found), jnp.max(found)

    found = jit_unoptimized(partial(jax.lax.map, extremes))(examples)
    return not all(same(examples.log_density[:, 0], each) for each in found)
