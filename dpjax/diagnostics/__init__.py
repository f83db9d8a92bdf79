"""How good draws are: convergence and accuracy, the table of a summary, and warnings."""

from dpjax.diagnostics.convergence import (
    ess_bulk,
    ess_mean,
    ess_quantile,
    ess_tail,
    mcse_mean,
    mcse_quantile,
    mcse_sd,
    split_r_hat,
)

__all__ = [
    "ess_bulk",
    "ess_mean",
    "ess_quantile",
    "ess_tail",
    "mcse_mean",
    "mcse_quantile",
    "mcse_sd",
    "split_r_hat",
]
