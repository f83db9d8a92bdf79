"""Positions and states of chains, and their simulation from a model."""

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Latent, Model, Parameters, Records
from dpjax.diagnostics.warnings import never_change
from dpjax.mechanisms.spread import width
from dpjax.models.programs import jit_model
from dpjax.release import PrivateRelease
from dpjax.release.summed import noisy_sum_of

NOISE_DRAWS = 64
"""Number of draws for estimating the size of a mechanism's noise."""

PRIOR_DRAWS = 16
"""Number of draws that tell which numbers vary under the prior."""

BATCH_BYTES = 2**26
"""Largest memory of the records in one batch of simulations."""


class Position(NamedTuple):
    """The position of a chain: its parameters and records.

    Attributes
    ----------
    parameters
        On their natural scale.
    records
        Each field with leading axis [n].

    Examples
    --------
    >>> from dpjax.models.simulation import Position
    >>> import jax.numpy as jnp
    >>> Position({"mean": jnp.zeros(())}, {"y": jnp.zeros(10)}).records["y"].shape
    (10,)
    """

    parameters: Parameters
    records: Records


class GibbsState(NamedTuple):
    """The state of a Gibbs sampler: the parameters and the latent state of the imputation.

    Attributes
    ----------
    parameters
        On their natural scale.
    latent
        The state of the imputation.

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> algorithm = dpjax.gibbs(model, release, tuning=dpjax.data_augmentation.initial_tuning(jax.random.key(1), model))
    >>> state = algorithm.init(dpjax.data_augmentation.Position({"mean": 1.0}, {"y": jax.numpy.ones(10)}))
    >>> float(state.latent.statistic[0])
    10.0
    """

    parameters: Parameters
    latent: Latent


def init_latent(release: PrivateRelease, records: Records) -> Latent:
    """The latent state at given records [n, ...]: their summed statistic and the log-density of the release."""
    return Latent(records, *release.total_and_density(records))


def init_state(release: PrivateRelease, position: Position) -> GibbsState:
    """The state at a position."""
    return GibbsState(position.parameters, init_latent(release, position.records))


@partial(jit_model, static_argnames=("num_draws",))
def draw_parameters(key: Key, model: Model, num_draws: int) -> Parameters:
    """Parameters [draw, ...] from the prior."""
    return jax.vmap(model.sample_prior)(jax.random.split(key, num_draws))


def draw_position(key: Key, model: Model, n: int) -> Position:
    """A draw of parameters from the prior and of n records from the model."""
    parameter_key, record_key = jax.random.split(key)
    return draw_position_at(record_key, model, model.sample_prior(parameter_key), n)


def draw_position_at(key: Key, model: Model, parameters: Parameters, n: int) -> Position:
    """A position with given parameters and n records drawn from the model."""
    position = Position(parameters, model.sample_records(key, parameters, n))
    # Weak types, which counts of NumPyro have, would make another program for arrays of the same shapes.
    return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, jnp.result_type(leaf)), position)


def draw_state(key: Key, model: Model, release: PrivateRelease) -> GibbsState:
    """The state of a chain with parameters from the prior and records from the model."""
    return init_state(release, draw_position(key, model, release.n))


def draw_values(key: Key, model: Model, release: PrivateRelease, parameters: Parameters, num_draws: int) -> np.ndarray:
    """Released values [draw, ...] of new records, for parameters [draw, ...]; draw k uses ``fold_in(key, k)``."""
    batch = min(batch_size(model, release), num_draws)
    return np.asarray(draw_batches(model, batch, key, release, np.arange(num_draws), parameters))


@partial(jit_model, static_argnames=("n",))
def some_records(model: Model, n: int) -> Records:
    """Some records of the model [n], which have its known covariates in their places."""
    return draw_position(jax.random.key(0), model, n).records


@partial(jit_model, static_argnames=("batch",))
def draw_batches(
    model: Model, batch: int, key: Key, release: PrivateRelease, numbers: Array, parameters: Parameters
) -> Array:
    """The values of `draw_values`, `batch` at a time."""

    def draw(given: tuple[Array, Parameters]) -> Array:
        number, parameters = given
        record_key, release_key = jax.random.split(jax.random.fold_in(key, number))
        return release.sample(release_key, model.sample_records(record_key, parameters, release.n)).observed

    return jax.lax.map(draw, (numbers, parameters), batch_size=batch)


def noise_size(key: Key, release: PrivateRelease) -> Array:
    """The mean absolute noise [d] of the mechanism, by simulation if possible; 1 if there is no noise."""
    summed = noisy_sum_of(release)
    if summed is None:
        return jnp.ones(())

    def mean_size(values: Array) -> Array:
        size = jnp.mean(jnp.abs(values - summed.observed[None]), axis=0)
        return jnp.where(jnp.isfinite(size) & (size > 0), size, 1.0)

    return width(key, summed.mechanism, summed.observed, mean_size, NOISE_DRAWS)


def parameter_shapes(model: Model) -> Parameters:
    """Shapes and dtypes of the parameters."""
    return jax.eval_shape(model.sample_prior, jax.eval_shape(jax.random.key, 0))


def position_shapes(model: Model, n: int) -> Position:
    """Shapes and dtypes of the parameters and of n records."""
    return jax.eval_shape(partial(draw_position, model=model, n=n), jax.eval_shape(jax.random.key, 0))


def batch_size(model: Model, release: PrivateRelease) -> int:
    """The number of sets of n records, with their statistics, that fit the memory of one batch."""

    def one_record(key: Key) -> Any:
        records = draw_position(key, model, 1).records
        return records, release.contributions(records)

    leaves = jax.tree.leaves(jax.eval_shape(one_record, jax.eval_shape(jax.random.key, 0)))
    record_bytes = sum(prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
    return max(1, BATCH_BYTES // (release.n * max(record_bytes, 1)))


def free_numbers(model: Model, draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Which numbers [...] of each parameter vary under the prior; an empty dict if all of them vary in the draws.

    Derived and reported quantities may be fixed by the release, and are left out.
    """
    names = [name for name in parameter_shapes(model) if name in draws]
    if not any(np.any(never_change(draws[name])) for name in names):
        return {}
    prior = draw_parameters.unoptimized(jax.random.key(0), model, PRIOR_DRAWS)
    return {name: ~never_change(np.asarray(prior[name])[None]) for name in names}
