"""Checks of what every run is given, before anything is compiled."""

from typing import Any

from dpjax.base import Key
from dpjax.validation import check_count, check_key, fail

__all__ = ["check_run"]

MAX_STEPS, MAX_CHAINS = 2**31, 2**20


def check_run(
    key: Key, num_chains: int, num_warmup: int, num_samples: int, thin: int, collect: Any, progress: Any
) -> None:
    """Raise unless the key, the counts and the function are usable.

    Raises
    ------
    TypeError, ValueError
        With the argument, what was given, what was expected and the remedy.
    """
    check_key("key", key)
    if check_count("num_chains", num_chains) > MAX_CHAINS:
        fail("num_chains", num_chains, f"at most {MAX_CHAINS}", "Draw more of each, or join runs: Posterior.concat.")
    check_count("num_warmup", num_warmup, "Pass a whole number; 0 for no warm-up.", least=0)
    check_count("num_samples", num_samples)
    check_count("thin", thin, "Pass 1 to keep every draw.")
    if num_warmup + num_samples * thin >= MAX_STEPS:
        given = f"{num_warmup} + {num_samples} * {thin} steps"
        fail("num_samples", given, f"fewer than {MAX_STEPS} steps in all", "Draw or thin less.")
    if collect is not None and not callable(collect):
        remedy = "Pass a function of a GibbsState, such as lambda state: state.latent.records."
        fail("collect", repr(collect), "a function or None", remedy, error=TypeError)
    if not isinstance(progress, bool):
        fail("progress", repr(progress), "True or False", "Pass False for no bar.", error=TypeError)
