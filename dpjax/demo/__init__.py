"""Three real data sets, privatized and inferred from: what ``python -m dpjax demo`` runs."""

from importlib.util import find_spec
from pathlib import Path

from dpjax.demo import admissions, diabetes, titanic

__all__ = ["main"]

OPENING = """\
Three data sets are privatized, and each release is then analysed three ways, under the same model and prior:
  non-private   from the confidential data themselves
  naive         from the release, its noise ignored
  dpjax         from the release, its noise accounted for
Seeds are fixed, so that everyone sees the same numbers. A true release draws its noise in secret.
"""


def main(output: Path) -> None:
    """Privatize, infer, print each comparison, and save one figure of all in the folder `output`.

    Raises
    ------
    ImportError
        If matplotlib or scikit-learn is missing.
    """
    check_extras()
    from dpjax.demo.figure import draw

    print(OPENING)
    comparisons = []
    for compare in (admissions.compare, titanic.compare, diabetes.compare):
        comparisons.append(compare())
        print(comparisons[-1], end="\n\n")
    path = output / "demo.png"
    output.mkdir(parents=True, exist_ok=True)
    draw(comparisons).savefig(path, dpi=150)
    print(f"The figure is in {path}.")


def check_extras() -> None:
    """Raise before anything is computed if a library of the extras is missing."""
    for module, extra in (("matplotlib", "plots"), ("sklearn", "data")):
        if find_spec(module) is None:
            text = f"{module}: not installed; expected for the demo, in the extra `{extra}`."
            raise ImportError(f'{text} Run pip install "dpjax[plots,data]".')
