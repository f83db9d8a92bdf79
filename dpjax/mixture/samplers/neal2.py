"""Neal's algorithm 2: a new cluster's parameters are drawn given the record that opens it."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from dpjax._util.spelling import names_arguments
from dpjax.base import Key
from dpjax.mixture.base import MixtureState
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.samplers.base import Slots, at_labels
from dpjax.mixture.samplers.gibbs_labels import Fresh, gibbs_labels
from dpjax.mixture.samplers.marginal import Marginal, Relabelled, check_conjugate, evidence_of

__all__ = ["Neal2", "neal2"]


@dataclass(frozen=True)
class Neal2(Marginal):
    """Neal's algorithm 2; see `neal2`."""

    def fit(self, problem: MixtureProblem) -> "Neal2":
        """The sampler, or an error unless the base measure is conjugate to the released values."""
        check_conjugate("neal2()", problem)
        return self

    def relabel(self, problem: MixtureProblem, slots: Slots, key: Key, state: MixtureState) -> Relabelled:
        """A Gibbs sweep over the labels given the parameters."""
        del slots
        return gibbs_labels(problem, key, state, posterior_cluster, keeps_own=False)


@names_arguments
def neal2() -> Neal2:
    """Move the labels one after another given the clusters' parameters: Neal (2000), algorithm 2.

    A record opens a cluster with weight α ∫ g(z | θ) dG0(θ) and parameters drawn given it. Requirements: as `neal3`.

    Examples
    --------
    >>> import dpjax
    >>> sampler = dpjax.mixture.neal2()
    """
    return Neal2()


def posterior_cluster(problem: MixtureProblem, key: Key, state: MixtureState) -> Fresh:
    """One new cluster for each record, with its marginal density and parameters drawn given it."""
    log_evidence = evidence_of(problem.component)
    features = jax.vmap(problem.component.features)(problem.values)
    ones = jnp.ones(features.shape[0], features.dtype)
    drawn = problem.component.update(key, at_labels(state.mixing.theta, state.labels), ones, features)
    nothing = log_evidence(0 * ones[:1], jnp.zeros_like(features[:1]))
    log_densities = log_evidence(ones, features) - nothing
    return Fresh({name: leaf[:, None] for name, leaf in drawn.items()}, log_densities[:, None])
