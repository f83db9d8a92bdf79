"""Releases that the prior predicts, before any is made."""

from functools import partial

import jax
import numpy as np

from dpjax.base import Key, Model, Parameters
from dpjax.gibbs import make_plan
from dpjax.models.numbered import jit_model
from dpjax.posterior import Prediction, batch_size, predict_values
from dpjax.release import LocalRelease, Release
from dpjax.validation import check_count, check_key


def prior_predict(key: Key, model: Model, release_design: Release | LocalRelease, num_draws: int = 1_000) -> Prediction:
    """Releases drawn from the prior predictive: for each draw parameters, records, and a release of them.

    Where the values are far from anything believed possible, the prior, the units or the statistic are amiss. The
    sibling after the fact is `Posterior.predict`.

    Parameters
    ----------
    release_design
        The release whose mechanism, statistic and n are used; its value is only handed on, as `Prediction.released`.
    num_draws
        How many releases to draw.

    Raises
    ------
    TypeError, ValueError
        If model and design do not fit, or the number is not positive.
    """
    check_key("key", key)
    check_count("num_draws", num_draws)
    make_plan(model, release_design)
    prior_key, release_key = jax.random.split(key)
    parameters = draw_parameters(model, num_draws, prior_key)
    batch = min(batch_size(model, release_design), num_draws)
    values = predict_values(model, batch, release_key, release_design, np.arange(num_draws), parameters)
    released = release_design.values if isinstance(release_design, LocalRelease) else release_design.value
    return Prediction(np.asarray(values), np.asarray(released))


@partial(jit_model, static_argnames=("num_draws",))
def draw_parameters(model: Model, num_draws: int, key: Key) -> Parameters:
    """Parameters [draw, ...] from the prior."""
    return jax.vmap(model.sample_prior)(jax.random.split(key, num_draws))
