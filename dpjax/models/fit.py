"""Whether a model and a release belong together, by shapes and types."""

from typing import Any

from dpjax.base import Model
from dpjax.models.checks import check_model
from dpjax.models.whole import check_integer_noise
from dpjax.release.base import is_release
from dpjax.simulate import position_shapes
from dpjax.validation import fail

__all__ = ["check_fit"]


def check_fit(model: Model, release: Any) -> None:
    """Raise unless the model's functions fit each other, and its records fit what was released.

    Raises
    ------
    TypeError, ValueError
        If model and release are exchanged, a function of the model breaks its contract, the statistic or the channel
        cannot take the records, the model is of another number of records, or noise of whole numbers meets real ones.
    """
    if not is_release(release):
        fail("release", type(release).__name__, "a Release or LocalRelease", "Pass (model, release).", error=TypeError)
    check_model(model)
    release.check_records(position_shapes(model, 1).records)
    if model.num_records not in (None, release.n):
        expected, remedy = f"n = {model.num_records}, as the model has", "Give the model the covariates of all records."
        fail("release", f"a release of n = {release.n} records", expected, remedy)
    check_integer_noise(model, release)
