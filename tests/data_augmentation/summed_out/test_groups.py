"""Records summed out beside totals of their groups: against convolutions and enumerations in NumPy."""

from dataclasses import replace
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import dpjax
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.summed_out import trees
from dpjax.data_augmentation.summed_out.groups import GroupedTerms
from dpjax.data_augmentation.summed_out.likelihood import totals_beside

STATE = np.array([0, 1, 0, 1, 0, 0])


POPULATION = np.array([2.0, 3.0, 10.0, 1.0, 5.0, 2.5])


NOISY = np.array([3, -1, 11, 4, 2, 0])


NUMBERS = np.arange(200)


NAN = float("nan")


IS_SINGLE = jnp.zeros(()).dtype == np.float32


CLOSE = 1e-5 if IS_SINGLE else 1e-10


def cases(state=None, population=None, y=None):
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("areas", len(population)):
        numpyro.sample("y", dist.Poisson(population * rate * jnp.exp(slope * jnp.asarray(state, float))), obs=y)


def by_state(record):
    """The cases of an area, in the place of its state."""
    return jnp.where(jnp.arange(2) == record["state"], record["y"], 0)


@pytest.fixture(scope="module")
def model() -> dpjax.Model:
    return dpjax.from_numpyro(cases, ["y", "state"], state=STATE, population=POPULATION)


def beside(local: Any, totals: Any, channel: Any) -> Any:
    return dpjax.joint(local, dpjax.Release(totals, channel, by_state, n=len(STATE)))


def at(rate: float, slope: float = 0.1) -> dict[str, Any]:
    return {"rate": jnp.asarray(rate), "slope": jnp.asarray(slope)}


# What was released of each area, with its probability [area, number], and of each state, with its density.
SUPPRESSED = dpjax.releases.suppressed_units([NAN, NAN, 12, NAN, NAN, NAN], limit=5, field="y")


IS_SMALL = np.where(np.arange(6)[:, None] == 2, NUMBERS == 12, NUMBERS < 5)


LOCAL: dict[str, Any] = {
    "suppressed": (SUPPRESSED, IS_SMALL.astype(float)),
    "noisy": (
        dpjax.LocalRelease(NOISY, dpjax.DiscreteLaplace(2.0), "y"),
        stats.dlaplace.pmf(NOISY[:, None] - NUMBERS, 0.5),
    ),
    "missing": (
        dpjax.Microdata(
            {"y": ([0, 0, 12, 2, 0, 4], dpjax.DiscreteLaplace(2.0))}, {"y": np.isin(np.arange(6), [0, 1, 4])}
        ),
        np.where(
            np.isin(np.arange(6), [2, 3, 5])[:, None],
            stats.dlaplace.pmf(np.array([0, 0, 12, 2, 0, 4])[:, None] - NUMBERS, 0.5),
            1.0,
        ),
    ),
    "withheld": (
        dpjax.Microdata({"y": ([0, 0, 12, 2, 0, 4], dpjax.Exact())}, {"y": np.isin(np.arange(6), [0, 1, 4])}),
        np.where(np.isin(np.arange(6), [2, 3, 5])[:, None], NUMBERS == np.array([[0, 0, 12, 2, 0, 4]]).T, 1.0),
    ),
}


TOTALS: dict[str, Any] = {
    "exact": (dpjax.Exact(), [20.0, 5.0], lambda sums, total: (sums == total).astype(float)),
    "noisy": (dpjax.DiscreteLaplace(3.0), [23.0, -2.0], lambda sums, total: stats.dlaplace.pmf(total - sums, 1 / 3)),
    "rounded": (
        dpjax.mechanisms.RandomRounding(5),
        [20.0, 5.0],
        lambda sums, total: np.maximum(1 - np.abs(total - sums) / 5, 0),
    ),
    "real": (dpjax.Gaussian(1.5), [21.3, 4.2], lambda sums, total: stats.norm.pdf(total - sums, 0, 1.5)),
}


def expected(local: str, total: str, rate: float, slope: float = 0.1) -> float:
    """The log-density of all that was released, by convolution."""
    weights = stats.poisson.pmf(NUMBERS, (POPULATION * rate * np.exp(slope * STATE))[:, None]) * LOCAL[local][1]
    found = 0.0
    for state, value in enumerate(TOTALS[total][1]):
        law = np.ones(1)
        for area in np.flatnonzero(np.equal(STATE, state)):
            law = np.convolve(law, weights[area])
        found += np.log(np.sum(law * TOTALS[total][2](np.arange(len(law)), value)))
    return float(found)


