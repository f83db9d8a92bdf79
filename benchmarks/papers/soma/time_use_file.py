"""The activity summary file of the 2019 American Time Use Survey, which is not part of this repository."""

import csv
from pathlib import Path

import numpy as np

MINUTES = 1_440
SEXES = {"1": "male", "2": "female"}
"""The codes of the column TESEX."""


def read_shares(path: Path) -> dict[str, np.ndarray]:
    """The shares [n, 3] of the day of personal care, eating and drinking, and all else, by sex.

    The file is ``atussum_2019.dat``: comma-separated with a heading; columns ``t01...`` hold minutes of personal care
    and ``t11...`` minutes of eating and drinking. Days with none of one of these are left out, because a composition
    has positive shares. How the paper arrived at its 3,528 women and 3,128 men is not said, so counts may differ.

    Raises
    ------
    ValueError
        If the heading lacks these columns.
    """
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        names = [name for name in rows.fieldnames or () if name]
        care, eating = ([name for name in names if name.startswith(code)] for code in ("t01", "t11"))
        sex = next((name for name in names if name.upper() == "TESEX"), None)
        if sex is None or not care or not eating:
            raise ValueError(f"{path}: got columns {names[:8]}, expected TESEX, t01..., t11...: pass atussum_2019.dat.")
        people = [(row[sex], minutes(row, care), minutes(row, eating)) for row in rows]
    found: dict[str, list] = {name: [] for name in SEXES.values()}
    for code, first, second in people:
        shares = np.array([first, second, MINUTES - first - second]) / MINUTES
        if np.all(shares > 0):
            found[SEXES[code.strip()]].append(shares)
    return {name: np.array(rows) for name, rows in found.items()}


def minutes(row: dict[str, str], columns: list[str]) -> float:
    """The sum of some columns of a row."""
    return sum(float(row[name]) for name in columns)
