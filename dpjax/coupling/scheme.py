"""How a coupled sweep places its offers and reorders the second chain, checked for being a valid combination."""

from dataclasses import dataclass
from typing import Any, Literal

from dpjax.imputation.imwg import IMwG
from dpjax.imputation.soma import SOMA
from dpjax.validation import check_count, fail

__all__ = ["Relabel", "Scheme", "make_scheme"]

Relabel = Literal["within", "between"]


@dataclass(frozen=True)
class Scheme:
    """A valid way to make a sweep; built by `make_scheme`.

    kind
        ``"soma"``, or the scan of IMwG.
    attempts
        How many records SOMA tries an offer at.
    offers
        How many offers a sweep makes.
    relabel
        ``"within"`` a sweep, ``"between"`` sweeps, or None.
    """

    kind: Literal["soma", "systematic", "random"]
    n: int
    attempts: int
    offers: int
    relabel: Relabel | None

    @property
    def is_equivariant(self) -> bool:
        """Whether an attempt commutes with permutations of the records."""
        return self.kind == "random" or (self.kind == "soma" and self.attempts == self.n)


def make_scheme(imputation: Any, n: int, relabel: bool | Relabel, offers: int | None) -> Scheme:
    """The scheme of an imputation for n records.

    Parameters
    ----------
    imputation
        ``imwg(...)`` or ``soma(...)`` with a number of attempts or None.
    relabel
        False keeps places as they are, as in the papers. ``"within"`` reorders the second chain after each attempt,
        ``"between"`` after each sweep; True takes the first of these that is valid.
    offers
        How many offers a sweep makes; None for n.

    Raises
    ------
    TypeError
        If the imputation is of another kind.
    ValueError
        If ``"within"`` is asked of a systematic scan or of windows, whose kernel does not commute with permutations;
        or another number of offers than n of one of these, whose sweep is one pass over all records.
    """
    kind: Literal["soma", "systematic", "random"]
    if isinstance(imputation, IMwG):
        kind, attempts = imputation.scan, 1
    elif isinstance(imputation, SOMA):
        kind, attempts = "soma", check_attempts(imputation.attempts, n)
    else:
        remedy = "Couple dpjax.imwg(...) or dpjax.soma(...)."
        fail("imputation", repr(imputation), "an imputation whose coupling is known", remedy, error=TypeError)
    count = n if offers is None else check_count("offers", offers)
    free = Scheme(kind, n, attempts, count, None)
    if not free.is_equivariant and count != n:
        fail("offers", count, f"n = {n}, one pass over all records", "Leave offers out.")
    return Scheme(kind, n, attempts, count, check_relabel(relabel, free))


def check_relabel(relabel: Any, scheme: Scheme) -> Relabel | None:
    """Where a scheme may reorder, or an error."""
    if relabel is False:
        return None
    if relabel is True:
        return "within" if scheme.is_equivariant else "between"
    if relabel not in ("within", "between"):
        fail("relabel", repr(relabel), "True, False, 'within' or 'between'", "True takes what is valid.")
    if relabel == "within" and not scheme.is_equivariant:
        given = "'within' with " + ("windows of records" if scheme.kind == "soma" else "a systematic scan")
        expected = "a kernel that commutes with permutations: full SOMA or a random scan"
        fail("relabel", given, expected, "Use relabel='between': the second chain would have the wrong law.")
    return relabel


def check_attempts(attempts: Any, n: int) -> int:
    """The number of attempts, within 1..n."""
    if attempts == "auto":
        fail("attempts", "'auto'", "a number, so that all pairs run one kernel", "Pass a number, or None for all n.")
    if attempts is not None and attempts > n:
        fail("attempts", attempts, f"a whole number in 1..{n}", "Try at most all n records per offer.")
    return n if attempts is None else attempts
