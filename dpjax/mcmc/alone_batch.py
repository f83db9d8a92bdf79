"""A run of a batch in which the records are summed out and the parameters move alone."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail
from dpjax.base import Key, Model, Parameters
from dpjax.data_augmentation.summed_out import MarginalLikelihood, sum_out_each, summed_state
from dpjax.data_augmentation.summed_out.likelihood import LEFT_OUT, MOST_LEFT_OUT
from dpjax.mcmc.alone import SearchingRun, worst_draws
from dpjax.mcmc.batch_run import BatchRun, WithSums
from dpjax.mcmc.climb import Ascent, climb_to_modes, draw_candidates, look_around, most_looks, points_near
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState
from dpjax.numerics import take_entry
from dpjax.runtime.devices import platform_of

__all__ = ["AloneBatchRun"]

NUMBERS_TOGETHER = 2**14
"""Numbers of the windows or lists of the releases that a processor advances side by side."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AloneBatchRun(SearchingRun, BatchRun):
    """A run of a batch of parameters alone.

    Parameters
    ----------
    likelihood
        Those of all releases, leaves [release, ...]; None before the climbs.
    """

    likelihood: MarginalLikelihood | None = None

    @property
    def swept(self) -> Any:
        """See `BatchRun`."""
        assert self.likelihood is not None
        return WithSums(self.releases, self.likelihood)

    @property
    def most_together(self) -> int:
        """See `BatchRun`: sums of all of them are to fit the cache of a processor."""
        most = super().most_together
        if platform_of(self.mesh) != "cpu" or self.likelihood is None:
            return most
        return max(1, min(most, NUMBERS_TOGETHER * len(self.keys.chains) // self.likelihood.terms.size))

    def settled(self) -> "AloneBatchRun":
        """The run with windows fitted to where the parameters of each release will be, and starts of all chains.

        Raises
        ------
        ValueError
            If the density of a release is not positive where its climbs end.
        """
        model, releases, num_chains = self.problem.model, self._each(), self.keys.chains.shape[1]
        first = sum_out_each(model, releases, [None] * len(releases))
        ascent = climb_all(model, first, self.keys.starts[0], num_chains)
        fine = np.any(np.isfinite(ascent.log_density), axis=1)
        if not np.all(fine):
            number = int(np.argmin(fine))
            given = f"release {number} of zero or undefined density at all modes climbed to from the prior"
            remedy = "Check that the model, with parameters from the prior, can give such values."
            fail("releases", given, "positive density somewhere", remedy)
        if not first.is_approximate:
            return replace(self, likelihood=first, ascent=ascent)
        fitted = sum_out_each(model, releases, [take_entry(ascent.near, number) for number in range(len(releases))])
        return replace(self, likelihood=fitted, ascent=ascent)

    def states_at(self, parameters: Parameters) -> GibbsState:
        """See `SearchingRun`."""
        states: GibbsState = start_all(self.problem.model, self.problem.plan, self.likelihood, parameters)
        return states

    def with_better_sums(self, draws: Any) -> "AloneBatchRun | None":
        """See `SearchingRun`."""
        left_out = draws.info[LEFT_OUT]
        if np.max(left_out) <= MOST_LEFT_OUT:
            return None
        near = [worst_draws(take_entry(draws, number)) for number in range(len(left_out))]
        return replace(self, likelihood=sum_out_each(self.problem.model, self._each(), near))

    def _each(self) -> list[Any]:
        return [take_entry(self.releases, number) for number in range(len(self.keys.chains))]


@partial(jit_model, static_argnames=("plan",))
def start_all(model: Model, plan: Any, likelihood: MarginalLikelihood, starts: Parameters) -> GibbsState:
    """The states [release, chain, ...] at parameters."""
    del model

    def of_release(given: tuple[MarginalLikelihood, Parameters]) -> GibbsState:
        return jax.vmap(lambda one: summed_state(plan, one, given[0]))(given[1])

    states: GibbsState = jax.lax.map(of_release, (likelihood, starts))
    return states


@partial(jit_model, static_argnames=("num_chains",))
def climb_all(model: Model, likelihoods: MarginalLikelihood, keys: Key, num_chains: int) -> Ascent:
    """The modes of each release [release, ...] that chains climb to from the prior."""

    def climb(given: tuple[MarginalLikelihood, Key]) -> Ascent:
        draw_key, climb_key, about_key = jax.random.split(given[1], 3)
        prior, candidates = draw_candidates(model, draw_key, num_chains)
        climbs = climb_to_modes(model, given[0], climb_key, prior, candidates, None)
        seen = look_around(model, given[0], prior, climbs.ends, most_looks(climbs.places.shape[1]))
        best = jnp.argmax(seen.heights)
        tuning = jax.tree.map(lambda leaf: leaf[best], seen.tuning)
        near = points_near(model, about_key, tuning, seen.parameters)
        return Ascent(seen.parameters, climbs.heights, tuning._replace(noncentred=prior.noncentred), near)

    found: Ascent = jax.lax.map(climb, (likelihoods, keys))
    return found