PAIRS = [
    ("suppressed", "exact"),
    ("suppressed", "real"),
    ("noisy", "noisy"),
    ("noisy", "rounded"),
    ("missing", "exact"),
    ("withheld", "exact"),
    ("withheld", "noisy"),
]


@pytest.mark.parametrize(("local", "total"), PAIRS)
def test_likelihoods_and_gradients_are_those_of_convolutions(model, local, total):
    """Catches an offset or a known count that is forgotten, and totals that are far from all that the model expects."""
    release = beside(LOCAL[local][0], TOTALS[total][1], TOTALS[total][0])
    likelihood = dpjax.marginal_likelihood(model, release)
    program, step = jax.jit(jax.value_and_grad(lambda rate: likelihood(at(rate)))), 1e-4
    for rate in (1.0, 0.05):
        found, slope = program(rate)
        np.testing.assert_allclose(found, expected(local, total, rate), rtol=CLOSE)
        ends = [expected(local, total, rate * (1 + sign * step)) for sign in (-1, 1)]
        np.testing.assert_allclose(slope, (ends[1] - ends[0]) / (2 * step * rate), rtol=1e-3 if IS_SINGLE else 1e-6)
    if local == "suppressed":
        assert float(likelihood.left_out(at(1.0))) == 0


def test_a_total_of_one_area_is_a_second_channel(model):
    alone = dpjax.from_numpyro(cases, ["y", "state"], state=np.array([0]), population=np.array([3.0]))
    local = dpjax.LocalRelease([4], dpjax.DiscreteLaplace(2.0), "y")
    total = dpjax.Release([7.0, 0.0], dpjax.DiscreteGaussian(1.5), by_state, n=1)
    both = dpjax.Microdata({"y": [([4], dpjax.DiscreteLaplace(2.0)), ([7], dpjax.DiscreteGaussian(1.5))]})
    # The second state has no area: its total tells of the noise alone.
    noise = float(dpjax.DiscreteGaussian(1.5).log_density(jnp.zeros(1), jnp.zeros(1)))
    found = dpjax.marginal_likelihood(alone, dpjax.joint(local, total))(at(2.0))
    np.testing.assert_allclose(found, dpjax.marginal_likelihood(alone, both)(at(2.0)) + noise, rtol=CLOSE)


def test_a_group_total_that_counts_twice_is_noticed(model):
    likelihood = dpjax.marginal_likelihood(model, beside(LOCAL["noisy"][0], TOTALS["real"][1], TOTALS["real"][0]))
    assert isinstance(likelihood.terms, GroupedTerms)
    twice = replace(likelihood, terms=replace(likelihood.terms, log_total=2 * likelihood.terms.log_total))
    right = expected("noisy", "real", 1.0)
    assert abs(float(likelihood(at(1.0))) - right) < 1e-3
    assert abs(float(twice(at(1.0))) - right) > 0.1


def test_two_releases_of_the_same_totals_are_both_used(model):
    exact = dpjax.Release([20.0, 5.0], dpjax.Exact(), by_state, n=6)
    noisy = dpjax.Release([22.0, 5.0], dpjax.DiscreteLaplace(3.0), by_state, n=6)
    found = dpjax.marginal_likelihood(model, dpjax.joint(SUPPRESSED, noisy, exact))(at(1.0))
    noise = np.sum(stats.dlaplace.logpmf([2, 0], 1 / 3))
    np.testing.assert_allclose(found, expected("suppressed", "exact", 1.0) + noise, rtol=CLOSE)


