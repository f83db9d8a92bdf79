"""Doctests are those of the modules that users load."""

import dpjax


def pytest_collection() -> None:
    """Load all of dpjax first: of a module not loaded yet, pytest makes a copy whose classes are others."""
    for name in dpjax.__all__:
        getattr(dpjax, name)
