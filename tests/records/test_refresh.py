"""Refreshes leave the joint law of parameters, records and release as it is; planted faults do not."""

import os
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models, statistics
from dpjax.data_augmentation import refresh as module
from dpjax.data_augmentation.parameters import initial_tuning
from dpjax.data_augmentation.parameters.coordinates import to_vector
from dpjax.data_augmentation.refresh import (
    FREEDOM,
    PERIOD,
    RefreshTuning,
    build_refreshes,
    choose_parameters,
    decide,
    fit_refresh,
    log_weight,
    num_due,
    prior_alone,
    t_draw,
    t_log_density,
)
from dpjax.models.simulation import GibbsState, Position, init_state
from tests.perfect_start import REJECT, noise_p_value, parameter_p_value, run

N = 5
FLOAT32 = os.environ.get("DPJAX_TEST_FLOAT32") == "1"
TOLERANCE = 1e-3 if FLOAT32 else 1e-10

MODEL = models.normal(mean_prior=models.NormalPrior(0.0, 1.0), variance=models.InverseGammaPrior(4.0, 3.0))
RELEASE = dpjax.Release(jnp.array([1.5]), dpjax.Laplace(1.0), statistics.total("y", -2.0, 2.0), N)
LAWS = {
    "mean": lambda mean: (mean, stats.norm()),
    "variance": lambda variance: (variance, stats.invgamma(4.0, scale=3.0)),
}
TUNING = RefreshTuning(
    jnp.array([0.2, -0.1]),
    jnp.array([[0.8, 0.0], [0.3, 0.6]]),
    jnp.array(0.5),
    jnp.int32(16),
    jnp.int32(16),
    jnp.zeros(3),
)


def state_of(mean: float, variance: float, records: list[float]) -> GibbsState:
    return init_state(
        RELEASE, Position({"mean": jnp.array(mean), "variance": jnp.array(variance)}, as_records(records))
    )


def as_records(values: list[float]) -> dict[str, jax.Array]:
    return {"y": jnp.array(values)}


OLD = state_of(0.3, 1.2, [0.1, -0.4, 1.3, 0.7, 0.2])
NEW = state_of(-0.6, 0.7, [-1.1, -0.2, 0.3, 2.9, -0.9])


def log_ratio(from_prior: bool) -> float:
    """The logarithm of the acceptance ratio, on the natural scale and with every constant."""

    def log_target(state: GibbsState) -> float:
        total = np.clip(np.asarray(state.latent.records["y"], float), -2.0, 2.0).sum()
        density = stats.laplace.logpdf(1.5, total, 1.0)
        return density if from_prior else density + log_prior(state) - log_proposal(state)

    return log_target(NEW) - log_target(OLD)


def numbers_of(state: GibbsState) -> tuple[float, float]:
    return float(state.parameters["mean"]), float(state.parameters["variance"])


def log_prior(state: GibbsState) -> float:
    mean, variance = numbers_of(state)
    return stats.norm.logpdf(mean) + stats.invgamma.logpdf(variance, 4.0, scale=3.0)


def log_proposal(state: GibbsState) -> float:
    """That of the parameters: mean and log-variance follow the t distribution."""
    mean, variance = numbers_of(state)
    factor = np.asarray(TUNING.factor, float)
    law = stats.multivariate_t(np.asarray(TUNING.location, float), factor @ factor.T, df=FREEDOM)
    return law.logpdf([mean, np.log(variance)]) - np.log(variance)


@pytest.mark.parametrize("from_prior", [True, False])
def test_a_refresh_is_accepted_up_to_its_ratio(from_prior: bool) -> None:
    for shift, accepted in ((-TOLERANCE, 1), (TOLERANCE, 0)):
        uniform = jnp.array(log_ratio(from_prior) + shift)
        state, info = decide(MODEL, TUNING, OLD, NEW, jnp.array(from_prior), uniform)
        assert (int(info.num_made), int(info.num_accepted), int(info.num_nonfinite)) == (1, accepted, 0)
        for leaf, expected in zip(*map(jax.tree.leaves, (state, NEW if accepted else OLD)), strict=True):
            np.testing.assert_array_equal(leaf, expected)


def test_a_proposal_that_is_not_finite_is_refused_and_counted() -> None:
    broken = [
        NEW._replace(parameters=NEW.parameters | {"variance": jnp.array(jnp.inf)}),
        NEW._replace(latent=NEW.latent._replace(records=as_records([jnp.nan] + [0.0] * 4))),
        NEW._replace(latent=NEW.latent._replace(log_density=jnp.array(jnp.nan))),
    ]
    for proposed in broken:
        state, info = decide(MODEL, TUNING, OLD, proposed, jnp.array(True), jnp.array(-50.0))
        assert (int(info.num_accepted), int(info.num_nonfinite)) == (0, 1)
        np.testing.assert_array_equal(state.latent.records["y"], OLD.latent.records["y"])
    impossible = NEW._replace(latent=NEW.latent._replace(log_density=jnp.array(-jnp.inf)))
    info = decide(MODEL, TUNING, OLD, impossible, jnp.array(True), jnp.array(-50.0))[1]
    assert (int(info.num_accepted), int(info.num_nonfinite)) == (0, 0)


