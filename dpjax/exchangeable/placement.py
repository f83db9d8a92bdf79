"""Where the offers of a sweep are made: SOMA tries each at several records, IMwG at one, by either scan."""

from dataclasses import dataclass
from typing import Any, Literal

from dpjax.imputation.imwg import IMwG
from dpjax.imputation.soma import SOMA
from dpjax.validation import check_count, fail

__all__ = ["Placement", "make_placement"]


@dataclass(frozen=True)
class Placement:
    """Where the offers of a sweep over n records are made; built by `make_placement`.

    Parameters
    ----------
    kind
        ``"soma"``, or the scan of IMwG.
    attempts
        How many records an offer is tried at: 1 of IMwG.
    offers
        How many offers a sweep makes.
    """

    kind: Literal["soma", "systematic", "random"]
    n: int
    attempts: int
    offers: int

    @property
    def is_equivariant(self) -> bool:
        """Whether an offer's kernel commutes with permutations of the records: full SOMA and random-scan IMwG."""
        return self.kind == "random" or (self.kind == "soma" and self.attempts == self.n)


def make_placement(imputation: Any, n: int, offers: int | None = None) -> Placement:
    """The placement of an imputation's offers to n records.

    Parameters
    ----------
    imputation
        ``imwg(...)`` or ``soma(...)`` with a number of attempts or None.
    offers
        How many offers a sweep makes; None for n.

    Raises
    ------
    TypeError
        If the imputation is of another kind.
    ValueError
        If the number of attempts is left open or exceeds n, or the number of offers is not n where a sweep is one pass
        over all records, as of windows and of a systematic scan.
    """
    kind: Literal["soma", "systematic", "random"]
    if isinstance(imputation, IMwG):
        kind, attempts = imputation.scan, 1
    elif isinstance(imputation, SOMA):
        kind, attempts = "soma", check_attempts(imputation.attempts, n)
    else:
        remedy = "Use dpjax.imwg(...) or dpjax.soma(...)."
        fail("imputation", repr(imputation), "an imputation whose coupling is known", remedy, error=TypeError)
    placement = Placement(kind, n, attempts, n if offers is None else check_count("offers", offers))
    if not placement.is_equivariant and placement.offers != n:
        fail("offers", placement.offers, f"n = {n}, one pass over all records", "Leave offers out.")
    return placement


def check_attempts(attempts: Any, n: int) -> int:
    """The number of attempts, within 1..n."""
    if attempts == "auto":
        fail("attempts", "'auto'", "a number, so that all pairs run one kernel", "Pass a number, or None for all n.")
    if attempts is not None and attempts > n:
        fail("attempts", attempts, f"a whole number in 1..{n}", "Try at most all n records per offer.")
    return n if attempts is None else attempts
