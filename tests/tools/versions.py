"""What must agree before a version is released: ``python -m tests.tools.versions`` lists what does not.

``make release`` runs it, then every check, and builds the site and the wheel. It pushes and uploads nothing.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import dpjax

ROOT = Path(__file__).parents[2]
PLACEHOLDER = "OWNER"


def problems(root: Path = ROOT) -> Iterator[str]:
    """One line for each thing to do."""
    changelog, citation = ((root / name).read_text() for name in ("CHANGELOG.md", "CITATION.cff"))
    urls = tomllib.loads((root / "pyproject.toml").read_text())["project"]["urls"]
    if any(PLACEHOLDER in address for address in urls.values()):
        yield f"pyproject.toml: name the owner in place of {PLACEHOLDER} in [project.urls]"
    if f'repository-code: "{urls["Repository"]}"' not in citation:
        yield f"CITATION.cff: repository-code is not {urls['Repository']}, as pyproject.toml says"
    if f"\nversion: {dpjax.__version__}\n" not in citation:
        yield f"CITATION.cff: the version is not {dpjax.__version__}"
    if not re.search(rf"^## \[{re.escape(dpjax.__version__)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.M):
        yield f"CHANGELOG.md: {dpjax.__version__} has no date"
    if not re.search(r"^date-released: \d{4}-\d\d-\d\d$", citation, re.M):
        yield "CITATION.cff: there is no date-released"


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found) or f"{dpjax.__version__} can be released")
    sys.exit(bool(found))
