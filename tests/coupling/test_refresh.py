"""Refreshes of two chains by common proposals keep each chain's distribution, and let the chains meet at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models, statistics
from dpjax.coupling import meeting_times, refresh
from dpjax.coupling.pairs import RecordPair
from dpjax.coupling.refresh import build_coupled_refresh
from dpjax.data_augmentation.refresh import RefreshTuning, build_refreshes
from tests.coupling.pairs import run_pairs
from tests.tools.perfect_start import REJECT, noise_p_value, parameter_p_value

N = 5
MODEL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)
RELEASE = dpjax.Release(jnp.zeros(1), dpjax.Laplace(0.4), statistics.total("y", -2.0, 2.0), N)
TUNING = RefreshTuning(
    jnp.zeros(1),
    jnp.array([[0.6]]),
    jnp.array(0.3),
    *map(jnp.int32, (16, 16, 16)),
    jnp.full(3, -1.0),
    *map(jnp.int32, (0, 0)),
)
LAWS = {"mean": lambda mean: (mean, stats.norm())}


def p_values(tuning: RefreshTuning = TUNING) -> tuple[float, float, float]:
    """The smaller p-value of parameters and implied noise of either chain, and the share of pairs that have met."""
    imputation = dpjax.imwg(scan="random")
    first, second, met = run_pairs(
        jax.random.key(5), MODEL, RELEASE, imputation, refresh=tuning, num_steps=4, num_pairs=10_000
    )
    noise = stats.laplace(scale=0.4)
    chains = [min(noise_p_value(chain.noise, noise), parameter_p_value(chain, LAWS)) for chain in (first, second)]
    return chains[0], chains[1], float(met.mean())


@pytest.mark.keys
def test_both_chains_keep_their_distribution() -> None:
    first, second, met = p_values()
    assert min(first, second) > REJECT
    assert met > 0.1


@pytest.mark.x32
def test_a_proposal_without_its_density_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: the weights leave out prior and proposal, whose centre is off."""
    honest = refresh.alone
    monkeypatch.setattr(refresh, "alone", lambda model, tuning, _, state: honest(model, tuning, jnp.array(True), state))
    off = TUNING._replace(location=jnp.array([1.0]), factor=jnp.array([[0.2]]), prior_share=jnp.array(0.0))
    assert min(p_values(off)[:2]) < REJECT


def pair_of(first: float, second: float, same: bool) -> tuple:
    one, other = ({"y": jnp.full(N, value)} for value in (first, second))
    flags = jnp.array([True, False, True, False, same])
    return {"mean": jnp.array(first)}, {"mean": jnp.array(second)}, jnp.array(False), RecordPair(one, other, flags)


def test_pairs_are_the_same_where_both_accept_and_keep_flags_where_neither_does() -> None:
    step = jax.jit(build_coupled_refresh(MODEL, RELEASE, TUNING))
    seen = set()
    for number in range(60):
        before = pair_of(0.05, -0.3, False)
        first, second, same, records = step(jax.random.key(number), *before)
        moved = tuple(
            float(new["mean"]) != float(old["mean"]) for new, old in ((first, before[0]), (second, before[1]))
        )
        seen.add(moved)
        assert bool(same) == (moved == (True, True))
        expected = {(True, True): jnp.ones(N, bool), (False, False): before[3].same}.get(moved, jnp.zeros(N, bool))
        np.testing.assert_array_equal(records.same, expected)
        if moved == (True, True):
            np.testing.assert_array_equal(first["mean"], second["mean"])
            np.testing.assert_array_equal(records.first["y"], records.second["y"])
    assert {(True, True), (False, False)} < seen


def test_chains_that_have_met_stay_together() -> None:
    step = jax.jit(build_coupled_refresh(MODEL, RELEASE, TUNING))
    first, _, _, records = pair_of(0.05, 0.05, True)
    pair = first, first, jnp.array(True), RecordPair(records.first, records.first, jnp.ones(N, bool))
    for number in range(10):
        pair = step(jax.random.key(number), *pair)
        assert bool(pair[2])
        assert bool(jnp.all(pair[3].same))
        np.testing.assert_array_equal(pair[0]["mean"], pair[1]["mean"])


@pytest.mark.x32
def test_each_chain_moves_as_a_chain_of_its_own() -> None:
    """Against the refreshes of `dpjax.sample`, by the share that is accepted from one state."""
    alone = build_refreshes(MODEL._replace(noncentred=None), RELEASE)
    step = build_coupled_refresh(MODEL, RELEASE, TUNING)
    first, second, same, records = pair_of(0.05, -0.3, False)
    state = dpjax.gibbs(MODEL, RELEASE, interweave=False).init(dpjax.data_augmentation.Position(first, records.first))
    keys = jax.random.split(jax.random.key(1), 4_000)
    own = jax.vmap(lambda key: alone(key, jnp.int32(0), state, TUNING)[1].num_accepted)(keys)
    coupled = jax.vmap(lambda key: step(key, first, second, same, records)[0]["mean"] != first["mean"])(keys)
    share = float(jnp.mean(own.astype(float)))
    assert abs(share - float(coupled.mean())) < 4 * np.sqrt(2 * share * (1 - share) / 4_000)


@pytest.mark.x32
def test_meetings_are_sooner() -> None:
    kernels = [dpjax.coupling.coupled_gibbs(MODEL, RELEASE, refresh=tuning) for tuning in (None, TUNING)]
    slow, fast = (meeting_times(jax.random.key(2), kernel, num_pairs=100, max_steps=500) for kernel in kernels)
    assert fast.times.mean() < slow.times.mean()
