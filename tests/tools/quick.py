"""What `make quick` runs before a commit, within a budget: a core of the tests, and those closest to what has changed.

``python -m tests.tools.quick`` prints them as arguments of pytest. Changed test files run whole, of others the light
tests. First come those of the changed file itself, then those that import the fewest modules of dpjax, as they say most
about the change.
"""

import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.tools.weights import ROOT, read_weights, weigh

CORE = (
    "tests/extension/test_new_statistic.py",
    "tests/mechanisms/test_exact.py",
    "tests/mcmc/test_inputs.py",
    "tests/test_project.py",
    "tests/test_public_api.py",
)
"""Files of few seconds each that nearly every change passes through."""

BUDGET = 30.0
"""J of the tests chosen; processes that import the tests take as much again."""

IMPORTS = re.compile(r"^(?:from (dpjax[\w.]*) import ([\w, ]+)|import (dpjax[\w.]*))", re.M)


def changed_files() -> list[str]:
    """Files that differ from the last commit; where none does, those of that commit."""
    changed = git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")
    return changed or git("diff", "--name-only", "HEAD~1", "HEAD")


def git(*arguments: str) -> list[str]:
    """The lines that git prints; none outside a repository."""
    found = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.split()


def modules_of(text: str) -> set[str]:
    """The modules of dpjax that a file imports, with the names imported from them."""
    found = set()
    for source, names, module in IMPORTS.findall(text):
        found |= {source or module} | {f"{source}.{name.strip()}" for name in names.split(",") if source}
    return found


def choose(changed: list[str], tests: dict[str, set[str]], weight: Callable[[str], float]) -> list[str]:
    """The test files to run for changed files, given the modules that each imports and its weight."""
    own = [path for path in changed if path in tests]
    modules = {path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in changed}
    beside = [path for path in map(tests_of, changed) if path in tests]
    close = sorted((path for path in tests if tests[path] & modules), key=lambda path: (len(tests[path]), path))
    return list(within(dict.fromkeys([*CORE, *own, *beside, *close]), weight))


def tests_of(path: str) -> str:
    """The test file of a file of the source, in the folder of the same name."""
    return str(Path("tests", *Path(path).parts[1:-1], f"test_{Path(path).name}"))


def within(paths: Iterable[str], weight: Callable[[str], float]) -> Iterator[str]:
    """The paths from the first on whose weights together are within the budget."""
    left = BUDGET
    for path in paths:
        if weight(path) <= left:
            left -= weight(path)
            yield path


def imports_of_tests() -> dict[str, set[str]]:
    """The test files, and the modules that each imports."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return {str(path.relative_to(ROOT)): modules_of(path.read_text()) for path in files}


def arguments(changed: list[str]) -> list[str]:
    """The files to run, those of them that run whole named once more."""
    known = read_weights()

    def weight(path: str) -> float:
        return weigh(known, path, ("float64",) if path in changed else ("light",))

    chosen = choose(changed, imports_of_tests(), weight)
    return [*chosen, *[f"--whole={path}" for path in chosen if path in changed]]


if __name__ == "__main__":
    print(*arguments(changed_files()))
