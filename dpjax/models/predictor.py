"""The number through which alone the parameters of a model reach each record, such as the linear predictor."""

from dpjax._util.bottleneck import Bottleneck, find_bottleneck
from dpjax.base import Array, Model, Parameters, Records
from dpjax.models.simulation import parameter_shapes

__all__ = ["find_predictor"]


def find_predictor(model: Model, known: Records, field: str) -> Bottleneck | None:
    """That number in the log-density ``(parameters, numbers [n], known) -> [n]``; None if there are several.

    Parameters
    ----------
    known
        The records [n], of which one field does not count: its numbers are another argument.
    field
        The name of that field.
    """

    def log_density(parameters: Parameters, numbers: Array, known: Records) -> Array:
        return model.log_density(parameters, known | {field: numbers})

    return find_bottleneck(log_density, parameter_shapes(model), known[field], known)
