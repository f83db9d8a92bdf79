"""Effective draws per CPU second of the shipped models and of the same models written in NumPyro, in one run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.effective import compare as beside_nuts, measure_nuts, subtract
from benchmarks.rows import Row
from benchmarks.timing import time_call
from dpjax import models, statistics
from dpjax.diagnostics import ess_bulk
from problems import numpyro_programs as programs
from problems.regression import INPUTS, make_model, published_release

N = 100
SHARE = 0.4
"""The share of the shipped model's speed that its NumPyro twin should keep."""

CELLS = np.ones(4)
CLASSES, FEATURES = np.array([2.0, 2.0]), np.ones((3, 2, 2))
GAMMA = models.GammaPrior(3.0, 1.0)

TWINS: dict[str, tuple[Callable, Callable, Callable]] = {
    "regression, ε = 1": (
        make_model,
        lambda: from_numpyro_regression(),
        lambda model: published_release(1),
    ),
    "regression, ε = 10": (make_model, lambda: from_numpyro_regression(), lambda model: published_release(10)),
    "normal": (
        lambda: models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=models.InverseGammaPrior(4.0, 3.0)),
        lambda: dpjax.from_numpyro(programs.normal, records=["y"]),
        lambda model: simulate(model, dpjax.Laplace(5.0), statistics.total("y", -5.0, 5.0)),
    ),
    "categorical": (
        lambda: models.categorical(CELLS),
        lambda: dpjax.from_numpyro(programs.categorical, records=["cell"], concentration=CELLS),
        lambda model: simulate(model, dpjax.DiscreteGaussian(3.0), statistics.cells("cell", 4)),
    ),
    "naive Bayes": (
        lambda: models.naive_bayes(CLASSES, FEATURES),
        lambda: dpjax.from_numpyro(
            programs.naive_bayes,
            records=("class", "features"),
            class_concentration=CLASSES,
            feature_concentration=FEATURES,
        ),
        lambda model: simulate(model, dpjax.Laplace(6.0), statistics.class_features(2, 3, 2)),
    ),
    "Dirichlet": (
        lambda: models.dirichlet(shape_prior=GAMMA, dim=3),
        lambda: dpjax.from_numpyro(programs.dirichlet, records=["share"], dim=3),
        lambda model: simulate(model, dpjax.Gaussian(20.0), statistics.log_composition("share", 0.001, dimension=3)),
    ),
    "exponential": (
        lambda: models.exponential(models.GammaPrior(2.0, 1.0)),
        lambda: dpjax.from_numpyro(programs.exponential, records=["y"]),
        lambda model: simulate(model, dpjax.Laplace(5.0), statistics.total("y", 0.0, 5.0)),
    ),
    "beta": (
        lambda: models.beta(GAMMA, GAMMA),
        lambda: dpjax.from_numpyro(programs.beta, records=["y"]),
        lambda model: simulate(model, dpjax.Laplace(2.0), squares),
    ),
}


def squares(record: dict) -> jax.Array:
    """A share and its square."""
    return jnp.stack([record["y"], record["y"] ** 2])


def from_numpyro_regression() -> dpjax.Model:
    """The private regression, in NumPyro."""
    return dpjax.from_numpyro(
        programs.regression,
        records=("x", "y"),
        covariate_mean=jnp.asarray(INPUTS["m"]),
        covariate_cov=jnp.asarray(INPUTS["Sigma"]),
        scale=float(INPUTS["tau"]),
        variance=float(INPUTS["sigma2"]),
    )


def simulate(model: dpjax.Model, mechanism: dpjax.mechanisms.Mechanism, statistic: Callable) -> dpjax.Release:
    """A release of N records drawn from the model."""
    prior_key, record_key, noise_key = jax.random.split(jax.random.key(12), 3)
    template = dpjax.Release(jnp.zeros(width(model, statistic)), mechanism, statistic, N)
    return template.sample(noise_key, model.sample_records(record_key, model.sample_prior(prior_key), N))


def width(model: dpjax.Model, statistic: Callable) -> int:
    """How many numbers a statistic has."""
    records = model.sample_records(jax.random.key(0), model.sample_prior(jax.random.key(0)), 1)
    return jax.eval_shape(statistic, jax.tree.map(lambda field: field[0], records)).shape[0]


@dataclass(frozen=True)
class Size:
    """The models, chains, steps of warm-up and sampling, and those of NUTS."""

    twins: tuple[str, ...] = tuple(TWINS)
    chains: int = 16
    steps: tuple[int, int] = (1_000, 4_000)
    nuts_steps: tuple[int, int] = (500, 1_000)


SIZES = {
    "full": Size(),
    "quick": Size(steps=(200, 500), nuts_steps=(200, 200)),
    "tiny": Size(("categorical",), 2, (200, 500)),
}


def measure(size: Size) -> Iterator[Row]:
    """Two rows for every model, and one of NUTS on the augmented model for the regressions."""
    for name in size.twins:
        hand_written, numpyro, release_of = TWINS[name]
        model = hand_written()
        release = release_of(model)
        shipped = measure_model(f"{name}: shipped", model, release, size)
        twin = measure_model(f"{name}: NumPyro", numpyro(), release, size)
        share = twin.figures["effective per s"] / shipped.figures["effective per s"]
        twin = replace(twin, figures={**twin.figures, "share": share}, target=("share", ">=", SHARE))
        if name.startswith("regression"):
            epsilon = int(name.rpartition(" ")[2])
            yardstick = measure_nuts(epsilon, release, size.chains, *size.nuts_steps)
            yield yardstick
            twin = beside_nuts(twin, yardstick)
        yield from (shipped, twin)


def measure_model(case: str, model: dpjax.Model, release: dpjax.Release, size: Size) -> Row:
    """The row of a model with every default: the worst parameter's effective draws per second without warm-up."""
    names = sorted(model.sample_prior(jax.random.key(0)))

    def draw(samples: int) -> np.ndarray:
        budget = {"num_chains": size.chains, "num_warmup": size.steps[0], "num_samples": samples}
        draws = dpjax.sample(jax.random.key(1), model, release, **budget, progress=False).draws
        return np.concatenate([draws[name].reshape(*draws[name].shape[:2], -1) for name in names], axis=-1)

    timing, draws = time_call(lambda: draw(size.steps[1]), 2)
    warmup_timing, _ = time_call(lambda: draw(1), 2)
    timing = subtract(timing, warmup_timing)
    effective = float(np.min(ess_bulk(draws)))
    figures = {
        "effective per s": effective / timing.best_seconds,
        "effective per draw": effective / (draws.shape[0] * draws.shape[1]),
        "warm-up s": warmup_timing.best_seconds,
    }
    return Row("twins", case, release.n, release.value.size, size.chains, timing, figures)
