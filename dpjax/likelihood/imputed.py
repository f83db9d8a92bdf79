"""The likelihood by imputation: Fisher's and Louis's identities, averaged over chains of latent data.

With x for the records, or for how many of them take each value: ∇ log p(s | θ) = E[∇ log p(x | θ) | s, θ], and the
information is E[−∇² log p(x | θ) | s, θ] − Var[∇ log p(x | θ) | s, θ] (Louis 1982). No prior enters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Imputation, Key, Latent, Model, Parameters, Records
from dpjax.data_augmentation.records.forms import is_constrained
from dpjax.likelihood.surface import Moments, Surface, parameters_at
from dpjax.models.programs import jit_model
from dpjax.models.simulation import init_latent
from dpjax.numerics import all_finite, decision_uniforms, tree_where
from dpjax.release import LocalRelease, PrivateRelease, Release

__all__ = ["Imputed", "build_derivatives", "decide_refresh"]

BURN = 4
"""The first sweeps are left out of the averages, as the parameters have moved: one in so many."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Imputed(Surface):
    """The likelihood by chains of imputation.

    Parameters
    ----------
    imputation
        How the latent data move given the parameters.
    num_chains
        The number of chains for each release.
    """

    imputation: Imputation
    num_chains: int

    METHOD: ClassVar[str] = "imputation"

    @property
    def refreshes(self) -> bool:
        """Whether wholly new latent data are proposed: not if records are drawn one by one, or totals are known."""
        return not self.release.fields and not is_constrained(self.imputation, self.release)

    def evaluate(self, key: Key, values: Array, vectors: np.ndarray, chains: Any, length: int) -> tuple[Moments, Any]:
        """See `Surface`; a group is a chain, and its state the records."""
        arguments = key, self.release, values, jnp.asarray(vectors, float), chains, jnp.asarray(length)
        moments, chains = average_chains(self.model, self.imputation, self.refreshes, *arguments)
        return Moments(*(np.asarray(leaf, float) for leaf in moments)), chains

    def copy(self, chains: Any, count: int) -> Any:
        """See `Surface`."""
        some = jax.tree.map(lambda leaf: leaf[:, : self.num_chains], chains)
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape[1:])), some)

    def simulate(self, key: Key, vector: np.ndarray, count: int) -> tuple[Array, Any]:
        """See `Surface`; chains start at the records that gave the value, which is a draw from their distribution."""
        found = simulate_releases(self.model, count, self.num_chains, key, self.release, jnp.asarray(vector, float))
        values, chains = found
        return values, chains


