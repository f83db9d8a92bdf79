"""The affine step: parameters move together with the mean and scatter of the latent normals.

If sampling error is large compared with the noise of the release, the released sum nearly determines θ given the latent
normals u. The records nearly determine it in the centred step. Both then move θ by little. The mean ū and the factor B
of the scatter of u are independent of the standardised columns v = B⁻¹ (u − ū), so that

    p(θ, ū, B | v, s) ∝ p(θ) p(ū) p(B) η(s | Σ t(T(θ, ū + B v_i))),

and only v is fixed. It is the move of a group of transformations (Liu and Sabatti 2000), here the affine ones.
ū and B move in coordinates that are nearly independent of θ given s: partly non-centred ones (Papaspiliopoulos,
Roberts and Sköld 2003), according to the noise of the release.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.parameters.coordinates import (
    SPREAD,
    Tuning,
    build_log_density,
    noncentred_coordinates,
)
from dpjax.data_augmentation.parameters.interweaving import NUM_MOVES, InterweavingInfo, elliptical_moves, is_possible
from dpjax.mechanisms.base import parts_of
from dpjax.mechanisms.spread import simulated_variance
from dpjax.models.record_noise import has_real_fields, has_scores, num_rows, records_at, to_columns
from dpjax.models.unconstrained import to_vector
from dpjax.numerics import decision_uniforms, tree_where
from dpjax.numerics.linear_algebra import factorize, product, solve_lower
from dpjax.numerics.quadrature import Rule, make_rule
from dpjax.release import PrivateRelease, Release
from dpjax.release.summed import noisy_sum_of
from dpjax.release.unknown_count import is_unknown

MIN_RECORDS = 1_000
"""Smallest number of records from which the affine step is used: with fewer, fixed noise is more efficient."""

RECORDS_PER_COORDINATE = 100
"""Smallest number of records per coordinate of the frame, each of which costs a derivative of the sum."""

SURROGATE_MOVES = 4
"""Number of elliptical moves by surrogate between two evaluations at the records."""

__all__ = ["Sums", "build_sums", "find_frame", "log_density", "num_coordinates", "to_coordinates", "to_frame"]

Sums = Callable[[Parameters, Array], Array]
"""``(parameters, coordinates [m] of a frame) -> [d]``."""

MIN_NODES, MAX_NODES = 512, 4_096
RECORDS_PER_NODE = 32
"""Records per node, so that all evaluations at the nodes cost about as much as one at the records."""


def can_move_noise(model: Model, release: PrivateRelease) -> bool:
    """Whether there is an affine step: for identically distributed records and a sum with real noise."""
    summed = noisy_sum_of(release)
    if summed is None or is_unknown(summed):
        return False
    if not has_scores(model) or not model.exchangeable or release.n <= num_rows(model) + 1:
        return False
    parts = [part for part, _ in parts_of(summed.mechanism, summed.value.size)]
    return all(part._innermost.noise is not None and not part.integer_noise for part in parts)


def should_move_noise(model: Model, release: PrivateRelease) -> bool:
    """Whether there is an affine step: enough records for it to help, and a real field, so that sums have slopes."""
    if not can_move_noise(model, release) or not has_real_fields(model):
        return False
    return release.n >= max(MIN_RECORDS, RECORDS_PER_COORDINATE * num_coordinates(num_rows(model)))


class FrameApproximation(NamedTuple):
    """The Normal approximation of the frame's coordinates given parameters and value, for a sum linear in them.

    Attributes
    ----------
    sums
        The released sum; see `build_sums`.
    value
        The released value [d].
    gain
        The map from a residual of the value to the coordinates [m, d].
    root
        The lower factor of the precision [m, m].
    """

    sums: Sums
    value: Array
    gain: Array
    root: Array

    def centre(self, parameters: Parameters) -> Array:
        """The mean [m]."""
        return product(self.gain, self.value - self.sums(parameters, jnp.zeros(len(self.gain), self.gain.dtype)))

    def colour(self, parameters: Parameters, whitened: Array) -> Array:
        """The coordinates [m] at whitened ones."""
        return self.centre(parameters) + SPREAD * solve_triangular(self.root, whitened, lower=True, trans="T")

    def whiten(self, parameters: Parameters, coordinates: Array) -> Array:
        """The whitened coordinates [m]."""
        return product(self.root.T, coordinates - self.centre(parameters)) / SPREAD


def approximate_frame(
    release: Release, sums: Sums, variance: Array, reference: Parameters, size: int
) -> FrameApproximation:
    """The approximation with the sum's slopes at reference parameters; the prior of the frame if not finite."""
    slopes = jax.jacfwd(partial(sums, reference))(jnp.zeros(size, variance.dtype))
    scaled = slopes / variance[:, None]
    root = jnp.linalg.cholesky(jnp.eye(size, dtype=variance.dtype) + product(slopes.T, scaled))
    gain = cho_solve((root, True), scaled.T)
    finite = jnp.all(jnp.isfinite(gain)) & jnp.all(jnp.isfinite(root))
    eye = jnp.eye(size, dtype=variance.dtype)
    return FrameApproximation(sums, release.value, jnp.where(finite, gain, 0.0), jnp.where(finite, root, eye))


