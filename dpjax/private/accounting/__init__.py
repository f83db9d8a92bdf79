"""Privacy accounting of noisy queries: closed forms, composition, and the ledger that they are charged to."""

from dpjax.private.accounting.closed_form import (
    Taus,
    epsilon,
    largest_mu,
    log_delta,
    max_iterations,
    mu,
    sensitivity,
    taus_for,
)

__all__ = [
    "Taus",
    "epsilon",
    "largest_mu",
    "log_delta",
    "max_iterations",
    "mu",
    "sensitivity",
    "taus_for",
]
