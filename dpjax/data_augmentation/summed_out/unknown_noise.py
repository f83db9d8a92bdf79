"""Noise that is not known: the likelihood of the parameters and of numbers of mechanisms, with the records summed out.

The sums are those of known noise, with the mechanisms at the parameters of each evaluation. Windows of whole numbers
hold all that the noise leaves at any of some parameters: draws from the prior first, then draws near the posterior.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail
from dpjax.base import Array, Coordinates, Key, Model, NonCentred, Parameters, Records
from dpjax.data_augmentation.summed_out.contract import Likelihood
from dpjax.data_augmentation.summed_out.released_density import WindowEnds
from dpjax.data_augmentation.summed_out.terms import Windows
from dpjax.data_augmentation.summed_out.windows import first_windows, make_windows
from dpjax.models.same_records import SameRecords
from dpjax.models.simulation import parameter_shapes
from dpjax.release import Microdata
from dpjax.release.estimated import EstimatedNoise

__all__ = ["UnknownNoise", "WithNumbers", "extended", "windows_through"]

EVERY = 1e6
"""Logarithms by which the density of numbers may fall short of the best, which other noise makes likely."""


class WithNumbers(SameRecords):
    """The model of the same records as another one, with further numbers and their priors among its parameters.

    Attributes
    ----------
    model
        The other one.
    priors
        The priors of the numbers by name.
    """

    model: Model
    priors: dict[str, Any]

    def own_parameters(self, parameters: Parameters) -> Parameters:
        """The parameters without these numbers."""
        return {name: leaf for name, leaf in parameters.items() if name not in self.priors}

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        own_key, *keys = jax.random.split(key, 1 + len(self.priors))
        own = {name: prior.sample(one) for one, (name, prior) in zip(keys, self.priors.items(), strict=True)}
        return self.model.sample_prior(own_key) | own

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        terms = [prior.log_density(parameters[name]) for name, prior in self.priors.items()]
        return self.model.log_prior(self.own_parameters(parameters)) + sum(terms)

    def unconstrain(self, parameters: Parameters) -> Parameters:
        """From parameters to unconstrained numbers."""
        return self.beside(self.model).unconstrain(parameters)

    def constrain(self, unconstrained: Parameters) -> Parameters:
        """Its inverse."""
        return self.beside(self.model).constrain(unconstrained)

    def log_jacobian(self, unconstrained: Parameters) -> Array:
        """The log-determinant [] of `constrain`."""
        return self.beside(self.model).log_jacobian(unconstrained)

    def beside(self, own: Any) -> Coordinates:
        """Coordinates of the parameters of the other model, with those of the numbers."""

        def join(member: str, parameters: Parameters) -> tuple[Any, Parameters]:
            numbers = {name: getattr(prior, member)(parameters[name]) for name, prior in self.priors.items()}
            return getattr(own, member)(self.own_parameters(parameters)), numbers

        def merge(member: str, parameters: Parameters) -> Parameters:
            others, numbers = join(member, parameters)
            return others | numbers

        def add(unconstrained: Parameters) -> Array:
            others, numbers = join("log_jacobian", unconstrained)
            return jnp.asarray(others + sum(numbers.values()))

        return Coordinates(partial(merge, "unconstrain"), partial(merge, "constrain"), add)

    @property
    def noncentred(self) -> NonCentred:
        """That of the other model, in whose coordinates group effects are standardised."""
        form = self.model.noncentred
        return form if form.coordinates is None else form._replace(coordinates=self.beside(form.coordinates))

    def has(self, member: str) -> bool:
        """Whether the other model has such a form."""
        return self.model.has(member) if member == "noncentred" else super().has(member)

    def derived(self, parameters: Parameters) -> Parameters:
        """The quantities that the other model derives."""
        return self.model.derived(self.own_parameters(parameters))


class UnknownNoise(Likelihood):
    """The log-density of a release given the parameters and the numbers of its mechanisms.

    Attributes
    ----------
    marginal
        The likelihood of known noise, that at one draw from the prior.
    people
        What was released of its rows.
    noise
        The release, which has the mechanisms at parameters.
    """

    marginal: Any
    people: Microdata
    noise: EstimatedNoise

    @property
    def model(self) -> Model:
        """The model of the rows."""
        model: Model = self.marginal.model
        return model

    @property
    def is_approximate(self) -> bool:
        """Whether the sums may leave something out."""
        return bool(self.marginal.is_approximate)

    @property
    def size(self) -> int:
        """How many numbers are summed over, for all rows."""
        return int(self.marginal.size)

    @property
    def is_large(self) -> bool:
        """Whether a gradient takes longer than what else a step is made of."""
        return bool(self.marginal.is_large)

    @property
    def predicted(self) -> Any:
        """See `Likelihood`; with the numbers of the noise among the parameters of the rows, too."""
        found = self.marginal.predicted
        return None if found is None else (extended(found[0], self.noise), *found[1:])

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """See `Likelihood`."""
        return {f"channel of {name!r}": function for name, function in self.noise.functions}

    @property
    def reported(self) -> tuple[str, ...]:
        """The numbers of the noise."""
        return tuple(self.noise.priors)

    def at(self, parameters: Parameters) -> tuple[Any, Parameters]:
        """The likelihood of the noise at parameters, and those of the model."""
        terms = self.marginal.terms.through(self.noise.with_channels(self.people, parameters))
        own = {name: leaf for name, leaf in parameters.items() if name not in self.noise.priors}
        return replace(self.marginal, terms=terms), own

    def build(self) -> Callable[[Parameters], Array]:
        """See `Likelihood`."""

        def log_density(parameters: Parameters) -> Array:
            marginal, own = self.at(parameters)
            found: Array = marginal.build()(own)
            return found

        return log_density

    def left_out(self, parameters: Parameters) -> Array:
        """See `Likelihood`."""
        marginal, own = self.at(parameters)
        return jnp.asarray(marginal.left_out(own))

    def sample_records(self, key: Key, parameters: Parameters) -> Records:
        """See `Likelihood`."""
        marginal, own = self.at(parameters)
        drawn: Records = marginal.sample_records(key, own)
        return drawn

    def extend(self, model: Model) -> Model:
        """See `Likelihood`."""
        return extended(model, self.noise)

    def tabulated(self, parameters: Parameters, rough: bool = False) -> None:
        """None: a table would have to be of the numbers of the noise, too."""
        del parameters, rough


def extended(model: Model, noise: EstimatedNoise) -> Model:
    """The model with the numbers of the noise among its parameters; itself if it has all of them."""
    twice = sorted(noise.priors.keys() & parameter_shapes(model).keys())
    if twice:
        given = f"a prior of {twice[0]!r}, which is a parameter of the model, too"
        fail("release", given, "another name", "Rename it, or leave its prior to the model: pass a function of it.")
    return WithNumbers(model, noise.priors) if noise.priors else model


def windows_through(model: Model, rows: list[Microdata], name: str, known: Records) -> Windows:
    """Windows of all numbers that the noise leaves in any of some releases of the same values."""
    some = [first_windows(model, release, name, known, gapless=True) for release in rows]
    first = [np.asarray(windows.numbers[0], float) for windows, _ in some]
    last = [first[place] + np.asarray(windows.size_of_window) - 1 for place, (windows, _) in enumerate(some)]
    ends = WindowEnds(np.min(first, axis=0), np.max(last, axis=0))
    widest = int(np.argmax([np.sum(high - low) for low, high in zip(first, last, strict=True)]))
    return make_windows(some[widest][1], ends, np.full(len(ends.low), EVERY), gapless=True)
