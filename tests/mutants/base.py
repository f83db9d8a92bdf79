"""A mutant: one planted fault in the library, which some test must notice."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A fault that changes results, and the tests that a developer runs after a change of its file."""

    name: str
    """The fault, in words."""

    path: str
    """The mutated file, below ``dpjax/``."""

    before: str
    """What the fault replaces: it occurs exactly once in the file."""

    after: str

    tests: tuple[str, ...]
    """The nearest test files, below ``tests/``."""

    def applied(self, text: str) -> str:
        """The file's text with the fault; raises unless there is one place for it."""
        if text.count(self.before) != 1:
            raise ValueError(f"{self.name}: its place occurs {text.count(self.before)} times in {self.path}")
        return text.replace(self.before, self.after)
