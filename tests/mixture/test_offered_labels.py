"""Neal 5 in rounds: the sweep that comes out is the one in turn, number by number."""

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from dpjax.mixture import NormalInverseGamma
from dpjax.mixture.conditional import Problem
from dpjax.mixture.offered_labels import Offers, draw_records, draw_urn, log_channels, log_mean, settle

N = 60
SIZES = (30.0, 0.0, 29.0, 1.0, 0.0, 0.0, 0.0, 0.0)
KEYS = jax.random.split(jax.random.key(4), 6)


class Case:
    """The innovations of one sweep over records that share few clusters, most offers being taken."""

    def __init__(self) -> None:
        component = NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
        self.labels = jnp.repeat(jnp.arange(8, dtype=jnp.int32), jnp.array(SIZES, int), total_repeat_length=N)
        values = 3.0 * jax.random.normal(KEYS[0], (N,))
        self.problem = Problem(values, dpjax.Laplace(2.0), component, 1.0)
        self.urn = draw_urn(jax.random.uniform(KEYS[1], (N,)), jnp.array(SIZES), jnp.asarray(5.0, float))
        self.theta = component.sample_prior(KEYS[2], 8)
        self.log_uniforms = jnp.log(jax.random.uniform(KEYS[3], (N,)))
        self.present = log_mean(
            log_channels(self.problem, draw_records(self.problem, KEYS[4], self.theta, self.labels, 2))
        )

    def offer(self, labels: jax.Array) -> Offers:
        records = draw_records(self.problem, KEYS[5], self.theta, labels, 2)
        return Offers(labels, records, log_channels(self.problem, records))

    def accept(self, offers: Offers) -> jax.Array:
        return self.log_uniforms < log_mean(offers.log_channel) - self.present

    def one_after_another(self) -> tuple[np.ndarray, np.ndarray]:
        """The labels offered, and the labels after the sweep, by a loop over the records."""
        offer_all = jax.jit(lambda labels: (self.accept(self.offer(labels)), labels))
        labels, given = np.array(self.labels), np.zeros(N, np.int32)
        for i in range(N):
            fresh = bool(self.urn.fresh[i])
            given[i] = self.urn.slots[i] if fresh else labels[int(self.urn.sources[i])]
            accepted, _ = offer_all(jnp.asarray(np.where(np.arange(N) == i, given[i], labels), jnp.int32))
            labels[i] = given[i] if accepted[i] else labels[i]
        return given, labels


def test_rounds_give_the_sweep_in_turn() -> None:
    case = Case()
    given, labels = case.one_after_another()
    offers = jax.jit(lambda labels: settle(case.urn, labels, case.offer, case.accept))(case.labels)
    np.testing.assert_array_equal(offers.labels, given)
    np.testing.assert_array_equal(np.where(case.accept(offers), offers.labels, case.labels), labels)
    # The case is no easy one: records follow others that moved in the same sweep.
    stale = np.where(case.urn.fresh, case.urn.slots, case.labels[case.urn.sources])
    assert np.any(given != stale)


def test_the_urn_offers_the_others_and_new_clusters_alike() -> None:
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
