"""Unbiased estimates of posterior means by coupled chains that start at draws, beside the means of the draws."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax import diagnostics
from dpjax.base import Array, Imputation, Key, Model, Parameters
from dpjax.coupling import coupled_gibbs, meeting_times, suggest_k_m, unbiased_estimates
from dpjax.coupling.kernel import CoupledKernel
from dpjax.imputation.forms import OwnLatentData, latent_form
from dpjax.imputation.imwg import IMwG, imwg
from dpjax.imputation.soma import SOMA
from dpjax.posterior import Posterior
from dpjax.refereeing.drifts import are_one, columns, merged
from dpjax.refereeing.verdict import Estimates
from dpjax.simulate import draw_position_at
from dpjax.states import Position
from dpjax.sweep import is_open

NUM_PAIRS = 200
"""Each averages over ten times as many steps as nearly all pairs need to meet."""

MAX_STEPS = 20_000


class Scores(NamedTuple):
    """The function that is averaged: parameters [row] less the centre and over the scale, and their squares."""

    names: tuple[str, ...]
    centre: Array
    scale: Array

    def of(self, position: Position) -> Array:
        """The numbers [2, row]."""
        values = [jnp.ravel(position.parameters[name]).astype(float) for name in self.names]
        scores = (jnp.concatenate(values) - self.centre) / self.scale
        return jnp.stack([scores, scores**2])


def build_coupled(posterior: Posterior, imputation: Imputation, starts: Parameters) -> CoupledKernel:
    """Pairs of chains that start at some of these parameters [start, ...], with records from the model.

    Raises
    ------
    TypeError, ValueError
        If no coupling of chains is known for the model, the release or the imputation; see `dpjax.coupling`.
    """
    closed = imputation.closed() if is_open(imputation) else imputation
    chosen = closed if isinstance(closed, (IMwG, SOMA, OwnLatentData)) else imwg()
    model, release = latent_form(posterior.model, posterior.release, chosen)
    start = partial(draw_start, model=model, n=release.n, starts=starts)
    return coupled_gibbs(posterior.model, posterior.release, chosen, sample_start=start)


def draw_start(key: Key, model: Model, n: int, starts: Parameters) -> Position:
    """One of the starts [start, ...], with records from the model."""
    choice_key, record_key = jax.random.split(key)
    number = jax.random.randint(choice_key, (), 0, len(next(iter(starts.values()))))
    return draw_position_at(record_key, model, {name: leaf[number] for name, leaf in starts.items()}, n)


def estimate(key: Key, kernel: CoupledKernel, draws: dict[str, np.ndarray]) -> Estimates:
    """How far the means and mean squares of the chains' law are from those of the draws [chain, draw, ...].

    Raises
    ------
    ValueError
        If some pair of chains does not meet within 20,000 steps.
    """
    flat = columns(draws, 2)
    centre, scale = flat.mean(axis=(0, 1)), flat.std(axis=(0, 1))
    scale = np.where(are_one(draws, merged(draws)) | (scale == 0), np.inf, scale)
    function = Scores(tuple(draws), jnp.asarray(centre, float), jnp.asarray(scale, float)).of
    pilot_key, run_key = jax.random.split(key)
    options = {"num_pairs": NUM_PAIRS, "max_steps": MAX_STEPS}
    meetings = meeting_times(pilot_key, kernel, **options)
    meetings.require_all("unbiased estimates")
    k, m = suggest_k_m(meetings)
    options["max_steps"] = max(MAX_STEPS, 2 * m)
    exact = unbiased_estimates(run_key, kernel, function, k=k, m=m, **options).estimate()
    scores = (flat - centre) / scale
    here = np.stack([scores.mean(axis=(0, 1)), (scores**2).mean(axis=(0, 1))])
    error = np.stack([diagnostics.mcse_mean(scores), diagnostics.mcse_mean(scores**2)])
    return Estimates(exact.mean - here, np.hypot(exact.standard_error, error))