def test_draws_of_the_t_distribution_have_its_density() -> None:
    normal_key, exponential_key = jax.random.split(jax.random.key(3))
    normals, exponentials = (
        jax.random.normal(normal_key, (4_000, 2)),
        jax.random.exponential(exponential_key, (4_000, 2)),
    )
    vectors = jax.vmap(t_draw, in_axes=(0, 0, None))(normals, exponentials, TUNING)
    factor, location = (np.asarray(leaf, float) for leaf in (TUNING.factor, TUNING.location))
    law = stats.multivariate_t(location, factor @ factor.T, df=FREEDOM)
    densities = np.asarray(jax.vmap(t_log_density, in_axes=(0, None))(vectors[:50], TUNING), float)
    exact = law.logpdf(np.asarray(vectors[:50], float))
    np.testing.assert_allclose(densities - densities[0], exact - exact[0], atol=TOLERANCE)
    # The squared whitened length over its dimension has an F distribution.
    whitened = np.linalg.solve(factor, (np.asarray(vectors, float) - location).T)
    assert stats.kstest(np.sum(whitened**2, axis=0) / 2, stats.f(2, FREEDOM).cdf).pvalue > REJECT
    assert stats.kstest(whitened[0], stats.t(FREEDOM).cdf).pvalue > REJECT


@pytest.mark.parametrize("rate", [0, 1, 5, 16, 40, 256])
def test_as_many_fall_due_as_the_rate_says(rate: int) -> None:
    due = np.array([num_due(jnp.int32(rate), jnp.int32(number)) for number in range(2 * PERIOD)])
    ends = np.floor(np.arange(2 * PERIOD + 1) * rate / PERIOD)
    np.testing.assert_array_equal(due, np.diff(ends))


def test_the_fit_has_the_mean_and_the_covariance_of_the_draws_and_gives_way_where_it_fails() -> None:
    whitening = initial_tuning(jax.random.key(1), MODEL)
    fitted = fit_refresh(prior_alone(MODEL), whitening)
    draws = jax.vmap(MODEL.sample_prior)(jax.random.split(jax.random.key(2), 4_000))
    vectors = np.asarray(jax.vmap(lambda draw: to_vector(MODEL, draw)[0])(draws), float)
    covariance = np.asarray(fitted.factor, float) @ np.asarray(fitted.factor, float).T / module.SCALE
    np.testing.assert_allclose(np.diag(covariance), vectors.var(axis=0), rtol=0.15)
    np.testing.assert_allclose(fitted.location, vectors.mean(axis=0), atol=0.1)
    failed = fit_refresh(fitted, whitening._replace(location=whitening.location * jnp.nan))
    assert float(failed.prior_share) == 1.0
    np.testing.assert_array_equal(failed.factor, fitted.factor)


VECTORS = np.array([[0.9, 0.4], [-0.3, -0.8], [0.5, 0.1]])


def place_of(vector: np.ndarray) -> tuple[float, float, np.ndarray, float]:
    """At a vector: mean, variance, the records of the old noise, and the log-weight with every constant."""
    old_mean, old_variance = numbers_of(OLD)
    noise = (np.asarray(OLD.latent.records["y"], float) - old_mean) / np.sqrt(old_variance)
    mean, variance = float(vector[0]), float(np.exp(vector[1]))
    records = mean + np.sqrt(variance) * noise
    state = OLD._replace(parameters={"mean": jnp.array(mean), "variance": jnp.array(variance)})
    density = stats.laplace.logpdf(1.5, np.clip(records, -2.0, 2.0).sum(), 1.0)
    return mean, variance, records, density + log_prior(state) - log_proposal(state)


def choose(vectors: np.ndarray, uniform: float, state: GibbsState = OLD, release: dpjax.Release = RELEASE) -> tuple:
    noise = MODEL.noncentred.noise(jax.random.key(0), state.parameters, state.latent.records)
    return choose_parameters(MODEL, release, TUNING, state, noise, jnp.asarray(vectors), jnp.asarray(uniform))


def test_parameters_are_chosen_by_their_weights_with_the_noise_held() -> None:
    present = to_vector(MODEL, OLD.parameters)[0]
    places = [place_of(vector) for vector in np.concatenate([np.asarray(present, float)[None], VECTORS])]
    weights = np.exp([log_weight for *_, log_weight in places])
    ends = np.cumsum(weights) / weights.sum()
    for index, end in enumerate(ends):
        for uniform, chosen in ((end - TOLERANCE, index), (end + TOLERANCE, index + 1)):
            if chosen == len(ends):
                continue
            state, num_nonfinite = choose(VECTORS, uniform)
            mean, variance, records, _ = places[chosen]
            np.testing.assert_allclose(numbers_of(state), (mean, variance), rtol=TOLERANCE)
            np.testing.assert_allclose(state.latent.records["y"], records, rtol=TOLERANCE, atol=TOLERANCE)
            total = np.clip(records, -2.0, 2.0).sum()
            np.testing.assert_allclose(state.latent.statistic, [total], rtol=TOLERANCE, atol=TOLERANCE)
            assert int(num_nonfinite) == 0


