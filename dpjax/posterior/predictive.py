"""Releases that the prior predicts, before any is made."""

import jax
import numpy as np

from dpjax._util.validation import check_count, check_key
from dpjax.base import Key, Model
from dpjax.data_augmentation.plan import draw_number
from dpjax.models.checks import check_fit
from dpjax.models.simulation import draw_parameters, draw_values
from dpjax.posterior.posterior import Prediction, make_prediction
from dpjax.release import PrivateRelease


def sample_prior_predictive(
    key: Key, model: Model, release_design: PrivateRelease, num_draws: int = 1_000
) -> Prediction:
    """Releases drawn from the prior predictive: for each draw parameters, records, and a release of them.

    Where the values are far from anything believed possible, the prior, the units or the statistic are amiss. The
    sibling after the fact is `Posterior.predict`.

    Parameters
    ----------
    key
        One typed key.
    model
        What is believed about the records.
    release_design
        The release whose mechanism, statistic and n are used; its value is only handed on, as `Prediction.released`.
    num_draws
        How many releases to draw.

    Raises
    ------
    TypeError, ValueError
        If model and design do not fit, or the number is not positive.

    Examples
    --------
    >>> import jax, dpjax
    >>> model = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
    >>> design = dpjax.Release([0.0], dpjax.Laplace(2.0), dpjax.statistics.total("y", -3.0, 3.0), n=20)
    >>> sample_prior_predictive(jax.random.key(1), model, design, num_draws=5).values.shape
    (5, 1)
    """
    check_key("key", key)
    check_count("num_draws", num_draws)
    check_fit(model, release_design)
    model, release_design = draw_number(model, release_design)
    prior_key, release_key = jax.random.split(key)
    parameters = draw_parameters(prior_key, model, num_draws)
    values = draw_values(release_key, model, release_design, parameters, num_draws)
    return make_prediction(values, np.asarray(release_design.observed))
