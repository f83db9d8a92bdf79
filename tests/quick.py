"""The test files to run before a commit, for `make quick`: a core, and those closest to what has changed.

``python -m tests.quick`` prints them: changed tests first, then tests that import a changed module, those that import
the fewest modules of dpjax before others, as they say most about the change.
"""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = (
    "tests/extension/test_new_statistic.py",
    "tests/mechanisms/test_exact.py",
    "tests/mcmc/test_inputs.py",
    "tests/test_project.py",
    "tests/test_public_api.py",
)
"""Files of few seconds each that nearly every change passes through."""

MOST_FILES = 12
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


def choose(changed: list[str], tests: dict[str, set[str]]) -> list[str]:
    """The test files to run for changed files, given what each test file imports."""
    own = [path for path in changed if path in tests]
    modules = {path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in changed}
    close = sorted((path for path in tests if tests[path] & modules), key=lambda path: (len(tests[path]), path))
    return list(dict.fromkeys([*CORE, *[*own, *close][:MOST_FILES]]))


def imports_of_tests() -> dict[str, set[str]]:
    """The test files, and the modules that each imports."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return {str(path.relative_to(ROOT)): modules_of(path.read_text()) for path in files}


if __name__ == "__main__":
    print(*choose(changed_files(), imports_of_tests()))
