"""The privacy that a data holder is willing to spend."""

from dataclasses import dataclass

from dpjax.mechanisms.privacy import Neighbours, check_neighbours
from dpjax.private.accounting.closed_form import check_delta, check_epsilon
from dpjax.private.arguments import check_real
from dpjax.validation import check_positive


@dataclass(frozen=True)
class Budget:
    """A promise of (ε, δ)-differential privacy for everything computed from one set of records.

    There are no defaults: what is promised is a decision about the people in the data, not of a library.

    Parameters
    ----------
    epsilon
        ε of the promise, above 0.
    delta
        δ of the promise, in (0, 1); well below one over the number of records.
    neighbours
        Whether two data sets are neighbours when one record is replaced (``"replace-one"``; the number of records is
        public) or added or removed (``"add-or-remove"``). The sensitivity of a sum differs by a factor of 2.

    Raises
    ------
    TypeError, ValueError
        If a value is no number or out of range, or the relation is not named.

    Examples
    --------
    >>> budget = Budget(1.0, 1e-6, neighbours="replace-one")
    >>> print(budget)
    (ε = 1, δ = 1e-06) for replace-one neighbours
    """

    epsilon: float
    delta: float
    neighbours: Neighbours

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon))
        object.__setattr__(self, "delta", check_real("delta", self.delta))
        check_positive("epsilon", self.epsilon)
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_neighbours(self.neighbours)

    def __str__(self) -> str:
        return f"(ε = {self.epsilon:g}, δ = {self.delta:g}) for {self.neighbours} neighbours"
