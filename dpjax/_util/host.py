"""Programs that run once, on the host beside accelerators, which would compile them for longer than they run."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import Any

import jax

__all__ = ["chosen_device", "on_devices", "on_host", "once_on_cpu"]

CHOSEN: ContextVar[tuple[Any] | None] = ContextVar("CHOSEN", default=None)
"""JAX's default device outside of `on_host`, alone in a tuple; None where nothing was changed."""


@cache
def host() -> jax.Device | None:
    """The CPU beside the accelerators; None if chains run on CPUs, or if JAX_PLATFORMS leaves it out."""
    if jax.default_backend() != "cpu":
        with suppress(RuntimeError):
            return jax.local_devices(backend="cpu")[0]
    return None


def once_on_cpu() -> bool:
    """Whether programs that run once do so on a CPU."""
    return host() is not None or jax.default_backend() == "cpu"


def chosen_device() -> Any:
    """JAX's default device as the user has set it; None if it is not set."""
    outside = CHOSEN.get()
    return jax.config.jax_default_device if outside is None else outside[0]  # type: ignore[attr-defined]


@contextmanager
def on_host() -> Iterator[None]:
    """What is computed in the block is computed on the host, unless it is on a device already, or by `on_devices`."""
    device = host()
    if device is None or CHOSEN.get() is not None:
        yield
        return
    token = CHOSEN.set((chosen_device(),))
    try:
        with jax.default_device(device):
            yield
    finally:
        CHOSEN.reset(token)


@contextmanager
def on_devices() -> Iterator[None]:
    """JAX's default device as the user has set it, for programs of many steps within a block of `on_host`."""
    outside = CHOSEN.get()
    if outside is None:
        yield
        return
    token = CHOSEN.set(None)
    try:
        with jax.default_device(outside[0]):
            yield
    finally:
        CHOSEN.reset(token)
