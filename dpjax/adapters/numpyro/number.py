"""Whether a model that takes any number of records is the same one for the number of a release.

A model is inspected with few records, where no branch on their number and no covariate by their place need show.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.validation import fail, is_tracing
from dpjax.adapters.numpyro.densities import ModelDensities
from dpjax.adapters.numpyro.inspection import NUM_DRAWS, Trial, run_trials
from dpjax.adapters.numpyro.refusals import same
from dpjax.base import Array, Parameters
from dpjax.models.programs import jit_model
from dpjax.runtime.identity import identify

UNKNOWN_NUMBER = 2**12
"""With how many records a model is tried whose number of records is unknown."""

MOST_RECORDS = 2**20
"""Most records whose densities are compared: the counts of a table may be those of more than there is memory for."""


Function = Callable[[ModelDensities, Parameters], Any]
"""Of a model and its parameters."""


def build_number_check(densities: ModelDensities, quantities: tuple[str, ...]) -> Callable[[Any], None]:
    """A function of a number of records that raises where the model is another one with so many.

    Parameters
    ----------
    quantities
        The names of the derived quantities.
    """
    takes_any = densities.layout.takes_size and not densities.layout.fixed
    find = cache(partial(find_difference, densities, quantities))

    def check(n: Any) -> None:
        # Within another program nothing can be compared.
        if not takes_any or is_tracing():
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
    if quantities and differs(densities, n, lambda model, parameters: model.quantities(quantities, parameters)):
        return f"the values of {', '.join(quantities)} are"
    trials = first_trials(densities)
    found = jax.device_get(extremes.unoptimized(densities, min(n, MOST_RECORDS), trials))
    return "" if all(same(trials.first[:, 0], each) for each in found) else "the densities of records are"


def has_prior_of_size(densities: ModelDensities) -> bool:
    """Whether the density of the prior is another one for one record more."""
    return differs(densities, densities.layout.size + 1, ModelDensities.log_prior)


def first_trials(densities: ModelDensities) -> Trial:
    """The trials of the inspection at draws from the prior."""
    trials = run_trials.unoptimized(densities, not densities.layout.fixed, jax.random.key(0))
    first: Trial = jax.tree.map(lambda leaf: leaf[:NUM_DRAWS], jax.device_get(trials))
    return first


def differs(densities: ModelDensities, n: int, function: Function) -> bool:
    """Whether a function of the parameters is another one for n records, at draws from the prior."""
    both = densities, ModelDensities(replace(densities.layout, size=n))
    one = jax.eval_shape(densities.sample_prior, jax.random.key(0))
    if len({identify("NumPyro model", jax.make_jaxpr(partial(function, model))(one)) for model in both}) == 1:
        return False
    draws = first_trials(densities).parameters
    values = [jax.tree.leaves(evaluate.unoptimized(model, function, draws)) for model in both]
    return not all(same(*pair) for pair in zip(*values, strict=True))


@partial(jit_model, static_argnames=("function",))
def evaluate(model: ModelDensities, function: Function, parameters: Parameters) -> Any:
    """The function at parameters [draw, ...]."""
    return jax.lax.map(partial(function, model), parameters)


@partial(jit_model, static_argnames=("n",))
def extremes(model: ModelDensities, n: int, trials: Trial) -> tuple[Array, Array]:
    """The smallest and the largest log-density [draw] of n records that are equal to the first of each trial."""

    def of_trial(trial: Trial) -> tuple[Array, Array]:
        equal = jax.tree.map(lambda field: jnp.repeat(field, n, axis=0), trial.alone)
        found = model.log_density(trial.parameters, equal)
        return jnp.min(found), jnp.max(found)

    return jax.lax.map(of_trial, trials)
