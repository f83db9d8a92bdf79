"""Mechanisms with real noise in place of whole numbers, for densities that are taken over the reals."""

from dataclasses import replace

from dpjax._util.validation import name_of
from dpjax.mechanisms.base import Mechanism, as_mechanism
from dpjax.mechanisms.composite import Independent

__all__ = ["smoothed"]


def smoothed(mechanism: Mechanism) -> Mechanism:
    """The mechanism with real noise of the same variance in place of whole numbers; itself if its noise is real.

    Raises
    ------
    NotImplementedError
        If none is known.
    """
    if mechanism.parts is not None:
        parts, sizes = zip(*mechanism.parts, strict=True)
        return Independent(tuple(smoothed(as_mechanism(part)) for part in parts), sizes)
    if mechanism.inner is not None:
        return replace(mechanism, mechanism=smoothed(mechanism.inner))  # type: ignore[type-var]
    if mechanism.noise is not None and mechanism.noise.smoothed is not None:
        return mechanism.noise.smoothed()
    if mechanism.integer_noise:
        raise NotImplementedError(f"{name_of(mechanism)} has no real noise of the same variance")
    return mechanism
