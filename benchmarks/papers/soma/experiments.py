"""The experiments, and how large they are."""

from typing import Any

from benchmarks.experiments import Experiment

KERNELS = ("soma", "imwg_systematic", "imwg_random")
"""Of table 3; "soma_equal_indices" is another."""

RELEASES = ("soma_releases.json",)
"""What is read of the authors' files."""


def table3(**settings: Any) -> dict[str, Any]:
    """The settings of table 3, with the authors' coupling of the parameters."""
    return settings | {"parameters": "maximal", "data": None}


EXPERIMENTS = {
    "histogram-meeting": Experiment(
        "histogram_meeting",
        {"n": 20, "pairs": 100, "cap": 4_000_000},
        {"n": 20, "pairs": 50, "cap": 2_000},
        {"n": 4, "pairs": 6, "cap": 200},
    ),
    "acceptance": Experiment(
        "acceptance",
        {"points": 12, "chains": 64, "sweeps": 5_000},
        {"points": 4, "chains": 16, "sweeps": 500},
        {"points": 2, "chains": 4, "sweeps": 40},
        panels=(2, 3),
    ),
    "coupling-rate": Experiment(
        "coupling_rate",
        {"points": 10, "pairs": 4_000, "cap": 5_000},
        {"points": 3, "pairs": 400, "cap": 1_000},
        {"points": 2, "pairs": 20, "cap": 60},
        panels=(1, 3),
    ),
    "histogram": Experiment(
        "histogram",
        {"sizes": (2, 5, 10, 20, 40, 60), "pairs": 100, "cap": 20_000, "proposals": 50_000},
        {"sizes": (2, 20), "pairs": 50, "cap": 1_000, "proposals": 2_000},
        {"sizes": (2, 4), "pairs": 6, "cap": 100, "proposals": 100},
        panels=(3, 2),
    ),
    "histogram-quartiles": Experiment(
        "histogram_quartiles",
        {"sizes": (20, 50), "releases": 10, "runs": 500},
        {"sizes": (20,), "releases": 2, "runs": 200},
        {"sizes": (4,), "releases": 2, "runs": 20},
        panels=(2, 2),
    ),
    "mixing": Experiment(
        "mixing",
        {"repeats": 4, "chains": 20, "iterations": 3_000, "points": 60},
        {"repeats": 2, "chains": 10, "iterations": 1_000, "points": 20},
        {"repeats": 2, "chains": 4, "iterations": 200, "points": 4},
        panels=(1, 2),
    ),
    "distances": Experiment(
        "distances",
        {"chains": 1_000, "iterations": 300, "reference": 10_000},
        {"chains": 200, "iterations": 100, "reference": 1_000},
        {"chains": 20, "iterations": 20, "reference": 60},
        panels=(2, 2),
    ),
    "subsets": Experiment(
        "subsets",
        {"attempts": (5, 20), "chains": 10, "iterations": 1_000},
        {"attempts": (5,), "chains": 4, "iterations": 500},
        {"attempts": (5,), "chains": 4, "iterations": 20},
    ),
    "examples": Experiment(
        "examples",
        {"sizes": (2, 5, 20), "chains": 50, "steps": 4_000, "draws": 400_000},
        {"sizes": (2, 5), "chains": 10, "steps": 1_000, "draws": 100_000},
        {"sizes": (2,), "chains": 4, "steps": 40, "draws": 2_000},
        panels=(1, 3),
    ),
    "time-use": Experiment(
        "time_use",
        {"chains": 20, "proposals": 1_000_000, "sexes": ("female", "male"), "data": None},
        {"chains": 4, "proposals": 100_000, "sexes": ("female", "male"), "data": None},
        {"chains": 2, "proposals": 20_000, "sexes": ("male",), "data": None},
        panels=(1, 3),
        files=RELEASES,
    ),
    "many-pairs": Experiment(
        "many_pairs",
        {"n": 20, "pairs": 100_000, "cap": 100_000},
        {"n": 20, "pairs": 5_000, "cap": 100_000},
        {"n": 4, "pairs": 20, "cap": 2_000},
    ),
    "table3": Experiment(
        "table3",
        table3(pairs=300, cap=20_000, chains=64, epsilons=(3, 30), kernels=KERNELS),
        table3(pairs=50, cap=500, chains=16, epsilons=(30,), kernels=("soma", "imwg_systematic")),
        table3(pairs=4, cap=40, chains=4, epsilons=(30,), kernels=("imwg_systematic",)),
        files=RELEASES,
    ),
    "relabelling": Experiment(
        "relabelling",
        {"pairs": 1_000, "cap": 20_000, "epsilons": (3, 30), "data": None},
        {"pairs": 100, "cap": 500, "epsilons": (30,), "data": None},
        {"pairs": 4, "cap": 10, "epsilons": (30,), "data": None},
        x64=True,
        files=RELEASES,
    ),
    "table4": Experiment(
        "table4", {"divisor": 1, "repeats": 5}, {"divisor": 10, "repeats": 1}, {"divisor": 500, "repeats": 1}
    ),
}
