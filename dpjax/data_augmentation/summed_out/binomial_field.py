"""Counts that are Binomial given the parameters, of which the persons reported randomized bits: these are Binomial too.

A person who counts with probability p reports a 1 with probability ``flip + (keep - flip) p``. So the number of those
who do is Binomial, whatever the count, and no sum over counts is needed. Its cost does not depend on the number of
persons.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.dependence import depends_on
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.summed_out.terms import ReleasedField
from dpjax.models.programs import jit_model
from dpjax.models.simulation import parameter_shapes
from dpjax.numerics.counts import binomial_log_probability, draw_binomial
from dpjax.release.fields import FieldValues

__all__ = ["BinomialField"]


class BinomialField(ReleasedField):
    """One hidden field that is Binomial given the parameters, of which sums of reported bits were released.

    Attributes
    ----------
    released
        How many persons of each record reported a 1.
    seen
        The records of which that was released [m].
    """

    known: Records
    released: FieldValues
    seen: Array

    @classmethod
    def fits(cls, model: Model, field: FieldValues) -> bool:
        """Whether the field is Binomial, of the numbers of persons of whom the channel has the sums of one bit each."""
        sums = field.channel.sums
        if sums.report_probabilities is None or field.values.ndim != 1 or not model.has("binomial_field"):
            return False
        if depends_on(lambda parameters: model.binomial_field(parameters)[0], parameter_shapes(model)):
            return False
        return bool(np.all(np.asarray(numbers_of_trials.unoptimized(model, field.n)) == np.asarray(sums.num_records)))

    def build(self, model: Model) -> Any:
        """See `Terms`."""
        ones = self.released.values.astype(int)

        def terms(parameters: Parameters) -> Array:
            number, probability = model.binomial_field(parameters)
            _, reported = self._probabilities(probability)
            return jnp.where(self.seen, binomial_log_probability(ones, number, reported), 0)

        return terms

    def _probabilities(self, probability: Array) -> tuple[Array, Array]:
        """Those of a 1 of a person who counts, and of one who counts with this probability [m]."""
        found: Any = self.released.channel.sums.report_probabilities
        keep, flip = (jnp.asarray(one, float) for one in found)
        return keep, jnp.broadcast_to(flip + (keep - flip) * probability, self.seen.shape)

    def draw(self, key: Key, model: Model, parameters: Parameters, rows: Array) -> Records:
        """See `Terms`: by Bayes' rule, as those who reported a 1 and the others count with two probabilities."""
        ones_key, zeros_key, fresh_key = jax.random.split(key, 3)
        number, probability = (jnp.broadcast_to(one, self.seen.shape) for one in model.binomial_field(parameters))
        keep, reported = self._probabilities(probability)
        number, ones = number.astype(int), self.released.values.astype(int)
        of_ones, of_zeros = probability * keep / reported, probability * (1 - keep) / (1 - reported)
        drawn = draw_binomial(ones_key, ones[rows], of_ones[rows])
        drawn += draw_binomial(zeros_key, (number - ones)[rows], of_zeros[rows])
        fresh = draw_binomial(fresh_key, number[rows], probability[rows])
        field = self.released.field
        found = jnp.where(self.seen[rows], drawn, fresh).astype(self.known[field].dtype)
        return jax.tree.map(lambda leaf: leaf[rows], self.known) | {field: found}


@partial(jit_model, static_argnames=("n",))
def numbers_of_trials(model: Model, n: int) -> Array:
    """How many trials a model has of each record [n]."""
    return jnp.broadcast_to(model.binomial_field(model.sample_prior(jax.random.key(0)))[0], n)
