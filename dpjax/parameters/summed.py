"""The collapsed step for local releases of whole numbers: parameters move with each record summed over a window."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.imputation.windows import choose_candidates, count_doublings, draw_windows, log_weights
from dpjax.numerics import all_finite, take_if
from dpjax.parameters.coordinates import Tuning, build_log_density, constrain, noncentred_coordinates, to_vector
from dpjax.parameters.interweaving import InterweavingInfo, elliptical_moves, make_report
from dpjax.release import LocalRelease


def build_summed_step(
    model: Model, release: LocalRelease
) -> Callable[[Key, Parameters, Records, Tuning], tuple[Parameters, Records, InterweavingInfo]]:
    """The step ``(rng_key, parameters, records, tuning) -> (parameters, records, info)``.

    It leaves p(parameters, records | release) invariant. Each record draws a random window of consecutive values around
    its own; given the windows, elliptical slice moves of the parameters with the records summed out, then the records
    drawn given the parameters. It takes the place of the non-centred step, which for counts would have to invert a
    distribution function at every move.
    """
    doublings = count_doublings(release)

    def step(
        rng_key: Key, parameters: Parameters, records: Records, tuning: Tuning
    ) -> tuple[Parameters, Records, InterweavingInfo]:
        window_key, move_key, choice_key = jax.random.split(rng_key, 3)
        windows = draw_windows(window_key, release, records, doublings)
        own, whitening = noncentred_coordinates(model, tuning)
        vector, unravel = to_vector(own, parameters)

        def log_likelihood(moved: Parameters) -> Array:
            weights = log_weights(model, release, windows, moved, records)
            return jnp.sum(jax.scipy.special.logsumexp(weights, axis=0))

        log_density = build_log_density(own, whitening, unravel, log_likelihood)
        start, state, info = elliptical_moves(move_key, log_density, whitening.whiten(vector))
        moved = constrain(own, unravel(whitening.colour(state.position)))
        chosen = choose_candidates(choice_key, windows, log_weights(model, release, windows, moved, records))
        again = records | {release.field: chosen}
        fine = jnp.isfinite(start.logdensity) & all_finite(moved)
        return take_if(fine, moved, parameters), take_if(fine, again, records), make_report(info, fine)

    return step
