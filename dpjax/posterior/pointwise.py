"""The density of what was released of each record, given the parameters alone: what LOO and WAIC are made of."""

from functools import partial
from typing import TYPE_CHECKING

import jax
import numpy as np

from dpjax._util.validation import Obstacle
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Model, Parameters
from dpjax.data_augmentation.summed_out import MarginalLikelihood, sum_out
from dpjax.data_augmentation.summed_out.likelihood import MOST_LEFT_OUT, in_words, left_out_at, obstacle_to_sums
from dpjax.models.programs import jit_model
from dpjax.models.simulation import parameter_shapes
from dpjax.release import PrivateRelease
from dpjax.release.weights import check_unweighted

if TYPE_CHECKING:
    from dpjax.posterior.posterior import Posterior

NUM_FITTED = 128
"""At how many draws windows of whole numbers are fitted, and what they leave out is measured."""

BATCH_NUMBERS = 2**16
"""Numbers that are summed over side by side."""


def obstacle_to_units(model: Model, release: PrivateRelease) -> Obstacle | None:
    """Why what was released is not one independent observation for each record; None if it is."""
    expected = "a release of values of single records"
    if not release.fields:
        given = "a sum over all records, which is one observation"
        return Obstacle("release", given, expected, "Compare models by dpjax.compare.")
    if release.microdata.summed is not None:
        given = "a sum beside values of single records, by which these depend on each other"
        return Obstacle("release", given, expected, "Compare models by dpjax.compare.")
    if found := obstacle_to_sums(model, release):
        expected = "values of single records, of which what is hidden can be summed out"
        return Obstacle("release", found, expected, "Compare models by dpjax.compare.")
    return None


def pointwise_log_likelihood(posterior: "Posterior") -> np.ndarray:
    """The log-density [chain, draw, n] of what was released of each record, given the parameters of each draw.

    What is hidden of the record is summed out, however the draws were made.

    Raises
    ------
    ValueError
        If records are not observations of their own, or what is hidden of them cannot be summed out.

    Warns
    -----
    UserWarning
        If windows of whole numbers leave out more than a share of 10⁻⁶.
    """
    model, release = posterior.model, posterior.release
    if found := obstacle_to_units(model, release):
        found.refuse()
    check_unweighted(model, release, "posterior", "LOO or WAIC")
    shape = posterior.info["acceptance_rate"].shape
    flat = {
        name: posterior.draws[name].reshape(-1, *posterior.draws[name].shape[2:]) for name in parameter_shapes(model)
    }
    number = next(len(leaf) for leaf in flat.values())
    some = {name: leaf[np.arange(NUM_FITTED) * number // NUM_FITTED] for name, leaf in flat.items()}
    likelihood = sum_out(model, release, some)
    left_out = left_out_at(likelihood, some)
    if left_out > MOST_LEFT_OUT:
        warn_at_the_call(f"{in_words(left_out)} at some draws. Do not trust what is computed from log_likelihood.")
    batch = min(max(1, BATCH_NUMBERS // likelihood.terms.size), number)
    rows = np.asarray(terms_at(model, batch, likelihood, flat))
    return rows[:, np.asarray(likelihood.rows)].reshape(*shape, release.n)


@partial(jit_model, static_argnames=("batch",))
def terms_at(model: Model, batch: int, likelihood: MarginalLikelihood, parameters: Parameters) -> Array:
    """The log-densities [draw, row] at parameters [draw, ...]."""
    del model
    return jax.lax.map(likelihood.terms.build(likelihood.model), parameters, batch_size=batch)
