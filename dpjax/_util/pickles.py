"""Pickling of results with parts that may not be picklable: those are left out, and using them is an error."""

import copy
import pickle
from dataclasses import fields, replace
from typing import Any, NamedTuple, Never, Self

from dpjax._util.validation import fail, summarize_error

__all__ = ["Missing", "Pickled", "content_of", "is_missing"]


class Packed(NamedTuple):
    """A part of a result as a pickle of its own, which may fail to load elsewhere."""

    content: bytes


class Missing:
    """A placeholder for a part that was left out of a pickle; any use of it raises an error that names the part."""

    def __init__(self, part: str, why: str) -> None:
        self.__dict__.update(part=part, why=why)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.refuse()

    def refuse(self) -> Never:
        """Raise the error for a result without this part."""
        expected = f"the {self.part} that the draws were made with"
        remedy = (
            f"Put it back: dataclasses.replace(posterior, {self.part}=...). A pickle keeps functions at the top of a "
            "module, which can be imported where it is read, and a file of save none."
        )
        fail(self.part, f"a result that came from a pickle or file without it ({self.why})", expected, remedy)

    def __repr__(self) -> str:
        return f"no {self.part}, which was left out"


def is_missing(part: Any) -> bool:
    """Whether a part was left out of a pickle."""
    return isinstance(part, Missing)


class Pickled:
    """A frozen dataclass whose `PARTS` hold functions, which a pickle stores by their qualified names."""

    PARTS: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {name: pack(name, value) if name in self.PARTS else value for name, value in content_of(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: unpack(name, value) for name, value in state.items()})

    def __copy__(self) -> Self:
        return replace(self)  # type: ignore[type-var]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        state = {
            name: value if name in self.PARTS else copy.deepcopy(value, memo)
            for name, value in content_of(self).items()
        }
        return replace(self, **state)  # type: ignore[type-var]


def content_of(result: Any) -> dict[str, Any]:
    """The fields of a result by name, without what was derived from them."""
    return {entry.name: getattr(result, entry.name) for entry in fields(result) if entry.init}


def pack(name: str, part: Any) -> Packed | Missing:
    """A part as a pickle, or its placeholder if it cannot be pickled."""
    if is_missing(part):
        return part
    try:
        return Packed(pickle.dumps(part))
    except Exception as error:  # a user's part may raise anything
        return Missing(name, f"it could not be written: {summarize_error(error)}")


def unpack(name: str, value: Any) -> Any:
    """The part that was packed, or its placeholder if it cannot be read here."""
    if not isinstance(value, Packed):
        return value
    try:
        return pickle.loads(value.content)
    except Exception as error:  # a missing module, or a function that has moved
        return Missing(name, f"it could not be read: {summarize_error(error)}")
