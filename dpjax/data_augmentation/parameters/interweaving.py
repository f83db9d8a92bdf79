"""The non-centred step that interweaving adds to the centred one (Yu and Meng 2011).

Write x = T(θ, u) with noise u of density g(u | θ), free of θ if it can be. Holding u fixed, θ has density
∝ p(θ) g(u | θ) η(s | T(θ, u)), and moving θ moves the records with it. The centred step is slow if the records
determine θ almost exactly; this one does not condition on the records.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from blackjax.mcmc.slice import SliceInfo, SliceState

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.parameters.centred import build_log_likelihood
from dpjax.data_augmentation.parameters.coordinates import Tuning, build_log_density, noncentred_coordinates
from dpjax.data_augmentation.parameters.kernels import elliptical_slice
from dpjax.data_augmentation.records.local import choose_candidates, count_doublings, draw_windows, log_weights
from dpjax.data_augmentation.records.microdata import find_levels
from dpjax.models.record_noise import weigh_noise
from dpjax.models.unconstrained import to_vector
from dpjax.numerics import all_finite, tree_where
from dpjax.release import LocalRelease, Microdata, PrivateRelease, Release
from dpjax.release.summed import finite_total, one_sum_of

NUM_MOVES = 2
"""Number of elliptical moves per sweep: a second one takes little time beside the imputation and helps."""


class InterweavingInfo(NamedTuple):
    """What the non-centred step reports.

    Attributes
    ----------
    num_shrink
        Density evaluations of the elliptical moves [].
    is_accepted
        Whether every move found a point within its bound on shrinking [].
    num_nonfinite
        Whether the step was undone, because a density, parameter or record was not finite, int [].
    """

    num_shrink: Array
    is_accepted: Array
    num_nonfinite: Array


def build_interweaving_step(
    model: Model, release: PrivateRelease
) -> Callable[[Key, Parameters, Records, Tuning], tuple[Parameters, Records, InterweavingInfo]]:
    """The step ``(rng_key, parameters, records, tuning) -> (parameters, records, info)``.

    It leaves p(parameters, records | release) invariant and moves both. If the noise gives non-finite or impossible
    records, neither changes.
    """
    noise_of, records_of = model.noncentred[:2]

    def step(
        rng_key: Key, parameters: Parameters, records: Records, tuning: Tuning
    ) -> tuple[Parameters, Records, InterweavingInfo]:
        noise_key, move_key = jax.random.split(rng_key)
        noise = noise_of(noise_key, parameters, records)
        own, whitening = noncentred_coordinates(model, tuning)
        vector, unravel = to_vector(own, parameters)
        log_likelihood = likelihood_of_noise(model, release, noise)
        log_density = build_log_density(own, whitening, unravel, log_likelihood)
        start, state, info = elliptical_moves(move_key, log_density, whitening.whiten(vector))
        moved = own.constrain(unravel(whitening.colour(state.position)))
        again = records_of(moved, noise)
        finite = jnp.isfinite(start.logdensity) & is_possible(model, moved, again)
        return tree_where(finite, moved, parameters), tree_where(finite, again, records), make_report(info, finite)

    return step


def likelihood_of_noise(model: Model, release: PrivateRelease, noise: Any) -> Callable[[Parameters], Array]:
    """The log-density [] of the value and of the noise, as a function of the parameters.

    By a sum of the form's own if it has one, and else by the records.
    """
    form = model.noncentred
    summed = one_sum_of(release)
    if form.sums is not None and form.log_density is None and summed is not None:
        return likelihood_of_sum(summed, form.sums(noise))

    def log_likelihood(parameters: Parameters) -> Array:
        value, finite = density_and_finite(release, form.records(parameters, noise))
        log_noise, possible = weigh_noise(form, parameters, noise)
        return jnp.where(finite & possible, value + log_noise, -jnp.inf)

    return log_likelihood


def density_and_finite(release: PrivateRelease, records: Records) -> tuple[Array, Array]:
    """The log-density [] of the value given the records, and whether all their numbers are finite []."""
    summed = one_sum_of(release)
    if summed is None:
        return release.log_likelihood(records), all_finite(records)
    total, finite = finite_total(summed, records)
    return summed.log_density(total), finite


def likelihood_of_sum(
    release: Release, sum_at: Callable[[Parameters, Callable[[Records], Array]], tuple[Array, Array]]
) -> Callable[[Parameters], Array]:
    """The log-density [] of the value as a function of the parameters, by a sum of the records that they give."""

    def log_likelihood(parameters: Parameters) -> Array:
        total, possible = sum_at(parameters, release.contributions)
        return jnp.where(possible, release.log_density(total), -jnp.inf)

    return log_likelihood


def is_possible(model: Model, parameters: Parameters, records: Records) -> Array:
    """Whether all numbers are finite, and the records have positive density given the parameters []."""
    density = build_log_likelihood(model, records)(parameters)
    return all_finite((parameters, records)) & jnp.isfinite(density)


def elliptical_moves(
    key: Key, log_density: Callable[[Array], Array], position: Array, num_moves: int = NUM_MOVES
) -> tuple[SliceState, SliceState, SliceInfo]:
    """The states before and after elliptical moves of a whitened vector [k], and reports [move]."""
    algorithm = elliptical_slice(log_density)
    start = algorithm.init(position)

    def move(state: SliceState, index: Array) -> tuple[SliceState, SliceInfo]:
        return algorithm.step(jax.random.fold_in(key, index), state)

    state, info = jax.lax.scan(move, start, jnp.arange(num_moves))
    return start, state, info


def make_report(info: SliceInfo, finite: Array) -> InterweavingInfo:
    """The report of some moves, which were undone unless all was finite []."""
    return InterweavingInfo(jnp.sum(info.num_shrink), jnp.all(info.is_accepted), (~finite).astype(int))


def build_summed_step(
    model: Model, release: LocalRelease
) -> Callable[[Key, Parameters, Records, Tuning], tuple[Parameters, Records, InterweavingInfo]]:
    """The step ``(rng_key, parameters, records, tuning) -> (parameters, records, info)``.

    It leaves p(parameters, records | release) invariant. Each record draws a random window of consecutive values around
    its own. Given the windows, elliptical slice moves change the parameters with the records summed out. Then the
    records are drawn given the parameters. It takes the place of the non-centred step, which for counts would have to
    invert a distribution function at every move.
    """
    doublings = count_doublings(release)

    def step(
        rng_key: Key, parameters: Parameters, records: Records, tuning: Tuning
    ) -> tuple[Parameters, Records, InterweavingInfo]:
        window_key, move_key, choice_key = jax.random.split(rng_key, 3)
        windows = draw_windows(window_key, release, records, doublings)

        def weigh(moved: Parameters) -> Array:
            return log_weights(model, release, windows, moved, records)

        moved, finite, info = move_summed(move_key, model, tuning, parameters, weigh)
        again = records | {release.field: choose_candidates(choice_key, windows, weigh(moved))}
        return tree_where(finite, moved, parameters), tree_where(finite, again, records), make_report(info, finite)

    return step


def build_enumerated_step(
    model: Model, release: Microdata, values: Records
) -> Callable[[Key, Parameters, Records, Tuning], tuple[Parameters, Records, InterweavingInfo]]:
    """The step ``(rng_key, parameters, records, tuning) -> (parameters, records, info)``.

    It leaves p(parameters, records | release) invariant: elliptical slice moves of the parameters with the hidden
    fields summed over their possible values [c], then these drawn given the parameters.
    """
    levels = find_levels(release, values)

    def step(
        rng_key: Key, parameters: Parameters, records: Records, tuning: Tuning
    ) -> tuple[Parameters, Records, InterweavingInfo]:
        move_key, choice_key = jax.random.split(rng_key)

        def weigh(moved: Parameters) -> Array:
            return levels.log_weights(model, moved, records)

        moved, finite, info = move_summed(move_key, model, tuning, parameters, weigh)
        again = levels.choose(choice_key, weigh(moved), records).records
        return tree_where(finite, moved, parameters), tree_where(finite, again, records), make_report(info, finite)

    return step


def build_standardised_step(
    model: Model, log_likelihood: Callable[[Parameters], Array]
) -> Callable[[Key, Parameters, Tuning], Parameters] | None:
    """The step ``(rng_key, parameters, tuning) -> parameters`` in standardised coordinates; None if there are none.

    It leaves the prior times the likelihood invariant. Group effects on their own scale hold their standard deviation
    where it is near zero, and standardised ones do not.
    """
    if not model.has("noncentred") or model.noncentred.coordinates is None:
        return None

    def step(rng_key: Key, parameters: Parameters, tuning: Tuning) -> Parameters:
        moved, finite, _ = move_standardised(rng_key, model, tuning, parameters, log_likelihood)
        return tree_where(finite, moved, parameters)

    return step


def move_summed(
    key: Key, model: Model, tuning: Tuning, parameters: Parameters, log_weights: Callable[[Parameters], Array]
) -> tuple[Parameters, Array, SliceInfo]:
    """The move of `move_standardised` with each record summed over its candidates, by their weights [c, n]."""

    def log_likelihood(moved: Parameters) -> Array:
        return jnp.sum(jax.scipy.special.logsumexp(log_weights(moved), axis=0))

    return move_standardised(key, model, tuning, parameters, log_likelihood)


def move_standardised(
    key: Key, model: Model, tuning: Tuning, parameters: Parameters, log_likelihood: Callable[[Parameters], Array]
) -> tuple[Parameters, Array, SliceInfo]:
    """Parameters after elliptical moves in the coordinates of the non-centred step, under a likelihood.

    Also whether the density was finite before and the parameters are after [], and the reports.
    """
    own, whitening = noncentred_coordinates(model, tuning)
    vector, unravel = to_vector(own, parameters)
    log_density = build_log_density(own, whitening, unravel, log_likelihood)
    start, state, info = elliptical_moves(key, log_density, whitening.whiten(vector))
    moved = own.constrain(unravel(whitening.colour(state.position)))
    return moved, jnp.isfinite(start.logdensity) & all_finite(moved), info
