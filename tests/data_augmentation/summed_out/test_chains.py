"""Records that are chains in time: against enumeration and SciPy, and a joint-distribution test."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import dpjax

PARAMETERS = {"fall": 0.2, "recover": 0.6}
KEEP = 0.8


def tables(fall, recover):
    return jnp.stack([jnp.stack([1 - fall, fall]), jnp.stack([recover, 1 - recover])])


def health(n, state=None):
    fall, recover = (numpyro.sample(name, dist.Beta(2.0, 2.0)) for name in ("fall", "recover"))
    with numpyro.plate("people", n):
        numpyro.sample("state", dpjax.MarkovChain([0.9, 0.1], tables(fall, recover), num_times=4), obs=state)


def by_age(n, age, state=None):
    fall, recover = (numpyro.sample(name, dist.Beta(2.0, 2.0)) for name in ("fall", "recover"))
    initial = jnp.stack([1 - age, age], axis=-1)
    each = jax.vmap(tables, in_axes=(0, None))(fall * age, recover)[:, None]
    with numpyro.plate("people", n):
        numpyro.sample("state", dpjax.MarkovChain(initial, each, num_times=4), obs=state)


def with_plateau(n, state=None):
    """Two stages that show the same number: how long it lasts is not geometric."""
    leave = numpyro.sample("fall", dist.Beta(2.0, 2.0))
    numpyro.sample("recover", dist.Beta(2.0, 2.0))
    table = [[1 - leave, leave, 0.0], [0.0, 0.0, 1.0], [leave, 0.0, 1 - leave]]
    chain = dpjax.MarkovChain([1.0, 0.0, 0.0], jnp.asarray(table), num_times=4, values=[0, 1, 1])
    with numpyro.plate("people", n):
        numpyro.sample("state", chain, obs=state)


AGES = np.array([0.1, 0.5, 0.9], np.float32).astype(float)
ANSWERS = np.array([[0, 1, 1, 0], [1, 1, 0, 1], [0, 0, 0, 1]])
MISSING = np.array([False, True, False])


def case(name):
    """A model, and the initial and transition probabilities and the value of each state, of each person."""
    fall, recover = PARAMETERS["fall"], PARAMETERS["recover"]
    one = np.array([0.9, 0.1]), np.array([[1 - fall, fall], [recover, 1 - recover]]), (0, 1)
    if name == "alike":
        return dpjax.from_numpyro(health, "state"), [one] * 3
    if name == "stages":
        table = np.array([[1 - fall, fall, 0.0], [0.0, 0.0, 1.0], [fall, 0.0, 1 - fall]])
        return dpjax.from_numpyro(with_plateau, "state"), [(np.array([1.0, 0.0, 0.0]), table, (0, 1, 1))] * 3
    people = [
        (np.array([1 - age, age]), np.array([[1 - fall * age, fall * age], [recover, 1 - recover]]), (0, 1))
        for age in AGES
    ]
    return dpjax.from_numpyro(by_age, "state", n=3, age=jnp.asarray(AGES)), people


def enumerate_person(initial, transition, values, answers, missing):
    """The probability of each path of shown numbers [16] together with the answers of one person."""
    found = np.zeros(16)
    for path in product(range(len(values)), repeat=4):
        shown = np.array([values[state] for state in path])
        weight = initial[path[0]] * np.prod([transition[path[time], path[time + 1]] for time in range(3)])
        seen = 1.0 if missing else np.prod(np.where(shown == answers, KEEP, 1 - KEEP))
        found[shown @ [8, 4, 2, 1]] += weight * seen
    return found


@pytest.mark.parametrize("name", ["alike", "by person", "stages"])
def test_hidden_states_are_summed_and_drawn_as_by_enumeration(name):
    """Catches a missing person who is read, tables of another person, and states taken for what they show."""
    model, people = case(name)
    channel = dpjax.RandomizedResponse(keep=KEEP, num_categories=2)
    release = dpjax.Microdata({"state": (ANSWERS, channel)}, {"state": MISSING})
    likelihood = dpjax.marginal_likelihood(model, release)
    weights = [enumerate_person(*one, *seen) for one, *seen in zip(people, ANSWERS, MISSING, strict=True)]
    np.testing.assert_allclose(likelihood(PARAMETERS), sum(np.log(one.sum()) for one in weights), rtol=1e-5)
    draws = jax.jit(jax.vmap(lambda key: likelihood.sample_records(key, PARAMETERS)))
    drawn = np.asarray(draws(jax.random.split(jax.random.key(1), 20_000))["state"])
    for place, one in enumerate(weights):
        expected = one / one.sum()
        frequencies = np.bincount(drawn[:, place] @ [8, 4, 2, 1], minlength=16) / len(drawn)
        errors = np.sqrt(np.maximum(expected * (1 - expected), 10 / len(drawn)) / len(drawn))
        assert np.all(np.abs(frequencies - expected) < 4.5 * errors)
        assert np.all(frequencies[expected == 0] == 0)
    # The density of known records is the same sum.
    records = np.array([[0, 1, 1, 0], [0, 0, 0, 0], [0, 1, 1, 1]])
    nothing = [enumerate_person(*one, None, True) for one in people]
    with np.errstate(divide="ignore"):
        expected = [np.log(one[record @ [8, 4, 2, 1]]) for one, record in zip(nothing, records, strict=True)]
    np.testing.assert_allclose(model.log_density(PARAMETERS, {"state": jnp.asarray(records)}), expected, rtol=1e-5)


def test_a_missed_visit_is_a_further_answer():
    """Catches answers that are taken for states, of which there are fewer."""
    matrix = np.array([[0.72, 0.18, 0.1], [0.18, 0.72, 0.1], [0.0, 0.0, 1.0]])
    model, people = case("alike")
    answers = np.array([[0, 2, 1, 0]])
    release = dpjax.LocalRelease(answers, dpjax.RandomizedResponse(matrix=matrix), "state")
    initial, transition, _ = people[0]
    expected = 0.0
    for path in product(range(2), repeat=4):
        weight = initial[path[0]] * np.prod([transition[path[time], path[time + 1]] for time in range(3)])
        expected += weight * np.prod([matrix[state, answer] for state, answer in zip(path, answers[0], strict=True)])
    np.testing.assert_allclose(dpjax.marginal_likelihood(model, release)(PARAMETERS), np.log(expected), rtol=1e-5)


def test_records_and_parameters_are_exchangeable_with_draws_given_the_release():
    """A joint-distribution test: catches sums or draws that are wrong together, as by a common wrong table.

    Parameters and records from the model, and others drawn given the release of these, have one distribution.
    """
    grid = {"fall": jnp.linspace(0.02, 0.98, 49), "recover": jnp.full(49, 0.3)}
    channel = dpjax.RandomizedResponse(keep=KEEP, num_categories=2)
    model, num = dpjax.from_numpyro(health, "state"), 400
    rng = np.random.default_rng(5)
    prior = np.asarray(stats.beta.pdf(grid["fall"], 2, 2))
    chosen = rng.choice(49, num, p=prior / prior.sum())
    falls = grid["fall"][chosen]
    draw = jax.jit(jax.vmap(lambda key, fall: model.sample_records(key, {"fall": fall, "recover": 0.3}, 10)))
    records = np.asarray(draw(jax.random.split(jax.random.key(6), num), falls)["state"])
    answers = np.where(rng.random(records.shape) < KEEP, records, 1 - records)
    first = dpjax.marginal_likelihood(model, dpjax.LocalRelease(answers[0], channel, "state"))

    @jax.jit
    @jax.vmap
    def draw_given(key, seen):
        choice_key, record_key = jax.random.split(key)
        # All arrays of this shape are those of the release, or stand in the place of what is hidden.
        likelihood = jax.tree.map(lambda leaf: seen if np.shape(leaf) == seen.shape else leaf, first)
        logs = jax.vmap(likelihood)(grid) + jnp.log(jnp.asarray(prior))
        fall = grid["fall"][jax.random.categorical(choice_key, logs)]
        return fall, likelihood.sample_records(record_key, {"fall": fall, "recover": 0.3})["state"]

    again, drawn = jax.device_get(draw_given(jax.random.split(jax.random.key(7), num), jnp.asarray(answers)))

    def features(fall, state):
        falls = np.mean((state[..., :-1] == 0) & (state[..., 1:] == 1), axis=(1, 2))
        return np.stack([fall, falls, state[..., 0].mean(1), state[..., 3].mean(1), fall * falls])

    differences = features(np.asarray(falls), records) - features(again, drawn)
    errors = differences.std(axis=1) / np.sqrt(num)
    assert np.all(np.abs(differences.mean(axis=1)) < 4 * errors)


T = 12
SEEN = np.random.default_rng(8).normal(2.0, 1.5, (3, T)).astype(np.float32).astype(float)
SCALES = np.linspace(0.5, 1.6, T)
NOT_SEEN = np.array([False, False, True])


def level(n, y=None):
    mean, step = numpyro.sample("mean", dist.Normal(0.0, 5.0)), numpyro.sample("step", dist.HalfNormal(1.0))
    chain = dpjax.NormalChain(mean, 0.7, step, 2 * step, num_times=T, nugget=0.3)
    with numpyro.plate("sites", n):
        numpyro.sample("y", chain, obs=y)


def walk(n, y=None):
    numpyro.sample("mean", dist.Normal(0.0, 5.0))
    step = numpyro.sample("step", dist.HalfNormal(1.0))
    with numpyro.plate("sites", n):
        numpyro.sample("y", dist.GaussianRandomWalk(step, num_steps=T), obs=y)


@pytest.fixture
def as_numpyro_has_it():
    with jax.numpy_rank_promotion("allow"):
        yield


@pytest.mark.usefixtures("as_numpyro_has_it")
@pytest.mark.parametrize("program", [level, walk])
def test_series_behind_gaussian_noise_are_normal_together(program):
    """Catches standard deviations read for variances, and a random walk of NumPyro that starts elsewhere."""
    model = dpjax.from_numpyro(program, "y")
    release = dpjax.Microdata({"y": (SEEN, dpjax.Gaussian(SCALES))}, {"y": NOT_SEEN})
    likelihood = dpjax.marginal_likelihood(model, release)
    parameters = {"mean": 1.5, "step": 0.8}
    times = np.arange(T)
    if program is walk:
        mean, total = np.zeros(T), 0.8**2 * (np.minimum.outer(times, times) + 1)
    else:
        loadings = np.tril(0.7 ** np.abs(np.subtract.outer(times, times))) * np.where(times == 0, 1.6, 0.8)
        mean, total = np.full(T, 1.5), loadings @ loadings.T + 0.09 * np.eye(T)
    noisy = total + np.diag(SCALES**2)
    expected = sum(stats.multivariate_normal.logpdf(one, mean, noisy) for one in SEEN[:2])
    np.testing.assert_allclose(likelihood(parameters), expected, rtol=2e-5)
    known = stats.multivariate_normal.logpdf(SEEN, mean, total)
    np.testing.assert_allclose(model.log_density(parameters, {"y": jnp.asarray(SEEN)}), known, rtol=2e-4)
    draws = jax.jit(jax.vmap(lambda key: likelihood.sample_records(key, parameters)))
    drawn = np.asarray(draws(jax.random.split(jax.random.key(9), 20_000))["y"], float)
    gain = total @ np.linalg.inv(noisy)
    for place in range(3):
        center = mean if NOT_SEEN[place] else mean + gain @ (SEEN[place] - mean)
        left = total if NOT_SEEN[place] else total - gain @ total
        errors = np.sqrt(np.diag(left) / len(drawn))
        assert np.all(np.abs(drawn[:, place].mean(axis=0) - center) < 4.5 * errors)
        np.testing.assert_allclose(np.cov(drawn[:, place].T), left, atol=0.06 * left.max())


@pytest.mark.usefixtures("as_numpyro_has_it")
def test_a_series_behind_other_noise_is_not_summed_out():
    """Catches a Laplace variance that is taken for that of Normal noise."""
    model = dpjax.from_numpyro(walk, "y")
    with pytest.raises(ValueError, match="a series of Normal numbers behind other noise than one Gaussian"):
        dpjax.marginal_likelihood(model, dpjax.LocalRelease(SEEN, dpjax.Laplace(1.0), "y"))


SIZE, DAYS = 5, 9
WELL, ILL = np.array([(s, i) for s in range(SIZE + 1) for i in range(SIZE + 1 - s)]).T
DAILY = np.array([1, 2, 4, 3, 5, 2, 1, -1, 0])


def binomial(number, total, probability):
    """Binomial probabilities in JAX, of counts that are possible."""
    ways = jnp.asarray(np.where((number >= 0) & (number <= total), special.comb(total, np.maximum(number, 0)), 0.0))
    return ways * probability ** np.maximum(number, 0) * (1 - probability) ** np.maximum(total - number, 0)


def ward(n, infected=None):
    contacts = numpyro.sample("contacts", dist.LogNormal(0.0, 0.5))
    recovery = numpyro.sample("recovery", dist.Beta(2.0, 4.0))
    new = WELL[:, None] - WELL[None]
    over = ILL[:, None] + new - ILL[None]
    caught = 1 - jnp.exp(-contacts * (ILL / SIZE).astype(np.float32))[:, None]
    transition = binomial(new, WELL[:, None] + 0 * new, caught) * binomial(over, ILL[:, None] + 0 * new, recovery)
    start = np.where((WELL == SIZE - 1) & (ILL == 1), 1.0, 0.0)
    with numpyro.plate("wards", n):
        numpyro.sample("infected", dpjax.MarkovChain(start, transition, num_times=DAYS, values=ILL), obs=infected)


@pytest.mark.usefixtures("as_numpyro_has_it")
def test_an_epidemic_is_summed_out_as_by_forward_sums_over_its_pairs():
    """Catches states that are told apart by what they show: people still susceptible are part of the state, too.

    The forward sums are over dictionaries of pairs, with SciPy's probabilities.
    """
    scale, parameters = 1.5, {"contacts": 1.25, "recovery": 0.25}
    with jax.numpy_dtype_promotion("standard"):
        model = dpjax.from_numpyro(ward, "infected", n=1)
        release = dpjax.LocalRelease(DAILY[None], dpjax.DiscreteLaplace(scale), "infected")
        found = dpjax.marginal_likelihood(model, release)(parameters)
    share = np.exp(-1 / scale)

    def noise(value, count):
        return (1 - share) / (1 + share) * share ** abs(value - count)

    weights = {(SIZE - 1, 1): noise(DAILY[0], 1)}
    for value in DAILY[1:]:
        after: dict[tuple[int, int], float] = {}
        for (s, i), weight in weights.items():
            for new, over in product(range(s + 1), range(i + 1)):
                chance = stats.binom.pmf(new, s, 1 - np.exp(-1.25 * i / SIZE)) * stats.binom.pmf(over, i, 0.25)
                pair = (s - new, i + new - over)
                after[pair] = after.get(pair, 0.0) + weight * chance * noise(value, pair[1])
        weights = after
    np.testing.assert_allclose(found, np.log(sum(weights.values())), rtol=1e-5)
