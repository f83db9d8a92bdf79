"""Latent noise among the parameters: standard Normal numbers from which noise that is not Normal is computed."""

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records, static
from dpjax.models.same_records import SameRecords

__all__ = ["SCALES", "SUMS", "WithNoise", "with_noise"]

SCALES, SUMS = "latent_variances", "latent_noise"
"""The names of the Normal scores of latent variances, and of latent noise, among the parameters."""


def with_noise(model: Model, num_scales: int, num_sums: int) -> Model:
    """The model with so many latent numbers among its parameters; itself if there are none."""
    sizes = {name: size for name, size in ((SCALES, num_scales), (SUMS, num_sums)) if size}
    return WithNoise(model, tuple(sizes.items())) if sizes else model


class WithNoise(SameRecords):
    """The model of the same records as another one, with independent standard Normal numbers among its parameters.

    Attributes
    ----------
    model
        The other one.
    sizes
        How many there are by each name.
    """

    model: Model
    sizes: tuple[tuple[str, int], ...] = static()

    def own_parameters(self, parameters: Parameters) -> Parameters:
        """The parameters without these numbers."""
        return {name: leaf for name, leaf in parameters.items() if name not in dict(self.sizes)}

    def normals(self, parameters: Parameters) -> Parameters:
        """These numbers."""
        return {name: parameters[name] for name, _ in self.sizes}

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        own_key, *keys = jax.random.split(key, 1 + len(self.sizes))
        normals = {
            name: jax.random.normal(key, (size,), float) for key, (name, size) in zip(keys, self.sizes, strict=True)
        }
        return self.model.sample_prior(own_key) | normals

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior, up to a constant."""
        squares = [jnp.sum(jnp.square(leaf)) for leaf in self.normals(parameters).values()]
        return self.model.log_prior(self.own_parameters(parameters)) - sum(squares, start=jnp.zeros(())) / 2

    def unconstrain(self, parameters: Parameters) -> Parameters:
        """From parameters to unconstrained numbers."""
        return self.model.unconstrain(self.own_parameters(parameters)) | self.normals(parameters)

    def constrain(self, unconstrained: Parameters) -> Parameters:
        """Its inverse."""
        return self.model.constrain(self.own_parameters(unconstrained)) | self.normals(unconstrained)

    def log_jacobian(self, unconstrained: Parameters) -> Array:
        """The log-determinant [] of `constrain`."""
        return self.model.log_jacobian(self.own_parameters(unconstrained))

    def derived(self, parameters: Parameters) -> Parameters:
        """The quantities that the other model derives."""
        return self.model.derived(self.own_parameters(parameters))

    def reported(self, records: Records) -> Records:
        """What the other model reports of records."""
        return self.model.reported(records)
