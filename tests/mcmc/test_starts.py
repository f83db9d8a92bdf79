"""Starts have positive density wherever one can be found, and are wider than the posterior."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.mcmc.starts import find_starts
from dpjax.mechanisms import RandomizedResponse
from dpjax.models import categorical
from dpjax.release import LocalRelease, Release

KEYS = tuple(jax.random.split(jax.random.key(4)))


def moments(record):
    return jnp.stack([record["y"], record["y"] ** 2])


@pytest.mark.x64
def test_starts_are_wider_than_the_posterior_and_nearer_than_the_prior(model, release, exact):
    """With the power 1/4 the starts' variance is at most that of prior times likelihood^(1/4), by conjugacy."""
    num_chains = 2_000
    starts = np.asarray(find_starts(KEYS, model, release, num_chains, None).parameters["mean"])
    error = 1 / np.sqrt(2 * num_chains)
    assert starts.std() > exact.sd * (1 + 5 * error)
    assert starts.std() < 2.0 * (1 - 5 * error)


@pytest.mark.keys
def test_the_state_belongs_to_its_records(model, release):
    state = find_starts(KEYS, model, release, 4, None)
    total = jax.vmap(release.total)(state.latent.records)
    np.testing.assert_allclose(state.latent.statistic, total, rtol=1e-6)
    np.testing.assert_allclose(state.latent.log_density, jax.vmap(release.log_density)(total), rtol=1e-5)


@pytest.mark.parametrize("width", [3.0, 0.1])
def test_a_narrow_mechanism_is_met(model, bounded, width):
    """At the smaller width no candidate of a thousand is possible: records are exchanged one by one."""
    release = Release(jnp.array([10.0, 30.0]), bounded(width), moments, n=20)
    state = find_starts(KEYS, model, release, 4, None)
    totals = jax.vmap(release.total)(state.latent.records)
    assert np.all(np.abs(totals - release.value[None]) < width)
    assert np.all(np.isfinite(state.latent.log_density))


def test_given_parameters_are_kept(model, release):
    initial = {"mean": jnp.array([-1.0, 0.0, 1.0, 2.0])}
    state = find_starts(KEYS, model, release, 4, initial)
    np.testing.assert_array_equal(state.parameters["mean"], initial["mean"])
    assert np.std(state.latent.records["y"][0]) > 0


@pytest.mark.x64
def test_impossible_records_of_a_local_release_are_exchanged():
    """Each released category is possible under two of five true ones only."""
    channel = jnp.eye(5) * 0.5 + jnp.roll(jnp.eye(5), 1, axis=1) * 0.5
    values = np.arange(200) % 5
    release = LocalRelease(values, RandomizedResponse(matrix=channel), field="cell")
    state = find_starts(KEYS, categorical(concentration=np.ones(5)), release, 4, None)
    truth = np.asarray(state.latent.records["cell"])
    assert np.all((truth == values) | ((truth + 1) % 5 == values))


@pytest.mark.parametrize(("initial", "source"), [(None, "the prior"), ({"mean": np.zeros(4)}, "`initial`")])
def test_a_release_that_cannot_be_met_is_named(model, bounded, initial, source):
    """Squares are positive, so no records can come near a negative sum of squares."""
    release = Release(jnp.array([0.0, -50.0]), bounded(1.0), moments, n=20)
    with pytest.raises(
        ValueError, match=r"release: given a Release of zero density .* 4 of 4 chains; expected"
    ) as error:
        find_starts(KEYS, model, release, 4, jax.tree.map(jnp.asarray, initial))
    for part in ("1000 starts", "1000 sweeps", f"parameters from {source}", "same units"):
        assert part in str(error.value)
