"""The addresses of site and repository, from `[project.urls]` of `pyproject.toml`, once an owner is named."""

import tomllib
from pathlib import Path
from typing import Any

PLACEHOLDER = "OWNER"
"""What stands in the addresses for the owner of the repository."""


def addresses() -> dict[str, str]:
    """The addresses of the project by their names."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    urls: dict[str, str] = project["urls"]
    return urls


def on_config(config: Any) -> Any:
    """Called by MkDocs: the site names its address and its repository, and neither where these are placeholders."""
    known = {name: address for name, address in addresses().items() if PLACEHOLDER not in address}
    config["site_url"], config["repo_url"] = known.get("Documentation"), known.get("Repository")
    return config