@pytest.mark.parametrize("total", ["exact", "noisy"])
def test_counts_are_drawn_from_their_distribution_given_the_totals(model, total):
    """Catches draws that forget the total, or give the number of one area to another."""
    channel, released, density = TOTALS[total]
    likelihood = dpjax.marginal_likelihood(model, beside(SUPPRESSED, released, channel))
    draw = jax.jit(jax.vmap(lambda key: likelihood.sample_records(key, at(1.0))["y"]))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(1), 40_000)))
    assert np.all(drawn[:, 2] == 12)
    rates = POPULATION * np.exp(0.1 * STATE)
    for state, areas in enumerate([[0, 4, 5], [1, 3]]):
        table = np.array(list(product(range(5), repeat=len(areas))))
        weight = stats.poisson.pmf(table, rates[areas]).prod(axis=1)
        weight = weight * density(table.sum(axis=1) + (12 if state == 0 else 0), released[state])
        law = weight / weight.sum()
        place = np.ravel_multi_index(tuple(drawn[:, areas].T), (5,) * len(areas))
        found = np.bincount(place, minlength=len(table))
        assert np.all(found[law == 0] == 0)
        kept = law * len(drawn) > 5
        assert stats.chisquare(found[kept], law[kept] * found[kept].sum() / law[kept].sum()).pvalue > 1e-4


def test_counts_withheld_by_no_rule_are_drawn_beside_exact_totals(model):
    """Catches known counts that move, and gaps that are taken for missing at random without their total: by listing."""
    totals = dpjax.Release([20.0, 5.0], dpjax.Exact(), by_state, n=6)
    release = dpjax.releases.withheld_units([NAN, NAN, 12, 2, NAN, 4], totals)
    likelihood = augment(model, release, allow_sums=True).likelihood
    draw = jax.jit(jax.vmap(lambda key: likelihood.sample_records(key, at(1.0))["y"]))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(1), 10_000)))
    assert np.all(drawn[:, [1, 2, 3, 5]] == [3, 12, 2, 4])
    assert np.all(drawn[:, 0] + drawn[:, 4] == 4)
    law = stats.poisson.pmf(np.arange(5), POPULATION[0]) * stats.poisson.pmf(4 - np.arange(5), POPULATION[4])
    found = np.bincount(drawn[:, 0], minlength=5)
    assert stats.chisquare(found, 10_000 * law / law.sum()).pvalue > 1e-4


def test_withheld_units_are_refused_by_name(model):
    """Catches numbers that are no counts, and totals that are none."""
    totals = dpjax.Release([20.0, 5.0], dpjax.Exact(), by_state, n=6)
    with pytest.raises(ValueError, match=r"values: given .*; expected counts and NaN"):
        dpjax.releases.withheld_units([NAN, 1.5, 12, 2, NAN, 4], totals)
    with pytest.raises(TypeError, match=r"totals: given .*; expected a dpjax.Release"):
        dpjax.releases.withheld_units([NAN, 1, 12, 2, NAN, 4], {"A": 3})
    with pytest.raises(ValueError, match="values: given 2 units; expected 6"):
        dpjax.releases.withheld_units([NAN, 1], totals)


def test_windows_that_are_too_small_are_reported(model):
    """Catches a bound that forgets that the total makes numbers likely which the records alone do not."""
    whole = dpjax.marginal_likelihood(model, beside(LOCAL["noisy"][0], TOTALS["exact"][1], TOTALS["exact"][0]))
    narrow, width = whole.terms.records, 10
    released = narrow.log_released
    few = replace(
        narrow,
        numbers=narrow.numbers[:width],
        size_of_window=jnp.minimum(narrow.size_of_window, width),
        log_released=released[:width],
        log_outside=jnp.max(released[width:], axis=0),
    )
    size = jnp.clip(width - whole.terms.place, 0, whole.terms.size_of_leaf)
    cut = replace(whole, terms=replace(whole.terms, records=few, size_of_leaf=size))
    right = expected("noisy", "exact", 1.0)
    off = right - float(cut(at(1.0)))
    assert off > 0.01
    assert np.expm1(off) < float(cut.left_out(at(1.0))) < 1e4
    assert float(whole.left_out(at(1.0))) < 1e-6


FAR_TOTALS: dict[str, Any] = {
    "real": (dpjax.Gaussian(1.5), [21.3, 9_000.2], 0.02),
    "whole": (dpjax.DiscreteLaplace(3.0), [23.0, 2.0], 0.0),
    "modulo": (dpjax.mechanisms.Modulo(dpjax.DiscreteLaplace(0.5), 4096), [4_090.0, 7.0], 1e-6),
    "bins": (dpjax.mechanisms.Coarsened.bins([0, 7_000, 7_003, 9_000]), [1.0, 3.0], 0.0),
    "both": (
        dpjax.mechanisms.Independent((dpjax.mechanisms.RandomRounding(5), dpjax.Laplace(20.0)), sizes=(1, 1)),
        [10.0, 30.0],
        0.0,
    ),
}


