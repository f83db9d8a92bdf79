"""The interfaces of the mixture samplers: components, their optional methods, and the state and report of a sweep.

A component implements `Component`. It may also implement:

| protocol | method | used for |
|---|---|---|
| `Conjugate` | ``log_evidence`` | `neal2` and `neal3` |
| `OfReleasedValues` | ``behind``, ``log_record_density`` | channels behind which no record has to be imputed |
| `NormalRecords` | ``normal_field`` | exact draws of Normal records behind Laplace or Gaussian noise |
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from dpjax.base import Array, Key

__all__ = [
    "Component",
    "Conjugate",
    "Mixing",
    "MixtureInfo",
    "MixtureState",
    "NormalRecords",
    "OfReleasedValues",
    "Theta",
    "Tractable",
    "record_density",
]

Theta = dict[str, Array]
"""The parameters of components: named arrays with the leading axes of whatever they belong to."""


@runtime_checkable
class Component(Protocol):
    """A mixture kernel f(y | θ) with the base measure of its parameters θ.

    A component is a frozen pytree (`dpjax.mechanisms.frozen_pytree` above ``@dataclass(frozen=True)``), or hashable. A
    record is an array [] or [p].
    """

    def sample_prior(self, key: Key, size: int) -> Theta:
        """Independent draws [size, ...] from the base measure; a smaller size gives the first of them."""

    def sample(self, key: Key, theta: Theta) -> Array:
        """One record for each set of parameters: leaves [n, ...] give records [n, ...].

        Record i depends on the key, on i and on its own parameters only.
        """

    def log_density(self, record: Array, theta: Theta) -> Array:
        """log f(y | θ) [] of one record under one set of parameters."""

    def features(self, record: Array) -> Array:
        """The summands [k] of the sufficient statistic of one record."""

    def update(self, key: Key, theta: Theta, counts: Array, totals: Array) -> Theta:
        """Parameters [H, ...] after a move that leaves their distribution given the clusters' statistics invariant.

        The parameters of slot h have density ∝ G0(θ) Π f(y_i | θ) over the ``counts[h]`` records of its cluster, whose
        features sum to ``totals[h]``. A slot of count 0 gets a draw from the base measure. The draw of slot h does not
        depend on the number of slots after it.

        Parameters
        ----------
        key
            One typed key.
        theta
            The present parameters, leaves [H, ...]; a conjugate draw ignores them.
        counts : [H]
            The numbers of records, as floats.
        totals : [H, k]
            The sums of their features.
        """


@runtime_checkable
class Conjugate(Component, Protocol):
    """A component whose base measure is conjugate, so that the parameters can be integrated out of a cluster."""

    def log_evidence(self, counts: Array, totals: Array) -> Array:
        """log ∫ Π f(y_i | θ) dG0(θ) [H] of each cluster's records, with the constants of ``log_density``.

        Parameters
        ----------
        counts : [H]
            The numbers of records, as floats.
        totals : [H, k]
            The sums of their features.
        """


@runtime_checkable
class OfReleasedValues(Component, Protocol):
    """A component of the released values rather than of the records, so that none need be imputed.

    Its ``sample``, ``log_density`` and ``features`` are those of released values.
    """

    def behind(self, channel: Any) -> Component:
        """The component of the values released through this channel, or an error if it does not know the channel."""

    def log_record_density(self, record: Array, theta: Theta) -> Array:
        """The log-density [] of one confidential record under one set of parameters."""


@runtime_checkable
class NormalRecords(Component, Protocol):
    """A component of records that are Normal numbers given the parameters."""

    def normal_field(self, theta: Theta) -> tuple[Array, Array]:
        """The mean and standard deviation of a record, elementwise."""


def record_density(component: Component) -> Callable[[Array, Theta], Array]:
    """The log-density of a confidential record."""
    return component.log_record_density if isinstance(component, OfReleasedValues) else component.log_density


class Tractable(NamedTuple):
    """A channel and a component whose marginal g(z | θ) = ∫ q(z | y) f(y | θ) dy is known.

    Attributes
    ----------
    log_marginal
        ``(value, theta) -> []``: log g(z | θ) of one released value under one set of parameters.
    sample_latent
        ``(key, values, theta) -> records``: draws from the densities ∝ q(z_i | y) f(y | θ_i), leaves [n, ...].

    Examples
    --------
    >>> from dpjax import Gaussian, mixture
    >>> component = mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=2.0, scale=1.0)
    >>> found = mixture.find_tractable(Gaussian(1.0), component)
    >>> theta = {"mean": 0.0, "variance": 3.0}
    >>> round(float(found.log_marginal(0.0, theta)), 3)
    -1.612
    """

    log_marginal: Callable[[Array, Theta], Array]
    sample_latent: Callable[[Key, Array, Theta], Array]


class Mixing(NamedTuple):
    """A draw of the mixing measure: Σ_h weights[h] δ(theta[h]) and the mass of the atoms beyond the slots.

    Attributes
    ----------
    weights
        The weights [H] of the slots; with `remainder` they sum to 1.
    theta
        The parameters of the slots, leaves [H, ...].
    remainder
        The mass [] of all further atoms, whose parameters are those of the base measure.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> mixing = dpjax.mixture.Mixing(jnp.array([0.7, 0.2]), {"mean": jnp.array([-1.0, 2.0])}, remainder=jnp.array(0.1))
    >>> round(float(mixing.weights.sum() + mixing.remainder), 5)
    1.0
    """

    weights: Array
    theta: Theta
    remainder: Array


class MixtureState(NamedTuple):
    """The state of a chain. Records share a cluster if their labels are equal; the labels have no other meaning.

    Attributes
    ----------
    labels
        The slot [n] of each record, int32.
    records
        The imputed confidential records [n] or [n, p].
    counts
        The clusters' numbers of records [H].
    totals
        Their sums of features [H, k].
    mixing
        The mixing measure from which the labels were drawn.
    concentration
        The concentration α [].
    log_channel
        log q(z_i | y_i) [n] of the current records; zeros if they are drawn exactly, or for one release of all records.

    Examples
    --------
    >>> import jax
    >>> from dpjax import mixture
    >>> component = mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=2.0, scale=1.0)
    >>> values = [-2.0, -1.7, 1.5, 2.0]
    >>> algorithm = mixture.gibbs(values, None, component=component, concentration=1.0)
    >>> state = algorithm.init(jax.numpy.zeros(4, int), jax.random.key(1))
    >>> state.labels.shape, float(state.counts[0]), round(float(state.totals[0, 1]), 2)
    ((4,), 4.0, 13.14)
    """

    labels: Array
    records: Array
    counts: Array
    totals: Array
    mixing: Mixing
    concentration: Array
    log_channel: Array


class MixtureInfo(NamedTuple):
    """The report of a sweep.

    Attributes
    ----------
    acceptance_rate
        The share of records [] whose proposal was accepted; 1 if they are drawn exactly.
    num_nonfinite
        How many records [] kept their label or value because of a non-finite density.
    num_slots
        How many slots [] the sweep needed: the occupied ones, and those that a record could have moved to.
    overflow
        Whether these were more than there are []: the sweep must then be repeated with more slots.

    Examples
    --------
    >>> import jax
    >>> from dpjax import mixture
    >>> component = mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=2.0, scale=1.0)
    >>> values = [-2.0, -1.7, 1.5, 2.0]
    >>> algorithm = mixture.gibbs(values, None, component=component, concentration=1.0)
    >>> state = algorithm.init(jax.numpy.zeros(4, int), jax.random.key(1))
    >>> state, info = jax.jit(algorithm.step)(jax.random.key(2), state)
    >>> bool(info.overflow), float(info.acceptance_rate)
    (False, 1.0)
    """

    acceptance_rate: Array
    num_nonfinite: Array
    num_slots: Array
    overflow: Array
