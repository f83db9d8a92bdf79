"""Neal's algorithm 8: each record may open one of several new clusters, whose parameters are prior draws."""

from dataclasses import dataclass
from functools import partial

import jax

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, fail, name_of
from dpjax.base import Key
from dpjax.mixture.base import MixtureState
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.samplers.base import Slots
from dpjax.mixture.samplers.gibbs_labels import Fresh, gibbs_labels, value_density
from dpjax.mixture.samplers.marginal import Marginal, Relabelled, refuse_binned

__all__ = ["Neal8", "neal8"]


@dataclass(frozen=True)
class Neal8(Marginal):
    """Neal's algorithm 8; see `neal8`."""

    auxiliaries: int = 3

    def fit(self, problem: MixtureProblem) -> "Neal8":
        """The sampler, or an error unless the density of a released value given parameters is known."""
        refuse_binned("neal8()", problem)
        if problem.channel is not None and problem.tractable is None:
            pair = f"{name_of(problem.channel)} and {type(problem.component).__name__}"
            remedy = (
                "Use sampler=dpjax.mixture.neal5() or conditional(), or register the marginal with "
                "dpjax.mixture.register_tractable."
            )
            fail("sampler", f"neal8() with {pair}", "a channel and component whose marginal is known", remedy)
        return self

    def relabel(self, problem: MixtureProblem, slots: Slots, key: Key, state: MixtureState) -> Relabelled:
        """A Gibbs sweep over the labels given the parameters."""
        del slots
        return gibbs_labels(problem, key, state, partial(prior_clusters, self.auxiliaries), keeps_own=True)


@names_arguments
def neal8(auxiliaries: int = 3) -> Neal8:
    """Move the labels one after another given the clusters' parameters: Neal (2000), algorithm 8.

    A record opens a cluster with weight α / m · g(z | θ) for each of m draws θ from the base measure; for a record
    alone in its cluster, its own parameters are one of them. It needs the channel's marginal g under the component, or
    known records.

    Parameters
    ----------
    auxiliaries
        The number m of new clusters for each record to choose from.

    Raises
    ------
    TypeError, ValueError
        If it is no positive whole number; with a problem, if the marginal is not known.

    Examples
    --------
    >>> import dpjax
    >>> sampler = dpjax.mixture.neal8(auxiliaries=2)
    """
    return Neal8(check_count("auxiliaries", auxiliaries, "Pass the number of new clusters for each record."))


def prior_clusters(size: int, problem: MixtureProblem, key: Key, state: MixtureState) -> Fresh:
    """Draws from the base measure, `size` for each record."""
    n = state.labels.shape[0]
    drawn = problem.component.sample_prior(key, n * size)
    theta = {name: leaf.reshape(n, size, *leaf.shape[1:]) for name, leaf in drawn.items()}
    of_one = jax.vmap(value_density(problem), in_axes=(None, 0))
    return Fresh(theta, jax.vmap(of_one)(problem.values, theta))
