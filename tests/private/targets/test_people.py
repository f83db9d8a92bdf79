"""Targets and forecasts that are about people who have several rows."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import dpjax
from dpjax import private, statistics
from dpjax.private.people import People, choose_rows
from dpjax.private.planning.design import blank_of
from tests.private.releases.odd_entries import ODD
from tests.private.releases.paid_sums import ADDED, BUDGET, seeded

WHO = np.array(["ann", "bob", "ann", "eve", "ann", "bob", "ann"])
Y = np.array([1.0, -2.0, 3.0, 0.5, 1.5, 4.0, -1.0])
X = np.array([1.0, 0.5, -1.0, 2.0, 0.0, 1.0, 0.3])
NORMAL = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
BOUND = 2.0
PAIRS = People("who", 2)


def density(slope, row):
    return -((row["y"] - slope * row["x"]) ** 2) / 2


def prior(slope):
    return -(slope**2) / 2


def target(rows, **options):
    options = {"people": "who", "max_rows": 4} | options
    return private.target(density, prior, rows, jnp.zeros(()), **options)


def rows_of(who, x, y):
    return {"who": who, "x": x, "y": y}


def clipped_by_hand(who, x, y, slope, bound):
    """The sum over people of the sums over their rows, clipped."""
    of_rows = (y - slope * x) * x
    sums = [of_rows[who == one].sum() for one in np.unique(who)]
    return float(np.sum(np.clip(sums, -bound, bound)))


@pytest.mark.parametrize("slope", [0.0, 2.5])
def test_gradients_and_ratios_are_clipped_by_person(slope):
    built = target(rows_of(WHO, X, Y))
    assert built.num_records == 3
    found = private.clipped_gradients(built, jnp.array([slope]), BOUND)
    np.testing.assert_allclose(found.value[0], clipped_by_hand(WHO, X, Y, slope, BOUND), rtol=1e-5)
    of_rows = -((Y - (slope + 1) * X) ** 2 - (Y - slope * X) ** 2) / 2
    sums = [of_rows[one == WHO].sum() for one in np.unique(WHO)]
    ratios = private.clipped_ratios(built, jnp.array([slope]), jnp.array([slope + 1.0]), BOUND)
    np.testing.assert_allclose(ratios.value, np.sum(np.clip(sums, -BOUND, BOUND)), rtol=1e-5)


def test_one_person_moves_a_sum_by_the_bound_at_most():
    """All rows of one person are made extreme. A target of rows moves further: the same check finds it."""
    moved = np.where(WHO == "ann", 1e3, Y), np.where(WHO == "ann", -1e3, Y)
    for options, within in (({}, True), ({"people": None, "max_rows": None}, False)):
        sums = [
            private.clipped_gradients(
                target(rows_of(WHO, np.ones(7), y) if within else {"x": np.ones(7), "y": y}, **options),
                jnp.zeros(1),
                BOUND,
            ).value[0]
            for y in moved
        ]
        assert bool(abs(sums[0] - sums[1]) <= 2 * BOUND * (1 + 1e-6)) is within


def test_rows_of_a_person_are_chosen_whatever_the_others_are():
    """At most K, all of those who have fewer, and none without an identifier."""
    chosen = choose_rows(WHO, PAIRS)
    assert chosen.places.shape == (3, 2)
    assert chosen.is_row.tolist() == [[True, True], [True, True], [True, False]]
    own = {one: WHO[places].tolist() for one, places in zip(("ann", "bob", "eve"), chosen.places, strict=True)}
    assert own == {"ann": ["ann"] * 2, "bob": ["bob"] * 2, "eve": ["eve"] * 2}
    alone = choose_rows(WHO[WHO == "ann"], PAIRS).places[0]
    np.testing.assert_array_equal(np.flatnonzero(WHO == "ann")[alone], chosen.places[0])
    gaps = choose_rows(np.array(["ann", None, "bob", float("nan")], object), PAIRS)
    assert gaps.places[:, 0].tolist() == [0, 2]


def test_models_and_programs_have_people_too():
    of_model = private.model_target(NORMAL, {"y": Y, "who": WHO}, people="who", max_rows=4)

    def program(n, x):
        slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
        with numpyro.plate("rows", n):
            numpyro.sample("y", dist.Normal(slope * x, 1.0))

    of_program = private.numpyro_target(program, {"y": Y, "who": WHO}, {"x": X}, people="who", max_rows=4)
    assert of_model.num_records == of_program.num_records == 3
    found = private.clipped_gradients(of_program, jnp.array([2.5]), BOUND).value[0]
    np.testing.assert_allclose(found, clipped_by_hand(WHO, X, Y, 2.5, BOUND), rtol=1e-5)


@pytest.mark.keys
def test_a_run_is_charged_as_for_records():
    """Protection of people costs noise per person, and none more: the queries are those of any target."""
    kernel = private.dp_penalty(
        target(rows_of(WHO, X, Y)), private.noise.jax, proposal_scale=0.5, ratio_bound=1.0, tau=50.0
    )
    ledger = private.Ledger(private.Budget(4.0, 1e-6, neighbours="replace-one"))
    drawn = private.sample(jax.random.key(1), kernel, jnp.zeros(2), ledger, num_iterations=4)
    assert drawn.draws.shape == (2, 4)
    assert ledger.privacy_spent().num_queries == 8


def loud(identifier):
    """What warns of some identifiers, and fails for others."""
    warnings.warn("a 7", UserWarning, stacklevel=1)
    return np.int8(100) * np.int8(len(identifier))


@pytest.mark.parametrize("normalise", [None, loud])
def test_no_identifier_is_an_error_or_a_warning_of_a_target(normalise):
    """It would tell for nothing that it is there, as nothing is charged when a target is built."""
    records = rows_of(ODD, np.ones(len(ODD)), np.ones(len(ODD)))
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 0 < target(records, normalise=normalise).num_records < len(ODD)


ASKED = {
    "target": (lambda records: private.target(density, prior, records, jnp.zeros(())), "people"),
    "model_target": (lambda records: private.model_target(NORMAL, records), "records"),
    "numpyro_target": (lambda records: private.numpyro_target(lambda n: None, records), "records"),
}


@pytest.mark.parametrize("builder", ASKED)
def test_fields_that_are_not_used_are_asked_about(builder):
    """Whatever they are called; those of a model are its sites."""
    build, argument = ASKED[builder]
    with pytest.raises(ValueError, match=rf"^{argument}: given "):
        build(rows_of(np.arange(7), X, Y))
    assert target(rows_of(np.arange(7), X, Y), people=None, max_rows=None).num_records == 7


WRONG = {
    "max_rows": {"max_rows": None},
    "max_rows alone": {"people": None, "max_rows": 1},
    "people kind": {"people": WHO},
    "people absent": {"people": "whom"},
    "people length": {"records": rows_of(WHO[:3], X, Y)},
    "people matrix": {"records": rows_of(np.stack([WHO, WHO], 1), X, Y)},
    "records names": {"records": [X, Y]},
    "records numbers": {"records": rows_of(WHO, X, WHO)},
}


@pytest.mark.parametrize("argument", WRONG)
def test_what_is_wrong_is_named_and_no_number_of_records(argument):
    """It named the number of identifiers, which is confidential."""
    options = {"people": "who", "max_rows": 4, "records": rows_of(WHO, X, Y)} | WRONG[argument]
    with pytest.raises((TypeError, ValueError), match=f"^{argument.split(' ')[0]}: given ") as refused:
        target(options.pop("records"), **options)
    assert argument != "people length" or not any(digit in str(refused.value) for digit in "0123456789")


@pytest.mark.parametrize("budget", [BUDGET, ADDED], ids=["replace", "add"])
def test_forecasts_have_the_noise_of_a_release_of_people(budget):
    statistic = statistics.total("y", 4.0, 5.0)
    records = {"y": Y, "who": WHO}
    unknown = dpjax.UnknownCount(dpjax.models.PoissonCount(7.0))
    made = private.release(
        private.Ledger(budget), statistic, records, people="who", max_rows=3, n=unknown, noise=seeded()
    )
    blank = blank_of(statistic, None, budget, 7, private.people.People(max_rows=3))
    assert blank.mechanism.scale == pytest.approx(made.mechanism.scale, rel=1e-9)
