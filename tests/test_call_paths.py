"""The files that four calls pass through are those that CONTRIBUTING lists: the stack at the innermost step."""

import re
import traceback
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import mixture, models, private

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| `([\w.]+)`(?:, ([^|]+?))? \| ((?:`[\w/.]+`(?: → )?)+) \|$", re.M)
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
PATHS = {second or first: re.findall(r"`([\w/.]+)`", files) for first, second, files in ROW.findall(CONTRIBUTING)}
DECORATORS = {"models/programs.py", "runtime/devices.py", "_util/jit.py", "_util/spelling.py"}
"""Which share a program between models, spread chains over devices, and check how a kernel is called."""
STRAIGHT = {"a regression", "a table"}
"""Calls that leave a file for good, so that the table is read from the left to the right."""
MOST_FILES = 10
SHORT = {"num_chains": 2, "num_warmup": 0, "num_samples": 2, "progress": False}


def regression() -> None:
    model = models.linear_regression(
        covariate_mean=[0.0], covariate_cov=[[1.0]], coef_prior=models.NormalPrior(0.0, 2.0), noise_variance=1.0
    )
    release = dpjax.Release([3.0, 1.0], dpjax.Laplace(5.0), lambda record: jnp.append(record["x"], record["y"]), 12)
    dpjax.sample(jax.random.key(0), model, release, interweave=False, **SHORT)


def table() -> None:
    release = dpjax.Release([4.0, 9.0], dpjax.DiscreteLaplace(1.5), dpjax.statistics.cells("cell", 2), 11)
    dpjax.sample(jax.random.key(0), models.categorical([1.25, 2.0]), release, **SHORT)


def clusters() -> None:
    component = mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=3.0, scale=3.0)
    options = {"component": component, "concentration": 1.0, "sampler": mixture.conditional()}
    mixture.sample(jax.random.key(2), np.arange(7.0), dpjax.Laplace(0.5), **options, **SHORT)


def paid() -> None:
    def log_density(theta: jax.Array, record: jax.Array) -> jax.Array:
        return -jnp.sum(jnp.square(record - theta)) / 2

    target = private.target(log_density, lambda theta: -jnp.sum(theta**2) / 2, jnp.ones((30, 2)), jnp.zeros(2))
    bounds = {"gradient_bound": 2.0, "ratio_bound": 2.0, "tau_g": 9.0, "tau_l": 9.0}
    kernel = private.dp_hmc(target, private.noise.jax, step_size=0.02, num_leapfrog=2, **bounds)
    ledger = private.Ledger(private.Budget(epsilon=100.0, delta=1e-6, neighbours="replace-one"))
    private.sample(jax.random.key(4), kernel, jnp.zeros((1, 2)), ledger, num_iterations=1)


CALLS: dict[str, tuple[Callable[[], None], Any, str, str]] = {
    "a regression": (regression, dpjax.Laplace, "log_noise", "data_augmentation/records/imwg.py"),
    "a table": (table, dpjax.DiscreteLaplace, "log_noise", "data_augmentation/counts/moves.py"),
    "mixture.sample": (clusters, mixture.NormalInverseGamma, "posterior", "mixture/samplers/conditional.py"),
    "private.sample": (paid, type(private.noise.jax), "release", "private/runs/run.py"),
}
"""The call, its innermost method, and a file that the stack at it goes through."""


def files_of_stack() -> list[str]:
    """The files of dpjax that are being called, from the outermost."""
    names = [Path(frame.filename) for frame in traceback.extract_stack()]
    inside = [str(name.relative_to(ROOT / "dpjax")) for name in names if name.is_relative_to(ROOT / "dpjax")]
    return [name for name in inside if name not in DECORATORS]


def without_repeats(files: list[str], straight: bool) -> list[str]:
    """Each file once; of a call that is to be straight, a file that is come back to is there again."""
    return [name for name, _ in groupby(files)] if straight else list(dict.fromkeys(files))


@pytest.mark.x64
@pytest.mark.parametrize("name", CALLS)
def test_a_call_passes_through_the_files_listed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    call, kind, method, through = CALLS[name]
    right, found = getattr(kind, method), []

    def watched(self: Any, *given: Any, **options: Any) -> Any:
        found.append(files_of_stack())
        return right(self, *given, **options)

    monkeypatch.setattr(kind, method, watched)
    jax.clear_caches()
    call()
    innermost = str(Path(right.__code__.co_filename).relative_to(ROOT / "dpjax"))
    stacks = [without_repeats([*files, innermost], name in STRAIGHT) for files in found if through in files]
    assert PATHS[name] in stacks, "; ".join(map(" → ".join, stacks))
    assert len(PATHS[name]) <= MOST_FILES


def test_all_paths_are_followed() -> None:
    assert set(PATHS) == set(CALLS)


def test_files_named_in_the_tour_exist() -> None:
    """By their last parts, as the tour gives folders once."""
    names = set(re.findall(r"`([\w/]+\.py)`", CONTRIBUTING))
    existing = [str(path.relative_to(ROOT)) for path in ROOT.glob("*/**/*.py") if ".venv" not in str(path)]
    assert [name for name in names if not any(f"/{path}".endswith(f"/{name}") for path in existing)] == []
