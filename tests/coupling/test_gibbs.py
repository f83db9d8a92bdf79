"""Coupled kernels: each chain of a pair keeps its law, whatever the order of its records; pairs that met stay so."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models, statistics
from dpjax.coupling import coupled_gibbs
from dpjax.coupling.pairs import RecordPair
from dpjax.coupling.sweeps import log_acceptance, sweep
from dpjax.data_augmentation.records.imwg import random_sweep, systematic_sweep
from dpjax.data_augmentation.records.placed import SummedTarget
from dpjax.data_augmentation.records.soma import choose_place
from dpjax.exchangeable.sweeps import Innovations, make_placement
from tests.coupling.pairs import run_pairs
from tests.tools.perfect_start import REJECT, noise_p_value, parameter_p_value

N = 5


NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=models.InverseGammaPrior(4.0, 3.0))


KNOWN = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=1.0)


UNIFORM = models.beta(1.0, 1.0)._replace(
    sample_records=lambda key, parameters, n: {"y": jax.random.uniform(key, (n,), float)}
)


LAWS = {
    id(NORMAL): {
        "mean": lambda mean: (mean, stats.norm()),
        "variance": lambda variance: (variance, stats.invgamma(4.0, scale=3.0)),
    },
    id(KNOWN): {"mean": lambda mean: (mean, stats.norm())},
}


TOTAL = dpjax.Release(jnp.zeros(1), dpjax.Laplace(0.4), statistics.total("y", -2.0, 2.0), N)


BINS = dpjax.Release(jnp.zeros(3), dpjax.Laplace(0.4), statistics.histogram("y", (0.0, 0.2, 0.6, 1.0)), N)


SUM = dpjax.Release(jnp.zeros(1), dpjax.Laplace(0.05), statistics.total("y", 0.0, 1.0), 3)


CASES = {
    "soma": (UNIFORM, BINS, dpjax.soma(), {}),
    "soma, equal indices": (UNIFORM, BINS, dpjax.soma(attempts=3), {"relabel": False}),
    "soma, maximal parameters": (NORMAL, TOTAL, dpjax.soma(), {}),
    "soma windows": (UNIFORM, BINS, dpjax.soma(attempts=2), {}),
    "imwg systematic": (KNOWN, TOTAL, dpjax.imwg(), {"parameters": "common"}),
    "imwg random": (UNIFORM, BINS, dpjax.imwg(scan="random"), {"relabel": "within"}),
}


QUICK = ("imwg random",)


def p_value(model: dpjax.Model, replicates: object) -> float:
    noise = noise_p_value(replicates.noise, stats.laplace(scale=0.4))
    return min(noise, parameter_p_value(replicates, LAWS[id(model)])) if id(model) in LAWS else noise


def marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.keys] if name in QUICK else [pytest.mark.keys, pytest.mark.slow]


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in CASES])
def test_both_chains_keep_their_law(name: str) -> None:
    model, release, imputation, options = CASES[name]
    first, second, met = run_pairs(jax.random.key(3), model, release, imputation, **options)
    for chain in (first, second):
        assert p_value(model, chain) > REJECT
        assert 0.2 < chain.acceptance_rate.mean() < 1.0
    assert met.mean() > (0.0 if options.get("relabel") is False else 0.02)


def sorted_p_value() -> float:
    """Of the second chain of systematic scans, where the first begins with its records in increasing order."""
    options = {"num_pairs": 60_000, "num_steps": 3, "sort_first": True}
    _, second, _ = run_pairs(jax.random.key(3), UNIFORM, SUM, dpjax.imwg(), **options)
    return noise_p_value(second.noise, stats.laplace(scale=0.05))


@pytest.mark.slow
def test_the_order_of_the_first_chain_does_not_matter() -> None:
    assert sorted_p_value() > REJECT


@pytest.mark.slow
def test_relabelling_within_a_systematic_sweep_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpjax.coupling.gibbs.check_relabelling", lambda relabel, placement: "within")
    assert sorted_p_value() < REJECT


@pytest.mark.slow
def test_relabelling_between_sweeps_without_a_common_permutation_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax.random, "permutation", lambda key, n: jnp.arange(n))
    assert sorted_p_value() < REJECT


@pytest.mark.parametrize("imputation", [dpjax.imwg(), dpjax.soma(attempts=2)])
def test_relabelling_within_other_sweeps_is_refused(imputation: object) -> None:
    with pytest.raises(ValueError, match="relabel"):
        coupled_gibbs(UNIFORM, BINS, imputation, relabel="within")
    with pytest.raises(ValueError, match="proposals"):
        coupled_gibbs(UNIFORM, BINS, imputation, proposals=1)


def test_what_cannot_be_coupled_is_refused() -> None:
    local = dpjax.LocalRelease(np.zeros(N), dpjax.Laplace(0.8), field="y")
    with pytest.raises(TypeError, match="LocalRelease"):
        coupled_gibbs(NORMAL, local)
    with pytest.raises(ValueError, match="Give the model `update` and `update_log_density`"):
        coupled_gibbs(NORMAL._replace(update=None), TOTAL, parameters="maximal")
    with pytest.raises(ValueError, match="given no update_log_density; expected parameters that can meet"):
        coupled_gibbs(NORMAL._replace(update_log_density=None), TOTAL, parameters="common")
    with pytest.raises(ValueError, match="not exchangeable"):
        coupled_gibbs(NORMAL._replace(exchangeable=False), TOTAL)
    with pytest.raises(ValueError, match="attempts"):
        coupled_gibbs(NORMAL, TOTAL, dpjax.soma(attempts="auto"))
    with pytest.raises(ValueError, match="relabel"):
        coupled_gibbs(NORMAL, TOTAL, relabel="often")
    with pytest.raises(TypeError, match="imputation"):
        coupled_gibbs(NORMAL, TOTAL, lambda model, release: dpjax.imwg()(model, release))


@pytest.mark.x64
@pytest.mark.parametrize(
    ("model", "num_pairs", "steps"), [(KNOWN, 100, 100), pytest.param(NORMAL, 5_000, 200, marks=pytest.mark.slow)]
)
def test_pairs_that_have_met_stay_together(model: dpjax.Model, num_pairs: int, steps: int) -> None:
    """Faithfulness, over 10^6 steps in the slow case: flags stay set, and all bits are equal once they are set."""
    kernel = coupled_gibbs(model, TOTAL, dpjax.soma())

    def run(key: jax.Array) -> tuple:
        first_key, second_key, run_key = jax.random.split(key, 3)
        pair = kernel.join(kernel.sample_start(first_key), kernel.sample_start(second_key), jnp.asarray(False))

        def step(pair: object, index: jax.Array) -> tuple:
            pair, _ = kernel.step(jax.random.fold_in(run_key, index), pair)
            return pair, (kernel.met(pair), same_bits(kernel.first(pair), kernel.second(pair)))

        return jax.lax.scan(step, pair, jnp.arange(steps))[1]

    met, equal = map(np.asarray, jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(4), num_pairs)))
    assert met[:, -1].mean() > 0.5
    assert np.all(np.diff(met.astype(int), axis=1) >= 0)
    assert np.all(equal[met])


def same_bits(first: object, second: object) -> jax.Array:
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return jnp.all(jnp.stack([jnp.all(one == other) for one, other in pairs]))


@pytest.mark.x64
@pytest.mark.parametrize("scan", ["systematic", "random"])
def test_each_chain_makes_the_sweep_of_the_single_kernel(scan: str) -> None:
    """Of IMwG the sweeps agree with the single kernels' as functions of the innovations."""
    keys = jax.random.split(jax.random.key(8), 6)
    release = TOTAL.sample(keys[0], KNOWN.sample_records(keys[1], {"mean": jnp.asarray(0.5)}, N))
    records = [KNOWN.sample_records(key, {"mean": jnp.asarray(0.0)}, N) for key in keys[2:4]]
    proposals = [KNOWN.sample_records(key, {"mean": jnp.asarray(0.3)}, N) for key in keys[4:]]
    uniforms = jnp.linspace(0.05, 0.9, N)
    places = jnp.array([3, 0, 3, 1, 4]) if scan == "random" else jnp.arange(N)
    flags = jnp.zeros(N, bool)
    placement, target = make_placement(dpjax.imwg(scan=scan), N), SummedTarget(release, N)
    start, made = RecordPair(*records, flags), RecordPair(*proposals, flags)
    couple = jax.jit(lambda u: sweep(target, start, made, placement, None, Innovations(places, u, u), keys[0]))
    pair, info = couple(uniforms)
    for side, (begun, proposed) in enumerate(zip(records, proposals, strict=True)):
        extra = (places,) if scan == "random" else ()
        single = jax.jit(systematic_sweep if scan == "systematic" else random_sweep)
        latent, report = single(release, begun, proposed, uniforms, *extra)
        np.testing.assert_allclose((pair.first, pair.second)[side]["y"], latent.records["y"], atol=1e-10)
        np.testing.assert_allclose(info.acceptance_rate[side], report.acceptance_rate, atol=1e-10)


def test_soma_accepts_as_often_in_a_pair() -> None:
    """The ratio of the single chain, whose tests say what it is."""
    log_weights, log_current = jnp.array([0.3, -2.0, 1.5]), jnp.array(0.8)
    for uniform in (0.05, 0.3, 0.9):
        index, _, rate = choose_place(log_weights, log_current, jnp.array(uniform), jnp.array(0.5))
        found = log_acceptance(log_weights[index], jax.nn.logsumexp(log_weights), log_current)
        np.testing.assert_allclose(found, jnp.log(rate), atol=1e-5)
