"""Neal 5 in rounds: the sweep that comes out is the one in turn, number by number."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.mixture import NormalInverseGamma
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.process import Process
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


@partial(jax.jit, static_argnums=0)
def make_case(discount: float | None) -> Case:
    labels = jnp.array([0] * 30 + [2] * 29 + [3], jnp.int32)
    shape = (N,) if discount is None else (2, N)
    process = Process(jnp.asarray(5.0, float), None if discount is None else jnp.asarray(discount, float))
    urn = draw_urn(jax.random.uniform(KEYS[1], shape), jnp.array(SIZES), process)
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
    sources, fresh, refusals = np.asarray(case.urn.sources), np.asarray(case.urn.fresh), case.urn.refusals
    labels, given, accepted = np.array(case.labels), np.zeros(N, np.int32), np.zeros(N, bool)
    empty = iter(np.flatnonzero(np.array(SIZES) == 0))
    for i in range(N):
        opens = fresh[i]
        if refusals is not None and not opens:
            others = np.delete(labels, i)
            opens = float(refusals.multiples[i]) * np.sum(others == labels[sources[i]]) < 1
        given[i] = next(empty, len(SIZES) - 1) if opens else labels[sources[i]]
        accepted[i] = accept_all(np.where(np.arange(N) == i, given[i], labels))[i]
        labels[i] = given[i] if accepted[i] else labels[i]
    return given, accepted


@pytest.mark.parametrize("discount", [None, 0.9])
def test_rounds_give_the_sweep_in_turn(discount: float | None) -> None:
    case = make_case(discount)
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
    urn = jax.jit(jax.vmap(lambda row: draw_urn(row, counts, Process(jnp.asarray(alpha, float)))))(grid)
    for i in range(n):
        fresh = np.asarray(urn.fresh)[:, i]
        shares = np.bincount(np.asarray(urn.sources)[~fresh, i], minlength=n) / 11_000
        np.testing.assert_allclose(shares, np.where(np.arange(n) == i, 0, 1 / (n - 1 + alpha)), atol=1e-3)
        assert abs(fresh.mean() - alpha / (n - 1 + alpha)) < 1e-3


def test_a_discount_is_taken_from_each_cluster_of_the_urn() -> None:
    """The weights n_h - d and α + d k, where the record itself does not count."""
    alpha, d, number = 1.5, 0.6, 150
    counts, labels = jnp.array([3.0, 0.0, 1.0, 0.0, 0.0, 0.0]), jnp.array([0, 0, 2, 0], jnp.int32)
    process = Process(jnp.asarray(alpha, float), jnp.asarray(d, float))
    grid = (np.stack(np.meshgrid(np.arange(number), np.arange(number)), -1).reshape(-1, 2) + 0.5) / number
    uniforms = jnp.broadcast_to(jnp.asarray(grid, float)[:, :, None], (number**2, 2, 4))
    propose = jax.jit(jax.vmap(lambda rows: draw_urn(rows, counts, process).in_turn(labels, labels)[0]))
    slots = np.asarray(propose(uniforms))
    for i, sizes in enumerate([[2, 1], [2, 1], [3, 0], [2, 1]]):
        law = [max(size - d, 0) / (3 + alpha) for size in sizes]
        shares = [np.mean(slots[:, i] == slot) for slot in (0, 2)]
        np.testing.assert_allclose(shares, law, atol=0.01)
        assert (
            abs(np.mean((slots[:, i] != 0) & (slots[:, i] != 2)) - (alpha + d * np.count_nonzero(sizes)) / 4.5) < 0.01
        )


def test_each_new_cluster_gets_an_empty_slot_of_its_own() -> None:
    counts = jnp.array([3.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    process = Process(jnp.asarray(1.0, float))
    place = jax.jit(lambda uniforms: draw_urn(uniforms, counts, process))
    urn = place(jnp.array([0.99, 0.1, 0.99, 0.99]))
    np.testing.assert_array_equal(urn.slots[jnp.array([0, 2, 3])], [1, 3, 4])
    assert not urn.overflow
    few = jax.jit(lambda uniforms: draw_urn(uniforms, counts[:4], process))
    assert few(jnp.array([0.99, 0.1, 0.99, 0.99])).overflow
