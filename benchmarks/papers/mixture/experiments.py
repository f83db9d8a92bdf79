"""The experiments, and how large they are."""

from benchmarks.experiments import Experiment

EPSILONS = [2, 10, 50, 100, 250]
VARIANTS = ("exact", "metropolis", "4 proposals", "Neal 5, m = 1")
RELEASED = ("Laplace", "J = 4", "none")
READINGS = (
    "Gamma(3, 3)",
    "Gamma(2, 2), as printed",
    "Gamma(2, 0.05)",
    "Gamma(90, 2)",
    "Gamma(3, 3), Langevin, accepted without the prior",
    "Gamma(3, 3), random walk, accepted without the prior",
    "Gamma(90, 2), random walk, accepted without the prior",
)
OF_ALL = ["Neal 5", "conditional", "noisy counts"]
PAPER_NAMES = ("paper's slice", "Neal 5, m = 1", "exact", "Neal 5, m = 5")
MARGINAL_NAMES = ("Neal 2, model (11)", "Neal 3, model (11)", "Neal 5, m = 1, model (10)")
"""The paper's, of Section 4.3; `neal.RUNS` has others beside them."""

NAMES = ("exact", "metropolis", "4 proposals", "paper's slice", "Neal 5, m = 1", "Neal 5, m = 5")

EXPERIMENTS = {
    "speed": Experiment(
        "speed",
        {"sweeps": 4_000, "largest": 100_000, "variants": VARIANTS},
        {"sweeps": 500, "largest": 10_000, "variants": VARIANTS},
        {"sweeps": 20, "largest": 200, "variants": ("exact", "Neal 5, m = 1")},
    ),
    "global": Experiment(
        "one_release",
        {"repeats": 48, "sweeps": 5_000, "epsilons": EPSILONS, "levels": [2, 4, 6], "variants": OF_ALL, "part": 0},
        {"repeats": 2, "sweeps": 300, "epsilons": [10, 50], "levels": [4], "variants": OF_ALL, "part": 0},
        {"repeats": 1, "sweeps": 20, "epsilons": [10, 50], "levels": [2], "variants": OF_ALL, "part": 0},
        (3, 3),
    ),
    "samplers": Experiment(
        "samplers",
        {
            "sizes": (200, 50, 1_000, 500),
            "epsilons": (1.0, 2.0, 5.0, 10.0, 50.0),
            "names": PAPER_NAMES,
            "repeats": 50,
            "sweeps": 50_000,
            "seconds": 60_000,
        },
        {
            "sizes": (200,),
            "epsilons": (1.0, 2.0, 5.0, 10.0, 50.0),
            "names": PAPER_NAMES,
            "repeats": 2,
            "sweeps": 1_200,
            "seconds": 60,
        },
        {
            "sizes": (20,),
            "epsilons": (10.0,),
            "names": ("exact", "paper's slice"),
            "repeats": 2,
            "sweeps": 400,
            "seconds": 60,
        },
        panels=(4, 4),
        one_core=False,
    ),
    "sampler-times": Experiment(
        "sampler_times",
        {
            "sizes": (50, 200, 1_000),
            "epsilons": (1.0, 2.0, 5.0, 10.0, 50.0),
            "names": NAMES,
            "repeats": 3,
            "sweeps": 5_000,
        },
        {"sizes": (200,), "epsilons": (1.0, 2.0, 5.0, 10.0, 50.0), "names": NAMES, "repeats": 1, "sweeps": 500},
        {
            "sizes": (20,),
            "epsilons": (10.0,),
            "names": ("exact", "paper's slice"),
            "repeats": 1,
            "sweeps": 60,
        },
        panels=(4, 3),
    ),
    "wavelet": Experiment(
        "wavelet",
        {"repeats": 48, "sweeps": 10_000, "known": 3, "resolutions": (2, 4, 6), "part": 0},
        {"repeats": 2, "sweeps": 500, "known": 1, "resolutions": (4,), "part": 0},
        {"repeats": 1, "sweeps": 60, "known": 1, "resolutions": (2,), "part": 0},
        panels=(2, 5),
    ),
    "neal": Experiment(
        "neal",
        {
            "repeats": 12,
            "sweeps": 2_000,
            "epsilons": (5.0, 10.0, 25.0, 50.0),
            "deltas": (0.1, 0.01, 0.25),
            "calibrations": ("paper", "analytic"),
            "names": MARGINAL_NAMES,
        },
        {
            "repeats": 1,
            "sweeps": 1_000,
            "epsilons": (5.0, 10.0, 25.0, 50.0),
            "deltas": (0.1,),
            "calibrations": ("paper",),
            "names": MARGINAL_NAMES,
        },
        {
            "repeats": 1,
            "sweeps": 40,
            "epsilons": (5.0, 25.0),
            "deltas": (0.1,),
            "calibrations": ("paper",),
            "names": MARGINAL_NAMES,
        },
        panels=(3, 3),
    ),
    "binomial": Experiment(
        "binomial",
        {"repeats": 12, "sweeps": 3_000, "epsilons": (10.0, 50.0, 100.0)},
        {"repeats": 2, "sweeps": 400, "epsilons": (10.0,)},
        {"repeats": 1, "sweeps": 60, "epsilons": (10.0,)},
        panels=(2, 2),
    ),
    "donors": Experiment("donors", {"sweeps": 3_000}, {"sweeps": 400}, {"sweeps": 60}, panels=(2, 3)),
    "many-donors": Experiment(
        "many_donors",
        {"repeats": 20, "sweeps": 2_000},
        {"repeats": 3, "sweeps": 400},
        {"repeats": 1, "sweeps": 60},
        (2, 2),
    ),
    "estimates": Experiment(
        "estimates",
        {
            "sizes": (50, 200, 1_000, 500),
            "epsilons": (50.0, 1.0, 10.0, 2.0, 5.0),
            "repeats": 50,
            "sweeps": 3_000,
            "losses": ("variation", "binder"),
        },
        {
            "sizes": (50, 200),
            "epsilons": (1.0, 10.0, 50.0),
            "repeats": 3,
            "sweeps": 600,
            "losses": ("variation", "binder"),
        },
        {"sizes": (20,), "epsilons": (10.0,), "repeats": 2, "sweeps": 60, "losses": ("variation", "binder")},
        panels=(2, 4),
    ),
    "shapes": Experiment(
        "shapes",
        {"num_warmup": 400, "num_samples": 400, "released": RELEASED, "readings": READINGS},
        {"num_warmup": 200, "num_samples": 200, "released": RELEASED, "readings": READINGS[:5:4]},
        {"num_warmup": 5, "num_samples": 20, "released": ("none",), "readings": READINGS[4:5]},
        panels=(1, 3),
    ),
    "real-data": Experiment(
        "real_data",
        {"repeats": 5, "sweeps": 3_000},
        {"repeats": 2, "sweeps": 400},
        {"repeats": 1, "sweeps": 60},
        panels=(2, 4),
    ),
}
