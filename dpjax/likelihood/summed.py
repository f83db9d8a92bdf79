"""The likelihood of values of single records, whose hidden fields are summed out: differentiated without imputation."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail
from dpjax.base import Array, Key, Model, Parameters
from dpjax.data_augmentation.summed_out import MarginalLikelihood, sum_out, sum_out_each
from dpjax.data_augmentation.summed_out.impossible import impossible_in_words
from dpjax.data_augmentation.summed_out.likelihood import MOST_LEFT_OUT, in_words, left_out_at
from dpjax.likelihood.surface import Moments, Surface, parameters_at
from dpjax.models.programs import jit_model
from dpjax.models.unconstrained import to_vector
from dpjax.numerics.linear_algebra import product
from dpjax.release import PrivateRelease
from dpjax.release.weights import weights_of

__all__ = ["Summed", "find_likely"]

WEIGHTED = "Records are weighted: intervals and tests of a pseudo-likelihood hold for equal weights alone."

NUM_DRAWN = 8
"""Sets of records from the model that tell the size of the information of complete data."""

NUM_CANDIDATES = 100
"""Draws from the prior, of which the most likely one is where the climb begins."""

TEMPERATURE = 4.0
"""The draws among which other starts are chosen are drawn by the likelihood to the power of its inverse."""

REACH = 4.0
"""How many standard errors from an estimate windows of whole numbers still leave next to nothing out."""

EXACT, EXACT_STEPS = 1e-3, 2**14
"""The length of the last step in standard errors, where none is a Monte Carlo error, and a count that allows for it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Summed(Surface):
    """The likelihood with what is hidden of each record summed out: a single group, without Monte Carlo error.

    Parameters
    ----------
    likelihood
        Of the release.
    """

    likelihood: MarginalLikelihood

    METHOD: ClassVar[str] = "records summed out"

    @property
    def is_exact(self) -> bool:
        """There is no Monte Carlo error."""
        return True

    @property
    def values(self) -> Any:
        """The likelihood, leaves [1, ...], as one of several."""
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], self.likelihood)

    def repeat(self, count: int) -> Any:
        """See `Surface`: one likelihood stands for all."""
        return self.values

    def settings(self, precision: float, num_steps: int) -> dict[str, Any]:
        """See `Surface`: steps cost no sweeps."""
        return {"precision": min(precision, EXACT), "num_steps": max(num_steps, EXACT_STEPS)}

    def evaluate(self, key: Key, values: Any, vectors: np.ndarray, chains: Any, length: int) -> tuple[Moments, Any]:
        """See `Surface`; `values` are likelihoods [release, ...], or one [1, ...] for all. There are no chains."""
        del key, length
        found = differentiate(self.model, values, jnp.asarray(vectors, float))
        moments = Moments(*(np.asarray(leaf, float)[:, None] for leaf in found))
        return moments.kept_where_finite(), chains

    def copy(self, chains: Any, count: int) -> Any:
        """See `Surface`; there are no chains."""
        del count
        return chains

    def simulate(self, key: Key, vector: np.ndarray, count: int) -> tuple[Any, Any]:
        """See `Surface`: the likelihoods of releases of new records."""
        at = jnp.asarray(vector, float)
        drawn = simulate_releases(self.model, count, key, self.release, at)
        releases = [jax.tree.map(lambda leaf, place=place: leaf[place], drawn) for place in range(count)]
        near = jax.tree.map(lambda leaf: leaf[None], parameters_at(self.model, at))
        return sum_out_each(self.model, releases, [near] * count), None

    def log_likelihood(self, vector: np.ndarray) -> tuple[float, float]:
        """The log-density of the release at a vector [k]; its Monte Carlo error is none."""
        return float(evaluate_at(self.model, self.likelihood, jnp.asarray(vector, float)[None])[0]), 0.0

    def fitted_around(self, vector: np.ndarray, steps: np.ndarray) -> "Summed | None":
        """See `Surface`."""
        if not self.likelihood.is_approximate:
            return None
        around = vector + REACH * np.concatenate([np.zeros_like(vector)[None], steps, -steps])
        near = all_at(self.model, around)
        if left_out_at(self.likelihood, near) <= MOST_LEFT_OUT:
            return None
        return replace(self, likelihood=sum_out(self.model, self.release, near))

    def remarks(self, vector: np.ndarray) -> tuple[str, ...]:
        """See `Surface`: what windows leave out."""
        share = left_out_at(self.likelihood, all_at(self.model, vector[None]))
        found = [f"{in_words(share)}: compare with method='imputation'."] * (share > MOST_LEFT_OUT)
        weighted = weights_of(self.model, self.release) is not None
        return (*found, *[WEIGHTED] * weighted)