def test_impossible_parameters_are_not_chosen() -> None:
    for broken, counted in ((np.nan, 1), (np.inf, 1), (800.0, 1)):
        state, num_nonfinite = choose(np.array([[0.1, broken]]), 0.9)
        assert int(num_nonfinite) == counted
        np.testing.assert_array_equal(state.latent.records["y"], OLD.latent.records["y"])


OPTIONS = {"num_sweeps": 3}


def p_values(refreshes: Callable, model: dpjax.Model = MODEL, release: dpjax.Release = RELEASE, **options) -> float:
    """The smaller p-value of parameters and implied noise after some refreshes and sweeps from a perfect start."""
    replicates = run(jax.random.key(11), model, release, dpjax.imwg(), refreshes=refreshes, **OPTIONS, **options)
    return min(noise_p_value(replicates.noise, stats.laplace(scale=1.0)), parameter_p_value(replicates, LAWS))


@pytest.mark.keys
def test_sweeps_and_refreshes_leave_the_joint_law_invariant() -> None:
    assert p_values(build_refreshes) > REJECT


def test_a_forgotten_jacobian_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "log_jacobian", lambda model, unconstrained: jnp.zeros(()))
    assert p_values(build_refreshes) < REJECT


def faulty(change: Callable) -> Callable:
    """Two refreshes a step, each of a proposal that a planted fault changes: ``(key, state, proposed) -> proposed``."""

    def build(model: dpjax.Model, release: dpjax.Release) -> Callable:
        propose = module.build_proposal(model, release)

        def step(rng_key: jax.Array, number: jax.Array, state: GibbsState, tuning: RefreshTuning) -> tuple:
            info = None
            for key in jax.random.split(rng_key):
                proposal_key, fault_key, decision_key = jax.random.split(key, 3)
                proposed, from_prior = propose(proposal_key, tuning)
                proposed = change(fault_key, model, release, state, proposed, tuning)
                uniform = jnp.log(jax.random.uniform(decision_key))
                state, info = decide(model, tuning, state, proposed, from_prior, uniform)
            return state, info

        return step

    return build


def old_records(key, model, release, state, proposed, tuning) -> GibbsState:
    """The records are drawn given the parameters before the move."""
    return init_state(release, Position(proposed.parameters, model.sample_records(key, state.parameters, release.n)))


def still_adapting(key, model, release, state, proposed, tuning) -> GibbsState:
    """The t distribution follows the chain, whose ratio does not know of it."""
    vector, unravel = to_vector(model, proposed.parameters)
    moved = vector - tuning.location + to_vector(model, state.parameters)[0]
    parameters = model.constrain(unravel(moved))
    return init_state(release, Position(parameters, model.sample_records(key, parameters, release.n)))


@pytest.mark.parametrize("fault", [old_records, still_adapting])
def test_planted_faults_are_rejected(fault: Callable) -> None:
    assert p_values(faulty(fault), num_chains=20_000) < REJECT


def test_the_harness_of_the_faults_is_right_without_one() -> None:
    assert p_values(faulty(lambda key, model, release, state, proposed, tuning: proposed)) > REJECT


def without_density(model, release, tuning, state, noise, vectors, uniform) -> tuple[GibbsState, jax.Array]:
    """The weights leave out that the candidates are drawn from the t distribution."""
    wide = tuning._replace(factor=1e6 * tuning.factor)
    return choose_parameters(model, release, wide, state, noise, vectors, uniform)


def without_present(model, release, tuning, state, noise, vectors, uniform) -> tuple[GibbsState, jax.Array]:
    """The first candidate takes the place of the present parameters among what is chosen from."""
    parameters = model.constrain(to_vector(model, state.parameters)[1](vectors[0]))
    first = init_state(release, Position(parameters, model.noncentred.records(parameters, noise)))
    return choose_parameters(model, release, tuning, first, noise, vectors[1:], uniform)


@pytest.mark.parametrize("fault", [without_density, without_present])
def test_planted_faults_of_the_choice_are_rejected(fault: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "choose_parameters", fault)
    assert p_values(build_refreshes) < REJECT


@pytest.mark.slow
def test_local_releases_are_refreshed_exactly() -> None:
    local = dpjax.LocalRelease(np.zeros(3), dpjax.Laplace(1.0), field="y")
    assert p_values(build_refreshes, release=local) > REJECT


def test_the_weight_is_that_of_the_unconstrained_scale() -> None:
    difference = log_weight(MODEL, NEW.parameters, TUNING) - log_weight(MODEL, OLD.parameters, TUNING)
    exact = log_prior(NEW) - log_proposal(NEW) - log_prior(OLD) + log_proposal(OLD)
    np.testing.assert_allclose(difference, exact, rtol=TOLERANCE)
