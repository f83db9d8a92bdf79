"""An unknown number of records through every call that draws: reported, predicted, continued; or an error."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.mcmc.run import run_chunk

STATISTIC = statistics.stacked(
    statistics.histogram("y", [-100.0, 0.0, 100.0]), statistics.total("y", lower=-2.0, upper=2.0)
)
OPTIONS = {"num_chains": 2, "num_warmup": 40, "num_samples": 60, "progress": False}


def normal(scale: float = 1.0) -> dpjax.Model:
    return models.normal(mean_prior=models.NormalPrior(0.0, scale), variance=1.0)


def release(prior: object = models.UniformCount(3, 12), value: float = 2.0) -> dpjax.Release:
    return dpjax.Release([value, 5.0, 2.0], dpjax.Laplace(1.5), STATISTIC, n=dpjax.UnknownCount(prior))


@pytest.mark.x32
def test_the_number_is_drawn_and_reported(tmp_path: Path) -> None:
    options = OPTIONS | {"checkpoint": tmp_path / "run.npz"}
    model = normal()
    posterior = dpjax.sample(jax.random.key(1), model, release(), **options)
    numbers = posterior.draws["num_records"]
    assert numbers.shape == (2, 60)
    assert np.issubdtype(numbers.dtype, np.integer)
    assert numbers.min() >= 3
    assert numbers.max() <= 12
    assert len(np.unique(numbers)) > 4
    assert "num_records" in posterior.describe()
    assert posterior.release.n == release().n
    assert posterior.predict(jax.random.key(2), 20).values.shape == (20, 3)
    again = dpjax.sample(jax.random.key(1), model, release(), **options)
    np.testing.assert_array_equal(again.draws["num_records"], numbers)
    with pytest.raises(ValueError, match=r"checkpoint"):
        dpjax.sample(jax.random.key(1), model, release(models.UniformCount(3, 11)), **options)


def test_programs_are_found_again() -> None:
    """Of a shipped model with other numbers, and of another value; the capacity is the same."""
    dpjax.sample(jax.random.key(1), normal(), release(), **OPTIONS)
    size = run_chunk.jitted._cache_size()
    dpjax.sample(jax.random.key(2), normal(2.0), release(value=3.0), **OPTIONS)
    assert run_chunk.jitted._cache_size() == size


@pytest.mark.x64
def test_collected_data_sets_have_a_number_of_real_rows() -> None:
    posterior = dpjax.sample(
        jax.random.key(1), normal(), release(), collect=lambda state: state.latent, imputation="auto", **OPTIONS
    )
    held = posterior.collected
    real = np.arange(12) < held.records["num_records"]
    np.testing.assert_array_equal(held.records["num_records"][..., 0], posterior.draws["num_records"])
    values = held.records["y"][:, :, 0]
    np.testing.assert_allclose(held.statistic[..., 0], np.sum(real & (values < 0), axis=-1))
    total = np.sum(np.where(real, np.clip(values, -2, 2), 0), axis=-1)
    np.testing.assert_allclose(held.statistic[..., 2], total, atol=1e-4)


def test_prior_prediction() -> None:
    drawn = dpjax.sample_prior_predictive(jax.random.key(3), normal(), release(), 500)
    assert abs(drawn.values[:, :2].sum(axis=1).mean() - 7.5) < 0.9  # five standard errors


@pytest.mark.slow
def test_ranks_of_the_number_are_uniform() -> None:
    def number(parameters: dict, records: dict, release: dpjax.Release) -> dict:
        return {"number": records["num_records"][0]}

    calibration = dpjax.sbc(
        jax.random.key(4), normal(), release(), quantities=number, num_samples=19, thin=4, num_warmup=152
    )
    assert min(np.min(p) for p in calibration.p_values().values()) > 1e-4


def test_records_are_imputed_given_parameters() -> None:
    algorithm = dpjax.impute(normal(), release(), {"mean": 0.5})
    model, _ = dpjax.imwg().form(normal(), release())

    @jax.jit
    def move(key: jax.Array) -> object:
        start_key, step_key = jax.random.split(key)
        return algorithm.step(step_key, algorithm.init(model.sample_records(start_key, {"mean": 0.5}, 1)))[0]

    moved = move(jax.random.key(0))
    assert 3 <= moved.records["num_records"][0] <= 12


@dataclass(frozen=True)
class Even:
    """A prior of a user's own: even numbers alone, perhaps without a bound."""

    high: int | None

    def log_probability(self, n: jax.Array) -> jax.Array:
        return jnp.where(n % 2 == 0, -0.7 * jnp.asarray(n, float), -jnp.inf)

    def sample(self, key: jax.Array) -> jax.Array:
        return 2 * jax.random.randint(key, (), 0, 3)

    @property
    def bounds(self) -> tuple[int, int | None]:
        return 0, self.high


def renamed() -> dpjax.Model:
    model = normal()
    return model._replace(derived=lambda parameters: {"num_records": parameters["mean"]})


@pytest.mark.parametrize(
    ("model", "prior", "message"),
    [
        (normal, models.UniformCount(0, 10**8), r"release\.n: given .* 100000000 records; .*dpjax\.counts\(\)"),
        (normal, models.PoissonCount(1e7), r"release\.n: given PoissonCount.*expected at most 1048576"),
        (normal, Even(None), r"release\.n: given Even\(high=None\), which has no greatest number; .*UniformCount"),
        (normal, Even(8), r"release\.n: given Even\(high=8\), of positive probability at 5 numbers up to 8"),
        (
            lambda: normal()._replace(exchangeable=False),
            models.UniformCount(2, 9),
            r"release\.n: .*identically",
        ),
        (renamed, models.UniformCount(2, 9), r"model: given a name 'num_records'"),
    ],
)
def test_what_arrays_cannot_hold_is_refused(model: Callable[[], dpjax.Model], prior: object, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^{message}"):
        dpjax.gibbs(model(), release(prior))


@pytest.mark.parametrize("sample", [dpjax.sample, dpjax.sample_clt])
def test_the_name_of_the_number_is_refused_where_it_is_known_too(sample: Callable[..., dpjax.Posterior]) -> None:
    with pytest.raises(ValueError, match=r"^model: given a name 'num_records'"):
        sample(jax.random.key(1), renamed(), replace(release(models.UniformCount(2, 9)), n=5), progress=False)


def test_arrays_hold_all_but_the_last_of_a_prior() -> None:
    _, form = dpjax.imwg().form(normal(), release(models.PoissonCount(30.0)))
    assert 70 < form.statistic.capacity < 90
