"""Queries: the noisy sums that a run computes from the records, from which its privacy is computed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from dpjax._util.spelling import NamesArguments
from dpjax._util.validation import check_choice, check_count, check_moderate, check_positive, check_text, describe, fail
from dpjax.mechanisms.calibration import check_epsilon
from dpjax.mechanisms.privacy import Neighbours, check_neighbours
from dpjax.private.accounting.closed_form import check_delta
from dpjax.private.arguments import check_real

Grade = Literal["secure", "simulation-grade"]
NoiseFamily = Literal["gaussian", "laplace"]

LEAST_MULTIPLIER = 1e-12
"""Smallest noise multiplier: far below any protection, and far from floating-point underflow of squares."""


MOST_SUMS = 2**128
"""Largest count of a query, of whole runs counted together: its square root and its products stay floats."""


@dataclass(frozen=True)
class Query(NamesArguments):
    """Sums over records of vectors of bounded norm, each released with Gaussian or Laplace noise.

    It does not depend on the neighbouring relation: replacing a record moves such a sum by up to twice the bound,
    adding or removing one by up to the bound. The `Ledger` has the relation.

    Parameters
    ----------
    name
        The name of the query, such as ``"gradient"``.
    noise_multiplier
        The standard deviation of Gaussian noise over the bound of one record's L2 norm, or the scale of Laplace noise
        over that of its L1 norm. With noise of 2 τ b (Algorithm 1 of
        Räisä, Koskela and Honkela 2021) it is 2 τ under either relation. Noise sources return queries with a
        multiplier that is lower than what it seems if their rounding costs something; see `Noise.query`.
    grade
        Whether the noise is fit to protect anyone: that of the noise source.
    count
        How many such sums.
    sampling_rate
        The probability with which each record takes part, independently for each record and sum (Poisson sampling);
        1 for all records, as Laplace noise needs.
    noise
        ``"gaussian"`` or ``"laplace"``, discrete or not.

    Raises
    ------
    TypeError, ValueError
        If a value is out of range.

    Examples
    --------
    >>> import dpjax
    >>> query = dpjax.private.Query("gradient", noise_multiplier=20.0, grade="secure", count=10)
    >>> query.sampling_rate
    1.0
    """

    name: str
    noise_multiplier: float
    grade: Grade
    count: int = 1
    sampling_rate: float = 1.0
    noise: NoiseFamily = "gaussian"

    def __post_init__(self) -> None:
        check_text("name", self.name, "Name the query, such as 'gradient'.")
        multiplier = check_real("noise_multiplier", self.noise_multiplier)
        check_positive("noise_multiplier", multiplier, "Without noise there is no privacy.")
        if not LEAST_MULTIPLIER <= multiplier <= 1 / LEAST_MULTIPLIER:
            expected = f"a number from {LEAST_MULTIPLIER:g} to {1 / LEAST_MULTIPLIER:g}"
            fail("noise_multiplier", multiplier, expected, "Give noise and bound in units of order 1.")
        rate = check_real("sampling_rate", self.sampling_rate)
        if not 0 < rate <= 1:
            fail("sampling_rate", self.sampling_rate, "a probability in (0, 1]", "Pass the chance of one record.")
        # NumPy's integers wrap round if counts are multiplied, and its short floats round.
        for name, plain in (
            ("noise_multiplier", multiplier),
            ("count", check_count("count", self.count, most=MOST_SUMS)),
            ("sampling_rate", rate),
        ):
            object.__setattr__(self, name, plain)
        check_choice("grade", self.grade, ("secure", "simulation-grade"), "Take the grade of the noise source.")
        check_choice("noise", self.noise, ("gaussian", "laplace"), "Name the family of the noise.")
        if self.noise == "laplace" and rate < 1:
            remedy = "Ask for a sum over all records."
            fail("sampling_rate", rate, "1, for Laplace noise", remedy)


def check_queries(queries: Any, *, least: int = 1) -> tuple[Query, ...]:
    """The queries as a tuple, or an error unless there are so many."""
    are_queries = isinstance(queries, (list, tuple)) and all(isinstance(one, Query) for one in queries)
    if not are_queries or len(queries) < least:
        expected = f"a sequence of at least {least} dpjax.private.Query"
        fail("queries", describe(queries), expected, "Pass a sequence of them.", error=TypeError)
    return tuple(queries)


def total(queries: Sequence[Query], times: int = 1) -> tuple[Query, ...]:
    """The same queries with equal ones counted together, each `times` times, in the order of first appearance."""
    counts: dict[Query, int] = {}
    for query in queries:
        kind = replace(query, count=1)
        counts[kind] = counts.get(kind, 0) + query.count * times
    return tuple(replace(kind, count=count) for kind, count in counts.items())


@dataclass(frozen=True)
class Budget(NamesArguments):
    """A promise of (ε, δ)-differential privacy for everything computed from one set of records.

    There are no defaults: what is promised is a decision about the people in the data, not of a library.

    Parameters
    ----------
    epsilon
        ε of the promise, above 0.
    delta
        δ of the promise, in [0, 1); well below one over the number of records. With 0 only Laplace noise is
        allowed.
    neighbours
        Whether two data sets are neighbours when one record is replaced (``"replace-one"``; the number of records is
        public) or added or removed (``"add-or-remove"``). The sensitivity of a sum differs by a factor of 2.

    Raises
    ------
    TypeError, ValueError
        If a value is no number or out of range, or the relation is not named.

    Examples
    --------
    >>> import dpjax
    >>> budget = dpjax.private.Budget(1.0, 1e-6, neighbours="replace-one")
    >>> print(budget)
    (ε = 1, δ = 1e-06) for replace-one neighbours
    """

    epsilon: float
    delta: float
    neighbours: Neighbours

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon))
        object.__setattr__(self, "delta", check_real("delta", self.delta))
        check_moderate("epsilon", self.epsilon)
        check_epsilon(self.epsilon)
        if self.delta != 0:
            check_delta(self.delta)
        check_neighbours(self.neighbours)

    def __str__(self) -> str:
        return f"(ε = {self.epsilon:g}, δ = {self.delta:g}) for {self.neighbours} neighbours"
