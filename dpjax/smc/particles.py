"""What particles are: parameters with records, or parameters alone where the records are summed out."""

from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from dpjax.base import Key, Latent, Model, Parameters
from dpjax.data_augmentation.parameters import Tuning, average_steps_under, fit_step_size
from dpjax.data_augmentation.parameters.kernels import ParameterKernel
from dpjax.data_augmentation.summed_out import Likelihood
from dpjax.models.simulation import GibbsState, Position, draw_state, init_state
from dpjax.release import PrivateRelease
from dpjax.runtime.devices import platform_of

__all__ = ["Particles", "particles_of"]


class Particles(Protocol):
    """How particles are drawn, weighed and moved."""

    def draw(self, key: Key) -> GibbsState:
        """A particle from the prior."""

    def weigh(self, particle: GibbsState) -> GibbsState:
        """The particle with the log-density of the release, not tempered."""

    def begin(self, raised: Any, particle: GibbsState) -> GibbsState:
        """The particle as sweeps under a tempered release begin."""

    def fit_step(self, key: Key, raised: Any, kernel: ParameterKernel | None, tuning: Any, some: GibbsState) -> Any:
        """The tuning with the step size of a kernel fitted to some particles [particle, ...]."""

    def each(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of all particles that applies one to each."""


def particles_of(model: Model, release: Any) -> Particles:
    """Those of a release, or of the likelihood of the parameters."""
    return Alone(model, release) if isinstance(release, Likelihood) else WithRecords(model, release)


class WithRecords:
    """Parameters with records."""

    def __init__(self, model: Model, release: PrivateRelease) -> None:
        self.model, self.release = model, release

    def draw(self, key: Key) -> GibbsState:
        """See `Particles`."""
        return draw_state(key, self.model, self.release)

    def weigh(self, particle: GibbsState) -> GibbsState:
        """See `Particles`."""
        return self.begin(self.release, particle)

    def begin(self, raised: Any, particle: GibbsState) -> GibbsState:
        """See `Particles`."""
        return init_state(raised, Position(particle.parameters, particle.latent.records))

    def fit_step(self, key: Key, raised: Any, kernel: ParameterKernel | None, tuning: Any, some: GibbsState) -> Any:
        """See `Particles`; records are held."""
        del raised
        return fit_step_size(key, self.model, kernel, tuning, some.parameters, some.latent.records)

    def each(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """See `Particles`: side by side."""
        return jax.vmap(function)


class Alone:
    """Parameters alone, whose likelihood has the records summed out."""

    def __init__(self, model: Model, likelihood: Likelihood) -> None:
        self.model, self.log_likelihood = model, likelihood.build()

    def draw(self, key: Key) -> GibbsState:
        """See `Particles`."""
        return self._at(self.model.sample_prior(key))

    def weigh(self, particle: GibbsState) -> GibbsState:
        """See `Particles`."""
        return self._at(particle.parameters)

    def begin(self, raised: Any, particle: GibbsState) -> GibbsState:
        """See `Particles`: as it is."""
        del raised
        return particle

    def fit_step(self, key: Key, raised: Any, kernel: ParameterKernel | None, tuning: Tuning, some: GibbsState) -> Any:
        """See `Particles`."""
        return average_steps_under(key, self.model, kernel, tuning, some.parameters, raised.build())

    def each(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """See `Particles`: on a processor one after another, as sums over windows of all would not fit its cache."""
        if platform_of(None) != "cpu":
            return jax.vmap(function)
        return lambda *trees: jax.lax.map(lambda given: function(*given), trees)

    def _at(self, parameters: Parameters) -> GibbsState:
        return GibbsState(parameters, Latent({}, jnp.zeros(0), self.log_likelihood(parameters)))
