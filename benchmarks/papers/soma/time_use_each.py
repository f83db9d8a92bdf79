"""Tables 1 and 2 with shapes that are updated after every proposal, to a random record or where SOMA selects.

The chains are those of `shares.c`, a program in C that shares no code with dpjax: a step of `dpjax.gibbs` makes n
proposals, and one of a single proposal would spend its time on starting small kernels.
"""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.native import load
from benchmarks.papers.soma.time_use import (
    ACTIVITIES,
    CONCENTRATION,
    EARLY,
    EPSILON,
    LOWER,
    PAPER,
    PAPER_MEANS,
    SIZES,
    make_problem,
)
from dpjax.diagnostics import ess_bulk, split_r_hat

SOURCE = Path(__file__).with_name("shares.c")
PRIOR = (1.0, 0.1)
WIDTH = 0.5
"""Of the slices, which step out."""

THIN = 50

KINDS = ("dirichlet", "minutes")
"""Records: Dirichlet, or these in whole minutes, most of them in fives, and some days without a meal."""

WITHOUT_MEAL = 0.03


def measure(chains: int, proposals: int, warm_up: int) -> dict[str, Any]:
    """R-hat after 100,000 proposals, ESS after all and mean shares, by records, sex and sampler.

    Chains start with shapes 3 % around those that gave the records, and make `warm_up` sweeps of n proposals of IMwG
    that no figure counts.
    """
    library = load(SOURCE, "-ffast-math", "-march=native")
    if library is None:
        raise RuntimeError("CC: got no working compiler, expected one of C. Install one, or set CC.")
    library.run.restype = ctypes.c_int64
    result: dict[str, Any] = {}
    for kind in KINDS:
        result[kind] = {}
        for sex, n in SIZES.items():
            value = release(sex, kind)
            starts = [start(sex, seed, n) for seed in range(chains)]
            for seed, one in enumerate(starts):
                advance(library, 1_000 + seed, value, False, warm_up * n, *one)
            samplers = {}
            for name, soma in (("soma", True), ("imwg", False)):
                states = [tuple(np.copy(part) for part in one) for one in starts]
                runs = [advance(library, seed, value, soma, proposals, *one) for seed, one in enumerate(states)]
                samplers[name] = summarize(runs, sex, name, proposals)
            result[kind][sex] = {"n": n, "samplers": samplers}
    return result


def summarize(runs: list[tuple[np.ndarray, float]], sex: str, name: str, proposals: int) -> dict[str, Any]:
    """The diagnostics of chains."""
    shapes = np.stack([draws for draws, _ in runs])
    early = shapes[:, : min(EARLY, proposals) // THIN]
    return {
        "r_hat": split_r_hat(early).tolist(),
        "ess": ess_bulk(shapes).tolist(),
        "mean": (shapes / shapes.sum(axis=-1, keepdims=True)).mean(axis=(0, 1)).tolist(),
        "shape_mean": shapes.mean(axis=(0, 1)).tolist(),
        "shape_sd": shapes.std(axis=(0, 1)).tolist(),
        "acceptance_rate": float(np.mean([rate for _, rate in runs])),
        "paper": {"r_hat": PAPER[sex][name][:3], "ess": PAPER[sex][name][3:], "mean": PAPER_MEANS[sex]},
        "shapes": shapes[0, :: max(1, len(shapes[0]) // 100)].round(4).tolist(),
    }


def release(sex: str, kind: str) -> np.ndarray:
    """The released sums [3] of the logarithms of shares."""
    if kind == "dirichlet":
        return np.asarray(make_problem(sex, None)[1].value, float)
    rng = np.random.default_rng(list(SIZES).index(sex))
    minutes = rng.dirichlet(CONCENTRATION * np.array(PAPER_MEANS[sex]), SIZES[sex]) * 1_440
    in_fives = rng.random(minutes.shape) < 0.9
    minutes = np.where(in_fives, 5 * np.round(minutes / 5), np.round(minutes))
    minutes[rng.random(len(minutes)) < WITHOUT_MEAL, 1] = 0
    minutes[:, 2] = 1_440 - minutes[:, 0] - minutes[:, 1]
    return make_problem(sex, minutes / 1_440)[1].value


def start(sex: str, seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Shapes [3] and log-shares [3, n]."""
    rng = np.random.default_rng(seed)
    shape = CONCENTRATION * np.array(PAPER_MEANS[sex]) * np.exp(0.03 * rng.normal())
    return shape, np.ascontiguousarray(np.log(rng.dirichlet(shape, n)).T)


def advance(
    library: ctypes.CDLL, seed: int, value: np.ndarray, soma: bool, proposals: int, shape: np.ndarray, logs: np.ndarray
) -> tuple[np.ndarray, float]:
    """Shapes [draw, 3] of a chain and its acceptance; its start becomes its end."""
    numbers = ctypes.POINTER(ctypes.c_double)
    draws = np.zeros((proposals // THIN, 3))
    arrays = [np.ascontiguousarray(each, float) for each in (value, PRIOR)]
    value_at, prior_at, *rest = (each.ctypes.data_as(numbers) for each in (*arrays, shape, logs, draws))
    scale, log_lower = (ctypes.c_double(float(each)) for each in (-3 * np.log(LOWER) / EPSILON, np.log(LOWER)))
    counts = (ctypes.c_int64(int(each)) for each in (soma, 1, proposals, THIN))
    size = ctypes.c_int64(logs.shape[1])
    accepted = library.run(
        ctypes.c_uint64(seed), size, value_at, scale, log_lower, prior_at, ctypes.c_double(WIDTH), *counts, *rest
    )
    return draws, accepted / proposals


def draw(result: dict[str, Any], axes: Any) -> None:
    """The first chain's shapes."""
    for place, (panel, activity) in enumerate(zip(axes, ACTIVITIES, strict=True)):
        for sex in SIZES:
            for name, row in result["dirichlet"][sex]["samplers"].items():
                panel.plot(np.array(row["shapes"])[:, place], label=f"{sex}, {name}", linewidth=0.8)
        panel.set(xlabel="draws", ylabel="shape", title=activity)
    axes[0].legend(fontsize="small")
