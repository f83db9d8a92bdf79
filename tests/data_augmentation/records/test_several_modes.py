"""Hidden fields whose distribution given what was released has several modes: chains move between all of them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import dpjax

N = 200


def after(model: dpjax.Model, release: dpjax.Microdata, records: dict[str, Any], sweeps: int) -> dict[str, np.ndarray]:
    """The records after some sweeps from a start."""
    kernel = dpjax.impute(model, release, {"mean": 0.0}, dpjax.imwg())

    def sweep(state: Any, key: jax.Array) -> tuple[Any, None]:
        return kernel.step(key, state)[0], None

    state, _ = jax.lax.scan(sweep, kernel.init(records), jax.random.split(jax.random.key(1), sweeps))
    return {name: np.asarray(leaf) for name, leaf in state.records.items()}


def of_records(sample_records: Any, log_density: Any) -> dpjax.Model:
    """A model whose parameter tells nothing of the records."""
    return dpjax.Model(
        lambda key: {"mean": jax.random.normal(key)},
        lambda parameters: norm.logpdf(parameters["mean"]),
        sample_records,
        log_density,
    )


def test_fields_that_are_always_equal_move_together() -> None:
    """Nine categories each, 81 combinations: one after another none of them could move."""

    def sample_records(key: jax.Array, parameters: dict, n: int) -> dict:
        value = jax.random.randint(key, (n,), 0, 9)
        return {"one": value, "other": value}

    def log_density(parameters: dict, records: dict) -> jax.Array:
        return jnp.where(records["one"] == records["other"], -jnp.log(9.0), -jnp.inf)

    channel = dpjax.RandomizedResponse(keep=0.5, num_categories=9)
    values = np.zeros(N, int)
    release = dpjax.Microdata({"one": (values, channel), "other": (values, channel)})
    start = {name: jnp.ones(N, int) for name in ("one", "other")}
    found = after(of_records(sample_records, log_density), release, start, 1)
    np.testing.assert_array_equal(found["one"], found["other"])
    # Two reports of 0: weights 1/4 for 0, and 1/256 for each of the others.
    probability = 64 / 72
    assert abs(np.mean(found["one"] == 0) - probability) < 4 * np.sqrt(probability * (1 - probability) / N)


def squares(scale: float) -> dpjax.Model:
    """A hidden y ~ N(0, 1), and z ~ N(y², scale²)."""

    def sample_records(key: jax.Array, parameters: dict, n: int) -> dict:
        one, other = jax.random.normal(key, (2, n))
        return {"y": one, "z": one**2 + scale * other}

    def log_density(parameters: dict, records: dict) -> jax.Array:
        return norm.logpdf(records["y"]) + norm.logpdf(records["z"], records["y"] ** 2, scale)

    return of_records(sample_records, log_density)


def test_a_number_moves_to_the_other_root_of_its_square() -> None:
    """Modes at ±2, of width 0.005: no sign of 200 had changed after 100 sweeps."""
    release = dpjax.Microdata({"z": (np.full(N, 4.0), dpjax.Exact())})
    found = after(squares(0.02), release, {"y": jnp.full(N, 2.0), "z": jnp.full(N, 4.0)}, 100)
    assert np.mean(found["y"] < 0) > 0.2


def test_a_residue_moves_between_multiples_of_its_period() -> None:
    """A field beside an exact one, known modulo 1 up to noise of 0.002: no record had moved."""

    def sample_records(key: jax.Array, parameters: dict, n: int) -> dict:
        one, other = jax.random.normal(key, (2, n))
        return {"y": one, "z": one + 2 * other}

    def log_density(parameters: dict, records: dict) -> jax.Array:
        return norm.logpdf(records["y"]) + norm.logpdf(records["z"], records["y"], 2.0)

    channel = dpjax.mechanisms.Modulo(dpjax.Gaussian(0.002), modulus=1.0)
    release = dpjax.Microdata({"y": (np.zeros(N), channel), "z": (np.zeros(N), dpjax.Exact())})
    found = after(of_records(sample_records, log_density), release, {"y": jnp.full(N, 2.0), "z": jnp.zeros(N)}, 10)
    whole = np.round(found["y"])
    weights = np.exp(-0.625 * np.arange(-4, 5.0) ** 2)
    assert abs(np.mean(whole == 0) - weights[4] / weights.sum()) < 4 * np.sqrt(0.25 / N)
    assert np.max(np.abs(found["y"] - whole)) < 0.01
