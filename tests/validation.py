"""Figures of the harnesses, for the site's page on validation."""

import json
import os
from pathlib import Path


def record(name: str, **figures: object) -> None:
    """Keep the figures of one harness in `$DPJAX_VALIDATION/<name>.json`, where that folder is asked for."""
    folder = os.environ.get("DPJAX_VALIDATION")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{name}.json").write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
