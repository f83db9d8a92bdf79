"""The perfect-start test: a chain started from the joint law of parameters, records and release must stay in it.

Thousands of independent chains each draw parameters from the prior, records from the model and a release from the
mechanism, then run a few sweeps. Whatever a correct kernel does, the parameters keep the prior as their law and the
implied noise (release − statistic) keeps the law of the mechanism's noise, which is the sharper of the two checks.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import stats

from dpjax.base import Imputation, Model
from dpjax.data_augmentation.parameters import choose_kernel, initial_tuning
from dpjax.data_augmentation.plan import Noise, SweepPlan
from dpjax.data_augmentation.refresh import PERIOD, Refreshes, fit_refresh, prior_alone
from dpjax.data_augmentation.sweep import build_kernel
from dpjax.models.simulation import Position, init_state
from dpjax.release import LocalRelease, Microdata, PrivateRelease

REJECT = 1e-4
"""A correct kernel fails at this level once in 10,000 keys; the keys are fixed."""


class Replicates(NamedTuple):
    """What the chains hold at the end: parameters [chains, ...], the implied noise [chains, d] and the reports."""

    parameters: dict[str, np.ndarray]
    noise: np.ndarray
    acceptance_rate: np.ndarray
    reported: dict[str, np.ndarray]


def run(
    key: jax.Array,
    model: Model,
    template: PrivateRelease,
    imputation: Imputation,
    *,
    interweave: bool = False,
    parameter_kernel: Callable | str | None = None,
    noise: Noise = "held",
    num_chains: int = 4_000,
    num_sweeps: int = 4,
    refreshes: Callable[[Model, PrivateRelease], Refreshes] | None = None,
) -> Replicates:
    """The state of perfectly started chains after some sweeps; of the template's value only the shape matters.

    With `refreshes` each sweep is followed by two: one from the prior, one from a t distribution fitted to it.
    """
    tuning_key, chains_key = jax.random.split(key)
    tuning = initial_tuning(tuning_key, model)
    plan = SweepPlan(imputation, interweave, choose_kernel(model, parameter_kernel), noise)

    if refreshes is not None:
        half = jax.numpy.array(0.5)
        refresh = fit_refresh(prior_alone(model), tuning)._replace(refreshes=2 * PERIOD, prior_share=half)

    def chain(chain_key: jax.Array) -> tuple:
        start_key, records_key, noise_key, run_key = jax.random.split(chain_key, 4)
        parameters = model.sample_prior(start_key)
        records = model.sample_records(records_key, parameters, template.n)
        release = template.sample(noise_key, records)
        kernel = build_kernel(model, release, plan)
        state = init_state(release, Position(parameters, records))

        def sweep(state: Any, index: jax.Array) -> tuple:
            key = jax.random.fold_in(run_key, index)
            if refreshes is None:
                return kernel(key, state, tuning)
            sweep_key, refresh_key = jax.random.split(key)
            state, info = kernel(sweep_key, state, tuning)
            return refreshes(model, release)(refresh_key, index, state, refresh)[0], info

        state, info = jax.lax.scan(sweep, state, jax.numpy.arange(num_sweeps))
        records = state.latent.records
        reported = model.reported(records)
        return state.parameters, implied_noise(release, records), info.imputation.acceptance_rate, reported

    return Replicates(*jax.device_get(jax.jit(jax.vmap(chain))(jax.random.split(chains_key, num_chains))))


def implied_noise(release: PrivateRelease, records: dict[str, Any]) -> jax.Array:
    """What the release must have added to these records [d]; of a local release, to each record [n].

    Of microdata what the sum added, or else the released columns [k n], one after the other.
    """
    if isinstance(release, LocalRelease):
        return release.values - records[release.field].astype(release.values.dtype)
    if isinstance(release, Microdata):
        return implied_noise(release.summed, records) if release.summed else release.observed.T.ravel()
    return release.value - release.total(records)


def noise_p_value(noise: np.ndarray, law: Any) -> float:
    """The smallest p-value over coordinates, corrected for their number, that the implied noise follows its law."""
    return corrected([stats.kstest(column, law.cdf).pvalue for column in noise.T])


def parameter_p_value(replicates: Replicates, laws: dict[str, Callable[[np.ndarray], tuple[np.ndarray, Any]]]) -> float:
    """The smallest corrected p-value that functions of the parameters follow the laws that the prior gives them."""
    p_values = []
    for name, function in laws.items():
        values, law = function(replicates.parameters[name])
        p_values.append(stats.kstest(values, law.cdf).pvalue)
    return corrected(p_values)


def lattice_p_value(noise: np.ndarray, probability: Callable[[np.ndarray], np.ndarray], reach: int) -> float:
    """As `noise_p_value` for integer noise, by χ² on the values −reach, ..., reach and what lies beyond."""
    values = np.arange(-reach, reach + 1)
    inside = probability(values)
    expected = np.append(inside, 1.0 - inside.sum())
    p_values = []
    for column in np.rint(noise).astype(int).T:
        observed = [np.sum(column == value) for value in values] + [np.sum(np.abs(column) > reach)]
        p_values.append(stats.chisquare(observed, expected * len(column)).pvalue)
    return corrected(p_values)


def corrected(p_values: list[float]) -> float:
    """Bonferroni's correction of the smallest p-value."""
    return min(1.0, min(p_values) * len(p_values))
