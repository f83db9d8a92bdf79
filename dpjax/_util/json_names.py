"""Names in JSON text: a class says its own, and is found by it when the text is read back."""

from dataclasses import fields
from typing import Any, ClassVar, Self

from dpjax._util.printing import ShownByEnds
from dpjax._util.spelling import NamesArguments
from dpjax._util.validation import fail

__all__ = ["JsonNamed"]


class JsonNamed(ShownByEnds, NamesArguments):
    """A class with a name in JSON text: ``json_name``, which its subclasses do not inherit, as they may differ.

    A family of such classes, such as all mechanisms, has a dictionary ``by_json_name`` of its own.
    """

    json_name: ClassVar[str | None] = None
    by_json_name: ClassVar[dict[str, type[Any]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Enter the class under its name."""
        super().__init_subclass__(**options)
        cls.json_name = vars(cls).get("json_name")
        if cls.json_name is None:
            return
        known = cls.by_json_name.get(cls.json_name, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            remedy = "Choose another name."
            fail("json_name", repr(cls.json_name), f"a name other than that of {known.__qualname__}", remedy)
        cls.by_json_name[cls.json_name] = cls

    def _json_fields(self) -> dict[str, Any]:
        """What the JSON text holds beside the name; of a dataclass, its fields."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def _from_json_fields(cls, **values: Any) -> Self:
        """An instance of the values that `_json_fields` gave."""
        return cls(**values)
