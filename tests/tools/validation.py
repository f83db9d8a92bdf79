"""Figures of the harnesses, for the site's page on validation.

With `DPJAX_VALIDATION` set to a folder, each test leaves a line there: its name, the precision and how it ended.
``python -m tests.tools.validation FOLDER`` sums the lines up in ``FOLDER/suite.json``.
"""

import json
import os
import sys
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

LINES = "lines"


class Group(NamedTuple):
    """Tests of one kind: what they compare, with what, and where they are."""

    title: str
    what: str
    against: str
    paths: tuple[str, ...]


GROUPS = (
    Group(
        "Joint-distribution tests",
        "thousands of chains begun at the joint distribution of parameters, records and release: every imputation, "
        "parameter kernel and mixture sampler, counts, known totals, NumPyro models",
        "the prior and the noise's own distribution, by Kolmogorov–Smirnov and χ² tests",
        (
            "*perfect_start*",
            "*parameters/test_kernels*",
            "*test_affine*",
            "*test_pcn.py*",
            "*test_births*",
            "tests/extension/*",
        ),
    ),
    Group(
        "Exact posteriors",
        "draws of `sample`, `sample_batch`, `sample_smc`, `sample_clt`, `mixture.sample` and importance sampling",
        "enumeration, quadrature and long runs of other programs",
        (
            "tests/posterior/*",
            "tests/adapters/numpyro/test_defaults*",
            "tests/clt/test_posteriors*",
            "tests/data_augmentation/counts/test_exactness*",
            "tests/data_augmentation/counts/test_oracle*",
            "tests/smc/*",
            "tests/test_coming_from_*",
            "tests/mixture/test_long_runs*",
            "tests/mixture/test_marginal_long_runs*",
            "tests/test_importance*",
            "tests/mcmc/test_unknown_number*",
        ),
    ),
    Group(
        "Maximum likelihood",
        "estimates, standard errors, likelihoods, intervals and tests from releases",
        "enumeration, quadrature, plain simulation and closed forms",
        ("tests/likelihood/*",),
    ),
    Group(
        "Distributions at ordinary and extreme parameters",
        "densities, samplers and non-centred forms of every distribution that records and priors may have",
        "SciPy in float64, and grids",
        (
            "tests/adapters/numpyro/test_families*",
            "tests/adapters/numpyro/test_exact*",
            "tests/numerics/*",
            "tests/models/*",
        ),
    ),
    Group(
        "NumPyro models",
        "what is taken out of a model: prior, densities, record sampler, forms, refusals",
        "NumPyro's own density and draws, and twins among the shipped models",
        ("tests/adapters/numpyro/*", "tests/adapters/formula/*"),
    ),
    Group(
        "Mechanisms, statistics and releases",
        "densities, samplers, sensitivities, conventions, files",
        "closed forms, SciPy, numerical sums, OpenDP",
        ("tests/mechanisms/*", "tests/statistics/*", "tests/release/*", "tests/adapters/*"),
    ),
    Group(
        "Kernels on fixed random inputs",
        "sweeps, moves of counts, partitions, rounds and windows",
        "loops in NumPy and enumerated transition matrices, to 1e-10",
        (
            "tests/data_augmentation/records/*",
            "tests/data_augmentation/counts/*",
            "tests/data_augmentation/parameters/*",
            "tests/mixture/*",
        ),
    ),
    Group(
        "Coupled chains",
        "coupled kernels, meeting times, bounds, unbiased estimates",
        "each chain's own distribution, enumerated chains, the bounds' closed forms",
        ("tests/coupling/*", "tests/exchangeable/*"),
    ),
    Group(
        "Privacy",
        "accountants, sums, noise, kernels, ledgers, audits by neighbouring data sets",
        "mpmath, direct integration, neighbouring data, other accountants",
        ("tests/private/*",),
    ),
    Group(
        "Kills, crashes and races",
        "runs killed, interrupted, on full discs and side by side; ledgers charged by several processes",
        "the run that nothing happened to, bit for bit",
        ("*test_crashes*", "*test_kill*", "*ledger_processes*", "*checkpoint*", "tests/runtime/*"),
    ),
    Group(
        "Bad input",
        "wrong shapes, types, numbers and models",
        "an error that names the argument, what was given and the remedy",
        ("tests/bad_inputs/*", "*refusals*", "*test_bad_*", "*_input*"),
    ),
    Group(
        "Accelerators",
        "every kernel lowered for CUDA and TPU; chains on eight devices and over two processes",
        "compilation; the draws of one device",
        ("tests/test_lowering*", "*test_devices*", "*test_depth*"),
    ),
    Group(
        "Guides, notebooks, experiments",
        "the code of every page, every experiment and benchmark at a small size",
        "their own assertions",
        ("tests/test_*", "tests/benchmarks/*"),
    ),
)


def record(name: str, **figures: object) -> None:
    """Keep the figures of one harness in `$DPJAX_VALIDATION/<name>.json`, where that folder is asked for."""
    folder = os.environ.get("DPJAX_VALIDATION")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{name}.json").write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")


def leave_line(test: str, outcome: str, precision: str, seconds: float) -> None:
    """Write how a test ended to a file of this process's own."""
    folder = os.environ.get("DPJAX_VALIDATION")
    if folder:
        (Path(folder) / LINES).mkdir(parents=True, exist_ok=True)
        line = {"test": test, "outcome": outcome, "precision": precision, "seconds": seconds}
        with (Path(folder) / LINES / f"{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


def read_lines(folder: Path) -> list[dict[str, Any]]:
    """The last line of each test in each precision."""
    paths = sorted((folder / LINES).glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    lines = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    return list({(line["test"], line["precision"]): line for line in lines}.values())


def summarise(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The figures of each group; a test belongs to the first that its path fits."""
    by_group: dict[str, list[dict[str, Any]]] = {group.title: [] for group in GROUPS}
    for line in lines:
        path = line["test"].split("::")[0]
        fitting = (group.title for group in GROUPS if any(fnmatch(path, pattern) for pattern in group.paths))
        by_group[next(fitting, GROUPS[-1].title)].append(line)
    return [
        {"title": group.title, "what": group.what, "against": group.against, **count(by_group[group.title])}
        for group in GROUPS
    ]


def count(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """How many tests passed and failed in each precision."""
    figures: dict[str, Any] = {}
    for precision in ("float32", "float64"):
        outcomes = [line["outcome"] for line in lines if line["precision"] == precision]
        figures[precision] = {outcome: outcomes.count(outcome) for outcome in ("passed", "failed")}
    return figures


def main(folder: str) -> None:
    """Sum up the lines of a folder."""
    lines = read_lines(Path(folder))
    groups = summarise(lines)
    (Path(folder) / "suite.json").write_text(json.dumps(groups, indent=1, ensure_ascii=False) + "\n")
    for group in groups:
        print(group["title"], {name: group[name] for name in ("float32", "float64")})


if __name__ == "__main__":
    main(*sys.argv[1:])
