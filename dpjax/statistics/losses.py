"""Losses of a model with coefficients, and the sums of their derivatives at published coefficients."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import NamesArguments, names_arguments
from dpjax._util.validation import check_count, check_flag, check_hashable_function, fail, is_traced, name_of
from dpjax._util.words import quantity
from dpjax.base import Array, Records
from dpjax.numerics.triangles import triangle_size, upper_triangle
from dpjax.statistics.base import (
    Norm,
    RecordStatistic,
    TakenAtValue,
    as_floats,
    as_length,
    as_number,
    check_field_name,
    number_type,
    read_field,
    scaled_down,
)

__all__ = ["FittedDerivatives", "Huber", "Logistic", "LossDerivatives", "Squared", "loss_derivatives"]

Loss = Callable[[Array, Records], Array]


@dataclass(frozen=True)
class LinearLoss(NamesArguments):
    """What losses of a linear predictor share: the fields, and whether there is an intercept, which comes first.

    Parameters
    ----------
    covariates
        The record field [p], or [] of a single covariate.
    response
        The record field [].
    intercept
        Whether the first coefficient is an intercept.
    norm
        The Euclidean norm beyond which the covariates of a record were scaled down to it; None if they were not.
    """

    covariates: str = "x"
    response: str = "y"
    intercept: bool = True
    norm: float | None = None

    def __post_init__(self) -> None:
        check_field_name(self.covariates, "covariates")
        check_field_name(self.response, "response")
        if self.covariates == self.response:
            fail(
                "response", repr(self.response), "another field than the covariates", "Name the field of the response."
            )
        check_flag("intercept", self.intercept, "Say whether the first coefficient is an intercept.")
        if self.norm is not None:
            remedy = "Pass the norm to which covariates were clipped, or leave it out."
            bound = as_length("norm", self.norm, remedy)
            object.__setattr__(self, "norm", bound)

    def field_types(self, num_coefficients: int) -> dict[str, np.dtype]:
        """The types of its fields, for so many coefficients."""
        size = num_coefficients - self.intercept
        return {self.covariates: number_type() if size == 1 else number_type(size), self.response: number_type()}

    def predict(self, coefficients: Array, record: Records) -> tuple[Array, Array]:
        """The linear predictor [] of one record and its response []."""
        covariates = jnp.atleast_1d(read_field(record, self.covariates)).astype(coefficients.dtype)
        if self.norm is not None:
            covariates, _ = scaled_down(covariates, self.norm)
        size = covariates.size + self.intercept
        if covariates.ndim != 1 or coefficients.shape != (size,):
            remedy = "Pass one coefficient for each covariate, after the intercept where there is one."
            fail("coefficients", f"shape {list(coefficients.shape)}", f"shape [{size}]", remedy)
        slopes = coefficients[1:] if self.intercept else coefficients
        predictor = jnp.sum(covariates * slopes) + (coefficients[0] if self.intercept else 0.0)
        return predictor, read_field(record, self.response, [()]).astype(coefficients.dtype)


@dataclass(frozen=True)
class Logistic(LinearLoss):
    """The loss log(1 + e^η) − y η of a response y of 0 or 1, with linear predictor η.

    Parameters
    ----------
    covariates
        The record field [p], or [] of a single covariate.
    response
        The record field [], of 0 and 1; or of classes, of which `positive` counts as 1.
    intercept
        Whether the first coefficient is an intercept.
    norm
        The Euclidean norm beyond which the covariates of a record were scaled down to it; None if they were not.
    positive
        The class that is distinguished from the rest; None if the response is 0 or 1.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> loss = dpjax.statistics.Logistic()
    >>> round(float(loss(jnp.array([0.0, 1.0]), {"x": jnp.array(0.0), "y": jnp.array(1)})), 3)
    0.693
    """

    positive: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.positive is not None:
            check_count("positive", self.positive, "Pass the class that counts as 1.", least=0)

    def __call__(self, coefficients: Array, record: Records) -> Array:
        """The loss [] of one record."""
        predictor, response = self.predict(coefficients, record)
        if self.positive is not None:
            response = (response == self.positive).astype(predictor.dtype)
        return jax.nn.softplus(predictor) - response * predictor


@dataclass(frozen=True)
class Squared(LinearLoss):
    """The loss (y − η)² / 2 of a response y with linear predictor η.

    Parameters
    ----------
    covariates
        The record field [p], or [] of a single covariate.
    response
        The record field [].
    intercept
        Whether the first coefficient is an intercept.
    norm
        The Euclidean norm beyond which the covariates of a record were scaled down to it; None if they were not.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> float(dpjax.statistics.Squared(intercept=False)(jnp.array([1.0]), {"x": jnp.array(1.0), "y": jnp.array(3.0)}))
    2.0
    """

    def __call__(self, coefficients: Array, record: Records) -> Array:
        """The loss [] of one record."""
        predictor, response = self.predict(coefficients, record)
        return (response - predictor) ** 2 / 2


@dataclass(frozen=True)
class Huber(LinearLoss):
    """The loss r² / 2 of a residual r = y − η up to a threshold δ, and δ |r| − δ² / 2 beyond it.

    Parameters
    ----------
    covariates
        The record field [p], or [] of a single covariate.
    response
        The record field [].
    intercept
        Whether the first coefficient is an intercept.
    norm
        The Euclidean norm beyond which the covariates of a record were scaled down to it; None if they were not.
    threshold
        The δ.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> float(dpjax.statistics.Huber(intercept=False)(jnp.array([1.0]), {"x": jnp.array(1.0), "y": jnp.array(3.0)}))
    1.5
    """

    threshold: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        remedy = "Pass the residual from which the loss is linear."
        bound = as_number("threshold", self.threshold, lambda array: array > 0, "a finite number above 0", remedy)
        object.__setattr__(self, "threshold", bound)

    def __call__(self, coefficients: Array, record: Records) -> Array:
        """The loss [] of one record."""
        predictor, response = self.predict(coefficients, record)
        size = jnp.abs(response - predictor)
        inside = jnp.minimum(size, self.threshold)
        return inside**2 / 2 + self.threshold * (size - inside)


class Derivatives(RecordStatistic):
    """Gradient and Hessian of the loss of one record at d coefficients.

    Attributes
    ----------
    loss
        The function ``(coefficients [d], record) -> []``.
    """

    loss: Loss

    @property
    @abstractmethod
    def num_coefficients(self) -> int:
        """The number d of coefficients."""

    @property
    def dimension(self) -> int:
        """The coefficients, and the pairs of them."""
        return self.num_coefficients + triangle_size(self.num_coefficients)

    @property
    def field_types(self) -> dict[str, np.dtype]:
        """Those of a loss of a linear predictor."""
        return self.loss.field_types(self.num_coefficients) if isinstance(self.loss, LinearLoss) else {}

    def words(self) -> str:
        """The loss, and the number of coefficients."""
        number = quantity(self.num_coefficients, "published coefficient")
        fields = (
            f" of `{self.loss.response}` given `{self.loss.covariates}`," if isinstance(self.loss, LinearLoss) else ""
        )
        return f"gradient and Hessian of the loss {name_of(self.loss)}{fields} at {number}"

    def diameter(self, norm: Norm) -> float:
        """Refused: it is not known of any loss."""
        return self.radius(norm)

    def radius(self, norm: Norm) -> float:
        """Refused: it is not known of any loss.

        Raises
        ------
        ValueError
            Always.
        """
        remedy = "The privacy of fitted coefficients does not follow from it."
        fail("norm", norm, "a statistic whose contributions have a known bound", remedy)


@dataclass(frozen=True)
class LossDerivatives(Derivatives):
    """Gradient and Hessian of the loss of one record at fixed coefficients; see `loss_derivatives`.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.statistics.loss_derivatives(dpjax.statistics.Squared(), [0.0, 1.0]).dimension
    5
    """

    loss: Loss
    coefficients: tuple[float, ...] | Array

    @property
    def num_coefficients(self) -> int:
        """The number d of coefficients."""
        return len(self.coefficients)

    def __call__(self, record: Records) -> Array:
        """The gradient [d] and the upper triangle of the Hessian [d (d + 1) / 2] of one record."""
        at = jnp.asarray(self.coefficients, jnp.result_type(float))
        result = jax.eval_shape(self.loss, at, record)
        if getattr(result, "shape", None) != () or not jnp.issubdtype(result.dtype, jnp.floating):
            given = f"a result {getattr(result, 'dtype', type(result).__name__)}{list(getattr(result, 'shape', ()))}"
            fail("loss", given, "one real number [] for each record", "Return the loss of one record.")
        gradient, hessian = jax.grad(self.loss)(at, record), jax.hessian(self.loss)(at, record)
        return jnp.concatenate([gradient, upper_triangle(hessian)])


@dataclass(frozen=True)
class FittedDerivatives(Derivatives, TakenAtValue):
    """Gradient and Hessian of the loss of one record at the coefficients that a release publishes.

    The coefficients are the released value, and no part of the statistic: releases of one loss share their programs.

    Parameters
    ----------
    loss
        The function ``(coefficients [d], record) -> []``, twice differentiable by JAX.
    size
        The number d of coefficients.
    start
        Their places in the value, which may be that of several releases.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> statistic = dpjax.statistics.FittedDerivatives(dpjax.statistics.Squared(intercept=False), 1)
    >>> statistic.at(jnp.array([1.0]))({"x": jnp.array(2.0), "y": jnp.array(3.0)}).tolist()
    [-2.0, 4.0]
    """

    loss: Loss
    size: int
    start: int = 0

    def __post_init__(self) -> None:
        check_loss(self.loss)
        check_count("size", self.size, "Pass the number of coefficients.")
        check_count("start", self.start, "Pass the place of the first coefficient.", least=0)

    @property
    def num_coefficients(self) -> int:
        """The number d of coefficients."""
        return self.size

    def at(self, value: Array) -> LossDerivatives:
        """The derivatives at the coefficients in the value: hashable if they are numbers."""
        found = value[self.start : self.start + self.size]
        return LossDerivatives(self.loss, found if is_traced(found) else tuple(np.asarray(found).tolist()))

    def __call__(self, record: Records) -> Array:
        """Refused: the coefficients are part of a release.

        Raises
        ------
        TypeError
            Always.
        """
        del record
        remedy = "Call release.contribution(record), or statistic.at(release.value)(record)."
        fail("statistic", "no coefficients", "those that a release publishes", remedy, error=TypeError)


@names_arguments
def loss_derivatives(loss: Loss, coefficients: Any) -> LossDerivatives:
    """The sums over records of the gradient of a loss at given coefficients, and of its Hessian's upper triangle.

    Parameters
    ----------
    loss
        The function ``(coefficients [d], record) -> []``, twice differentiable by JAX, such as
        `dpjax.statistics.Logistic`.
    coefficients : [d]
        Where the derivatives are taken.

    Raises
    ------
    TypeError, ValueError
        If the loss is no hashable function, or the coefficients are no vector of finite numbers.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> statistic = dpjax.statistics.loss_derivatives(dpjax.statistics.Squared(intercept=False), [1.0])
    >>> statistic({"x": jnp.array(2.0), "y": jnp.array(3.0)}).tolist()
    [-2.0, 4.0]
    """
    check_loss(loss)
    return LossDerivatives(loss, as_floats("coefficients", coefficients))


def check_loss(loss: Loss) -> None:
    """Raise unless a loss is a hashable function, for which programs can be compiled."""
    if isinstance(loss, type):
        fail("loss", f"the class {loss.__name__}", "an instance", f"Pass {loss.__name__}(...).", error=TypeError)
    check_hashable_function("loss", loss, "a hashable function (coefficients [d], record) -> []")