@pytest.mark.parametrize("kind", FAR_TOTALS)
def test_bounds_of_totals_hold_for_sums_however_far(model, kind):
    """Catches bounds from a look around the released total: the sums that a bin stands for are 7,000 away."""
    channel, values, most = FAR_TOTALS[kind]
    totals = totals_beside(model, beside(LOCAL["noisy"][0], values, channel).microdata)
    largest = np.max(totals.log_density(np.zeros(2), 10_000), axis=1)
    above = totals.largest() - largest
    assert np.all(above > -1e-5)
    assert np.all(above < most + 1e-5)


def answers(group=None, y=None):
    with numpyro.plate("groups", 2):
        share = jax.nn.sigmoid(numpyro.sample("logit", dist.Normal(0.0, 1.0)))
    with numpyro.plate("people", len(group)):
        numpyro.sample("y", dist.Categorical(jnp.stack([1 - share[group], share[group]], axis=-1)), obs=y)


def yes_by_group(record):
    return jnp.where(jnp.arange(2) == record["group"], record["y"], 0)


def test_answers_beside_the_number_of_yes_of_their_group():
    rng = np.random.default_rng(0)
    group, told = rng.integers(0, 2, 30), rng.integers(0, 2, 30)
    people = dpjax.from_numpyro(answers, ["y", "group"], group=group)
    local = dpjax.LocalRelease(told, dpjax.RandomizedResponse(keep=0.75, num_categories=2), "y")
    release = dpjax.joint(local, dpjax.Release([9.0, 4.0], dpjax.Exact(), yes_by_group, n=30))
    share, right = np.array([0.3, 0.6]), 0.0
    for place, known in enumerate((9, 4)):
        law = np.ones(1)
        for answer in told[group == place]:
            of_one = np.array([1 - share[place], share[place]]) * np.where(np.arange(2) == answer, 0.75, 0.25)
            law = np.convolve(law, of_one)
        right += np.log(law[known])
    likelihood = dpjax.marginal_likelihood(people, release)
    np.testing.assert_allclose(likelihood({"logit": special.logit(share)}), right, rtol=CLOSE)
    drawn = np.asarray(likelihood.sample_records(jax.random.key(1), {"logit": special.logit(share)})["y"])
    assert np.bincount(group, drawn).tolist() == [9, 4]


def everywhere(record):
    """Totals of the states and of the country."""
    return jnp.append(by_state(record), record["y"])


def squares(record):
    return jnp.atleast_1d(record["y"] ** 2)


def clamped(record):
    return jnp.atleast_1d(jnp.minimum(record["y"], 20))


@pytest.mark.parametrize(
    ("statistic", "channel", "obstacle"),
    [
        (everywhere, dpjax.Laplace(1.0), "given totals of groups that overlap"),
        (squares, dpjax.Laplace(1.0), "given a sum over the records that is no total of 'y'"),
        (clamped, dpjax.Laplace(1.0), "given totals to which large numbers of 'y' add less"),
        (by_state, dpjax.mechanisms.VectorLaplace(1.0), "given totals whose numbers depend on each other"),
    ],
)
def test_other_sums_are_imputed_and_the_reason_is_told(model, statistic, channel, obstacle):
    size = len(np.asarray(statistic({"y": jnp.array(1), "state": jnp.array(0)})))
    release = dpjax.joint(LOCAL["noisy"][0], dpjax.Release(np.full(size, 9.0), channel, statistic, n=6))
    assert not augment(model, release, allow_sums=True).plan.sums_out
    with pytest.raises(ValueError, match=obstacle):
        dpjax.marginal_likelihood(model, release)


def test_groups_of_too_many_numbers_are_imputed(model, monkeypatch):
    release = beside(LOCAL["noisy"][0], TOTALS["noisy"][1], TOTALS["noisy"][0])
    assert augment(model, release, allow_sums=True).plan.sums_out
    monkeypatch.setattr(trees, "MOST_PRODUCTS", 1_000)
    assert not augment(model, release, allow_sums=True).plan.sums_out
    with pytest.raises(ValueError, match=r"totals of 2 groups, whose sums are made of .* products"):
        dpjax.marginal_likelihood(model, release)


