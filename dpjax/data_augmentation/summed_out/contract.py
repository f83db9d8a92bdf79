"""The likelihood of the parameters alone: all that sampling needs to know of a release once the records are gone."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from dpjax._util.pytree import PyTree, static
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.release import PrivateRelease

__all__ = ["Likelihood", "OwnLikelihood"]


class Likelihood(PyTree, abstract=True):
    """The log-density of a release given the parameters, up to a constant: a pytree that compiled programs take.

    What a kind of likelihood does not say is as it is for one that is exact and has no numbers of its own.
    """

    @property
    def is_approximate(self) -> bool:
        """Whether the sums may leave something out, which `left_out` bounds."""
        return False

    @property
    def is_large(self) -> bool:
        """Whether a gradient takes longer than what else a step is made of."""
        return False

    @property
    def is_limited(self) -> bool:
        """Whether sums are short whatever the parameters, so that they need not be fitted to any."""
        return False

    @property
    def is_shortened(self) -> bool:
        """Whether sums are thinned or looked up in a table, so that draws are to be compared with the whole sums."""
        return False

    @property
    def whole(self) -> "Likelihood":
        """The likelihood before anything was thinned or looked up."""
        return self

    @property
    def size(self) -> int:
        """How many numbers are summed over."""
        return 1

    @property
    def predicted(self) -> tuple[Model, Records, str] | None:
        """The model of the rows, what is known of these and their hidden field, where group effects are looked for."""
        return None

    @property
    def reported(self) -> tuple[str, ...]:
        """The names of those numbers of its own that are reported among the draws."""
        return ()

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions of a user's own that it consists of, by the argument's name: runs differ if they do."""
        return {}

    def check_is_of(self, model: Model, release: PrivateRelease) -> None:
        """Raise if it was made from another model or release than these, where that can be seen."""

    def build(self) -> Callable[[Parameters], Array]:
        """The function ``parameters -> []`` with what does not depend on the parameters computed once."""
        raise NotImplementedError

    def __call__(self, parameters: Parameters) -> Array:
        """The log-density [] of all that was released, given the parameters."""
        return self.build()(parameters)

    def left_out(self, parameters: Parameters) -> Array:
        """A bound [] of what the sums leave out of the likelihood, relative to it; 0 if they are exact."""
        del parameters
        return jnp.zeros(())

    def tempered(self, power: Array) -> "Likelihood":
        """The likelihood raised to a power []."""
        return Raised(self, power)

    def sample_records(self, key: Key, parameters: Parameters) -> Records:
        """A draw of what is drawn given the parameters; nothing by default."""
        del key, parameters
        return {}

    def extend(self, model: Model) -> Model:
        """The model with the numbers among its parameters that the likelihood has of its own."""
        return model

    def find_starts(self, key: Key, model: Model, num_chains: int) -> Any:
        """Starts and whitening by a way that suits this likelihood; None for climbs as of any other."""
        del key, model, num_chains

    def examine(self, key: Key, draws: Parameters) -> dict[str, Any]:
        """Reports on how good the likelihood is at draws [chain, draw, ...]; an error if it is too coarse for them."""
        del key, draws
        return {}


class Raised(Likelihood):
    """A likelihood raised to a power.

    Attributes
    ----------
    likelihood
        The likelihood.
    power
        The power [].
    """

    likelihood: Likelihood
    power: Array

    def build(self) -> Callable[[Parameters], Array]:
        """See `Likelihood`."""
        log_likelihood = self.likelihood.build()
        return lambda parameters: self.power * log_likelihood(parameters)

    def sample_records(self, key: Key, parameters: Parameters) -> Records:
        """See `Likelihood`."""
        return self.likelihood.sample_records(key, parameters)


class OwnLikelihood(Likelihood):
    """A likelihood that is a function of a user's own.

    Attributes
    ----------
    function
        ``parameters -> []``.
    """

    function: Callable[[Parameters], Array] = static()

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """See `Likelihood`."""
        return {"likelihood": self.function}

    def build(self) -> Callable[[Parameters], Array]:
        """The function itself."""
        return self.function