def all_at(model: Model, vectors: np.ndarray) -> Parameters:
    """The parameters [m, ...] on their natural scale at unconstrained vectors [m, k]."""
    return jax.vmap(partial(parameters_at, model))(jnp.asarray(vectors, float))


@partial(jit_model, static_argnames=("count",))
def simulate_releases(model: Model, count: int, key: Key, release: PrivateRelease, vector: Array) -> PrivateRelease:
    """Releases of new records, drawn at a vector [k], leaves [count, ...]."""
    parameters = parameters_at(model, vector)

    def one(key: Key) -> PrivateRelease:
        record_key, release_key = jax.random.split(key)
        return release.sample(release_key, model.sample_records(record_key, parameters, release.n))

    drawn: PrivateRelease = jax.lax.map(one, jax.random.split(key, count))
    return drawn


@jit_model
def differentiate(model: Model, likelihoods: MarginalLikelihood, vectors: Array) -> Moments:
    """The derivatives [release, ...] at vectors [release, k] of likelihoods [release, ...], or of one [1, ...].

    The scale is that of the rows' own scores, and of the scores of records drawn from the model. Far from the maximum
    the curvature need not be positive. A direction of which no data say anything has none.
    """

    def one(likelihood: MarginalLikelihood, vector: Array) -> Moments:
        rows, terms, weights = likelihood.model, likelihood.terms.build(likelihood.model), likelihood.weights
        keys, at = jax.random.split(jax.random.key(0), NUM_DRAWN), parameters_at(model, vector)
        drawn = jax.vmap(lambda key: rows.sample_records(key, at, len(weights)))(keys)

        def of_rows(vector: Array) -> Array:
            return terms(parameters_at(model, vector))

        def of_drawn(vector: Array) -> Array:
            parameters = parameters_at(model, vector)
            return jax.vmap(lambda records: rows.log_density(parameters, records))(drawn)

        slope = jax.grad(lambda vector: jnp.sum(weights * of_rows(vector)))

        def along(direction: Array) -> tuple[Array, Array, Array]:
            return jax.jvp(lambda at: (of_rows(at), of_drawn(at), slope(at)), (vector,), (direction,))[1]

        # One direction after another: windows of many records take memory.
        own, complete, hessian = jax.lax.map(along, jnp.eye(vector.size, dtype=vector.dtype))
        score = product(own, weights)
        of_complete = jnp.nan_to_num(complete).reshape(len(complete), -1)
        repeated = jnp.tile(weights, NUM_DRAWN) / NUM_DRAWN
        scale = (product(own * weights[None], own.T) + product(of_complete * repeated[None], of_complete.T)) / 2
        return Moments(score, score[:, None] * score[None], -hessian, scale, jnp.zeros(()))

    if len(jax.tree.leaves(likelihoods)[0]) == len(vectors):
        return jax.lax.map(lambda given: one(*given), (likelihoods, vectors))
    alone = jax.tree.map(lambda leaf: leaf[0], likelihoods)
    return jax.lax.map(partial(one, alone), vectors)


@jit_model
def evaluate_at(model: Model, likelihood: MarginalLikelihood, vectors: Array) -> Array:
    """The log-likelihoods [m] at vectors [m, k]."""
    log_likelihood = likelihood.build()
    return jax.lax.map(lambda vector: log_likelihood(parameters_at(model, vector)), vectors)


def find_likely(key: Key, surface: Summed) -> np.ndarray:
    """Vectors [start, k] from the prior: the most likely one, and others that are likely.

    Raises
    ------
    ValueError
        If the likelihood is zero or undefined at all draws from the prior.
    """
    draw_key, choice_key = jax.random.split(key)
    vectors = draw_vectors.unoptimized(surface.model, draw_key)
    heights = np.asarray(evaluate_at.unoptimized(surface.model, surface.likelihood, vectors), float)
    heights = np.where(np.isnan(heights), -np.inf, heights)
    if not np.any(np.isfinite(heights)):
        given = f"a release of zero or undefined density at {NUM_CANDIDATES} draws from the prior"
        given += impossible_in_words(surface.model, surface.likelihood)
        remedy = "Check that the model can give such values. Or pass `initial` parameters."
        fail("release", given, "positive density at some", remedy)
    scores = heights / TEMPERATURE + np.asarray(jax.random.gumbel(choice_key, heights.shape))
    order = sorted(range(len(heights)), key=lambda place: -scores[place])
    likely = [place for place in order if np.isfinite(heights[place])][: NUM_CANDIDATES // 4]
    return np.asarray(vectors, float)[[int(np.argmax(heights)), *likely]]


@jit_model
def draw_vectors(model: Model, key: Key) -> Array:
    """Unconstrained vectors [m, k] from the prior."""
    keys = jax.random.split(key, NUM_CANDIDATES)
    return jax.vmap(lambda key: to_vector(model, model.sample_prior(key))[0])(keys)
