"""The perfect-start test of a coupled kernel: each of the two chains, started from the joint law, must stay in it."""

from typing import Any

import jax
import numpy as np

from dpjax.base import Imputation, Model
from dpjax.coupling import coupled_gibbs
from dpjax.data_augmentation.parameters import initial_tuning
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.sweep import build_kernel
from dpjax.models.simulation import Position, init_state
from dpjax.release import Release
from tests.tools.perfect_start import Replicates


def run_pairs(
    key: jax.Array,
    model: Model,
    template: Release,
    imputation: Imputation,
    *,
    num_pairs: int = 4_000,
    num_steps: int = 4,
    sort_first: bool = False,
    **options: Any,
) -> tuple[Replicates, Replicates, np.ndarray]:
    """Both chains of perfectly started pairs after some steps, and which pairs have met.

    The first chain starts where the release was made, the second from there by some sweeps of the single sampler, so
    that both have the posterior of the release as their law and hardly depend on each other. With `sort_first` the
    first chain's records start in increasing order: nothing is then claimed of it, but the second must not care.
    """
    tuning = initial_tuning(jax.random.key(0), model)

    def chain(chain_key: jax.Array) -> tuple:
        start_key, records_key, noise_key, away_key, run_key = jax.random.split(chain_key, 5)
        parameters = model.sample_prior(start_key)
        records = model.sample_records(records_key, parameters, template.n)
        release = template.sample(noise_key, records)
        single = build_kernel(model, release, SweepPlan(imputation, False, None))
        start = Position(parameters, records)

        def away(state: Any, index: jax.Array) -> tuple:
            return single(jax.random.fold_in(away_key, index), state, tuning)[0], None

        other = jax.lax.scan(away, init_state(release, start), jax.numpy.arange(4))[0]
        kernel = coupled_gibbs(model, release, imputation, **options)
        if sort_first:
            start = start._replace(records=jax.tree.map(jax.numpy.sort, records))
        pair = kernel.join(start, Position(other.parameters, other.latent.records), jax.numpy.asarray(False))

        def step(pair: Any, index: jax.Array) -> tuple:
            pair, info = kernel.step(jax.random.fold_in(run_key, index), pair)
            return pair, info.acceptance_rate

        pair, rates = jax.lax.scan(step, pair, jax.numpy.arange(num_steps))
        ends = kernel.first(pair), kernel.second(pair)
        return (
            tuple((end.parameters, release.value - release.total(end.records)) for end in ends),
            rates,
            kernel.met(pair),
        )

    (first, second), rates, met = jax.jit(jax.vmap(chain))(jax.random.split(key, num_pairs))
    rates = np.asarray(rates)
    sides = [
        Replicates({k: np.asarray(v) for k, v in parameters.items()}, np.asarray(noise), rates[:, :, place], {})
        for place, (parameters, noise) in enumerate((first, second))
    ]
    return *sides, np.asarray(met)
