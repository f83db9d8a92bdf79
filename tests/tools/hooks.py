"""The hooks of the site, which are not part of a package."""

import importlib.util
from pathlib import Path
from types import ModuleType


def load_hook(name: str) -> ModuleType:
    """The hook ``docs/hooks/NAME.py``."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / f"docs/hooks/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
