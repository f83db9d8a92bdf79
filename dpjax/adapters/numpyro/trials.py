"""Whether the records of a NumPyro model are independent, and whether all have one law.

The program tells where it can: a law that reads the place of its record, or fits no other number of records, is one of
its own. The rest is tried, at parameters over the whole of their support: what does not show at one draw, such as
covariates behind a rectifier, shows at another.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.adapters.numpyro import refusals
from dpjax.adapters.numpyro.laws import Laws
from dpjax.adapters.numpyro.visit import Layout
from dpjax.base import Array, Key, Parameters, Records
from dpjax.compilation import jit_quickly
from dpjax.numerics import take_if
from dpjax.tracing import reads

NUM_DRAWS = 8
"""Parameters are tried at so many draws from the prior, and at as many pairs of opposite unconstrained points."""

SPREAD = 2.0
"""The standard deviation of these points."""


def settle(layout: Layout) -> tuple[Layout, bool]:
    """The layout with its number of records fixed where only one is possible, and whether they are exchangeable."""
    laws = Laws(layout)
    any_size = takes_any_size(laws)
    trials = jax.device_get(jit_quickly(partial(try_all, laws, any_size))(jax.random.key(0)))
    refusals.check_independence(trials.mixed, trials.density_of_mixed)
    refusals.check_independence(trials.even, trials.density_of_even)
    alike = [(trials.rolled, trials.density_of_rolled), (trials.first, trials.density_of_first)]
    one_law = all(refusals.same(*pair) for pair in alike) and not layout.known
    exchangeable = one_law and any_size and not reads_place(laws)
    return layout._replace(fixed=layout.fixed or not exchangeable), exchangeable


class Trial(NamedTuple):
    """Densities [n] of drawn records, which agree pairwise where records are independent, and where they have one law.

    Attributes
    ----------
    mixed
        Mixed from two draws.
    density_of_mixed
        Of the mixture.
    even
        Of the records at even places.
    density_of_even
        Of these beside others that are not a number.
    rolled
        Rolled.
    density_of_rolled
        Of the rolled records.
    first
        Of the first record among all.
    density_of_first
        Of it alone where the model takes any number.
    """

    mixed: Array
    density_of_mixed: Array
    even: Array
    density_of_even: Array
    rolled: Array
    density_of_rolled: Array
    first: Array
    density_of_first: Array


def try_all(laws: Laws, any_size: bool, key: Key) -> Trial:
    """The densities [draw, n] at draws from the prior, and at points and their opposites on the unconstrained scale."""
    signs = jnp.repeat(jnp.asarray([0, 1, -1]), NUM_DRAWS)
    numbers = jnp.tile(jnp.arange(NUM_DRAWS), 3)

    def one(draw: tuple[Array, Array, Key]) -> Trial:
        sign, number, record_key = draw
        # Opposite points have one key between them.
        prior_key, point_key = jax.random.split(jax.random.fold_in(point_keys, number))
        drawn = laws.sample_prior(prior_key)
        point = jax.tree.map(lambda leaf: sign.astype(leaf.dtype) * leaf, wide(point_key, laws.unconstrain(drawn)))
        return try_records(laws, any_size, record_key, take_if(sign == 0, drawn, laws.constrain(point)))

    point_keys, record_keys = jax.random.split(key)
    # A loop rather than a batch: each law is compiled once.
    return jax.lax.map(one, (signs, numbers, jax.random.split(record_keys, 3 * NUM_DRAWS)))


def wide(key: Key, like: Parameters) -> Parameters:
    """Normal draws, of the shapes of some unconstrained parameters."""
    leaves, structure = jax.tree.flatten(like)
    keys = [jax.random.fold_in(key, index) for index in range(len(leaves))]
    draws = [SPREAD * jax.random.normal(one, leaf.shape, leaf.dtype) for one, leaf in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, draws)


def try_records(laws: Laws, any_size: bool, key: Key, parameters: Parameters) -> Trial:
    """The densities of two draws of the records."""
    n = laws.layout.size
    two = jax.lax.map(lambda key: laws.sample_records(key, parameters, n), jax.random.split(key))
    is_even = jnp.arange(n) % 2 == 0

    def variants(field: Array) -> Array:
        tainted = jnp.full_like(field[0], jnp.nan) if jnp.issubdtype(field.dtype, jnp.floating) else field[0]
        mixed, rolled = take_if(is_even, field[0], field[1]), jnp.roll(field[0], 1, axis=0)
        return jnp.concatenate([field, jnp.stack([mixed, take_if(is_even, field[0], tainted), rolled])])

    densities = jax.lax.map(lambda records: laws.log_density(parameters, records), jax.tree.map(variants, two))
    one, other, density_of_mixed, density_of_tainted, density_of_rolled = densities
    alone = jax.tree.map(lambda field: field[0, :1], two)
    return Trial(
        mixed=take_if(is_even, one, other),
        density_of_mixed=density_of_mixed,
        even=one[::2],
        density_of_even=density_of_tainted[::2],
        rolled=jnp.roll(one, 1),
        density_of_rolled=density_of_rolled,
        first=one[:1],
        density_of_first=laws.log_density(parameters, alone) if any_size else one[:1],
    )


def reads_place(laws: Laws) -> bool:
    """Whether the law of a record reads the place that the plate gives it, as covariates by index do."""
    n = laws.layout.size

    def drawn(key: Key) -> tuple[Parameters, Records]:
        prior_key, record_key = jax.random.split(key)
        parameters = laws.sample_prior(prior_key)
        return parameters, laws.sample_records(record_key, parameters, n)

    parameters, records = jax.eval_shape(drawn, jax.random.key(0))
    place = jax.ShapeDtypeStruct((n,), int)

    def density(place: Array, parameters: Parameters, records: Records) -> Array:
        return laws.log_density(parameters, records, place)

    return reads(density, place, parameters, records)


def takes_any_size(laws: Laws) -> bool:
    """Whether the model, with a plate of another size, still gives that many records and densities."""

    def densities(n: int) -> Any:
        def density(key: Key) -> Array:
            prior_key, record_key = jax.random.split(key)
            parameters = laws.sample_prior(prior_key)
            return laws.log_density(parameters, laws.sample_records(record_key, parameters, n))

        return jax.eval_shape(density, jax.random.key(0))

    try:
        return all(densities(n).shape == (n,) for n in (1, laws.layout.size + 1))
    except Exception:  # whatever the model raises, it does not take this size
        return False
