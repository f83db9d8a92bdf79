"""`mixture.gibbs`: BlackJAX's contract, slots that run out, and what `init` refuses."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import mixture
from dpjax.base import SamplingAlgorithm

VALUES = np.array([-1.4, -1.0, 0.1, 0.6, 2.0, 2.3])
BASE = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
NEAL5 = mixture.gibbs(
    VALUES, dpjax.Laplace(0.6), component=BASE, concentration=0.8, sampler=mixture.neal5(), capacity=24
)


@pytest.mark.x64
def test_it_is_a_blackjax_algorithm_under_jit_vmap_and_scan() -> None:
    assert isinstance(NEAL5, SamplingAlgorithm)

    def chain(key: jax.Array) -> Any:
        start_key, run_key = jax.random.split(key)
        state = NEAL5.init(jnp.zeros(6, int), start_key)
        return jax.lax.scan(lambda state, key: NEAL5.step(key, state), state, jax.random.split(run_key, 5))

    states, infos = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(1), 3))
    assert isinstance(states, mixture.MixtureState)
    assert isinstance(infos, mixture.MixtureInfo)
    assert states.labels.shape == states.records.shape == (3, 6)
    assert states.mixing.weights.shape == (3, 24)
    assert infos.overflow.shape == (3, 5)
    assert np.all(np.isfinite(states.mixing.weights))


@pytest.mark.x64
def test_a_sweep_without_room_leaves_the_state_as_it_was() -> None:
    few = mixture.gibbs(
        VALUES, dpjax.Laplace(0.6), component=BASE, concentration=500.0, sampler=mixture.neal5(), capacity=6
    )
    position = mixture.MixturePosition(jnp.arange(6), jnp.asarray(VALUES))
    state = few.init(position, jax.random.key(2))
    np.testing.assert_array_equal(state.records, jnp.asarray(VALUES))
    moved, info = jax.jit(few.step)(jax.random.key(3), state)
    assert info.overflow
    jax.tree.map(np.testing.assert_array_equal, moved, state)


BAD_POSITIONS = {
    "another n": (np.zeros(5, int), ValueError, r"labels of shape \[5\]"),
    "fractions": (np.zeros(6), TypeError, "labels of float"),
    "a slot too many": (np.full(6, 24), ValueError, "labels from 24 to 24"),
    "a negative slot": (np.full(6, -1), ValueError, "labels from -1 to -1"),
    "other records": (mixture.MixturePosition(np.zeros(6, int), np.zeros((6, 2))), ValueError, "records of shape"),
}


@pytest.mark.parametrize("name", BAD_POSITIONS)
def test_bad_positions_are_refused(name: str) -> None:
    position, error, text = BAD_POSITIONS[name]
    with pytest.raises(error, match=rf"^position: given {text}"):
        NEAL5.init(position, jax.random.key(0))


def test_bad_capacities_and_keys_are_refused() -> None:
    settings: dict[str, Any] = {"channel": dpjax.Laplace(0.6), "component": BASE, "concentration": 1.0}
    with pytest.raises(ValueError, match=r"^capacity: given 1; expected a whole number >= 2"):
        mixture.gibbs(VALUES, capacity=1, **settings)
    with pytest.raises(ValueError, match=r"^capacity: given 30; expected 20, where the process is truncated"):
        mixture.gibbs(VALUES, sampler=mixture.conditional(truncation=20), capacity=30, **settings)
    with pytest.raises(TypeError, match=r"^rng_key: given 0"):
        NEAL5.init(np.zeros(6, int), 0)
    with pytest.raises(TypeError, match=r"^sampler: given 'neal8'.*Use sampler=dpjax.mixture.neal8\(\)"):
        mixture.gibbs(VALUES, sampler="neal8", **settings)
