"""Releases that a model predicts: by its prior, before any is made, or by a posterior."""

from typing import Any, NamedTuple

import jax
import numpy as np

from dpjax._util.spelling import takes_num_draws
from dpjax._util.validation import check_count, check_key, fail
from dpjax._util.words import quantity
from dpjax.base import Key, Model, Parameters
from dpjax.data_augmentation.problem import draw_number
from dpjax.models.checks import check_fit, check_prior_is_drawn
from dpjax.models.simulation import draw_parameters, draw_values
from dpjax.release import PrivateRelease


class Prediction(NamedTuple):
    """Releases that the posterior predicts, and the one that was made.

    Attributes
    ----------
    values
        Released values of new records [draw, d], or [draw, n, ...] for a local release.
    released
        The value of the release [d], or [n, ...].

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> posterior = dpjax.sample(jax.random.key(1), model, release, num_warmup=100, num_samples=200, progress=False)
    >>> prediction = posterior.predict(jax.random.key(2), num_samples=50)
    >>> prediction.values.shape
    (50, 1)
    >>> prediction.released.tolist()
    [12.0]
    """

    values: np.ndarray
    released: np.ndarray

    def __repr__(self) -> str:
        """How many there are, and of how many values; not the values, which may be very many."""
        return f"{quantity(len(self.values), 'predicted release')} of {quantity(self.released.size, 'value')}"


def make_prediction(values: Any, released: np.ndarray) -> Prediction:
    """The prediction, or an error if the mechanism's sampler returned what is no number."""
    # Values that were missing of microdata are missing of what is predicted.
    absent = np.isnan(np.asarray(values, float)) & ~np.isnan(np.asarray(released, float))
    missing = np.any(absent.reshape(len(values), -1), axis=1)
    if np.any(missing):
        given = f"a sampler that returned NaN in {np.mean(missing):.0%} of releases"
        fail("release.mechanism", given, "releases that are numbers", "Mend its sample(key, statistic).")
    return Prediction(values, released)


@takes_num_draws
def sample_prior_predictive(
    key: Key, model: Model, release_design: PrivateRelease, num_samples: int = 1_000
) -> Prediction:
    """Releases drawn from the prior predictive: for each draw parameters, records, and a release of them.

    If the values are far from anything believed possible, the prior, the units or the statistic are wrong. The sibling
    after the fact is `Posterior.predict`.

    Parameters
    ----------
    key
        One typed key.
    model
        What is believed about the records.
    release_design
        The release whose mechanism, statistic and n are used; its value is only handed on, as `Prediction.released`.
    num_samples
        How many releases to draw.

    Raises
    ------
    TypeError, ValueError
        If model and design do not fit, or the number is not positive.

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
    >>> design = dpjax.Release([0.0], dpjax.Laplace(2.0), dpjax.statistics.total("y", -3.0, 3.0), n=20)
    >>> dpjax.posterior.sample_prior_predictive(jax.random.key(1), model, design, num_samples=5).values.shape
    (5, 1)
    """
    return predict_from_prior(key, model, release_design, num_samples)[1]


def predict_from_prior(
    key: Key, model: Model, release_design: PrivateRelease, num_samples: int
) -> tuple[Parameters, Prediction]:
    """Parameters [draw, ...] from the prior, and a release for each."""
    check_key("key", key)
    check_count("num_samples", num_samples)
    check_fit(model, release_design)
    check_prior_is_drawn(model)
    released = np.asarray(release_design.observed)
    model, release_design = draw_number(model, release_design)
    prior_key, release_key = jax.random.split(key)
    parameters = draw_parameters(prior_key, model, num_samples)
    values = draw_values(release_key, model, release_design, parameters, num_samples)
    # The count form fills a value up to the length of the sums.
    return parameters, make_prediction(values[:, : len(released)], released)
