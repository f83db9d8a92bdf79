"""pCN over blocks: sweeps against plain loops, IMwG as its limit, invariance, and mutations."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models
from dpjax.data_augmentation.records.imwg import systematic_sweep
from dpjax.data_augmentation.records.proposals import build_proposal, draw_like, mix
from dpjax.models.record_noise import scores_of
from tests.data_augmentation.records.test_perfect_start import BOUNDED, COUNTS, NORMAL, PARAMETER_LAWS, TABLE, noise_p
from tests.data_augmentation.records.test_sweeps import RELEASES, N, plain_log_density, same
from tests.tools.perfect_start import REJECT, parameter_p_value, run

SCALES = jnp.arange(1.0, 6.0)
UNEQUAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)._replace(
    sample_records=lambda key, theta, n: {"y": theta["mean"] + SCALES[:n] * jax.random.normal(key, (n,), float)},
    log_density=lambda theta, records: jax.scipy.stats.norm.logpdf(records["y"], theta["mean"], SCALES),
    noncentred=dpjax.base.NonCentred(
        lambda key, theta, records: (records["y"] - theta["mean"]) / SCALES,
        lambda theta, noise: {"y": theta["mean"] + SCALES * noise},
        scores=NORMAL.noncentred.scores,
    ),
    update=None,
    summarize=None,
    log_likelihood=None,
    normal_field=None,
    num_records=5,
    exchangeable=False,
)
"""Normal records with standard deviations of their own."""
UNEQUAL_LAWS = {"mean": lambda mean: (mean, stats.norm())}


@pytest.mark.x64
@pytest.mark.parametrize("block", [2, 3, N])
def test_blocks_are_accepted_as_in_a_plain_loop(block: int) -> None:
    release = RELEASES["laplace"]
    draw = np.random.default_rng(5)
    old, new, uniforms = draw.normal(size=N), draw.normal(size=N), draw.uniform(size=-(-N // block))
    log_density, y, accepted = plain_log_density(release), old.copy(), np.zeros(N, int)
    for index, uniform in enumerate(uniforms):
        proposed, places = y.copy(), slice(index * block, (index + 1) * block)
        proposed[places] = new[places]
        if np.log(uniform) < log_density(proposed) - log_density(y):
            y, accepted[places] = proposed, 1
    records, proposals = {"y": jnp.asarray(old)}, {"y": jnp.asarray(new)}
    same(*systematic_sweep(release, records, proposals, jnp.asarray(uniforms), block), y, accepted, release)


@pytest.mark.x64
def test_proposals_are_an_autoregression_of_the_noise() -> None:
    theta = {"mean": jnp.array(0.7), "variance": jnp.array(2.5)}
    draw = np.random.default_rng(6)
    y, fresh = draw.normal(size=N), draw.normal(size=N)
    scores = scores_of(NORMAL, jax.random.key(0), theta, {"y": jnp.asarray(y)})
    proposals = mix(NORMAL, theta, scores, jnp.asarray(fresh), 0.8)
    np.testing.assert_allclose(proposals["y"], 0.7 + 0.8 * (y - 0.7) + 0.6 * 2.5**0.5 * fresh, atol=1e-10)


@pytest.mark.x32
def test_single_records_without_correlation_are_imwg() -> None:
    latent = dpjax.gibbs(NORMAL, BOUNDED).init(NORMAL.sample_prior(jax.random.key(1)), jax.random.key(2)).latent
    theta = NORMAL.sample_prior(jax.random.key(1))
    ours, info = dpjax.pcn(1, 0.0)(NORMAL, BOUNDED)(jax.random.key(3), latent, theta)
    theirs, expected = dpjax.imwg()(NORMAL, BOUNDED)(jax.random.key(3), latent, theta)
    np.testing.assert_array_equal(ours.records["y"], theirs.records["y"])
    np.testing.assert_array_equal(info.accepted, expected.accepted)


@pytest.mark.x32
@pytest.mark.parametrize("model", [NORMAL, TABLE], ids=["normal", "table"])
def test_the_noise_forgets_all_or_nothing_at_the_limits(model: dpjax.Model) -> None:
    """ρ = 0 gives the records of fresh noise, and ρ = 1 the old records, whatever uniforms are drawn for them."""
    key, theta = jax.random.key(4), model.sample_prior(jax.random.key(5))
    records = model.sample_records(jax.random.key(6), theta, 200)
    noise_key, fresh_key = jax.random.split(key)
    fresh = draw_like(fresh_key, scores_of(model, noise_key, theta, records))
    proposal = build_proposal(model, correlated=True)
    expected = model.noncentred.records(theta, model.noncentred.scores.noise(fresh))
    for name, field in proposal(key, theta, records, 0.0).items():
        np.testing.assert_allclose(field, expected[name], rtol=1e-5)
    for name, field in proposal(key, theta, records, 1.0).items():
        np.testing.assert_allclose(field, records[name], rtol=1e-4, atol=1e-5)


CASES = {
    "blocks": (NORMAL, BOUNDED, dpjax.pcn(2, 0.6), True),
    "table": (TABLE, COUNTS, dpjax.pcn(2, 0.6), True),
    "laws of their own": (UNEQUAL, BOUNDED, dpjax.pcn(2, 0.7), True),
}


@pytest.mark.keys
@pytest.mark.parametrize("name", ["blocks"])
def test_the_joint_law_is_invariant_under_the_key_checker(name: str) -> None:
    check_invariance(*CASES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table", "laws of their own"])
def test_the_joint_law_is_invariant(name: str) -> None:
    check_invariance(*CASES[name])


def check_invariance(model: dpjax.Model, release: dpjax.Release, imputation: object, interweave: bool) -> None:
    replicates = run(jax.random.key(21), model, release, imputation, interweave=interweave)
    laws = UNEQUAL_LAWS if model is UNEQUAL else PARAMETER_LAWS[id(model)]
    assert noise_p(release, replicates.noise) > REJECT
    assert parameter_p_value(replicates, laws) > REJECT
    assert 0.1 < replicates.acceptance_rate.mean() < 1.0


@pytest.mark.x32
def test_noise_fixed_within_its_cell_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: discrete fields get the middle of their cell and not a draw within it."""

    def middles(key: jax.Array, lower: jax.Array, upper: jax.Array) -> jax.Array:
        return (lower + upper) / 2

    # The package exports a function of the module's name.
    monkeypatch.setattr(sys.modules["dpjax.models.categorical"], "uniforms_within", middles)
    replicates = run(jax.random.key(21), TABLE, COUNTS, dpjax.pcn(1, 0.95), num_sweeps=30)
    p_value = parameter_p_value(replicates, PARAMETER_LAWS[id(TABLE)])
    assert min(p_value, noise_p(COUNTS, replicates.noise)) < REJECT


def test_a_residual_not_restored_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: after a rejection the scan goes on with the residual of the block that was refused."""
    module = sys.modules["dpjax.data_augmentation.records.imwg"]
    right = module.metropolis

    def wrong(release: dpjax.Release, residual: object, log_density: object, proposed: object, u: object) -> tuple:
        (_, kept), report = right(release, residual, log_density, proposed, u)
        return (proposed, kept), report

    monkeypatch.setattr(module, "metropolis", wrong)
    release = dpjax.Release(BOUNDED.value, dpjax.Laplace(0.5), BOUNDED.statistic, BOUNDED.n)
    assert noise_p(release, run(jax.random.key(21), NORMAL, release, dpjax.pcn(2, 0.6)).noise) < REJECT
