"""Records of an unknown number: the law of their number, of the records and of the parameters is left invariant."""

import sys
from math import comb, log

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models, statistics
from dpjax.data_augmentation.records.births import sweep, up_gains
from dpjax.data_augmentation.records.unknown_number import data_set_form
from tests.tools.perfect_start import REJECT, noise_p_value, parameter_p_value, run

NORMAL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=models.InverseGammaPrior(4.0, 3.0))
NORMAL_LAWS = {
    "mean": lambda mean: (mean, stats.norm()),
    "variance": lambda variance: (variance, stats.invgamma(4.0, scale=3.0)),
}
TABLE = models.categorical(concentration=[2.0, 1.0, 3.0])
TABLE_LAWS = {"probabilities": lambda p: (p[:, 0], stats.beta(2.0, 4.0))}

UNIFORM, POISSON = models.UniformCount(2, 9), models.PoissonCount(2.5)
WIDE = models.NegativeBinomialCount(3.0, 2.0)
LAWS = {UNIFORM: stats.randint(2, 10), POISSON: stats.poisson(2.5), WIDE: stats.nbinom(2.0, 0.4)}


def count_and_total(record: dict) -> jax.Array:
    return jnp.stack([jnp.ones(()), jnp.clip(record["y"], -2.0, 2.0)])


def bounded(prior: object, scale: float = 1.0) -> dpjax.Release:
    return dpjax.Release(jnp.zeros(2), dpjax.Laplace(scale), count_and_total, dpjax.UnknownCount(prior))


def cells(prior: object) -> dpjax.Release:
    return dpjax.Release(jnp.zeros(3), dpjax.Laplace(1.0), statistics.cells("cell", 3), dpjax.UnknownCount(prior))


CASES = {
    "exact update": (NORMAL, bounded(UNIFORM), False, None, NORMAL_LAWS),
    "interweaved": (NORMAL, bounded(POISSON), True, None, NORMAL_LAWS),
    "a kernel that sees real rows alone": (NORMAL, bounded(UNIFORM), False, "coordinate_slice", NORMAL_LAWS),
    "table": (TABLE, cells(WIDE), False, None, TABLE_LAWS),
    "table, interweaved": (TABLE, cells(UNIFORM), True, None, TABLE_LAWS),
}


def number_p_value(prior: object, numbers: np.ndarray) -> float:
    """The p-value of a χ² test that numbers of records [chain] follow their prior."""
    law, highest = LAWS[prior], 12
    expected = np.append(law.pmf(np.arange(highest)), law.sf(highest - 1)) * len(numbers)
    observed = np.bincount(np.minimum(numbers, highest), minlength=highest + 1)
    assert not np.any(observed[expected == 0])
    return float(stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue)


def perfect_start(name: str, **options: int) -> tuple[float, float, float]:
    """The p-values of the number of records, of the noise, and of the parameters."""
    model, release, interweave, kernel, laws = CASES[name]
    pair = data_set_form(model, release)
    end = run(jax.random.key(3), *pair, dpjax.imwg(), interweave=interweave, parameter_kernel=kernel, **options)
    assert 0.1 < end.acceptance_rate.mean() < 1.0
    noise = noise_p_value(end.noise, stats.laplace(scale=1.0))
    return number_p_value(release.n.prior, end.reported["num_records"]), noise, parameter_p_value(end, laws)


FIRST, *OTHERS = CASES


@pytest.mark.keys
def test_the_joint_law_is_invariant() -> None:
    assert min(perfect_start(FIRST)) > REJECT


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_the_joint_law_is_invariant_in_other_cases(name: str) -> None:
    assert min(perfect_start(name)) > REJECT


