"""Refreshes leave the joint distribution of parameters, records and release as it is; mutations do not."""

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
from dpjax.data_augmentation.refresh import (
    FREEDOM,
    PERIOD,
    Candidates,
    RefreshTuning,
    alone,
    build_refreshes,
    choose_candidate,
    decide,
    draw_vectors,
    fit_refresh,
    is_by_prior,
    log_weight,
    num_due,
    num_made,
    prior_alone,
    propose,
    t_draw,
    t_log_density,
    weigh,
)
from dpjax.models.simulation import GibbsState, Position, init_state
from dpjax.models.unconstrained import to_vector
from tests.tools.perfect_start import REJECT, noise_p_value, parameter_p_value, run

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
    *map(jnp.int32, (16, 16, 16)),
    jnp.zeros(3),
    *map(jnp.int32, (0, 0)),
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


def decide_alone(proposed: GibbsState, from_prior: bool, log_uniform: float) -> tuple:
    """The state and the report of one refresh from the old state, without other candidates."""
    lone = (alone(MODEL, TUNING, jnp.array(from_prior), state) for state in (OLD, proposed))
    kept, info = decide(*lone, jnp.asarray(log_uniform))
    return kept.state, info


@pytest.mark.parametrize("from_prior", [True, False])
def test_a_refresh_is_accepted_up_to_its_ratio(from_prior: bool) -> None:
    for shift, accepted in ((-TOLERANCE, 1), (TOLERANCE, 0)):
        state, info = decide_alone(NEW, from_prior, log_ratio(from_prior) + shift)
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
        state, info = decide_alone(proposed, True, -50.0)
        assert (int(info.num_accepted), int(info.num_nonfinite)) == (0, 1)
        np.testing.assert_array_equal(state.latent.records["y"], OLD.latent.records["y"])
    impossible = NEW._replace(latent=NEW.latent._replace(log_density=jnp.array(-jnp.inf)))
    info = decide_alone(impossible, True, -50.0)[1]
    assert (int(info.num_accepted), int(info.num_nonfinite)) == (0, 0)


def test_draws_of_the_t_distribution_have_its_density() -> None:
    normals = jax.random.normal(jax.random.key(3), (4_000, 2 + FREEDOM))
    vectors = jax.vmap(t_draw, in_axes=(0, None))(normals, TUNING)
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
    np.testing.assert_array_equal([num_made(jnp.int32(rate), jnp.int32(number)) for number in range(33)], ends)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (0.1, 100), (0.5, 500), (1.0, 1000)])
def test_as_many_refreshes_are_by_the_prior_as_their_share_says(share: float, expected: int) -> None:
    by_prior = jax.vmap(is_by_prior, in_axes=(None, 0))(TUNING._replace(prior_share=jnp.array(share)), jnp.arange(1000))
    assert int(by_prior.sum()) == expected
    if 0 < share < 1:
        assert len(set(np.diff(np.flatnonzero(by_prior)))) == 1


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


def place_of(vector: np.ndarray, owner: GibbsState = OLD) -> tuple[float, float, np.ndarray, float]:
    """At a vector: mean, variance, the records of a state's noise, and the log-weight with every constant."""
    own_mean, own_variance = numbers_of(owner)
    noise = (np.asarray(owner.latent.records["y"], float) - own_mean) / np.sqrt(own_variance)
    mean, variance = float(vector[0]), float(np.exp(vector[1]))
    records = mean + np.sqrt(variance) * noise
    state = OLD._replace(parameters={"mean": jnp.array(mean), "variance": jnp.array(variance)})
    density = stats.laplace.logpdf(1.5, np.clip(records, -2.0, 2.0).sum(), 1.0)
    return mean, variance, records, density + log_prior(state) - log_proposal(state)


def candidates_of(vectors: np.ndarray, state: GibbsState = OLD) -> Candidates:
    noise = MODEL.noncentred.noise(jax.random.key(0), state.parameters, state.latent.records)
    return weigh(MODEL, RELEASE, TUNING, jnp.array(False), state, noise, jnp.asarray(vectors))


def exact_log_weights(vectors: np.ndarray, state: GibbsState = OLD) -> np.ndarray:
    """Those of a state and others with its noise, with every constant."""
    own = np.asarray(to_vector(MODEL, state.parameters)[0], float)
    return np.array([place_of(vector, state)[-1] for vector in np.concatenate([own[None], vectors])])


