"""Intervals of weighted records as wide as their estimates vary from sample to sample, by a linear map of the draws."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_no_gaps, fail
from dpjax._util.words import quantity
from dpjax.base import Array, Model, Parameters
from dpjax.data_augmentation.summed_out import MarginalLikelihood, sum_out
from dpjax.models.programs import jit_model
from dpjax.models.simulation import parameter_shapes
from dpjax.models.unconstrained import to_vector
from dpjax.posterior.pointwise import obstacle_to_units
from dpjax.posterior.reports import SANDWICH
from dpjax.release.weights import weights_of

if TYPE_CHECKING:
    from dpjax.posterior.posterior import Posterior

__all__ = ["corrected"]


def corrected(posterior: "Posterior", strata: Any, clusters: Any) -> "Posterior":
    """The posterior with its draws spread as `Posterior.sandwich` describes it."""
    model, release = posterior.model, posterior.release
    if SANDWICH in posterior.settings:
        fail("posterior", "one that is corrected already", "draws as they were made", "Correct it once.")
    if release.is_estimated:
        fail("posterior", "one of noise that is not known", "known noise", "Pass the numbers of the noise.")
    if obstacle := obstacle_to_units(model, release):
        obstacle.refuse()
    own = {name: posterior.draws[name] for name in parameter_shapes(model)}
    shape = posterior.info["acceptance_rate"].shape
    flat = {name: leaf.reshape(-1, *leaf.shape[2:]) for name, leaf in own.items()}
    vectors = np.asarray(vectors_of(model, flat), float)
    centre = np.mean(vectors, axis=0)
    likelihood = sum_out(model, release, {name: leaf[:: -(-len(vectors) // 128)] for name, leaf in flat.items()})
    found = slopes_at(model, likelihood, jnp.asarray(centre, float))
    rows, curvature, of_prior = (np.asarray(leaf, float) for leaf in found)
    weights = weights_of(model, release)
    scores = rows[np.asarray(likelihood.rows)] * (1.0 if weights is None else np.asarray(weights, float)[:, None])
    variance, design = variance_of_sum(scores, strata, clusters)
    # The prior is known as well as it says: it adds the same to both, so that what no record knows stays as it is.
    levels, axes = np.linalg.eigh(of_prior)
    inverse = np.linalg.inv(curvature)
    try:
        narrow = np.linalg.cholesky((inverse + inverse.T) / 2)
        wide = np.linalg.cholesky(inverse @ (variance + axes * np.maximum(levels, 0) @ axes.T) @ inverse.T)
    except np.linalg.LinAlgError:
        given = "a log-density that is not concave at the mean of the draws, or scores that leave a direction unknown"
        remedy = "Draw more, or pass fewer parameters or more clusters."
        fail("posterior", given, "draws about one mode of scores in all directions", remedy)
    moved = centre + (vectors - centre) @ np.linalg.solve(narrow.T, wide.T)
    draws = jax.device_get(parameters_of(model, jnp.asarray(moved, float)))
    kept = {name: draws[name].reshape(*shape, *draws[name].shape[1:]) for name in posterior.draws if name in draws}
    settings = {**posterior.settings, SANDWICH: f"intervals corrected by a sandwich, by {design}"}
    return replace(posterior, draws=kept, settings=settings)


def variance_of_sum(scores: np.ndarray, strata: Any, clusters: Any) -> tuple[np.ndarray, str]:
    """The variance [k, k] of the sum of scores [n, k] over samples of clusters from strata, and by what it is."""
    n = len(scores)
    stratum = np.zeros(n, int) if strata is None else places_of("strata", strata, n)
    cluster = np.arange(n) if clusters is None else places_of("clusters", clusters, n)
    # Clusters of one name in two strata are two.
    pairs, place = np.unique(np.stack([stratum, cluster]), axis=1, return_inverse=True)
    sums = np.zeros((pairs.shape[1], scores.shape[1]))
    np.add.at(sums, place.reshape(-1), scores)
    total = np.zeros((scores.shape[1], scores.shape[1]))
    for one in np.unique(pairs[0]):
        inside = sums[pairs[0] == one]
        if len(inside) < 2:
            given, remedy = "a stratum of one cluster, whose variance is not known", "Merge it with another stratum."
            fail("strata", given, "at least two clusters in each stratum", remedy)
        total += len(inside) * np.cov(inside.T, ddof=1)
    words = quantity(len(sums), "record" if clusters is None else "cluster")
    return total, words if strata is None else f"{words} in {len(np.unique(stratum))} strata"


def places_of(argument: str, names: Any, n: int) -> np.ndarray:
    """The number of each record's stratum or cluster [n], by names, or an error."""
    array, remedy = np.asarray(names), "Pass a column of the data."
    if array.shape != (n,):
        fail(argument, f"shape {list(array.shape)}", f"shape [{n}], one for each record", remedy)
    check_no_gaps(argument, array, remedy)
    places: dict[Any, int] = {}
    return np.array([places.setdefault(name, len(places)) for name in array.tolist()])


@jit_model
def vectors_of(model: Model, draws: Parameters) -> Array:
    """The unconstrained vectors [draw, k] of parameters [draw, ...]."""
    return jax.vmap(lambda parameters: to_vector(model, parameters)[0])(draws)


@jit_model
def parameters_of(model: Model, vectors: Array) -> Parameters:
    """Parameters and derived quantities [draw, ...] at unconstrained vectors [draw, k]."""

    def at(vector: Array) -> Parameters:
        parameters = from_vector(model, vector)[0]
        return {**parameters, **model.derived(parameters)}

    return jax.vmap(at)(vectors)


def from_vector(model: Model, vector: Array) -> tuple[Parameters, Array]:
    """The parameters at an unconstrained vector, and the log-density [] of their prior there."""
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), parameter_shapes(model))
    unconstrained = to_vector(model, zeros)[1](vector)
    parameters = model.constrain(unconstrained)
    return parameters, model.log_prior(parameters) + model.log_jacobian(unconstrained)


@jit_model
def slopes_at(model: Model, likelihood: MarginalLikelihood, vector: Array) -> tuple[Array, Array, Array]:
    """The scores [row, k] of the rows, and the negative curvatures [k, k] of the log-posterior and of the log-prior."""
    terms, weights = likelihood.terms.build(likelihood.model), likelihood.weights

    def of_rows(vector: Array) -> Array:
        return terms(from_vector(model, vector)[0])

    def log_prior(vector: Array) -> Array:
        return from_vector(model, vector)[1]

    of_prior = -jax.hessian(log_prior)(vector)
    of_data = -jax.hessian(lambda at: jnp.sum(weights * of_rows(at)))(vector)
    return jax.jacfwd(of_rows)(vector), of_data + of_prior, of_prior
