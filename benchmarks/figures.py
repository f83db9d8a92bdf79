"""Figures of the guides, drawn from results that are kept: ``python -m benchmarks.figures``."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    """Draw every figure into the folder of the guides."""
    rows = json.loads((RESULTS / "growth.json").read_text())["rows"]
    draw_growth(rows).savefig(IMAGES / "growth.png", dpi=150)


def draw_growth(rows: list[dict[str, Any]]) -> Any:
    """CPU time and peak memory of a sweep against n, both on logarithmic axes."""
    from matplotlib.figure import Figure

    n = [row["n"] for row in rows]
    seconds = [row["figures"]["µs per record"] * row["n"] / 1e6 for row in rows]
    figure = Figure(figsize=(7.0, 2.8), layout="constrained")
    time, memory = figure.subplots(1, 2)
    time.loglog(n, seconds, "o-")
    time.loglog(n, [seconds[0] * count / n[0] for count in n], "--", color="0.6", label="proportional to n")
    time.set(xlabel="records n", ylabel="CPU seconds for a sweep")
    time.legend(frameon=False)
    memory.semilogx(n, [row["figures"]["peak GiB"] for row in rows], "o-")
    memory.set(xlabel="records n", ylabel="peak memory, GiB", ylim=(0, None))
    return figure


if __name__ == "__main__":
    main()
