"""The coordinates in which parameter kernels move: unconstrained, flat and whitened, and how far they step there.

A parameter dict is mapped to unconstrained arrays, ravelled to a vector [k], and whitened by a location and a factor
that warm-up fits to the posterior. Every kernel then sees a target of about unit scale.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_count, check_key, fail
from dpjax.base import Array, Key, Model, Parameters
from dpjax.models.checks import check_model
from dpjax.models.simulation import draw_parameters
from dpjax.models.unconstrained import to_vector
from dpjax.numerics import proper_density
from dpjax.numerics.linear_algebra import product

SPREAD = 1.5
"""Factor by which the whitening is wider than the draws.

The reference of the elliptical moves should cover the tails of the target. On private regressions (ε = 1 and 10) 1.5
gave the most effective draws, 1.0 a fifth of them.
"""


class Tuning(NamedTuple):
    """The whitening of the unconstrained vector, ``vector = location + factor @ whitened``, and a step size.

    Attributes
    ----------
    location
        The centre [k].
    factor
        A lower-triangular factor [k, k] of the covariance.
    step_size
        The step size [] of the parameter kernel on whitened vectors, if it has one.
    noncentred
        The whitening for the non-centred step, if that has coordinates of its own; its step size is not used.

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> tuning = dpjax.data_augmentation.initial_tuning(jax.random.key(1), model)
    >>> tuning.location.shape, tuning.factor.shape
    ((1,), (1, 1))
    >>> vector = tuning.colour(jax.numpy.ones(1))
    >>> round(float(tuning.whiten(vector)[0]), 5)
    1.0
    """

    location: Array
    factor: Array
    step_size: Array
    noncentred: "Tuning | None" = None

    def colour(self, whitened: Array) -> Array:
        """The unconstrained vector [k] at a whitened one [k]."""
        return self.location + product(self.factor, whitened)

    def whiten(self, vector: Array) -> Array:
        """The whitened vector [k] at an unconstrained one [k]."""
        return jax.scipy.linalg.solve_triangular(self.factor, vector - self.location, lower=True)


def noncentred_coordinates(model: Model, tuning: Tuning) -> tuple[Model, Tuning]:
    """The model and tuning with the coordinates and the whitening of the non-centred step."""
    own, whitening = standardised(model), tuning.noncentred
    return (model, tuning) if own is None or whitening is None else (own, whitening)


def standardised(model: Model) -> Model | None:
    """The model with the coordinates of its non-centred step as its own, if it has such."""
    coordinates = model.noncentred.coordinates
    return None if coordinates is None else model._replace(noncentred=None, **coordinates._asdict())


def build_log_density(
    model: Model, tuning: Tuning, unravel: Callable[[Array], Parameters], log_likelihood: Callable[[Parameters], Array]
) -> Callable[[Array], Array]:
    """The log-density [] of whitened vectors under the prior times a likelihood of the natural parameters."""

    def log_density(whitened: Array) -> Array:
        unconstrained = unravel(tuning.colour(whitened))
        parameters = model.constrain(unconstrained)
        log_prior = model.log_prior(parameters) + model.log_jacobian(unconstrained)
        return proper_density(log_prior + log_likelihood(parameters))

    return log_density


def initial_tuning(key: Key, model: Model, num_samples: int = 1_000) -> Tuning:
    """The whitening fitted to draws from the prior; the step size is 1.

    Parameters
    ----------
    key
        One typed key.
    model
        The model whose prior is drawn from.
    num_samples
        How many draws.

    Raises
    ------
    TypeError, ValueError
        If there is no typed key, the model's functions do not fit each other, or the number is not positive.

    Examples
    --------
    >>> from dpjax.data_augmentation.parameters.coordinates import initial_tuning
    >>> import jax, dpjax
    >>> prior = dpjax.models.NormalPrior(0.0, 2.0)
    >>> model = dpjax.models.normal(mean_prior=prior, variance=1.0)
    >>> initial_tuning(jax.random.key(1), model, 100).location.shape
    (1,)
    """
    check_key("key", key)
    check_model(model)
    check_count("num_samples", num_samples)
    return fit_to_prior(key, model, num_samples)


def fit_to_prior(key: Key, model: Model, num_samples: int = 1_000) -> Tuning:
    """As `initial_tuning`, of arguments that were checked."""
    return fit_tuning(model, draw_parameters(key, model, num_samples))


def check_tuning(model: Model, tuning: Any) -> Tuning:
    """The tuning, or an error unless it has the size of the model's parameters."""
    shapes = jax.eval_shape(partial(fit_to_prior, model=model), jax.eval_shape(jax.random.key, 0))
    expected = jax.tree.map(np.shape, shapes)
    if not isinstance(tuning, Tuning) or jax.tree.map(np.shape, tuning) != expected:
        given = f"shapes {jax.tree.map(np.shape, tuning)}" if isinstance(tuning, Tuning) else type(tuning).__name__
        remedy = "Pass the tuning of a run of this model, or leave it out."
        fail("tuning", given, f"a Tuning of shapes {tuple(expected)}", remedy, error=TypeError)
    return tuning


def fit_tuning(model: Model, parameters: Parameters, before: Tuning | None = None) -> Tuning:
    """The whitening by the mean and covariance of parameter draws with one leading axis [draws, ...]; step size 1.

    The covariance is shrunk a little towards its diagonal, so that few or constant draws still give a factor. That is
    the diagonal in the coordinates of the whitening before, if there is one, so that what this knows is kept.
    """
    if not parameters:
        return Tuning(jnp.zeros(0), jnp.zeros((0, 0)), jnp.ones(()))
    own = standardised(model)
    noncentred = None if own is None else fit_tuning(own, parameters)
    vectors = jax.vmap(lambda draw: to_vector(model, draw)[0])(parameters)
    count, size = vectors.shape
    mean = jnp.mean(vectors, axis=0)
    centred = vectors - mean[None]
    if before is not None:
        centred = jax.scipy.linalg.solve_triangular(before.factor, centred.T, lower=True).T
    covariance = product(centred.T, centred) / count
    weight = count / (count + 5.0 * size)
    diagonal = jnp.diag(jnp.diag(covariance) + 1e-6)
    factor = jnp.linalg.cholesky(weight * covariance + (1 - weight) * diagonal)
    if before is not None:
        factor = product(before.factor, factor)
    return Tuning(mean, SPREAD * factor, jnp.ones((), factor.dtype), noncentred)
