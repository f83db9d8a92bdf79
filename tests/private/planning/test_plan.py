"""Plans come from the pilot alone, spend the budget to the last iteration, and predict what happens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr

from dpjax import diagnostics, private
from dpjax.private.planning import plan as planning
from dpjax.private.planning.forecast import (
    LONGEST,
    Energy,
    choose_energy,
    choose_ratio_bound,
    correlate,
    even_dimension,
    forecast,
    list_energies,
)
from dpjax.private.planning.pilot import Pilot, explore

SCATTER = np.array([1.0, 0.2])
TRUTH = np.array([0.3, -1.0])


def normal_target(records: np.ndarray) -> private.Target:
    """Records N(θ, diag(1, 0.04)), prior N(0, 100 I)."""

    def log_likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum(((record - theta) / jnp.asarray(SCATTER, theta.dtype)) ** 2)

    def log_prior(theta: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum(theta**2) / 100

    return private.target(log_likelihood, log_prior, jnp.asarray(records, float), jnp.zeros(2), chunk_size=64)


def draw_records(number: int, seed: int) -> np.ndarray:
    return TRUTH + SCATTER * np.random.default_rng(seed).standard_normal((number, 2))


PILOT = normal_target(draw_records(200, 1))
NUM_RECORDS = 1_000_000
ASKED = {"source": "synthetic", "num_records": NUM_RECORDS, "num_chains": 4, "num_iterations": 400}


@pytest.fixture(scope="module")
def explored() -> tuple[Pilot, Pilot]:
    return explore(jax.random.key(0), PILOT, NUM_RECORDS)


@pytest.fixture(scope="module")
def facts(explored) -> Pilot:
    """What the pilot tells on the parameters' own scale."""
    return explored[0]


@pytest.fixture
def planned(explored, monkeypatch):
    """Plans from the same pilot, which is explored once."""
    monkeypatch.setattr(planning, "explore", lambda *_: explored)

    def make(neighbours: str = "replace-one", epsilon: float = 4.0, **change) -> private.Plan:
        budget = private.Budget(epsilon, 1e-6, neighbours)
        return private.plan(jax.random.key(1), PILOT, budget=budget, **(ASKED | change))

    return make


@pytest.mark.x64
def test_the_pilot_gives_the_scales_of_the_larger_posterior(facts):
    records = np.asarray(PILOT.records).reshape(-1, 2)[:200]
    precision = NUM_RECORDS / SCATTER**2 + 0.01
    tolerance = 1e-7 if facts.mode.dtype == np.float64 else 1e-3
    np.testing.assert_allclose(facts.precision, np.diag(precision), rtol=tolerance, atol=tolerance * precision.max())
    np.testing.assert_allclose(facts.mode, records.mean(axis=0) * (1 - 0.01 / precision), atol=tolerance)
    assert facts.stiffness == pytest.approx(1.0, rel=1e-3)
    norms = np.linalg.norm((records - facts.mode) / SCATTER**2, axis=1)
    assert facts.gradient_norms.shape == facts.ratio_slopes.shape == (16 * 200,)
    assert np.median(facts.gradient_norms) == pytest.approx(np.median(norms), rel=0.05)
    assert np.all(facts.ratio_slopes <= facts.gradient_norms.max() * 1.05)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove"])
@pytest.mark.parametrize("noise", [private.noise.jax, private.noise.secure], ids=["jax", "secure"])
def test_the_budget_is_spent_to_the_last_iteration(planned, neighbours, noise):
    plan = planned(neighbours)
    kernel = private.dp_hmc(PILOT, noise, **plan.settings())
    ledger = private.Ledger(private.Budget(4.0, 1e-6, neighbours))
    assert ledger.affordable(kernel.queries) == 4 * plan.num_iterations == 1_600


def test_more_iterations_move_less_and_more_privacy_moves_less(planned):
    plan = planned()
    assert plan.step_size * plan.num_leapfrog <= LONGEST
    longer = planned(num_iterations=5_000)
    stricter = planned(epsilon=2.5, num_iterations=5_000)
    for short, long in ((longer, plan), (stricter, longer)):
        assert short.step_size * short.num_leapfrog < long.step_size * long.num_leapfrog
        assert short.tau_g > long.tau_g
    assert longer.acceptance_rate == pytest.approx(0.386, abs=1e-3)
    assert planned(epsilon=50.0).acceptance_rate > plan.acceptance_rate + 0.2