class Space(NamedTuple):
    """The space of the moves: vectors of p whitened parameters and m whitened coordinates of the frame.

    Attributes
    ----------
    model
        The model with the coordinates of its non-centred step.
    tuning
        Their whitening.
    unravel
        The map from vectors [p] to unconstrained parameters.
    approximation
        The Normal approximation that whitens the frame's coordinates.
    """

    model: Model
    tuning: Tuning
    unravel: Callable[[Array], Parameters]
    approximation: FrameApproximation

    def vector(self, parameters: Parameters, coordinates: Array) -> Array:
        """The vector [p + m]."""
        own, _ = to_vector(self.model, parameters)
        return jnp.concatenate([self.tuning.whiten(own), self.approximation.whiten(parameters, coordinates)])

    def split(self, vector: Array) -> tuple[Parameters, Array]:
        """The parameters, and the coordinates [m] of the frame."""
        size = self.tuning.location.size
        parameters = self.model.constrain(self.unravel(self.tuning.colour(vector[:size])))
        return parameters, self.approximation.colour(parameters, vector[size:])

    def log_density(self, log_likelihood: Callable[[Parameters, Array], Array]) -> Callable[[Array], Array]:
        """The log-density [] of vectors under the prior times a likelihood of parameters and coordinates."""
        size = self.tuning.location.size

        def log_density(vector: Array) -> Array:
            def likelihood(parameters: Parameters) -> Array:
                return log_likelihood(parameters, self.approximation.colour(parameters, vector[size:]))

            return build_log_density(self.model, self.tuning, self.unravel, likelihood)(vector[:size])

        return log_density


def build_affine_step(
    model: Model, release: Release, by_surrogate: bool
) -> Callable[[Key, Parameters, Records, Tuning], tuple[Parameters, Records, InterweavingInfo]]:
    """The step ``(rng_key, parameters, records, tuning) -> (parameters, records, info)``.

    It leaves p(parameters, records | release) invariant and moves both.

    Parameters
    ----------
    by_surrogate
        Whether the moves use the sum by quadrature instead of that of the records. They are accepted together with a
        correction for the difference (Christen and Fox 2005). The records are then evaluated once, and not at every
        move.
    """
    k, n = num_rows(model), release.n
    sums, variance = build_sums(model, release), noise_variance(release)
    num_moves = SURROGATE_MOVES if by_surrogate else NUM_MOVES

    def step(
        rng_key: Key, parameters: Parameters, records: Records, tuning: Tuning
    ) -> tuple[Parameters, Records, InterweavingInfo]:
        noise_key, move_key, decision_key = jax.random.split(rng_key, 3)
        own, whitening = noncentred_coordinates(model, tuning)
        _, unravel = to_vector(own, parameters)
        reference = own.constrain(unravel(whitening.location))
        space = Space(
            own, whitening, unravel, approximate_frame(release, sums, variance, reference, num_coordinates(k))
        )
        columns = to_columns(model, noise_key, parameters, records)
        frame = find_frame(columns)
        standardised = frame.standardise(columns)

        def place(parameters: Parameters, coordinates: Array) -> Records:
            return records_at(model, parameters, to_frame(coordinates, k, n).place(standardised))

        def exact(parameters: Parameters, coordinates: Array) -> Array:
            return release.log_likelihood(place(parameters, coordinates))

        likelihood = build_surrogate(release, space.approximation, place, reference) if by_surrogate else exact

        def log_likelihood(parameters: Parameters, coordinates: Array) -> Array:
            return log_density(coordinates, k, n) + likelihood(parameters, coordinates)

        old = (parameters, to_coordinates(frame, n))
        start, state, info = elliptical_moves(
            move_key, space.log_density(log_likelihood), space.vector(*old), num_moves
        )
        new = space.split(state.position)
        again = place(*new)
        finite = jnp.isfinite(start.logdensity) & is_possible(model, new[0], again)
        accepted = finite
        if by_surrogate:
            log_ratio = release.log_likelihood(again) - likelihood(*new)
            log_ratio -= release.log_likelihood(records) - likelihood(*old)
            accepted &= jnp.log(decision_uniforms(decision_key, ())) < log_ratio
        report = InterweavingInfo(jnp.sum(info.num_shrink), jnp.all(info.is_accepted) & accepted, (~finite).astype(int))
        return tree_where(accepted, new[0], parameters), tree_where(accepted, again, records), report

    return step


