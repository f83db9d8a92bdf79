"""The non-centred step that interweaving adds to the centred one (Yu and Meng 2011).

Write x = T(θ, u) with noise u of density g(u | θ), free of θ if it can be. Holding u fixed, θ has density
∝ p(θ) g(u | θ) η(s | T(θ, u)); moving θ carries the records along. Where the centred step creeps because the records
pin θ down, this one does not see the records at all.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from blackjax.mcmc.slice import SliceInfo

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.parameters.coordinates import Tuning, build_log_density, constrain, noncentred_coordinates, to_vector
from dpjax.parameters.ellipse import elliptical_step
from dpjax.release import LocalRelease, Release

NUM_MOVES = 2
"""Elliptical moves a sweep: a second one costs little beside the imputation and pays more than it costs."""


class InterweavingInfo(NamedTuple):
    """What the non-centred step reports.

    num_shrink
        Density evaluations of the elliptical moves [].
    is_accepted
        Whether every move found a point within its bound on shrinking [].
    """

    num_shrink: Array
    is_accepted: Array


def build_interweaving_step(
    model: Model, release: Release | LocalRelease
) -> Callable[[Key, Parameters, Records, Tuning], tuple[Parameters, Records, InterweavingInfo]]:
    """The step ``(rng_key, parameters, records, tuning) -> (parameters, records, info)``.

    It leaves p(parameters, records | release) invariant and moves both.
    """
    assert model.noncentred is not None
    noise_of, records_of, noise_log_density = model.noncentred[:3]

    def step(
        rng_key: Key, parameters: Parameters, records: Records, tuning: Tuning
    ) -> tuple[Parameters, Records, InterweavingInfo]:
        noise_key, move_key = jax.random.split(rng_key)
        noise = noise_of(noise_key, parameters, records)
        own, whitening = noncentred_coordinates(model, tuning)
        vector, unravel = to_vector(own, parameters)

        def log_likelihood(moved: Parameters) -> Array:
            log_likelihood = release.log_likelihood(records_of(moved, noise))
            return (
                log_likelihood
                if noise_log_density is None
                else log_likelihood + jnp.sum(noise_log_density(moved, noise))
            )

        log_density = build_log_density(own, whitening, unravel, log_likelihood)

        def move(position: Array, index: Array) -> tuple[Array, SliceInfo]:
            return elliptical_step(jax.random.fold_in(move_key, index), position, log_density)

        whitened, info = jax.lax.scan(move, whitening.whiten(vector), jnp.arange(NUM_MOVES))
        moved = constrain(own, unravel(whitening.colour(whitened)))
        report = InterweavingInfo(jnp.sum(info.num_shrink), jnp.all(info.is_accepted))
        return moved, records_of(moved, noise), report

    return step
