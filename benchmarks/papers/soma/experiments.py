"""The experiments, and how large they are."""

from benchmarks.experiments import Experiment

KERNELS = ("soma", "soma_equal_indices", "imwg_random", "imwg_systematic")
"""Of table 3."""

EXPERIMENTS = {
    "histogram-meeting": Experiment(
        "histogram_meeting",
        {"n": 20, "pairs": 200, "cap": 100_000},
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
        {"repeats": 4, "chains": 20, "iterations": 6_000},
        {"repeats": 2, "chains": 10, "iterations": 1_000},
        {"repeats": 2, "chains": 4, "iterations": 400},
        panels=(1, 2),
    ),
    "distances": Experiment(
        "distances",
        {"chains": 1_000, "iterations": 300, "reference": 10_000},
        {"chains": 200, "iterations": 100, "reference": 1_000},
        {"chains": 20, "iterations": 20, "reference": 60},
        panels=(2, 2),
    ),
    "mixing-readings": Experiment(
        "mixing_readings",
        {"chains": 20, "iterations": 6_000, "each": 2_000, "points": 30},
        {"chains": 10, "iterations": 1_000, "each": 300, "points": 10},
        {"chains": 4, "iterations": 60, "each": 20, "points": 2},
        panels=(1, 2),
    ),
    "mixing-starts": Experiment(
        "mixing_starts",
        {"chains": 20, "iterations": 3_000, "points": 30},
        {"chains": 10, "iterations": 500, "points": 10},
        {"chains": 4, "iterations": 20, "points": 2},
    ),
    "distances-readings": Experiment(
        "distances_readings",
        {"chains": 250, "iterations": 300, "reference": 6_000, "points": 12},
        {"chains": 100, "iterations": 100, "reference": 1_000, "points": 4},
        {"chains": 20, "iterations": 20, "reference": 60, "points": 2},
        panels=(1, 3),
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
        {"chains": 10, "proposals": 1_000_000, "file": None},
        {"chains": 4, "proposals": 100_000, "file": None},
        {"chains": 2, "proposals": 20_000, "file": None},
        panels=(1, 3),
    ),
    "time-use-each": Experiment(
        "time_use_each",
        {"chains": 20, "proposals": 120_000, "warm_up": 30},
        {"chains": 4, "proposals": 20_000, "warm_up": 2},
        {"chains": 4, "proposals": 500, "warm_up": 1},
        panels=(1, 3),
    ),
    "many-pairs": Experiment(
        "many_pairs",
        {"n": 20, "pairs": 100_000, "cap": 100_000},
        {"n": 20, "pairs": 5_000, "cap": 100_000},
        {"n": 4, "pairs": 20, "cap": 2_000},
    ),
    "table3": Experiment(
        "table3",
        {"pairs": 300, "cap": 20_000, "parameters": "common", "epsilons": (3, 30), "kernels": KERNELS},
        {"pairs": 50, "cap": 500, "parameters": "common", "epsilons": (30,), "kernels": ("soma", "imwg_systematic")},
        {"pairs": 4, "cap": 40, "parameters": "common", "epsilons": (30,), "kernels": ("imwg_systematic",)},
    ),
    "table3-readings": Experiment(
        "table3_readings", {"chains": 200, "sweeps": 200}, {"chains": 50, "sweeps": 50}, {"chains": 4, "sweeps": 3}
    ),
    "table4": Experiment(
        "table4", {"divisor": 1, "repeats": 5}, {"divisor": 10, "repeats": 1}, {"divisor": 500, "repeats": 1}
    ),
}
