"""Fields of real numbers that are known within intervals, such as concentrations below a limit of detection.

The density of such records is that of all that is known of them: the probability of an interval, or the density where
the number is shown. It is in closed form if no other field depends on those that are known so.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.dependence import depends_on
from dpjax._util.validation import fail
from dpjax.base import MEMBERS, Array, Key, Model, Parameters, Records
from dpjax.models.simulation import parameter_shapes
from dpjax.numerics.intervals import draw_between

__all__ = ["KnownWithin", "check_between"]

Ends = dict[str, tuple[Array, Array]]
"""Between which numbers fields are [n]: ``±inf`` where there is no end, twice the same where the number is known."""


class KnownWithin(Model):
    """A model of records of which some fields are known to lie between ends.

    Their numbers in the records are not read. All else is as in the other model.

    Attributes
    ----------
    model
        The other model.
    ends
        The ends of each field [n].
    """

    model: Model
    ends: dict[str, Any]

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-density [n] of all that is known of the records."""
        return self.model.log_density_between(parameters, records, self.ends)

    def draw(self, key: Key, parameters: Parameters, records: Records, rows: Array) -> Records:
        """Records [n] with a draw of each of those fields, given the others and the row of the model of each."""
        own = self.of_records(rows)
        drawn = dict(records)
        for field_key, (name, (low, high)) in zip(jax.random.split(key, len(own.ends)), own.ends.items(), strict=True):

            def up_to(most: Array, name: str = name, low: Array = low) -> Array:
                return own.model.log_density_between(parameters, records, own.ends | {name: (low, most)})

            found = draw_between(field_key, up_to, low, high)
            drawn[name] = jnp.where(low == high, low, found).astype(records[name].dtype)
        return drawn

    @property
    def exchangeable(self) -> bool:
        """False: the ends of records differ."""
        return False

    @property
    def record_covariates(self) -> tuple[Any, ...] | None:
        """Those of the other model, and the ends."""
        known = self.model.record_covariates
        return None if known is None else (*known, *jax.tree.leaves(self.ends))

    def of_records(self, places: Any) -> "KnownWithin":
        """The same of those records."""
        return KnownWithin(self.model.of_records(places), jax.tree.map(lambda leaf: leaf[places], self.ends))

    def has(self, member: str) -> bool:
        """Whether the other model has it."""
        return self.model.has(member)


def of_other_model(name: str) -> property:
    """The member of that name of the other model."""
    return property(lambda self: getattr(self.model, name))


for _name in (*MEMBERS, "level_names"):
    if _name not in vars(KnownWithin):
        setattr(KnownWithin, _name, of_other_model(_name))


def check_between(model: Model, records: Records, ends: Ends) -> None:
    """Raise unless the density of records known within these ends is known in closed form.

    Raises
    ------
    ValueError
        If the model has no such density, or another field depends on one of these.
    """
    if not model.has("log_density_between"):
        given = f"numbers of {', '.join(map(repr, ends))} that are known within intervals, and a model without their"
        remedy = "Pass a model by dpjax.from_numpyro or dpjax.models.formula, or give yours a `log_density_between`."
        fail("model", f"{given} probabilities", "one that has `log_density_between`", remedy)

    def density(numbers: Records, parameters: Parameters, others: Records) -> Array:
        return model.log_density_between(parameters, others | numbers, ends)

    parameters = parameter_shapes(model)
    for name in ends:
        others = {other: leaf for other, leaf in records.items() if other != name}
        if depends_on(partial(density), {name: records[name]}, parameters, others):
            given = f"the field {name!r}, known within intervals, on which the distribution of another field depends"
            remedy = "Use fields that are exact or missing there, or state the noise: dpjax.Gaussian has a closed form."
            fail("model", given, "intervals of fields on which no other depends", remedy)