@partial(jit_model, static_argnames=("imputation", "refresh"))
def average_chains(
    model: Model,
    imputation: Imputation,
    refresh: bool,
    key: Key,
    release: Release | LocalRelease,
    values: Array,
    vectors: Array,
    chains: Records,
    length: Array,
) -> tuple[Moments, Records]:
    """The moments [release, chain, ...] of `length` sweeps without the first, and the records after them."""
    derive = build_derivatives(model)

    def one(key: Key, value: Array, vector: Array, chains: Records) -> tuple[Moments, Records]:
        released, parameters = release.observing(value), parameters_at(model, vector)
        move = build_move(model, released, imputation, refresh)

        def chain(key: Key, records: Records) -> tuple[Moments, Records]:
            sweep_key, record_key = jax.random.split(key)

            def sweep(number: Array, carry: tuple[Latent, Moments]) -> tuple[Latent, Moments]:
                latent = move(jax.random.fold_in(sweep_key, number), carry[0], parameters)
                found = proper(derive(vector, latent.records))
                kept = number >= length // BURN
                return latent, jax.tree.map(lambda total, new: total + jnp.where(kept, new, 0), carry[1], found)

            drawn = proper(derive(vector, model.sample_records(record_key, parameters, release.n)))
            nothing = jax.tree.map(jnp.zeros_like, drawn)
            latent, total = jax.lax.fori_loop(0, length, sweep, (init_latent(released, records), nothing))
            means = jax.tree.map(lambda leaf: leaf / (length - length // BURN), total)
            # Far from the maximum the curvature given the release can be near zero, or not positive: half of the scale
            # is that of records drawn from the model, which is Fisher's information of complete data.
            means = means._replace(scale=(means.curvature + drawn.curvature) / 2, num_nonfinite=total.num_nonfinite)
            return means, latent.records

        return jax.vmap(chain)(jax.random.split(key, leading(chains)), chains)

    keys = jax.vmap(partial(jax.random.fold_in, key))(jnp.arange(len(values)))
    return jax.vmap(one)(keys, values, vectors, chains)


def leading(tree: Any) -> int:
    """The size of the leading axis of all leaves."""
    return int(jax.tree.leaves(tree)[0].shape[0])


def build_derivatives(model: Model) -> Callable[[Array, Records], Moments]:
    """The derivatives ``(vector [k], records) -> moments`` of the complete-data log-density, with a scale of zero."""

    def derive(vector: Array, records: Records) -> Moments:
        density = build_density(model, records)

        def slope(vector: Array) -> tuple[Array, Array]:
            found = jax.grad(density)(vector)
            return found, found

        hessian, score = jax.jacfwd(slope, has_aux=True)(vector)
        return Moments(score, score[:, None] * score[None], -hessian, jnp.zeros_like(hessian), jnp.zeros(()))

    return derive


def build_density(model: Model, records: Records) -> Callable[[Array], Array]:
    """The log-density [] of all records as a function of the unconstrained vector [k], without the prior."""
    summary = model.summarize(records)
    return lambda vector: model.log_likelihood(parameters_at(model, vector), summary)


def proper(moments: Moments) -> Moments:
    """The moments, or zeros and one more that is not finite."""
    fine = all_finite(moments)
    return tree_where(fine, moments, jax.tree.map(jnp.zeros_like, moments)._replace(num_nonfinite=jnp.ones(())))


def build_move(
    model: Model, release: PrivateRelease, imputation: Imputation, refresh: bool
) -> Callable[[Key, Latent, Parameters], Latent]:
    """The move ``(rng_key, latent, parameters) -> latent``: it leaves p(latent | parameters, release) invariant."""
    impute = imputation(model, release)

    def move(rng_key: Key, latent: Latent, parameters: Parameters) -> Latent:
        impute_key, record_key, decision_key = jax.random.split(rng_key, 3)
        latent, _ = impute(impute_key, latent, parameters)
        if not refresh:
            return latent
        proposed = init_latent(release, model.sample_records(record_key, parameters, release.n))
        return decide_refresh(latent, proposed, jnp.log(decision_uniforms(decision_key)))

    return move


def decide_refresh(latent: Latent, proposed: Latent, log_uniform: Array) -> Latent:
    """One refresh of all latent data as a function of its innovations: it leaves their distribution invariant.

    New data from the model are accepted by the ratio of the release's densities, as that of their own cancels. A ratio
    that is not finite is a rejection.
    """
    log_ratio = proposed.log_density - latent.log_density
    fine = all_finite(proposed.records) & (log_ratio < jnp.inf)
    return tree_where(fine & (log_uniform < log_ratio), proposed, latent)


@partial(jit_model, static_argnames=("count", "num_chains"))
def simulate_releases(
    model: Model, count: int, num_chains: int, key: Key, release: PrivateRelease, vector: Array
) -> tuple[Array, Records]:
    """Released values [count, ...] of records drawn at a vector [k], and the records for chains [count, chain, ...]."""
    parameters = parameters_at(model, vector)

    def one(key: Key) -> tuple[Array, Records]:
        record_key, release_key = jax.random.split(key)
        records = model.sample_records(record_key, parameters, release.n)
        value = release.sample(release_key, records).observed
        return value, jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_chains, *leaf.shape)), records)

    return jax.lax.map(one, jax.random.split(key, count))
