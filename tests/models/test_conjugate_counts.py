"""How often each possible record occurs, with the parameters integrated out: against SciPy and draws from the prior."""

from itertools import combinations_with_replacement

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from dpjax import models
from dpjax.base import ConjugateCounts, Model
from dpjax.models.programs import jit_model

MODELS = {
    "categorical": models.categorical([2.0, 1.0, 0.5, 3.0], shape=(2, 2)),
    "naive Bayes": models.naive_bayes([2.0, 0.7], 0.5 + np.arange(2 * 2 * 2).reshape(2, 2, 2) / 3),
    "naive Bayes of three levels": models.naive_bayes([2.0, 0.7, 1.0], 0.5 + np.arange(9).reshape(1, 3, 3) / 3),
}

NAMES = [pytest.param(name, marks=(pytest.mark.slow,) * ("three" in name)) for name in MODELS]


def num_cells(model: Model) -> int:
    return len(jax.tree.leaves(model.support())[0])


def rows(records: dict) -> np.ndarray:
    """Records as an array [n, fields]."""
    return np.concatenate([np.asarray(leaf).reshape(len(leaf), -1) for leaf in jax.tree.leaves(records)], axis=1)


def tables(cells: int, n: int) -> np.ndarray:
    """All tables of n records."""
    places = combinations_with_replacement(range(cells), n)
    return np.array([np.bincount(place, minlength=cells) for place in places])


def sums_of(conjugate: ConjugateCounts, counts: np.ndarray) -> np.ndarray:
    """The sums [..., q] that counts [..., c] add up to."""
    index = np.asarray(conjugate.places)
    member = np.zeros((len(index), conjugate.shift.size))
    np.add.at(member, (np.arange(len(index))[:, None], index), 1)
    assert member.max() == 1  # no sum twice
    return counts @ member


def log_law(conjugate: ConjugateCounts, counts: np.ndarray) -> np.ndarray:
    """log p(c | n) of tables [t, c], up to what is the same for all of them, whatever n."""
    terms = gammaln(sums_of(conjugate, counts) + np.asarray(conjugate.shift)) * np.asarray(conjugate.sign)
    return gammaln(counts.sum(axis=1) + 1) - gammaln(counts + 1).sum(axis=1) + terms.sum(axis=1)


@pytest.mark.x64
@pytest.mark.parametrize("name", NAMES)
def test_the_law_of_counts_is_that_of_records_from_the_prior(name: str) -> None:
    """Of no, one, two and three records together, so that what depends on their number is checked as well."""
    model = MODELS[name]
    counts = np.concatenate([tables(num_cells(model), n) for n in range(4)])
    conjugate = model.conjugate()
    law = log_law(conjugate, counts)
    law -= law[0]  # of the empty table, whose probability is 1

    @jax.jit
    def log_probabilities(keys: jax.Array) -> jax.Array:
        return jax.vmap(lambda key: model.log_density(model.sample_prior(key), model.support()))(keys)

    logs = np.asarray(log_probabilities(jax.random.split(jax.random.key(1), 100_000)))
    several = gammaln(counts.sum(axis=1) + 1) - gammaln(counts + 1).sum(axis=1)
    drawn = np.exp(logs @ counts.T + several)
    errors = drawn.std(axis=0)[1:] / np.sqrt(len(drawn))
    scores = (drawn.mean(axis=0)[1:] - np.exp(law[1:])) / errors
    assert np.abs(scores).max() < 5
    without = conjugate._replace(sign=jnp.where(conjugate.sign < 0, 0.0, conjugate.sign))
    wrong = log_law(without, counts)
    assert np.abs((drawn.mean(axis=0)[1:] - np.exp(wrong[1:] - wrong[0])) / errors).max() > 10


@pytest.mark.x64
def test_the_law_of_a_table_is_dirichlet_multinomial() -> None:
    counts = tables(4, 5)
    law = log_law(MODELS["categorical"].conjugate(), counts)
    expected = stats.dirichlet_multinomial.logpmf(counts, [2.0, 1.0, 0.5, 3.0], 5)
    np.testing.assert_allclose(law - law[0], expected - expected[0], atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_draws_by_sums_are_those_by_records(name: str) -> None:
    """The same numbers from one key, and the same density: the law of the parameters is written once."""
    model = MODELS[name]
    parameters = jax.jit(model.sample_prior)(jax.random.key(2))
    records = jax.jit(lambda key: model.sample_records(key, parameters, 40))(jax.random.key(3))
    conjugate, support = model.conjugate(), rows(model.support())
    counts = np.all(rows(records)[:, None] == support[None], axis=2).sum(axis=0)
    sums = jnp.asarray(sums_of(conjugate, counts), int)

    @jax.jit
    def compute(key: jax.Array, parameters: dict, records: dict) -> tuple:
        return (
            (conjugate.update(key, sums), model.update(key, parameters, records)),
            (conjugate.log_density(parameters, sums), model.update_log_density(parameters, parameters, records)),
        )

    for one, other in compute(jax.random.key(4), parameters, records):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), one, other)


def test_one_program_serves_all_concentrations() -> None:
    traced = []

    def look(model: Model, key: jax.Array) -> dict:
        traced.append(model)
        conjugate = model.conjugate()
        return conjugate.update(key, jnp.arange(conjugate.shift.size)) | {"shift": conjugate.shift}

    compiled = jit_model(look)
    for make in (lambda a: models.categorical([a, 1.0]), lambda a: models.naive_bayes([a, 1.0], np.ones((2, 2, 2)))):
        traced.clear()
        shifts = [compiled(make(a), jax.random.key(5))["shift"][0] for a in (0.5, 1.5)]
        np.testing.assert_allclose(shifts, [0.5, 1.5])
        assert len(traced) == 1


def test_records_too_many_to_list_are_not_integrated_out() -> None:
    assert not models.naive_bayes([1.0] * 2, np.ones((40, 2, 2))).has("conjugate")
