"""The non-centred step where the number of records is unknown: the number is summed out.

If no sum tells the number, it trades off against the parameters: many small records and few large ones have the same
sums. Moves of the number given the parameters, and of these given the number, then go along that ridge in short steps.
Let u hold the noise of all N rows, real or not, and C_n(θ, u) the sum over the first n of the records that θ and u
give. With u held

    p(θ | u, s) ∝ p(θ) g(u | θ) Σ_n p(n) η(s | C_n(θ, u)),

and n given the rest has the probabilities of the terms. The sums for all n are the running sums of one pass.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Parameters, Records
from dpjax.data_augmentation.parameters.coordinates import Tuning, build_log_density, noncentred_coordinates
from dpjax.data_augmentation.parameters.interweaving import (
    InterweavingInfo,
    elliptical_moves,
    is_possible,
    make_report,
)
from dpjax.data_augmentation.records.births import contributions_of, design_of, first
from dpjax.data_augmentation.records.unknown_number import log_probabilities
from dpjax.models.data_sets import NUMBER, DataSetsModel, split
from dpjax.models.record_noise import weigh_noise
from dpjax.models.unconstrained import to_vector
from dpjax.numerics import all_finite, proper_density, select_index, tree_where
from dpjax.release import Release

__all__ = ["build_number_step", "weigh_numbers"]


def build_number_step(
    model: DataSetsModel, release: Release
) -> Callable[[Key, Parameters, Records, Tuning], tuple[Parameters, Records, InterweavingInfo]]:
    """The step ``(rng_key, parameters, records, tuning) -> (parameters, records, info)``.

    It leaves p(parameters, number, records | release) invariant and moves all three. First come elliptical slice moves
    of the parameters, with the noise of all rows held and their number summed out, and then a draw of the number.
    """
    form, weigh = model.noncentred, weigh_numbers(release)

    def step(
        rng_key: Key, parameters: Parameters, records: Records, tuning: Tuning
    ) -> tuple[Parameters, Records, InterweavingInfo]:
        noise_key, move_key, number_key = jax.random.split(rng_key, 3)
        noise = form.noise(noise_key, parameters, records)
        own, whitening = noncentred_coordinates(model, tuning)
        vector, unravel = to_vector(own, parameters)

        def log_likelihood(moved: Parameters) -> Array:
            again = form.records(moved, noise)
            log_noise, possible = weigh_noise(form, moved, noise)
            value = jax.nn.logsumexp(weigh(again)) + log_noise
            return jnp.where(all_finite(again) & possible, value, -jnp.inf)

        log_density = build_log_density(own, whitening, unravel, log_likelihood)
        start, state, info = elliptical_moves(move_key, log_density, whitening.whiten(vector))
        moved = own.constrain(unravel(whitening.colour(state.position)))
        again = form.records(moved, noise)
        number, _ = select_index(weigh(again), jax.random.uniform(number_key))
        again |= {NUMBER: number.astype(again[NUMBER].dtype)[None]}
        finite = jnp.isfinite(start.logdensity) & is_possible(model, moved, again)
        return tree_where(finite, moved, parameters), tree_where(finite, again, records), make_report(info, finite)

    return step


def weigh_numbers(release: Release) -> Callable[[Records], Array]:
    """The function that gives, for the rows of one data set, log p(n) η(s | their first n) [N + 1] for each n.

    Parameters
    ----------
    release
        Of one data set; see `dpjax.data_augmentation.records.unknown_number.data_set_form`.
    """
    design, contributions = design_of(release), contributions_of(release)
    with jax.ensure_compile_time_eval():
        log_prior = log_probabilities(design.prior, np.arange(design.capacity + 1)).astype(float)

    def weigh(records: Records) -> Array:
        rows, _ = split(first(records))
        sums = jnp.pad(jnp.cumsum(contributions(rows), axis=1), ((0, 0), (1, 0)))
        return proper_density(log_prior + release.log_densities_at(release.noisy_sum[:, None] - sums))

    return weigh
