"""The probabilities of the levels of some columns, as draws: margins and conditional probabilities by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from dpjax._util.printing import Printed
from dpjax._util.spelling import names_methods
from dpjax._util.validation import describe, fail, name_of
from dpjax.base import Array, Model, Parameters
from dpjax.diagnostics.summary import QUANTILES, Summary, summarize, tabulate
from dpjax.models.programs import jit_model
from dpjax.models.simulation import parameter_shapes
from dpjax.posterior.reports import level_names_of

__all__ = ["HasMargins", "Margin", "Margins"]

AT_ONCE = 64
"""Draws whose margins are computed side by side."""


@runtime_checkable
class HasMargins(Protocol):
    """A model of columns of finitely many levels, which knows the probabilities of those of any of them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""

    def margin(self, parameters: Parameters, fields: tuple[str, ...]) -> Array:
        """The probabilities [levels, ...] of all combinations of the levels of these fields."""


@names_methods
@dataclass(frozen=True, eq=False, repr=False)
class Margin(Printed):
    """Draws of the probabilities of combinations of levels; see `Posterior.margin`.

    Parameters
    ----------
    fields
        The columns, one for each axis of levels.
    given
        Those of them that are conditioned on, which are the last ones.
    draws
        The probabilities [chain, draw, ...] with an axis of levels for each column.
    level_names
        The names of the levels of columns that have such.

    Examples
    --------
    >>> from dpjax.posterior.margins import Margin
    >>> import numpy as np
    >>> Margin(("sex",), (), np.full((1, 2, 2), 0.5), {"sex": ("female", "male")})
    P(sex): 1 chain of 2 draws of [2] probabilities
    """

    fields: tuple[str, ...]
    given: tuple[str, ...]
    draws: np.ndarray
    level_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is, such as ``P(income | sex)``."""
        free = ", ".join(self.fields[: len(self.fields) - len(self.given)])
        return f"P({free} | {', '.join(self.given)})" if self.given else f"P({free})"

    def __repr__(self) -> str:
        chains, number, *levels = self.draws.shape
        return f"{self.name}: {chains} chain{'s' * (chains != 1)} of {number} draws of {levels} probabilities"

    def summary(self, *, quantiles: Sequence[float] = QUANTILES) -> Summary:
        """Mean, sd, quantiles, errors and effective sizes of each probability, a row for each combination of levels.

        Parameters
        ----------
        quantiles
            The probabilities of the quantiles.
        """
        sizes = zip(self.fields, self.draws.shape[2:], strict=True)
        labels = tuple(self.level_names.get(name, tuple(map(str, range(size)))) for name, size in sizes)
        return tabulate({self.name: summarize(self.draws, quantiles)}, labels={self.name: labels})


@names_methods
class Margins:
    """What a posterior says of columns by name."""

    model: Model
    draws: dict[str, np.ndarray]

    def margin(self, *fields: str, given: str | Sequence[str] = ()) -> Margin:
        """The probabilities of the levels of some columns, also of columns that no released table has together.

        Parameters
        ----------
        *fields
            The columns, such as ``"sex", "income"``.
        given
            The columns that are conditioned on: ``posterior.margin("income", given="sex")`` has P(income | sex).

        Returns
        -------
        Margin
            With ``draws`` [chain, draw, ...], an axis of levels for each column, first of the fields and then of those
            given. Differences and odds ratios are functions of them.

        Raises
        ------
        TypeError, ValueError
            If the model is not `dpjax.models.log_linear`, `dpjax.models.latent_classes` or `dpjax.models.categorical`
            with fields, or has no such columns. If the margin of these columns would need a table of more than 2²⁴
            entries.

        Examples
        --------
        >>> import dpjax, jax
        >>> model = dpjax.models.log_linear({"sex": ["f", "m"], "age": 3}, [("sex", "age")])
        >>> table = dpjax.statistics.cells(["sex", "age"], [2, 3])
        >>> release = dpjax.Release([7, 2, 9, 3, 8, 1], dpjax.DiscreteGaussian(2.0), table, n=30)
        >>> posterior = dpjax.sample(jax.random.key(1), model, release, num_warmup=50, num_samples=50, progress=False)
        >>> posterior.margin("age", given="sex").draws.shape
        (4, 50, 3, 2)
        """
        if not isinstance(given, (str, list, tuple)):
            remedy = "Name the columns alone, and take a level of theirs from the last axes of the draws."
            fail("given", describe(given), "names of columns", remedy, error=TypeError)
        under = (given,) if isinstance(given, str) else tuple(given)
        columns = check_columns(self.model, fields, under)
        own = {name: self.draws[name] for name in parameter_shapes(self.model)}
        chains = next(iter(own.values())).shape[:2]
        merged = {name: leaf.reshape(-1, *leaf.shape[2:]) for name, leaf in own.items()}
        found = np.asarray(margins_at(self.model, columns, merged))
        if under:
            found = found / found.sum(axis=tuple(range(1, 1 + len(fields))), keepdims=True)
        names = level_names_of(self)  # type: ignore[arg-type]
        return Margin(columns, under, found.reshape(*chains, *found.shape[1:]), names)


@partial(jit_model, static_argnames=("fields",))
def margins_at(model: Any, fields: tuple[str, ...], draws: Parameters) -> Array:
    """The probabilities [draw, levels, ...] of the levels of some columns at each draw [draw, ...]."""
    return jax.lax.map(lambda parameters: model.margin(parameters, fields), draws, batch_size=AT_ONCE)


def check_columns(model: Any, fields: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[str, ...]:
    """The columns of a margin, or an error unless the model has each of them."""
    if not isinstance(model, HasMargins):
        expected = "dpjax.models.log_linear or latent_classes, or dpjax.models.categorical with fields"
        fail("model", name_of(model), expected, "Their columns have names.", error=TypeError)
    known, columns = model.columns, (*fields, *given)
    for column in columns:
        if not isinstance(column, str):
            fail(
                "fields",
                describe(column),
                f"names of columns, of {list(known)}",
                "Pass texts, one by one.",
                error=TypeError,
            )
    if not fields or not set(columns) <= set(known) or len(set(columns)) != len(columns):
        remedy = "Pass one or more of them, each once, such as margin('income', given='sex')."
        fail("fields", list(columns), f"columns of the model, {list(known)}", remedy)
    return columns