@pytest.mark.x32
def test_births_that_forget_how_many_deaths_there_are_to_try_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: the gain lacks n + 1."""

    def forgetful(design: object) -> jax.Array:
        return up_gains(design) - jnp.log(jnp.arange(1.0, design.capacity + 1))

    monkeypatch.setattr(sys.modules["dpjax.data_augmentation.records.births"], "up_gains", forgetful)
    assert perfect_start("exact update")[0] < REJECT


@pytest.mark.slow
def test_a_fixed_order_of_visits_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: real rows are always visited first, so that deaths go before births."""
    right = sweep

    def in_order(*arguments: object) -> object:
        *others, order, uniforms = arguments
        return right(*others, jnp.arange(order.size), uniforms)

    monkeypatch.setattr(sys.modules["dpjax.data_augmentation.records.births"], "sweep", in_order)
    assert min(perfect_start("exact update", num_chains=20_000)[:2]) < REJECT


@pytest.mark.slow
@pytest.mark.parametrize("prior", LAWS, ids=repr)
def test_without_information_the_number_follows_its_prior(prior: object) -> None:
    """Chains that all start at the same number, under noise of infinite size, forget it."""
    model, release = data_set_form(NORMAL, bounded(prior, scale=1e9))
    algorithm = dpjax.gibbs(model, release, dpjax.imwg(), interweave=False)

    def chain(key: jax.Array) -> jax.Array:
        start_key, run_key = jax.random.split(key)
        records = model.sample_records(start_key, {"mean": jnp.zeros(()), "variance": jnp.ones(())}, 1)
        records["num_records"] = jnp.full(1, 2)
        state = algorithm.init(
            dpjax.data_augmentation.Position({"mean": jnp.zeros(()), "variance": jnp.ones(())}, records)
        )
        keys = jax.random.split(run_key, 30)
        return jax.lax.scan(lambda state, key: (algorithm.step(key, state)[0], None), state, keys)[0].latent.records

    end = jax.device_get(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(5), 4_000)))
    assert number_p_value(prior, end["num_records"][:, 0]) > REJECT


@pytest.mark.x64
def test_a_sweep_is_what_its_formula_says() -> None:
    """Each proposal decided by the density of everything, written out."""
    model, release = data_set_form(NORMAL, bounded(WIDE))
    release = release.with_mechanism(dpjax.Laplace(jnp.array([1.5, 0.7])))
    capacity, number = release.statistic.capacity, 5
    rng = np.random.default_rng(8)
    rows, births, exchanges = rng.normal(size=(3, capacity))
    order, uniforms = rng.permutation(capacity), rng.uniform(size=(2, capacity))

    def log_density(slots: list) -> float:
        held = np.array([slot for slot in slots if slot is not None])
        noise = -np.array([len(held), np.sum(np.clip(held, -2, 2))])
        log_prior = float(WIDE.log_probability(jnp.array(len(held))))
        return log_prior - log(comb(capacity, len(held))) - np.sum(np.abs(noise) / [1.5, 0.7])

    slots = [rows[row] if row < number else None for row in order]
    decided = 0
    for place in range(capacity):
        proposal = births[place] if slots[place] is None else None
        changed = [*slots[:place], proposal, *slots[place + 1 :]]
        if log(uniforms[0, place]) < log_density(changed) - log_density(slots):
            slots, decided = changed, decided + 1
    for place in range(capacity):
        changed = [*slots[:place], exchanges[place], *slots[place + 1 :]]
        if slots[place] is not None and log(uniforms[1, place]) < log_density(changed) - log_density(slots):
            slots, decided = changed, decided + 1
    held = [slot for slot in slots if slot is not None]

    latent, info = jax.jit(sweep)(
        release,
        up_gains(release.statistic),
        {"y": jnp.asarray(rows), "num_records": jnp.array(number)},
        {"y": jnp.asarray(births)},
        {"y": jnp.asarray(exchanges)},
        jnp.asarray(order),
        jnp.asarray(uniforms),
    )
    assert latent.records["num_records"][0] == len(held) != number
    np.testing.assert_allclose(latent.records["y"][0, : len(held)], held, rtol=1e-12)
    np.testing.assert_allclose(latent.statistic, [len(held), np.sum(np.clip(held, -2, 2))], atol=1e-10)
    np.testing.assert_allclose(latent.log_density, release.log_likelihood(latent.records), atol=1e-10)
    assert info.accepted[0] == decided
    assert model.reported(latent.records)["num_records"] == len(held)
