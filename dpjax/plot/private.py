"""The privacy budget of a ledger and what its queries have spent."""

from typing import Any

import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_instance
from dpjax.plot.style import BAND, INK, POSTERIOR, new_axes, tidy
from dpjax.private import Ledger
from dpjax.private.accounting.composition import composed_epsilon
from dpjax.private.accounting.query import Query


@names_arguments
def budget(ledger: Ledger, *, axes: Any = None) -> Any:
    """The ε spent by the queries of a `private.Ledger`, one row for each kind of query, and the rest of the budget.

    Kinds are in the order of their first queries. Each bar is the increase of the composed ε at the budget's δ, so bars
    add up to the total. By composition, later queries add less than they would cost alone.

    Parameters
    ----------
    ledger
        The ledger, with or without queries.
    axes
        Matplotlib axes to draw into; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with the first kind of query on top and the remaining budget at the bottom.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If `ledger` is not a ledger.

    Examples
    --------
    >>> import dpjax
    >>> from dpjax import private
    >>> from matplotlib.figure import Figure
    >>> ledger = private.Ledger(private.Budget(epsilon=4.0, delta=1e-6, neighbours="replace-one"))
    >>> ledger.charge([private.Query("gradient", 40.0, "secure")], times=150)
    >>> dpjax.plot.budget(ledger, axes=Figure().subplots()).get_title()
    'spent: 2.82 of 4 (secure)'
    """
    check_instance("ledger", ledger, Ledger, "Pass the dpjax.private.Ledger that the runs were charged to.")
    queries, promise = ledger.queries, ledger.budget
    ends = [composed_epsilon(queries[:number], promise.delta, promise.neighbours) for number in range(len(queries) + 1)]
    axes = new_axes(axes, 6.0, 1.2 + 0.38 * (len(queries) + 1))
    rows = np.arange(len(queries))
    axes.barh(rows, np.diff(ends), left=ends[:-1], height=0.6, color=POSTERIOR)
    axes.barh(len(queries), promise.epsilon - ends[-1], left=ends[-1], height=0.6, color=BAND)
    names = [name_query(query) for query in queries]
    axes.set_yticks(range(len(queries) + 1), [*names, f"left: {promise.epsilon - ends[-1]:.3g}"])
    axes.axvline(promise.epsilon, color=INK, linewidth=1)
    grade = ledger.privacy_spent().grade
    axes.set(
        xlabel=f"ε at δ = {promise.delta:g}, {promise.neighbours}",
        title=f"spent: {ends[-1]:.3g} of {promise.epsilon:g}{f' ({grade})' * bool(grade)}",
        ylim=(len(queries) + 0.6, -0.6),
        xlim=(0, 1.03 * promise.epsilon),
    )
    axes.tick_params(axis="y", length=0)
    tidy(axes, "left")
    return axes


def name_query(query: Query) -> str:
    """The number, name, sampling rate and noise of a kind of query, as text."""
    share = "" if query.sampling_rate == 1 else f" of {100 * query.sampling_rate:.3g} %"
    return f"{query.count:,} × {query.name}{share}, noise {query.noise_multiplier:.3g}"