def test_parameters_are_chosen_by_their_weights_with_the_noise_held() -> None:
    present = np.asarray(to_vector(MODEL, OLD.parameters)[0], float)
    places = [place_of(vector) for vector in np.concatenate([present[None], VECTORS])]
    weights = np.exp(exact_log_weights(VECTORS))
    ends = np.cumsum(weights) / weights.sum()
    for index, end in enumerate(ends):
        for uniform, chosen in ((end - TOLERANCE, index), (end + TOLERANCE, index + 1)):
            if chosen == len(ends):
                continue
            state = choose_candidate(MODEL, RELEASE, candidates_of(VECTORS), jnp.asarray(uniform), NEW)
            mean, variance, records, _ = places[chosen]
            np.testing.assert_allclose(numbers_of(state), (mean, variance), rtol=TOLERANCE)
            np.testing.assert_allclose(state.latent.records["y"], records, rtol=TOLERANCE, atol=TOLERANCE)
            total = np.clip(records, -2.0, 2.0).sum()
            np.testing.assert_allclose(state.latent.statistic, [total], rtol=TOLERANCE, atol=TOLERANCE)


def test_new_noise_is_accepted_by_the_total_weight_of_its_candidates() -> None:
    totals = [np.log(np.sum(np.exp(exact_log_weights(*given)))) for given in ((VECTORS, OLD), (-VECTORS, NEW))]
    present, proposed = candidates_of(VECTORS), candidates_of(-VECTORS, NEW)
    for shift, accepted in ((-TOLERANCE, 1), (TOLERANCE, 0)):
        kept, info = decide(present, proposed, jnp.asarray(totals[1] - totals[0] + shift))
        assert int(info.num_accepted) == accepted
        np.testing.assert_array_equal(kept.noise, (proposed if accepted else present).noise)


def test_the_density_that_the_noise_is_drawn_from_is_divided_out() -> None:
    """Of noise with a density of its own, drawn at any of the candidates alike."""

    def log_density(parameters: dict, noise: jax.Array) -> jax.Array:
        return -jnp.abs(noise - parameters["mean"])

    dependent = MODEL._replace(noncentred=MODEL.noncentred._replace(log_density=log_density))
    noise = MODEL.noncentred.noise(jax.random.key(0), OLD.parameters, OLD.latent.records)
    own = np.asarray(to_vector(MODEL, OLD.parameters)[0], float)
    means = np.concatenate([own[None], VECTORS])[:, 0]
    densities = np.array([-np.abs(np.asarray(noise, float) - mean).sum() for mean in means])
    exact = np.log(np.sum(np.exp(exact_log_weights(VECTORS) + densities)) / np.sum(np.exp(densities)))
    constant = exact_log_weights(VECTORS)[0] - float(candidates_of(VECTORS).log_weights[0])
    weighed = weigh(dependent, RELEASE, TUNING, jnp.array(False), OLD, noise, jnp.asarray(VECTORS))
    np.testing.assert_allclose(weighed.log_total + constant, exact, rtol=TOLERANCE)


@pytest.mark.x32
def test_impossible_parameters_are_not_chosen() -> None:
    for broken in (np.nan, np.inf, 800.0):
        candidates = candidates_of(np.array([[0.1, broken]]))
        assert int(candidates.num_nonfinite) == 1
        state = choose_candidate(MODEL, RELEASE, candidates, jnp.asarray(0.9), NEW)
        np.testing.assert_array_equal(state.latent.records["y"], OLD.latent.records["y"])


OPTIONS = {"num_sweeps": 3}


def p_values(refreshes: Callable, model: dpjax.Model = MODEL, release: dpjax.Release = RELEASE, **options) -> float:
    """The smaller p-value of parameters and implied noise after some refreshes and sweeps from a joint draw."""
    replicates = run(jax.random.key(11), model, release, dpjax.imwg(), refreshes=refreshes, **OPTIONS, **options)
    return min(noise_p_value(replicates.noise, stats.laplace(scale=1.0)), parameter_p_value(replicates, LAWS))


@pytest.fixture
def all_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    """New noise is weighed with all its candidates for any number of records."""
    monkeypatch.setattr(module, "RECORDS_ALL_WEIGHED", 1)


@pytest.mark.keys
def test_sweeps_and_refreshes_leave_the_joint_law_invariant() -> None:
    assert p_values(build_refreshes) > REJECT


def with_dependent_noise(model: dpjax.Model) -> dpjax.Model:
    """The noise is the distance from the mean, whose density depends on the variance."""

    def log_density(parameters: dict, noise: jax.Array) -> jax.Array:
        return -(noise**2) / parameters["variance"] / 2 - jnp.log(parameters["variance"]) / 2

    form = model.noncentred._replace(
        noise=lambda key, parameters, records: records["y"] - parameters["mean"],
        records=lambda parameters, noise: {"y": parameters["mean"] + noise},
        log_density=log_density,
        scores=None,
    )
    return model._replace(noncentred=form)


