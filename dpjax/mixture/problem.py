"""The data, the channel, the component and the numbers of the mixing measure that define a posterior."""

from dataclasses import dataclass

import jax.numpy as jnp

from dpjax._util.pytree import frozen_pytree
from dpjax.base import Array
from dpjax.mechanisms.base import Mechanism
from dpjax.mixture.base import Component, Tractable
from dpjax.mixture.binned import Binned
from dpjax.mixture.components.tractable import find_tractable
from dpjax.mixture.process import Process
from dpjax.models import GammaPrior

__all__ = ["MixtureProblem"]


@frozen_pytree
@dataclass(frozen=True, eq=False)
class MixtureProblem:
    """The released values and the model of the records.

    Parameters
    ----------
    values : [n], [n, k] or [d]
        The released values, of each record or of all; the records themselves if the channel is None.
    channel
        The mechanism that released them; None for known records.
    component
        The mixture kernel with its base measure.
    concentration
        A number, or its Gamma prior.
    discount
        The discount of a Pitman–Yor process; None for a Dirichlet process, which has programs of its own.
    """

    values: Array
    channel: Mechanism | Binned | None
    component: Component
    concentration: float | Array | GammaPrior
    discount: float | Array | None = None

    @property
    def n(self) -> int:
        """The number of records."""
        return self.channel.n if isinstance(self.channel, Binned) else int(self.values.shape[0])

    def process(self, concentration: Array) -> Process:
        """The process of the mixing measure, given its concentration []."""
        return Process(concentration, None if self.discount is None else jnp.asarray(self.discount, float))

    @property
    def learns_concentration(self) -> bool:
        """Whether the concentration has a prior."""
        return isinstance(self.concentration, GammaPrior)

    @property
    def tractable(self) -> Tractable | None:
        """The known marginal of a released value, if there is one."""
        if self.channel is None or isinstance(self.channel, Binned):
            return None
        return find_tractable(self.channel, self.component)
