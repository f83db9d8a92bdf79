"""Survey weights: how many people of the population each record stands for, relative to the others."""

from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_array, fail, is_traced, plain
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array

__all__ = ["PSEUDO", "Weighs", "check_unweighted", "read_weights", "weighted_people", "weights_of"]

PSEUDO = "pseudo-posterior: the log-likelihood of each record is weighted, with survey weights scaled to sum to n"

REMEDY = "Pass the survey weights, in the order of the records."

SCALED = 1e-5
"""How far from 1 the mean of weights may be that are scaled already."""


@runtime_checkable
class Weighs(Protocol):
    """A model that may have survey weights of its records."""

    @property
    def record_weights(self) -> Array | None:
        """The weights [n], scaled to sum to n; None if records are not weighted."""


def read_weights(weights: Any, n: int) -> Array | None:
    """The weights [n] scaled to sum to n, or an error; None for none.

    Warns
    -----
    UserWarning
        If they are whole numbers with a mean above 1, which may be counts of equal records.
    """
    if weights is None or is_traced(weights):
        return weights
    weights = plain(weights)
    check_array("weights", weights, lambda array: array >= 0, "finite numbers of at least 0", REMEDY)
    numbers = np.asarray(weights, float)
    if numbers.shape != (n,):
        fail("weights", f"shape {list(numbers.shape)}", f"shape [{n}], one for each record", REMEDY)
    mean = float(np.mean(numbers))
    if mean == 0:
        fail("weights", "zeros alone", "a weight above 0", REMEDY)
    if abs(mean - 1) < SCALED:
        return jnp.asarray(weights, float)
    if mean > 1 and np.all(numbers == np.floor(numbers)):
        warn_at_the_call(
            f"weights: whole numbers with mean {mean:.3g} are taken as survey weights, and scaled to sum to n = {n}. "
            "If each is how many equal records a row stands for, repeat the row so often instead."
        )
    return jnp.asarray(numbers / mean, float)


def weights_of(model: Any, release: Any) -> Array | None:
    """The weights [n] that the model or the release has; None if records are not weighted.

    Raises
    ------
    ValueError
        If both have some, or the model has weights and what was released is not of single records alone.
    """
    own = model.record_weights if isinstance(model, Weighs) else None
    if own is None:
        return release.weights
    if release.weights is not None:
        fail("weights", "those of the model and of the release", "one of the two", "Leave one of them out.")
    if not release.is_of_records:
        given = "survey weights of a model beside a sum over the records"
        fail(
            "release", given, "values of single records alone", "Leave the weights out: a sum counts each record once."
        )
    return own


def weighted_people(model: Any, release: Any) -> Any:
    """What was released of each record, `Microdata`, with the survey weights that model or release has."""
    weights = weights_of(model, release)
    people = release.microdata
    return people if weights is people.weights else replace(people, weights=weights)


def check_unweighted(model: Any, release: Any, argument: str, what: str) -> None:
    """Raise if records are weighted where something is asked for that has no meaning then."""
    if weights_of(model, release) is not None:
        remedy = "Use dpjax.sample or dpjax.maximum_likelihood of records that can be summed out; or leave weights out."
        fail(argument, f"{what}, of records with survey weights", "a pseudo-posterior of records summed out", remedy)