def test_bounds_are_quantiles_of_the_pilot(planned, explored):
    plan = planned(clipped_ratios=0.0, epsilon=8.0)
    facts = explored[plan.scale is not None]
    assert plan.ratio_bound == facts.ratio_slopes.max()


def test_the_second_scale_is_that_of_a_round_posterior(explored):
    """Norms and ratios there, computed by hand from the records."""
    own, white = explored
    tolerance = 1e-7 if own.mode.dtype == np.float64 else 2e-3
    np.testing.assert_allclose(white.scale @ white.scale.T @ own.precision, np.eye(2), atol=tolerance)
    np.testing.assert_allclose(white.precision, np.eye(2), atol=tolerance)
    np.testing.assert_allclose(white.gradients, own.gradients @ white.scale, rtol=tolerance, atol=1e-6)
    # Norms of N(0, I) numbers over 1,000, at draws that are close to the mode; ratios are slopes in one direction.
    records = np.asarray(PILOT.records).reshape(-1, 2)[:200]
    norms = np.linalg.norm((records - own.mode) / SCATTER, axis=1) / 1_000
    assert np.median(white.gradient_norms) == pytest.approx(np.median(norms), rel=0.05)
    assert np.all(white.ratio_slopes <= white.gradient_norms.max() * 1.05)
    np.testing.assert_allclose(np.linalg.norm(white.directions, axis=1), 1.0, rtol=1e-5)


