"""Peak memory of `dpjax.sample` with a million records: no trajectory of latent records is kept."""

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator

import jax

import dpjax
from benchmarks.regression import STATISTIC, make_mechanism, make_model, parameters, privatize
from benchmarks.rows import Row
from benchmarks.timing import summarize, time_once

N = 1_000_000
CHAINS = 4
WARMUP = 64
BOUND = 2.0


def normal_problem() -> tuple[dpjax.Model, dpjax.Release]:
    """The mean of normal records from their clamped sum under Gaussian noise."""
    model = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 1.0), variance=1.0)
    return model, simulate(model, dpjax.Gaussian(10.0), dpjax.statistics.total("y", -5, 5), {"mean": 0.5})


def regression_problem() -> tuple[dpjax.Model, dpjax.Release]:
    """The private regression."""
    model = make_model()
    return model, simulate(model, make_mechanism(1), STATISTIC, parameters())


def simulate(model: dpjax.Model, mechanism: dpjax.Mechanism, statistic: Callable, truth: dict) -> dpjax.Release:
    """A release of N records drawn at the true parameters."""
    record_key, noise_key = jax.random.split(jax.random.key(1))
    records = jax.jit(model.sample_records, static_argnums=2)(record_key, truth, N)
    return privatize(noise_key, mechanism, statistic, records, N)


PROBLEMS = {"normal mean": normal_problem, "linear regression": regression_problem}


def measure(quick: bool) -> Iterator[Row]:
    """Rows for both problems, each in a process of its own."""
    num_samples = 20 if quick else 1_000
    for name in PROBLEMS:
        command = [sys.executable, "-m", "benchmarks.memory", name, str(num_samples)]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        answer = json.loads(result.stdout.splitlines()[-1])
        figures = {"peak GiB": answer["peak"], "before sampling GiB": answer["before"], "draws": num_samples}
        timing = summarize(None, [answer["seconds"]])
        figures["CPU s"] = answer["seconds"]
        yield Row("memory", name, N, answer["d"], CHAINS, timing, figures, target=("peak GiB", "<=", BOUND))


def run(name: str, num_samples: int) -> dict[str, float]:
    """Peak memory before and after sampling, in GiB, and CPU seconds with compilation."""
    model, release = PROBLEMS[name]()
    before = peak()
    budget = {"num_chains": CHAINS, "num_warmup": WARMUP, "num_samples": num_samples}
    seconds = time_once(lambda: dpjax.sample(jax.random.key(2), model, release, **budget, progress=False).draws)
    return {"peak": peak(), "before": before, "seconds": seconds, "d": release.value.size}


def peak() -> float:
    """The most memory this process has held, in GiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]))))