def build_surrogate(
    release: Release,
    approximation: FrameApproximation,
    place: Callable[[Parameters, Array], Records],
    reference: Parameters,
) -> Callable[[Parameters, Array], Array]:
    """The log-density [] of the value by quadrature, which is exact at reference parameters and the frame there.

    The difference there is added everywhere: it depends on the standardised columns alone, so that the surrogate is the
    same before and after a move.
    """
    there = approximation.centre(reference)
    offset = release.total(place(reference, there)) - approximation.sums(reference, there)
    return lambda parameters, coordinates: release.log_density(offset + approximation.sums(parameters, coordinates))


def build_sums(model: Model, release: Release) -> Sums:
    """The sum of the statistic over n records whose noise has a given frame and is otherwise as Normal noise is.

    The nodes have mean 0 and unit covariance. So the sum is that of the records themselves if a statistic is a
    polynomial of at most second degree in their latent normals.
    """
    k, n = num_rows(model), release.n
    nodes, weights = standard_rule(k, n)

    def sums(parameters: Parameters, coordinates: Array) -> Array:
        columns = to_frame(coordinates, k, n).place(nodes)
        return n * product(release.contributions(records_at(model, parameters, columns)), weights)

    return sums


def standard_rule(k: int, n: int) -> Rule:
    """Nodes [k, q] and weights [q] of mean 0 and unit covariance, more of them the more records there are."""
    with jax.ensure_compile_time_eval():
        nodes, weights = make_rule(jax.random.key(0), k, min(max(n // RECORDS_PER_NODE, MIN_NODES), MAX_NODES))
        mean = product(nodes, weights)
        spread = nodes - mean[:, None]
        return Rule(Frame(mean, factorize(product(spread * weights[None], spread.T))).standardise(nodes), weights)


def noise_variance(release: Release) -> Array:
    """The variances [d] of Normal noise as wide as the release's."""
    parts = parts_of(release.mechanism, release.value.size)
    keys = jax.random.split(jax.random.key(0), len(parts))
    pairs = zip(keys, parts, strict=True)
    return jnp.concatenate([simulated_variance(key, part, release.value[where]) for key, (part, where) in pairs])


class Frame(NamedTuple):
    """The mean [k] of columns, and the lower factor [k, k] of their scatter over n."""

    mean: Array
    factor: Array

    def standardise(self, columns: Array) -> Array:
        """The columns [k, n] less the mean, by the inverse factor."""
        return solve_lower(self.factor, columns - self.mean[:, None])

    def place(self, standardised: Array) -> Array:
        """The columns [k, n] with this frame, of standardised ones."""
        return self.mean[:, None] + product(self.factor, standardised)


def num_coordinates(k: int) -> int:
    """How many numbers a frame of k rows has."""
    return k * (k + 3) // 2


def find_frame(columns: Array) -> Frame:
    """The frame of columns [k, n]; not a number unless n > k."""
    mean = jnp.mean(columns, axis=1)
    spread = columns - mean[:, None]
    return Frame(mean, factorize(product(spread, spread.T) / columns.shape[1]))


def to_coordinates(frame: Frame, n: int) -> Array:
    """The frame of n standard Normal columns as numbers [m] that are nearly standard Normal, and free of each other."""
    k = frame.mean.size
    roots = jnp.diagonal(frame.factor) * jnp.sqrt(n / freedom(k, n))
    below = frame.factor[jnp.tril_indices(k, -1)]
    scale = jnp.sqrt(jnp.asarray(n, below.dtype))
    return jnp.concatenate([scale * frame.mean, scale * below, jnp.sqrt(2 * freedom(k, n)) * jnp.log(roots)])


def to_frame(coordinates: Array, k: int, n: int) -> Frame:
    """The frame [k, k] at coordinates [m]."""
    mean, below, logarithms = jnp.split(coordinates, [k, num_coordinates(k) - k])
    diagonal = jnp.sqrt(freedom(k, n) / n) * jnp.exp(logarithms / jnp.sqrt(2 * freedom(k, n)))
    scale = jnp.sqrt(jnp.asarray(n, below.dtype))
    return Frame(mean / scale, jnp.diag(diagonal).at[jnp.tril_indices(k, -1)].set(below / scale))


def log_density(coordinates: Array, k: int, n: int) -> Array:
    """The log-density [] of the coordinates [m] of n standard Normal columns [k], less its value at 0."""
    normal, logarithms = jnp.split(coordinates, [num_coordinates(k) - k])
    ratios = logarithms / jnp.sqrt(2 * freedom(k, n))
    return -jnp.sum(normal**2) / 2 + jnp.sum(freedom(k, n) * (ratios - jnp.expm1(2 * ratios) / 2))


def freedom(k: int, n: int) -> Array:
    """The degrees of freedom [k] of the squared diagonal."""
    return n - 1.0 - jnp.arange(k, dtype=float)
