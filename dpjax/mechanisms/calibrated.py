"""Mechanisms by the promise that their noise was calibrated to, in place of its scale."""

from dataclasses import fields
from typing import Any, ClassVar, Self

from dpjax._util.spelling import names_methods
from dpjax._util.validation import fail
from dpjax.mechanisms.calibration import laplace_scale, zcdp_scale

__all__ = ["FromEpsilon", "FromZCDP"]

PROMISES = {"epsilon", "delta", "rho", "sensitivity"}
"""Arguments of a promise, which mechanisms have none of: their noise depends on the sensitivity, too."""


class OfScale:
    """A mechanism whose one number is the scale of its noise."""

    _constructor: ClassVar[str]
    """How the constructor of a promise is called."""

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """An instance, or an error that names the constructor for what was passed in place of a scale."""
        if given := sorted(PROMISES & set(options) - {field.name for field in fields(cls)}):  # type: ignore[arg-type]
            remedy = f"Pass the scale, or write dpjax.{cls.__name__}.{cls._constructor}."
            fail(given[0], options[given[0]], "the scale of the noise", remedy, error=TypeError)
        return super().__new__(cls, *arguments, **options)


@names_methods
class FromEpsilon(OfScale):
    """A mechanism whose scale is sensitivity / ε."""

    _constructor: ClassVar[str] = "from_epsilon(epsilon, sensitivity)"

    @classmethod
    def from_epsilon(cls, epsilon: float, sensitivity: float) -> Self:
        """The mechanism whose noise gives pure ε-DP, of the scale `dpjax.mechanisms.laplace_scale`.

        Parameters
        ----------
        epsilon
            ε.
        sensitivity
            The L1 sensitivity Δ₁ of the released sum.

        Raises
        ------
        ValueError
            If a number is not finite and positive.

        Examples
        --------
        >>> import dpjax
        >>> dpjax.Laplace.from_epsilon(epsilon=0.5, sensitivity=2.0).scale
        4.0
        """
        return cls(laplace_scale(epsilon, sensitivity))


@names_methods
class FromZCDP(OfScale):
    """A mechanism whose scale is sensitivity / √(2ρ)."""

    _constructor: ClassVar[str] = "from_zcdp(rho, sensitivity)"

    @classmethod
    def from_zcdp(cls, rho: float, sensitivity: float) -> Self:
        """The mechanism whose noise gives ρ-zCDP, of the scale `dpjax.mechanisms.zcdp_scale`.

        Parameters
        ----------
        rho
            ρ.
        sensitivity
            The L2 sensitivity Δ₂ of the released sum.

        Raises
        ------
        ValueError
            If a number is not finite and positive.

        Examples
        --------
        >>> import dpjax
        >>> dpjax.DiscreteGaussian.from_zcdp(rho=0.02, sensitivity=1.0).scale
        5.0
        """
        return cls(zcdp_scale(rho, sensitivity))
