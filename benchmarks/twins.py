"""Effective draws per CPU second of the shipped models and of the same models written in NumPyro, in one run."""

from collections.abc import Callable, Iterator
from dataclasses import replace

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

CHAINS = 16
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


def measure(quick: bool) -> Iterator[Row]:
    """Two rows for every model, and one of NUTS on the augmented model for the regressions."""
    lengths = (200, 500) if quick else (1_000, 4_000)
    for name, (hand_written, numpyro, release_of) in TWINS.items():
        model = hand_written()
        release = release_of(model)
        shipped = measure_model(f"{name}: shipped", model, release, *lengths)
        twin = measure_model(f"{name}: NumPyro", numpyro(), release, *lengths)
        share = twin.figures["effective per s"] / shipped.figures["effective per s"]
        twin = replace(twin, figures={**twin.figures, "share": share}, target=("share", ">=", SHARE))
        if name.startswith("regression"):
            epsilon = int(name.rpartition(" ")[2])
            yardstick = measure_nuts(epsilon, release, *((200, 200) if quick else (500, 1_000)))
            yield yardstick
            twin = beside_nuts(twin, yardstick)
        yield from (shipped, twin)


def measure_model(case: str, model: dpjax.Model, release: dpjax.Release, warmup: int, samples: int) -> Row:
    """The row of a model with every default: the worst parameter's effective draws per second without warm-up."""
    names = sorted(model.sample_prior(jax.random.key(0)))

    def draw(samples: int) -> np.ndarray:
        budget = {"num_chains": CHAINS, "num_warmup": warmup, "num_samples": samples}
        draws = dpjax.sample(jax.random.key(1), model, release, **budget, progress=False).draws
        return np.concatenate([draws[name].reshape(*draws[name].shape[:2], -1) for name in names], axis=-1)

    timing, draws = time_call(lambda: draw(samples), 2)
    warmup_timing, _ = time_call(lambda: draw(1), 2)
    timing = subtract(timing, warmup_timing)
    size = float(np.min(ess_bulk(draws)))
    figures = {
        "effective per s": size / timing.best_seconds,
        "effective per draw": size / (draws.shape[0] * draws.shape[1]),
        "warm-up s": warmup_timing.best_seconds,
    }
    return Row("twins", case, release.n, release.value.size, CHAINS, timing, figures)