@pytest.mark.x32
def test_totals_far_from_the_model_have_a_density_in_single_precision():
    """Catches products that vanish: 12 areas of rate 0.01, all at their most, have a probability of e to the -650."""
    number = 12
    areas = dpjax.from_numpyro(cases, ["y", "state"], state=np.zeros(number, int), population=np.ones(number))
    local = dpjax.releases.suppressed_units([NAN] * number, limit=10, field="y")
    for known in (number * 9.0 - 1, 60.0):
        release = dpjax.joint(local, dpjax.Release([known, 0.0], dpjax.Exact(), by_state, n=number))
        likelihood = dpjax.marginal_likelihood(areas, release)
        law = np.zeros(1)
        for _ in range(number):
            law = convolve_logs(law, stats.poisson.logpmf(np.arange(10), 0.01))
        found, slope = jax.jit(jax.value_and_grad(lambda rate, of_rate=likelihood: of_rate(at(rate))))(0.01)
        np.testing.assert_allclose(found, law[int(known)], rtol=1e-5)
        np.testing.assert_allclose(slope, known / 0.01 - number, rtol=1e-3)


def convolve_logs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The logarithms of a convolution."""
    pairs = np.full((len(one) + len(other) - 1, len(other)), -np.inf)
    for place, weight in enumerate(other):
        pairs[place : place + len(one), place] = one + weight
    return special.logsumexp(pairs, axis=1)


RATES = np.linspace(0.02, 6.0, 3_000)


def one_rate(population=None, state=None, y=None):
    rate = numpyro.sample("rate", dist.Gamma(2.0, 4.0))
    with numpyro.plate("areas", len(population)):
        numpyro.sample("y", dist.Poisson(population * rate), obs=y)


@pytest.mark.parametrize("total", ["exact", "noisy"])
def test_posteriors_agree_with_a_grid_where_the_totals_contradict_the_prior(total):
    """Catches a total that is left out, counted twice, or that belongs to the other state: the prior's mean is 0.5."""
    population = np.array([2.0, 1.0, 1.5, 1.0, 2.0, 0.5])
    areas = dpjax.from_numpyro(one_rate, ["y", "state"], population=population, state=STATE)
    local = dpjax.releases.suppressed_units([NAN] * 6, limit=10, field="y")
    release = beside(local, [17.0, 5.0], TOTALS[total][0])
    posterior = dpjax.sample(
        jax.random.key(3), areas, release, num_warmup=160, num_samples=1_000, collect=records_of, progress=False
    )
    assert posterior.plan.sums_out
    assert "records: summed out" in posterior.describe()
    weights = stats.poisson.pmf(np.arange(10), (population * RATES[:, None])[..., None])  # [rate, area, number]
    log_weight, means = stats.gamma.logpdf(RATES, 2.0, scale=0.25), np.zeros((len(RATES), 6))
    for state, value in enumerate([17.0, 5.0]):
        members = np.flatnonzero(np.equal(STATE, state))
        table = np.array(list(product(range(10), repeat=len(members))))
        density = TOTALS[total][2](table.sum(axis=1), value)
        table, density = table[density > 1e-12], density[density > 1e-12]
        joint = np.ones((len(RATES), len(table)))
        for place, area in enumerate(members):
            joint *= weights[:, area, table[:, place]]
        joint *= density
        log_weight += np.log(joint.sum(axis=1))
        means[:, members] = joint @ table / joint.sum(axis=1, keepdims=True)
    weight = special.softmax(log_weight)
    mean = weight @ RATES
    drawn = posterior.draws["rate"]
    assert abs(drawn.mean() - mean) < 4.5 * dpjax.diagnostics.mcse_mean(np.asarray(drawn, float))
    np.testing.assert_allclose(drawn.std(), np.sqrt(weight @ RATES**2 - mean**2), rtol=0.06)
    counts = np.asarray(posterior.collected, float)
    error = dpjax.diagnostics.mcse_mean(counts)
    assert np.all(np.abs(counts.mean(axis=(0, 1)) - weight @ means) < 4.5 * error + 1e-9)
    completed = posterior.completed(jax.random.key(4), 40)
    if total == "exact":
        assert all(np.bincount(STATE, one["y"]).tolist() == [17, 5] for one in completed)


def records_of(state: Any) -> Any:
    return state.latent.records["y"]
