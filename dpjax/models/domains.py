"""What the records of a model can be."""

from dataclasses import replace

from dpjax.base import Model
from dpjax.domain import UNLISTED, Domain, listed_by

__all__ = ["domain_of"]


def domain_of(model: Model) -> Domain:
    """The domain of a model's records; if it is not finite, of the discrete fields among others that are listed."""
    if model.support is not None:
        return listed_by(model.support)
    lists = model.mixed.levels if model.has("mixed") else model.discrete_support
    return UNLISTED if lists is None else replace(listed_by(lists), is_finite=False)
