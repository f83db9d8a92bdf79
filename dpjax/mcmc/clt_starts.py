"""Starts at draws from the Normal approximation of the sum, and whitening by these draws.

Of many records the posterior is far narrower than the prior, and a chain that looks for it moves in steps of its own
width; the approximation finds it at once. Records are first drawn at the parameters, regardless of the release, and
then imputed with the parameters held until their sum fits. An error of the approximation does no harm beyond that: the
kernel leaves the exact posterior invariant wherever it starts.
"""

import jax.numpy as jnp

from dpjax.base import Key, Model, Parameters
from dpjax.clt import Size, check_problem, default_points, draw
from dpjax.data_augmentation.parameters import Tuning
from dpjax.mcmc.inputs import refused_by_name
from dpjax.mcmc.run import PosteriorRun, adapt
from dpjax.mcmc.starts import holding, impute_all
from dpjax.models.simulation import GibbsState, parameter_shapes
from dpjax.release import PrivateRelease
from dpjax.release.summed import as_sum
from dpjax.runtime.devices import choose_mesh, on_one_device

__all__ = ["draw_large", "put_in_place", "whiten_by"]

NUM_WARMUP, NUM_DRAWS = 300, 250
"""Steps of each chain of the approximation."""

SWEEPS = 8
"""Sweeps of the records alone: where each replaces half of them, less than a hundredth of what they were is left."""


def draw_large(key: Key, model: Model, release: PrivateRelease, num_chains: int) -> Parameters:
    """Draws [chain, draw, ...] from the Normal approximation, for model and release as the user knows them."""
    release = as_sum(release)
    with refused_by_name(), on_one_device():
        source = check_problem(model, release)
        size = Size(num_chains, NUM_WARMUP, NUM_DRAWS, default_points(source))
        drawn = draw(key, model, release, source, size, progress=False, mesh=choose_mesh(None, num_chains))
    if not drawn.run.is_done(drawn.status):
        raise KeyboardInterrupt("sample was interrupted while it looked for starts.")
    return {name: jnp.asarray(drawn.draws.parameters[name]) for name in parameter_shapes(model)}


def whiten_by(run: PosteriorRun, draws: Parameters) -> Tuning | None:
    """The tuning fitted to draws [chain, draw, ...], where the plan uses one; else None."""
    return adapt.quickly(run.model, draws) if run.plan.uses_tuning else None


def put_in_place(key: Key, run: PosteriorRun, states: GibbsState) -> GibbsState:
    """States [chain, ...] whose records have had time to reach their distribution given parameters and release."""
    return impute_all(run.model, holding(run.plan.imputation), key, run.release, states, jnp.asarray(SWEEPS))
