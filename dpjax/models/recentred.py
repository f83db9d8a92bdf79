"""Group effects on a scale between their own and that of standard normal numbers.

If the data determine the effect of a group on the linear predictor, it does not depend on the standard deviation of the
effects. If they say little of it, the standardised effect does not. The scale in between depends on the group
(Papaspiliopoulos, Roberts and Sköld 2007).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.dependence import used_arguments
from dpjax._util.pytree import static
from dpjax.base import MEMBERS, Array, Model, Parameters, Records
from dpjax.models.predictor import find_predictor
from dpjax.models.simulation import parameter_shapes

__all__ = ["Recentred", "find_effects", "standard_coordinates"]


class Recentred(Model):
    """A model whose unconstrained coordinates of effects are multiplied by c(θ) to some powers.

    Here c(θ) is how strongly the standardised effects of one name move the linear predictor, in the root mean square
    over the records. It may depend on all parameters but these effects. All else is as in the other model.

    Attributes
    ----------
    model
        The other model.
    rows
        The model of the distinct records.
    known
        These records; the numbers of one field do not count.
    powers
        By the names of effects, 0 where they are standardised and 1 where they are on the scale of the predictor.
    field
        The name of the field.
    """

    model: Model
    rows: Model
    known: Records
    powers: dict[str, Array]
    field: str = static()

    def unconstrain(self, parameters: Parameters) -> Parameters:
        """The coordinates of parameters."""
        standard = self._standard.unconstrain(parameters)
        return standard | self._multiply(standard, 1)

    def constrain(self, unconstrained: Parameters) -> Parameters:
        """The parameters at coordinates."""
        return self._standard.constrain(self._standardise(unconstrained))

    def log_jacobian(self, unconstrained: Parameters) -> Array:
        """The logarithm [] of the determinant of `constrain`."""
        logs = self.log_slopes(unconstrained)
        powers = sum((jnp.sum(power) * logs[name] for name, power in self.powers.items()), start=jnp.zeros(()))
        return self._standard.log_jacobian(self._standardise(unconstrained)) - powers

    def _standardise(self, unconstrained: Parameters) -> Parameters:
        """The standardised coordinates."""
        return unconstrained | self._multiply(unconstrained, -1)

    def _multiply(self, coordinates: Parameters, sign: int) -> Parameters:
        """Effects among the coordinates, times c(θ) to their powers, or divided by it."""
        logs = self.log_slopes(coordinates)
        return {name: coordinates[name] * jnp.exp(sign * power * logs[name]) for name, power in self.powers.items()}

    def log_slopes(self, coordinates: Parameters) -> dict[str, Array]:
        """The logarithm [] of c(θ) for the effects of each name, which no effect changes."""
        # Whatever they are, and in whichever coordinates: so the derivative of the map is triangular.
        still = coordinates | {name: jnp.zeros_like(coordinates[name]) for name in self.powers}
        predict = build_predictor(self.model, self.rows, self.known, self.field)
        slopes = {name: slope_along(predict, still, name) for name in self.powers}
        return {name: jnp.log(jnp.maximum(slope, jnp.finfo(slope.dtype).tiny)) for name, slope in slopes.items()}

    @property
    def _standard(self) -> Any:
        """The coordinates in which effects are standardised."""
        return standard_coordinates(self.model)

    def of_records(self, places: Any) -> Model:
        """The other model of those records."""
        return self.model.of_records(places)

    def has(self, member: str) -> bool:
        """Whether the other model has it, but for its coordinates."""
        return member in COORDINATES if member in (*COORDINATES, "noncentred") else self.model.has(member)


COORDINATES = ("unconstrain", "constrain", "log_jacobian")


def of_other_model(name: str) -> property:
    """The member of that name of the other model."""
    return property(lambda self: getattr(self.model, name))


for _name in (*MEMBERS, "record_covariates", "level_names"):
    if _name not in vars(Recentred) and _name != "noncentred":
        setattr(Recentred, _name, of_other_model(_name))


def standard_coordinates(model: Model) -> Any:
    """The coordinates of the non-centred step of a model, or its own if there are none."""
    own = model.noncentred.coordinates if model.has("noncentred") else None
    return model if own is None else own


def build_predictor(model: Model, rows: Model, known: Records, field: str) -> Callable[[Parameters], Array]:
    """The predictor [m] of rows as a function of the coordinates of a model in which effects are standardised."""
    found, standard = find_predictor(rows, known, field), standard_coordinates(model)
    assert found is not None, "effects are those of a predictor"
    return lambda coordinates: found.before(standard.constrain(coordinates), known[field], known)


def slope_along(predict: Callable[[Parameters], Array], coordinates: Parameters, name: str) -> Array:
    """How strongly all effects of one name together move the predictor: the root mean square [] over the rows."""

    def move(effects: Array) -> Array:
        return predict(coordinates | {name: effects})

    effects = coordinates[name]
    return jnp.sqrt(jnp.mean(jax.jvp(move, (effects,), (jnp.ones_like(effects),))[1] ** 2))


def find_effects(model: Model, rows: Model, known: Records, field: str) -> tuple[str, ...]:
    """The names of several parameters each that move the predictor linearly, by a factor that is a parameter."""
    found = find_predictor(rows, known, field)
    if found is None or not found.shape:
        return ()
    predict = build_predictor(model, rows, known, field)
    shapes = jax.eval_shape(standard_coordinates(model).unconstrain, parameter_shapes(model))
    several = [name for name, shape in shapes.items() if np.prod(shape.shape) > 1]
    uses = {name: used_arguments(partial(slope_along, predict, name=name), shapes) for name in several}
    linear = [name for name in several if not uses[name][name] and any(uses[name].values())]
    return tuple(name for name in linear if not any(uses[name][other] for other in linear))
