"""What dpjax costs in J, the CPU seconds of ``import jax`` on the same machine: ``make weight``, or with names of rows.

Whole processes and all that they start, with no program compiled before. `results/weight.json` keeps the figures,
each with how it was measured, as rows may be measured on different days.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.machine import cpu_seconds, describe

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "weight.json"

REGRESSION = """
import jax

import dpjax

# What was released: noisy sums over 100 people of the products of (1, x1, x2, y), each clamped to ±10.
statistic = dpjax.statistics.gram(lower=[-10, -10], upper=[10, 10], response=(-10, 10))
value = [-41.1, 37.1, 6.3, 23.0, 17.0, 3.5, -19.3, -4.2, -0.6]
release = dpjax.Release(value, dpjax.Laplace(scale=13.0), statistic, n=100)

# What is believed about the records.
model = dpjax.models.linear_regression(
    covariate_mean=[0.9, -1.2],
    covariate_cov=[[1.0, 0.0], [0.0, 1.0]],
    coef_prior=dpjax.models.NormalPrior(0.0, 2.0),
    noise_variance=2.0,
)

# The posterior of the coefficients, intercept first.
posterior = dpjax.sample(jax.random.key(1), model, release, num_chains=4, num_warmup=1_000, num_samples=2_000)
print(posterior.summary())
"""

NUMPYRO = """
import jax, numpyro, dpjax
from numpyro import distributions as dist

def model(n):
    mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 1.0))

release = dpjax.Release([80.0], dpjax.Laplace(15.0), dpjax.statistics.total("y", -5.0, 5.0), n=100)
print(dpjax.sample(jax.random.key(1), dpjax.from_numpyro(model, records=("y",)), release).summary())
"""


class Row(NamedTuple):
    """A command, and the most J that it should cost."""

    command: list[str]
    most: float
    repeats: int = 1


def readme() -> str:
    """The example of the README."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[0]


def script(text: str) -> list[str]:
    """The command that runs a script."""
    return [sys.executable, "-c", text]


ROWS = {
    "import dpjax": Row(script("import dpjax"), 1.6, 3),
    "first call, README's table": Row(script(readme()), 12),
    "first call, a regression": Row(script(REGRESSION), 10),
    "first call, a Normal in NumPyro": Row(script(NUMPYRO), 12),
    "make demo": Row(["make", "demo"], 45),
    "make quick": Row(["make", "quick"], 60),
    "make test": Row(["make", "test"], 400),
    ".ci/run without shards": Row([".ci/run"], 900),
}


def time_process(command: list[str], environment: dict[str, str]) -> float:
    """CPU seconds of a process and its children."""
    began = cpu_seconds()
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    return cpu_seconds() - began


def measure(row: Row) -> float:
    """CPU seconds of a row's command, the least of its repeats."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"DPJAX_TEST_CACHE": cache, "DPJAX_CI_MINUTES": "0"}
        return min(time_process(row.command, environment) for _ in range(row.repeats))


def main(names: list[str]) -> None:
    """Measure the rows that a name is part of, or all; print and keep their J."""
    unit = min(time_process(script("import jax"), dict(os.environ)) for _ in range(3))
    figures = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, row in ROWS.items():
        if not names or any(part in name for part in names):
            figures[name] = {"J": round(measure(row) / unit, 2), "most": row.most, "seconds of a J": round(unit, 3)}
            figures[name]["environment"] = describe()
            RESULTS.write_text(json.dumps(figures, indent=1) + "\n")
    for name, figure in figures.items():
        print(f"{name:40}{figure['J']:8.1f} J, at most {figure['most']:g}")


if __name__ == "__main__":
    main(sys.argv[1:])
