"""Neal 5 in rounds: the sweep that comes out is the one in turn, number by number."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from dpjax.mixture import NormalInverseGamma
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.samplers.neal5 import AuxiliaryRecords, Urn, draw_records, draw_urn, log_channels, log_mean, settle

N = 60
SIZES = (30.0, 0.0, 29.0, 1.0, 0.0, 0.0, 0.0, 0.0)
KEYS = jax.random.split(jax.random.key(4), 6)


COMPONENT = NormalInverseGamma(0.0, 0.1, 3.0, 3.0)


class Case(NamedTuple):
    """The innovations of one sweep over records that share few clusters, most proposals being taken."""

    values: jax.Array
    labels: jax.Array
    urn: Urn
    theta: dict[str, jax.Array]
    log_uniforms: jax.Array
    present: jax.Array

    def proposal(self, labels: jax.Array, key: jax.Array = KEYS[5]) -> AuxiliaryRecords:
        problem = MixtureProblem(self.values, dpjax.Laplace(2.0), COMPONENT, 1.0)
        records = draw_records(problem, key, self.theta, labels, 2)
        return AuxiliaryRecords(labels, records, log_channels(problem, records))

    def accept(self, proposals: AuxiliaryRecords) -> jax.Array:
        return self.log_uniforms < log_mean(proposals.log_channel) - self.present


@jax.jit
def make_case() -> Case:
    labels = jnp.array([0] * 30 + [2] * 29 + [3], jnp.int32)
    urn = draw_urn(jax.random.uniform(KEYS[1], (N,)), jnp.array(SIZES), jnp.asarray(5.0, float))
    log_uniforms = jnp.log(jax.random.uniform(KEYS[3], (N,)))
    values = 3.0 * jax.random.normal(KEYS[0], (N,))
    case = Case(values, labels, urn, COMPONENT.sample_prior(KEYS[2], 8), log_uniforms, log_uniforms)
    return case._replace(present=log_mean(case.proposal(labels, KEYS[4]).log_channel))


@jax.jit
def in_rounds(case: Case) -> tuple[jax.Array, jax.Array]:
    """The labels proposed and whether they are accepted."""
    proposals = settle(case.urn, case.labels, case.proposal, case.accept)
    return proposals.labels, case.accept(proposals)


def one_after_another(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The same, by a loop over the records."""
    accept_all = jax.jit(lambda labels: case.accept(case.proposal(labels)))
    sources, fresh, slots = (np.asarray(leaf) for leaf in case.urn[:3])
    labels, given, accepted = np.array(case.labels), np.zeros(N, np.int32), np.zeros(N, bool)
    for i in range(N):
        given[i] = slots[i] if fresh[i] else labels[sources[i]]
        accepted[i] = accept_all(np.where(np.arange(N) == i, given[i], labels))[i]
        labels[i] = given[i] if accepted[i] else labels[i]
    return given, accepted


def test_rounds_give_the_sweep_in_turn() -> None:
    case = make_case()
    given, accepted = one_after_another(case)
    found = in_rounds(case)
    np.testing.assert_array_equal(found[0], given)
    np.testing.assert_array_equal(found[1], accepted)
    # The case is no easy one: records follow others that moved in the same sweep.
    stale = np.where(case.urn.fresh, case.urn.slots, np.asarray(case.labels)[case.urn.sources])
    assert np.any(given != stale)


def test_the_urn_proposals_the_others_and_new_clusters_alike() -> None:
    n, alpha = 4, 1.5
    uniforms = (np.arange(11_000) + 0.5) / 11_000
    counts = jnp.array([3.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    grid = jnp.broadcast_to(jnp.asarray(uniforms, float)[:, None], (11_000, n))
    urn = jax.jit(jax.vmap(lambda row: draw_urn(row, counts, jnp.asarray(alpha, float))))(grid)
    for i in range(n):
        fresh = np.asarray(urn.fresh)[:, i]
        shares = np.bincount(np.asarray(urn.sources)[~fresh, i], minlength=n) / 11_000
        np.testing.assert_allclose(shares, np.where(np.arange(n) == i, 0, 1 / (n - 1 + alpha)), atol=1e-3)
        assert abs(fresh.mean() - alpha / (n - 1 + alpha)) < 1e-3


def test_each_new_cluster_gets_an_empty_slot_of_its_own() -> None:
    counts = jnp.array([3.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    place = jax.jit(lambda uniforms: draw_urn(uniforms, counts, jnp.asarray(1.0, float)))
    urn = place(jnp.array([0.99, 0.1, 0.99, 0.99]))
    np.testing.assert_array_equal(urn.slots[jnp.array([0, 2, 3])], [1, 3, 4])
    assert not urn.overflow
    few = jax.jit(lambda uniforms: draw_urn(uniforms, counts[:4], jnp.asarray(1.0, float)))
    assert few(jnp.array([0.99, 0.1, 0.99, 0.99])).overflow
