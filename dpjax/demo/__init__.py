"""Inference from three privatized real data sets: what ``python -m dpjax demo`` runs."""

from importlib.util import find_spec
from pathlib import Path

import jax
import numpy as np

from dpjax.demo import admissions, diabetes, titanic

__all__ = ["main"]

SEED = 1
OPENING = """\
Three data sets are privatized, and each is then analysed three ways, under one model and prior:
  non-private   from the confidential data
  naive         from the release, as if it had no noise
  dpjax         from the release, its noise accounted for
The seed is fixed, so that the numbers can be reproduced; a real release keeps its noise secret.
"""


def main(output: Path) -> None:
    """Privatize, infer, print each comparison, and save a figure in the folder `output`.

    Raises
    ------
    ImportError
        If matplotlib or scikit-learn is missing.
    """
    check_extras()
    from dpjax.demo.figure import draw

    print(OPENING)
    keys, random = jax.random.split(jax.random.key(SEED), 3), np.random.default_rng(SEED)
    comparisons = []
    for compare, key in zip((admissions.compare, titanic.compare, diabetes.compare), keys, strict=True):
        comparisons.append(compare(key, random))
        print(comparisons[-1], end="\n\n", flush=True)
    path = output / "demo.png"
    output.mkdir(parents=True, exist_ok=True)
    draw(comparisons).savefig(path, dpi=150)
    draw(comparisons, upright=True).savefig(output / "demo-upright.png", dpi=150)
    print(f"The figure is in {path}, and beside it one for a narrow screen.")


def check_extras() -> None:
    """Raise if a library of the extras is missing."""
    for module, extra in (("matplotlib", "plots"), ("sklearn", "data")):
        if find_spec(module) is None:
            text = f"{module}: not installed; expected for the demo, as part of the extra `{extra}`."
            raise ImportError(f"{text} Run pip install arviz matplotlib scikit-learn.")
