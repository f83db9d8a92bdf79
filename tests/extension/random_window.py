"""An imputation as a user would write one, in one file: a window of records at a random place gets fresh proposals."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import jax.numpy as jnp

import dpjax
from dpjax.models.simulation import init_latent
from dpjax.numerics import tree_where


@dataclass(frozen=True)
class RandomWindow:
    """Proposes to all records of a window at once; works for every kind of release."""

    size: int | Literal["auto"]

    def __call__(self, model: dpjax.Model, release: dpjax.release.PrivateRelease) -> dpjax.base.ImputationKernel:
        def step(rng_key: jax.Array, latent: dpjax.base.Latent, parameters: dict) -> tuple[dpjax.base.Latent, Any]:
            proposal_key, place_key, accept_key = jax.random.split(rng_key, 3)
            first = jax.random.randint(place_key, (), 0, release.n)
            in_place = (jnp.arange(release.n) - first) % release.n < self.size
            proposals = model.sample_records(proposal_key, parameters, release.n)
            proposed = init_latent(release, tree_where(in_place, proposals, latent.records))
            log_ratio = proposed.log_density - latent.log_density
            accepted = jnp.log(jax.random.uniform(accept_key)) < log_ratio
            moved = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), proposed, latent)
            taken = (in_place & accepted).astype(int)
            return moved, dpjax.base.ImputationInfo(accepted.astype(float), taken, jnp.isnan(log_ratio).astype(int))

        return step

    @property
    def needs_tuning(self) -> bool:
        return self.size == "auto"

    def with_defaults(self, model: Any, release: Any) -> "RandomWindow":
        return replace(self, size=1)

    def tune(self, key: Any, model: Any, release: Any, latent: dpjax.base.Latent, parameters: dict) -> "RandomWindow":
        """Half of the records where all chains have a density that is finite, else one."""
        return replace(self, size=release.n // 2 if jnp.all(jnp.isfinite(latent.log_density)) else 1)
