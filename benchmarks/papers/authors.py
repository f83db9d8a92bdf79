"""Files of the papers' authors: a folder that is named on the command line, and which of its files a run has read.

None of them is part of this repository. Without them a run takes simulated values, and says so.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MISSING = "not given, values are simulated: name the folder of the authors' files by --data FOLDER"


def describe(folder: str | None, files: Sequence[str]) -> dict[str, str]:
    """The SHA-256 of each file that an experiment reads, or that it is missing, which standard error says as well."""
    if folder is None:
        for name in files:
            print(f"{name}: {MISSING}", file=sys.stderr, flush=True)
        return dict.fromkeys(files, MISSING)
    return {name: hashlib.sha256(find(folder, name).read_bytes()).hexdigest() for name in files}


def read(folder: str, name: str) -> Any:
    """What a JSON file of the folder holds."""
    return json.loads(find(folder, name).read_text())


def find(folder: str, name: str) -> Path:
    """The path of a file, which must be there."""
    path = Path(folder) / name
    if not path.is_file():
        raise ValueError(f"--data: given {folder}, expected a folder with {name}. Leave it out for simulated values.")
    return path