@pytest.mark.keys
@pytest.mark.usefixtures("all_weighed")
@pytest.mark.parametrize("model", [MODEL, with_dependent_noise(MODEL)], ids=["free", "dependent"])
def test_noise_weighed_with_all_candidates_leaves_the_joint_law_invariant(model: dpjax.Model) -> None:
    assert p_values(build_refreshes, model) > REJECT


@pytest.mark.x32
@pytest.mark.usefixtures("all_weighed")
def test_noise_whose_density_is_forgotten_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Candidates, "log_total", property(lambda own: jax.nn.logsumexp(own.log_weights)))
    assert p_values(build_refreshes, with_dependent_noise(MODEL), num_chains=20_000) < REJECT


@pytest.mark.x32
@pytest.mark.usefixtures("all_weighed")
def test_noise_weighed_without_its_own_parameters_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: what the noise is worth is estimated by the other candidates alone."""
    others = property(lambda candidates: jax.nn.logsumexp(candidates.log_weights[1:]))
    monkeypatch.setattr(Candidates, "log_total", others)
    assert p_values(build_refreshes, num_chains=20_000) < REJECT


@pytest.mark.x32
def test_a_forgotten_jacobian_is_rejected() -> None:
    def build(model: dpjax.Model, release: dpjax.Release) -> Callable:
        return build_refreshes(model._replace(log_jacobian=lambda unconstrained: jnp.zeros(())), release)

    assert p_values(build) < REJECT


def faulty(change: Callable) -> Callable:
    """Two refreshes a step, each of a proposal that a mutation changes: ``(key, state, proposed) -> proposed``."""

    def build(model: dpjax.Model, release: dpjax.Release) -> Callable:
        def step(rng_key: jax.Array, number: jax.Array, state: GibbsState, tuning: RefreshTuning) -> tuple:
            info, from_prior = None, number % 2 == 0
            for key in jax.random.split(rng_key):
                vector_key, record_key, fault_key, decision_key = jax.random.split(key, 4)
                vector = draw_vectors(vector_key, model, tuning, from_prior, 1)[0]
                proposed = propose(record_key, model, release, vector, state)
                proposed = change(fault_key, model, release, state, proposed, tuning)
                lone = (alone(model, tuning, from_prior, one) for one in (state, proposed))
                (state, *_), info = decide(*lone, jnp.log(jax.random.uniform(decision_key)))
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


@pytest.mark.x32
@pytest.mark.parametrize("fault", [old_records, still_adapting])
def test_planted_faults_are_rejected(fault: Callable) -> None:
    assert p_values(faulty(fault), num_chains=20_000) < REJECT


@pytest.mark.x32
def test_the_harness_of_the_faults_is_right_without_one() -> None:
    assert p_values(faulty(lambda key, model, release, state, proposed, tuning: proposed)) > REJECT


def without_density(model, release, tuning, from_prior, state, noise, vectors) -> Candidates:
    """The weights leave out that the candidates are drawn from the t distribution."""
    wide = tuning._replace(factor=1e6 * tuning.factor)
    return weigh(model, release, wide, from_prior, state, noise, vectors)


def without_present(model, release, tuning, from_prior, state, noise, vectors) -> Candidates:
    """The first candidate takes the place of the present parameters among what is chosen from."""
    parameters = model.constrain(to_vector(model, state.parameters)[1](vectors[0]))
    first = init_state(release, Position(parameters, model.noncentred.records(parameters, noise)))
    return weigh(model, release, tuning, from_prior, first, noise, vectors[1:])


@pytest.mark.x32
@pytest.mark.parametrize("fault", [without_density, without_present])
def test_planted_faults_of_the_choice_are_rejected(fault: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "weigh", fault)
    assert p_values(build_refreshes, num_chains=20_000) < REJECT


@pytest.mark.slow
def test_local_releases_are_refreshed_exactly() -> None:
    local = dpjax.LocalRelease(np.zeros(3), dpjax.Laplace(1.0), field="y")
    assert p_values(build_refreshes, release=local) > REJECT


def test_the_weight_is_that_of_the_unconstrained_scale() -> None:
    by_fit = jnp.array(False)
    difference = log_weight(MODEL, NEW.parameters, TUNING, by_fit) - log_weight(MODEL, OLD.parameters, TUNING, by_fit)
    exact = log_prior(NEW) - log_proposal(NEW) - log_prior(OLD) + log_proposal(OLD)
    np.testing.assert_allclose(difference, exact, rtol=TOLERANCE)
