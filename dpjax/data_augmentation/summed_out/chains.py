"""One hidden field that is a chain in time: summed out along it, and drawn back in time.

Each time of a record is released through noise of its own. States need the density of what was released of each, and
Normal numbers need Gaussian noise.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.hoist import hoist
from dpjax._util.pytree import static
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.summed_out.terms import Terms
from dpjax.models.simulation import parameter_shapes
from dpjax.numerics import proper_density
from dpjax.numerics.chains import HiddenNormals, HiddenStates
from dpjax.release import Microdata

__all__ = ["ChainField", "obstacle_to_chain"]


class ChainField(Terms):
    """One hidden field that is a chain, of which each time was released by itself.

    Attributes
    ----------
    release
        What was released.
    field
        The name of the field.
    work
        How many numbers are added up for each of its numbers.
    """

    known: Records
    release: Microdata
    field: str = static()
    work: int = static()

    @property
    def size(self) -> int:
        """The numbers that are added up at all times."""
        return int(self.known[self.field].size) * self.work

    def build(self, model: Model) -> Callable[[Parameters], Array]:
        """See `Terms`."""

        def add_up(parameters: Parameters, release: Microdata) -> Array:
            chain = model.chain_field(parameters)
            return chain.log_density(*SEEN[type(chain)](chain, release, self.field))

        call = hoist(add_up, parameter_shapes(model), self.release)
        return lambda parameters: proper_density(call(parameters))

    def draw(self, key: Key, model: Model, parameters: Parameters, rows: Array) -> Records:
        """See `Terms`."""
        chain = model.chain_field(parameters)
        seen = SEEN[type(chain)](chain, self.release, self.field)
        of_rows = jax.tree.map(lambda leaf: leaf if len(leaf) == 1 else leaf[rows], chain)
        drawn = of_rows.draw(key, *(leaf[rows] for leaf in seen))
        known = jax.tree.map(lambda leaf: leaf[rows], self.known)
        return known | {self.field: drawn.astype(known[self.field].dtype)}


def density_of_states(chain: HiddenStates, release: Microdata, name: str) -> tuple[Array]:
    """The log-density [m, t, k] of what was released of each time, given each state."""
    total = jnp.zeros(())
    for key, field in release.noisy_parts(name).items():

        def given(value: Array, field: Any = field) -> Array:
            truth = jnp.broadcast_to(value, field.values.shape[1:])
            return field.over_records(lambda channel, seen: channel.log_density_terms(seen, truth), field.values)

        terms = jnp.moveaxis(jax.vmap(given)(chain.values[0]), 0, -1)
        total = total + release.of_seen(key, terms)
    return (total,)


def normal_values(chain: HiddenNormals, release: Microdata, name: str) -> tuple[Array, Array]:
    """What was released [m, t], and the variances of its noise, infinite where it is missing."""
    del chain
    ((key, field),) = release.noisy_parts(name).items()

    def variance(channel: Any, seen: Array) -> Array:
        return jnp.broadcast_to(jnp.asarray(channel.noise.variance(), float), seen.shape)

    values = jnp.asarray(field.values, float)
    variances = field.over_records(variance, values)
    if key in release.missing:
        variances = jnp.where(release.missing[key][:, None], jnp.inf, variances)
    return values, variances


SEEN: dict[type, Callable[..., tuple[Array, ...]]] = {
    HiddenStates: density_of_states,
    HiddenNormals: normal_values,
}
"""What each kind of chain has to know of what was released."""


def obstacle_to_chain(model: Model, release: Microdata) -> str:
    """What is in the way of sums along the chain that the records are; empty if nothing is."""
    kind = type(jax.eval_shape(model.chain_field, parameter_shapes(model)))
    channels = [field.channel for field in release.fields.values()]
    if release.exact:
        return "a series that is exact for some records"
    if kind is HiddenStates:
        joint = [channel for channel in channels if not channel._is_elementwise]
        return "noise that the times of a record share" if joint else ""
    if len(channels) != 1 or channels[0].noise is None or not channels[0].noise.is_normal:
        return "a series of Normal numbers behind other noise than one Gaussian"
    return ""