def stretched_target(factors: np.ndarray, number: int, seed: int) -> private.Target:
    """Records N(θ, diag(factors²)) in as many dimensions."""
    records = np.random.default_rng(seed).standard_normal((number, len(factors))) * factors

    def log_likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum(((record - theta) / jnp.asarray(factors, theta.dtype)) ** 2)

    def log_prior(theta: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum(theta**2) / 1e6

    return private.target(log_likelihood, log_prior, jnp.asarray(records, float), jnp.zeros(len(factors)))


STRETCHED = np.geomspace(0.1, 3.0, 5)


def plan_stretched(factors: np.ndarray, epsilon: float) -> private.Plan:
    budget = private.Budget(epsilon, 1e-6, "replace-one")
    asked = ASKED | {"num_records": 100_000, "num_chains": 1, "num_iterations": 400}
    return private.plan(jax.random.key(1), stretched_target(factors, 500, 3), budget=budget, **asked)


@pytest.mark.x64
def test_a_stretched_posterior_is_moved_through_on_the_scale_on_which_it_is_round():
    """On its own scale a plan of this budget is refused; without any stretch, that scale is the right one."""
    plan = plan_stretched(STRETCHED, 10.0)
    assert plan.scale is not None
    assert plan.settings()["scale"] is plan.scale
    ratio = np.linalg.norm(plan.scale, axis=1) / (STRETCHED / np.sqrt(100_000))
    np.testing.assert_allclose(ratio, 1.0, rtol=0.01)
    starts = np.asarray(plan.starts(jax.random.key(0), 4_000))
    np.testing.assert_allclose(np.std(starts, axis=0), STRETCHED / np.sqrt(100_000), rtol=5 / np.sqrt(2 * 4_000))
    assert "scale" not in str(plan).split("assumes")[0]
    assert plan_stretched(np.ones(5), 10.0).scale is None


def skewed(weight: float) -> Pilot:
    """Eight records in one dimension: two pull by 3 one way, six by 1 the other."""
    gradients = np.array([[3.0], [3.0], *[[-1.0]] * 6])
    unit = np.ones((1, 1))
    sizes = np.abs(gradients[:, 0])
    return Pilot(unit, np.zeros(1), 25 * unit, gradients, weight, sizes, sizes, unit, 1.0)


def test_what_is_clipped_on_one_side_is_a_pull():
    """Clipped to 1 two records lose 2 each: 4 in all where every record stands for itself, in units of √25."""
    assert skewed(1.0).pull(1.0) == skewed(1.0).shift(1.0) == pytest.approx(4 / 5)
    # Of the square 16, 8 is what two losses have by chance; it grows with the weight, and the rest with its square.
    assert skewed(10.0).pull(1.0) == pytest.approx(np.sqrt(100 * 8 + 10 * 8) / 5)
    assert skewed(10.0).shift(3.0) == skewed(10.0).pull(3.0) == 0.0


def test_skewed_ratios_are_not_clipped(facts):
    assert choose_ratio_bound(skewed(10.0), 0.3) == 3.0
    assert choose_ratio_bound(facts, 0.01) == np.quantile(facts.ratio_slopes, 0.99)


def test_gradients_are_clipped_where_that_lengthens_moves(facts):
    assert choose_energy(list_energies(facts, 0.01), 1e-3).clipped >= 0.1
    assert choose_energy(list_energies(skewed(1e6), 0.01), 1e-3).clipped == 0.0


def test_a_plan_says_what_it_assumed_and_where_to_start(planned):
    plan = planned(source="public")
    text = str(plan)
    assert all(word in text for word in ("public", "biased", "replace-one", "5e+03 times", "tau_g"))
    starts = plan.starts(jax.random.key(0), 4_000)
    assert starts.shape == (4_000, 2)
    np.testing.assert_allclose(np.std(starts, axis=0), SCATTER / 1_000, rtol=5 / np.sqrt(2 * 4_000))


def test_nothing_is_assumed_of_the_pilot_and_the_budget(planned):
    for name in ("source", "num_records", "num_chains", "num_iterations", "budget"):
        arguments = {"budget": private.Budget(1.0, 1e-6, "replace-one"), **ASKED}
        del arguments[name]
        with pytest.raises(TypeError, match=name):
            private.plan(jax.random.key(1), PILOT, **arguments)
    for change, message in (({"source": "private"}, "confidential"), ({"clipped_ratios": 1.0}, "clipped_ratios")):
        with pytest.raises(ValueError, match=message):
            planned(**change)
    with pytest.raises(TypeError, match="budget"):
        private.plan(jax.random.key(1), PILOT, **ASKED, budget=4.0)


def test_a_pilot_that_tells_nothing_of_a_parameter_is_refused():
    flat = private.target(
        lambda theta, record: -0.5 * (record - theta[0]) ** 2, lambda theta: 0.0 * theta[1], np.ones(5), jnp.zeros(2)
    )
    with pytest.raises(ValueError, match="informs every parameter"):
        explore(jax.random.key(0), flat, 100)


def move(rng: np.random.Generator, places: np.ndarray, length: float, variance: float) -> np.ndarray:
    """Harmonic moves of chains [chains, d], accepted as if the noise of the test had a deviation like the move's."""
    normals = rng.standard_normal(places.shape)
    moved = places * np.cos(length) + normals * np.sin(length)
    share = np.sum((moved - places) ** 2, axis=1) / (2 * (1 - np.cos(length)) * places.shape[1])
    accepted = rng.uniform(size=len(places)) < 2 * ndtr(-np.sqrt(variance * share) / 2)
    return np.where(accepted[:, None], moved, places)


@pytest.mark.parametrize(("num_records", "epsilon"), [(1_000_000, 4.0), (10_000_000, 4.0)])
def test_forecasts_are_those_of_harmonic_moves(num_records, epsilon):
    """The correlation of a draw with the next, by simulation; the rest follows from it."""
    facts = skewed(1.0)._replace(precision=np.eye(2) * num_records)
    affordable = private.accounting.largest_mu(epsilon, 1e-6)
    energy = Energy(3.0, 3.0, 0.0, 0.0, 2 / num_records, affordable / 800)
    length, rng = energy.length(), np.random.default_rng(5)
    expected = forecast([energy], affordable, even_dimension(facts.precision), 8.0, 2, 400).run
    resting = rng.standard_normal((200_000, 2))
    correlation = np.mean(resting * move(rng, resting, length, energy.variance(length)))  # variance below 3 / 400_000
    assert correlate(energy, 2.0) == pytest.approx(correlation, abs=5 * np.sqrt(3 / 400_000) + 0.003)
    worth = (1 - correlation) / (1 + correlation)
    assert expected.effective_draws == pytest.approx(2 * (400 - expected.num_warmup) * worth, rel=0.05)
    assert 8.0 * correlation**expected.num_warmup == pytest.approx(0.1, rel=0.5)


def test_a_plan_says_what_it_is_worth(planned):
    plan, text = planned(), str(planned())
    assert plan.effective_draws > 200
    assert plan.num_warmup < 50
    for line in ("effective_draws = ", "num_warmup = ", "one chain of all iterations would give", "hardly more"):
        assert line in text
    alone = planned(num_chains=1, num_iterations=1_600)
    assert alone.effective_draws > plan.effective_draws
    with pytest.warns(UserWarning, match="expects little of 16 chains of 18 iterations.*One chain of all"):
        assert planned(num_chains=16, num_iterations=18).effective_draws < 100


@pytest.mark.x64
def test_a_curved_posterior_is_warned_of():
    """A ridge θ₂ = -20 θ₁²: the forecast for its mode would be 8 draws, and chains find none."""

    def log_likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
        mean = jnp.stack([theta[0], theta[1] + 20 * theta[0] ** 2])
        return -0.5 * jnp.sum((record - mean) ** 2 / jnp.asarray([2000.0, 2500.0], theta.dtype))

    def log_prior(theta: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum(theta**2) / 1000

    records = np.random.default_rng(3).normal(size=(2_000, 2)) * np.sqrt([2000.0, 2500.0]) + [0.0, 3.0]
    pilot = private.target(log_likelihood, log_prior, jnp.asarray(records, float), jnp.zeros(2))
    budget = private.Budget(10.0, 1e-6, "replace-one")
    asked = ASKED | {"num_records": 100_000, "num_chains": 1}
    with pytest.warns(UserWarning, match="expects little"), pytest.warns(UserWarning, match="close to Normal"):
        private.plan(jax.random.key(1), pilot, budget=budget, **asked)


@pytest.mark.x64
@pytest.mark.parametrize(
    "change", [{"epsilon": 0.05}, {"num_chains": 1, "num_iterations": 5}, {"num_chains": 1_600, "num_iterations": 1}]
)
def test_a_plan_without_hope_is_refused(planned, change):
    with pytest.raises(ValueError, match=r"num_chains, num_iterations: given .*What helps"):
        planned(**change)


@pytest.mark.slow
@pytest.mark.x64
def test_what_is_predicted_on_another_scale_is_about_what_a_run_finds():
    budget, num_records = private.Budget(20.0, 1e-6, "replace-one"), 100_000
    plan = plan_stretched(STRETCHED, 20.0)
    target = stretched_target(STRETCHED, num_records, 4)
    kernel = private.dp_hmc(target, private.noise.jax, **plan.settings())
    starts = plan.starts(jax.random.key(2), 4)
    found = []
    for number in range(4):  # each chain of its own spends the whole budget
        ledger, key = private.Ledger(budget), jax.random.key(10 + number)
        run = private.sample(key, kernel, starts[number, None], ledger, num_iterations=plan.num_iterations)
        found.append(run.draws[0, plan.num_warmup :])
        assert -0.05 < np.mean(run.not_private.acceptance_rate) - plan.acceptance_rate < 0.2
    draws = np.stack(found)
    effective = np.mean(diagnostics.ess_mean(draws)) / 4
    assert plan.effective_draws / 2 < effective < 2 * plan.effective_draws
    records = np.asarray(target.records).reshape(-1, 5)[:num_records]
    deviation = STRETCHED / np.sqrt(num_records)
    offset = (draws.mean(axis=(0, 1)) - records.mean(axis=0)) / deviation
    assert np.all(np.abs(offset) < 5 / np.sqrt(4 * effective))
    np.testing.assert_allclose(draws.std(axis=(0, 1)), deviation, rtol=0.25)


@pytest.mark.slow
@pytest.mark.x64
def test_what_is_predicted_is_about_what_a_run_finds():
    """Moves shorter than the average one, which is what is predicted of, are accepted more often."""
    budget = private.Budget(50.0, 1e-6, "replace-one")
    plan = private.plan(jax.random.key(1), PILOT, budget=budget, **(ASKED | {"num_records": 10_000}))
    kernel = private.dp_hmc(normal_target(draw_records(10_000, 2)), private.noise.jax, **plan.settings())
    starts = plan.starts(jax.random.key(2), 4)
    run = private.sample(jax.random.key(3), kernel, starts, private.Ledger(budget), num_iterations=plan.num_iterations)
    assert -0.05 < np.mean(run.not_private.acceptance_rate) - plan.acceptance_rate < 0.2
    found = np.mean(diagnostics.ess_mean(run.draws[:, plan.num_warmup :]))
    assert plan.effective_draws / 2 < found < 2 * plan.effective_draws
    arrived = (np.mean(run.draws[:, plan.num_warmup], axis=0) - TRUTH) / SCATTER * np.sqrt(10_000)
    assert np.all(np.abs(arrived) < 5 * np.sqrt(1 + 1 / 4))  # of four chains around the mean of the records
