"""A field that is Normal given the parameters, behind Gaussian noise of which an interval was released.

It is a noisy number that was rounded, or clamped, as below a threshold. Before that it was Normal, too, with the sum of
both variances.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.summed_out.terms import ReleasedField
from dpjax.mechanisms import Censored, Exact, Mechanism, Rounded
from dpjax.mechanisms.base import as_floating
from dpjax.numerics.intervals import draw_between, normal_between
from dpjax.release.fields import FieldValues

__all__ = ["NormalWithin"]


class NormalWithin(ReleasedField):
    """One hidden field that is Normal given the parameters, of which rounded or clamped Gaussian noise was released.

    Attributes
    ----------
    released
        What was released of the field.
    seen
        The records of which something was released [m].
    """

    known: Records
    released: FieldValues
    seen: Array

    @classmethod
    def fits(cls, model: Model, field: FieldValues) -> bool:
        """Whether the field is Normal, and the channel rounds or clamps a number with Gaussian noise, and no more."""
        *around, noise = field.channel._layers
        hides = bool(around) and all(isinstance(layer, Censored | Rounded) for layer in around)
        return model.has("normal_field") and hides and noise.noise is not None and noise.noise.is_normal

    @property
    def noise(self) -> Any:
        """The Gaussian noise."""
        *_, innermost = self.released.channel._layers
        return innermost.noise

    def noisy_ends(self) -> tuple[Array, Array]:
        """Between which numbers the noisy one of each record was [m]: as if it had been rounded without noise."""
        bounds: Any = without_noise(self.released.channel).sums.bounds
        low, high = bounds(as_floating(self.released.values))
        return low, high

    def noisy_normal(self, model: Model, parameters: Parameters) -> tuple[Array, Array]:
        """The mean and the standard deviation of the noisy number of each record [m]."""
        mean, scale = model.normal_field(parameters)
        spread = jnp.hypot(scale, self.noise.scale())
        return jnp.broadcast_to(mean, self.seen.shape), jnp.broadcast_to(spread, self.seen.shape)

    def build(self, model: Model) -> Any:
        """See `Terms`."""
        ends = self.noisy_ends()

        def terms(parameters: Parameters) -> Array:
            return jnp.where(self.seen, normal_between(*ends, *self.noisy_normal(model, parameters)), 0)

        return terms

    def draw(self, key: Key, model: Model, parameters: Parameters, rows: Array) -> Records:
        """See `Terms`: the noisy number first, and the record given it."""
        noisy_key, seen_key, fresh_key = jax.random.split(key, 3)
        low, high = (end[rows] for end in self.noisy_ends())
        noisy = [one[rows] for one in self.noisy_normal(model, parameters)]
        within = draw_between(noisy_key, lambda most: normal_between(low, most, *noisy), low, high)
        mean, scale = (jnp.broadcast_to(one, self.seen.shape)[rows] for one in model.normal_field(parameters))
        drawn = self.noise.sample_latent_normal(seen_key, jnp.where(low == high, low, within), mean, scale)
        fresh = mean + scale * jax.random.normal(fresh_key, mean.shape, mean.dtype)
        name = self.released.field
        found = jnp.where(self.seen[rows], drawn, fresh).astype(self.known[name].dtype)
        return jax.tree.map(lambda leaf: leaf[rows], self.known) | {name: found}


def without_noise(mechanism: Mechanism) -> Any:
    """What was done to a number beside the noise that was added first."""
    return Exact() if mechanism.inner is None else replace(mechanism, mechanism=without_noise(mechanism.inner))  # type: ignore[type-var]
