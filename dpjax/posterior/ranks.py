"""Posterior probabilities of ranks, such as which group is highest."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpjax._util.validation import fail
from dpjax.diagnostics.summary import Summary, check_quantiles, quantile_name, tabulate

__all__ = ["tabulate_ranks"]


def tabulate_ranks(draws: Mapping[str, np.ndarray], name: Any, quantiles: Any, labels: Any) -> Summary:
    """The table of ranks of the entries of one quantity, as `Posterior.ranks` describes it."""
    remedy = f"Pass one of {', '.join(one for one, own in draws.items() if own.ndim > 2) or 'several numbers'}."
    if not isinstance(name, str) or name not in draws:
        fail("name", repr(name), "the name of a quantity of several numbers", remedy)
    values = draws[name]
    if values.ndim < 3 or values[0, 0].size < 2:
        fail("name", f"{name!r}, which is one number", "a quantity of several numbers", remedy)
    flat = values.reshape(-1, values[0, 0].size)
    ranks = flat.shape[1] - np.argsort(np.argsort(flat, axis=1, kind="stable"), axis=1)
    levels = check_quantiles(quantiles)
    found = np.quantile(ranks, levels, axis=0, method="inverted_cdf")
    columns = {
        "mean": ranks.mean(axis=0),
        **{quantile_name(level): own for level, own in zip(levels, found, strict=True)},
        "highest": np.mean(ranks == 1, axis=0),
        "lowest": np.mean(ranks == flat.shape[1], axis=0),
    }
    return tabulate({name: {key: own.reshape(values.shape[2:]) for key, own in columns.items()}}, labels=labels)
