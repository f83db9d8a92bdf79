"""What a release promises: metadata that inference never needs."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from dpjax._util.spelling import NamesArguments
from dpjax._util.validation import check_choice, check_count, check_moderate, check_positive, fail

Notion = Literal["pure", "approximate", "zcdp", "local"]
Neighbours = Literal["replace-one", "add-or-remove"]
NEEDED = {"pure": ("epsilon",), "approximate": ("epsilon", "delta"), "zcdp": ("rho",), "local": ("epsilon",)}


@dataclass(frozen=True)
class Privacy(NamesArguments):
    """The privacy promise of a mechanism, as published with a release.

    Parameters
    ----------
    notion
        ``"pure"`` (ε), ``"approximate"`` (ε, δ), ``"zcdp"`` (ρ) or ``"local"`` (ε per record).
    neighbours
        The neighbouring relation: ``"replace-one"`` or ``"add-or-remove"``. It is never assumed.
    epsilon
        ε, if the notion has it.
    delta
        δ, likewise.
    rho
        ρ, likewise.
    sensitivity
        The sensitivity to which the noise was calibrated, if known.
    norm
        Its norm, 1 or 2, if known.
    max_rows
        The most records that one person has in the release, if the promise is made to people with several of them.

    Raises
    ------
    TypeError
        If a value is not a plain number: the metadata is hashed with compiled programs.
    ValueError
        If a value that the notion needs is missing, or a value is out of range.

    Examples
    --------
    >>> import dpjax
    >>> promise = dpjax.mechanisms.Privacy("zcdp", "add-or-remove", rho=0.1)
    >>> dpjax.Laplace(2.0, privacy=dpjax.mechanisms.Privacy("pure", "replace-one", epsilon=1.0)).privacy.epsilon
    1.0
    """

    notion: Notion
    neighbours: Neighbours
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    sensitivity: float | None = None
    norm: Literal[1, 2] | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        check_choice("notion", self.notion, NEEDED, "Name the notion of privacy.")
        check_neighbours(self.neighbours)
        if self.norm is not None:
            check_choice("norm", self.norm, (1, 2), "Name the norm of the sensitivity.")
        for name in ("epsilon", "delta", "rho", "sensitivity"):
            self._check_value(name, getattr(self, name))
        if self.max_rows is not None:
            check_count("max_rows", self.max_rows)

    def _check_value(self, name: str, value: float | None) -> None:
        """Raise unless a value is a positive number, or absent if the notion does not need it."""
        if value is None:
            if name in NEEDED[self.notion]:
                fail(name, "None", f"a number, for {self.notion} privacy", "Pass the value that was published.")
            return
        if isinstance(value, bool) or not isinstance(value, Real):
            remedy = "Convert it with float(...), so that the metadata can be hashed."
            fail(name, type(value).__name__, "a plain number", remedy, error=TypeError)
        check_positive(name, value)
        if name != "delta":
            check_moderate(name, value)
        elif not value < 1:
            fail(name, value, "a number in (0, 1)", "Pass the δ of (ε, δ)-DP.")


def check_neighbours(neighbours: Any) -> None:
    """Raise unless the neighbouring relation is named."""
    check_choice("neighbours", neighbours, ("replace-one", "add-or-remove"), "State the relation.")


def check_privacy(privacy: Any) -> None:
    """Raise unless what a release promises is stated as a `Privacy`."""
    if not (privacy is None or isinstance(privacy, Privacy)):
        remedy = "Pass dpjax.mechanisms.Privacy(notion, neighbours, ...), or leave it out: inference never needs it."
        fail("privacy", repr(privacy), "a Privacy or None", remedy, error=TypeError)
