"""Models of formulas: densities, priors and coordinates against their definitions, and what is refused."""

import pickle
import sys
from decimal import Decimal
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from numpyro import distributions as dist
from scipy import stats

import dpjax
from dpjax.data_augmentation.parameters import fit_to_prior
from dpjax.data_augmentation.summed_out.windows import length_of
from dpjax.models import formula

N = 12
X = np.linspace(-1.0, 2.0, N) ** 2
STATE = np.array(["B", "A", "C"] * 4)
GROUP = np.array([1, 0, 2] * 4)
AREA = np.array(["south"] * 5 + ["north"] * 7)
SIZE = np.arange(1, N + 1) * 10
DATA = pd.DataFrame({"x": X, "state": STATE, "area": AREA, "size": SIZE})
SOUTH = (AREA == "south").astype(float)
TOLERANCE = 1e-4 if jnp.zeros(()).dtype == jnp.float32 else 1e-9

EFFECTS = {"1|state": np.array([0.3, -0.2, 0.1]), "1|state_sigma": np.array(0.5)}
COUNTS = np.array([0, 3, 1, 7, 2, 0, 5, 9, 1, 4, 2, 6])


def log_density(model: Any, parameters: dict[str, Any], response: str, values: np.ndarray) -> np.ndarray:
    floats = {name: jnp.asarray(value, float) for name, value in parameters.items()}
    return np.asarray(jax.jit(model.log_density)(floats, {response: jnp.asarray(values)}))


def test_counts_have_offset_interaction_and_effects_of_intercept_and_slope():
    """Notices a dropped offset, groups in another order than their names, and a slope without its covariate."""
    model = formula("y ~ x*area + (x | state) + offset(log(size))", DATA, family="poisson")
    slopes = np.array([1.0, -0.5, 0.2])
    parameters = EFFECTS | {
        "Intercept": -3.0,
        "x": 0.4,
        "area": [0.7],
        "x:area": [-0.3],
        "x|state": slopes,
        "x|state_sigma": 1.0,
    }
    predictor = -3.0 + 0.4 * X + 0.7 * SOUTH - 0.3 * X * SOUTH + np.log(SIZE) + EFFECTS["1|state"][GROUP]
    expected = stats.poisson.logpmf(COUNTS, np.exp(predictor + slopes[GROUP] * X))
    np.testing.assert_allclose(log_density(model, parameters, "y", COUNTS), expected, rtol=TOLERANCE, atol=TOLERANCE)
    assert model.entry_labels({})["x|state"] == (("A", "B", "C"),)
    assert model.entry_labels({})["area"] == (("south",),)


FAMILIES = {
    "gaussian": ("y", {"sigma": 2.0}, COUNTS * 0.5, lambda eta: stats.norm(eta, 2.0)),
    "t": ("y", {"sigma": 2.0, "nu": 5.0}, COUNTS * 0.5, lambda eta: stats.t(5.0, eta, 2.0)),
    "bernoulli": ("y", {}, COUNTS % 2, lambda eta: stats.bernoulli(1 / (1 + np.exp(-eta)))),
    "binomial": ("p(y, size)", {}, COUNTS, lambda eta: stats.binom(SIZE, 1 / (1 + np.exp(-eta)))),
    "poisson": ("y", {}, COUNTS, lambda eta: stats.poisson(np.exp(eta))),
    "negative binomial": ("y", {"alpha": 3.0}, COUNTS, lambda eta: stats.nbinom(3.0, 3.0 / (3.0 + np.exp(eta)))),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_families_have_their_densities(family):
    left, own, values, law = FAMILIES[family]
    units = {"response_mean": 1.0, "response_sd": 2.0} if "sigma" in own else {}
    model = formula(f"{left} ~ x + (1 | state)", DATA, family=family, **units)
    found = log_density(model, EFFECTS | own | {"Intercept": 0.5, "x": 0.4}, "y", values)
    frozen = law(0.5 + 0.4 * X + EFFECTS["1|state"][GROUP])
    density = frozen.logpmf if hasattr(frozen.dist, "pmf") else frozen.logpdf
    # JAX's Beta function, by which NumPyro has negative binomial counts, is exact to six digits.
    tolerance = max(TOLERANCE, 1e-5) if family == "negative binomial" else TOLERANCE
    np.testing.assert_allclose(found, density(values), rtol=tolerance, atol=tolerance)


def test_default_priors_have_the_units_of_covariates_and_response():
    """Notices an intercept whose prior is not that at the means of the covariates."""
    model = formula("y ~ x + (x | state)", DATA, response_mean=10.0, response_sd=4.0)
    parameters = EFFECTS | {"Intercept": 7.0, "x": 3.0, "sigma": 2.0, "x|state": np.ones(3), "x|state_sigma": 0.7}
    slope = 10.0 / np.std(X)
    terms = [
        stats.norm.logpdf(7.0 + 3.0 * np.mean(X), 10.0, 10.0),
        stats.norm.logpdf(3.0, 0.0, slope),
        stats.halfnorm.logpdf(0.5, scale=10.0),
        stats.halfnorm.logpdf(0.7, scale=slope),
        *stats.norm.logpdf(EFFECTS["1|state"], 0.0, 0.5),
        *stats.norm.logpdf(np.ones(3), 0.0, 0.7),
        np.log(2.0) + stats.t.logpdf(2.0, 4.0, 0.0, 4.0),
    ]
    found = jax.jit(model.log_prior)({name: jnp.asarray(value, float) for name, value in parameters.items()})
    np.testing.assert_allclose(found, np.sum(terms), rtol=10 * TOLERANCE)
    lines = model.describe().splitlines()
    assert f"  x ~ Normal(loc 0, scale {slope:.4g})" in lines
    assert "  Intercept ~ Normal(loc 10, scale 10), at the means of the covariates" in lines
    assert "  sigma ~ HalfStudentT(df 4, scale 4)" in lines


def test_priors_are_replaced_by_name():
    priors = {
        "x": dpjax.models.NormalPrior(0, 1),
        "Intercept": dist.StudentT(3.0, -1.0, 2.0),
        "area": dist.MultivariateNormal(jnp.zeros(1), jnp.eye(1) * 4.0),
        "1|state_sigma": dist.Exponential(2.0),
        "alpha": dpjax.models.GammaPrior(2.0, 0.5),
    }
    model = formula("y ~ x + area + (1 | state)", DATA, family="negativebinomial", priors=priors)
    parameters = EFFECTS | {"Intercept": 7.0, "x": 3.0, "area": [0.5], "alpha": 2.0}
    terms = [
        stats.norm.logpdf(3.0),
        stats.t.logpdf(7.0 + 3.0 * np.mean(X) + 0.5 * np.mean(SOUTH), 3.0, -1.0, 2.0),
        stats.norm.logpdf(0.5, 0.0, 2.0),
        stats.expon.logpdf(0.5, scale=0.5),
        *stats.norm.logpdf(EFFECTS["1|state"], 0.0, 0.5),
        stats.gamma.logpdf(2.0, 2.0, scale=2.0),
    ]
    found = jax.jit(model.log_prior)({name: jnp.asarray(value, float) for name, value in parameters.items()})
    np.testing.assert_allclose(found, np.sum(terms), rtol=10 * TOLERANCE)


def test_coordinates_are_standardised_and_have_their_jacobian():
    model: Any = formula("y ~ x + (1 | state)", DATA, family="poisson")
    parameters = {name: jnp.asarray(value, float) for name, value in (EFFECTS | {"Intercept": 2.0, "x": 3.0}).items()}
    coordinates = model.unconstrain(parameters)
    scale = np.std(X)
    expected = {
        "1|state": EFFECTS["1|state"] / np.sqrt(0.5),
        "1|state_sigma": np.log(0.5),
        "Intercept": (2.0 + 3.0 * np.mean(X)) / 2.5,
        "x": 3.0 * scale / 2.5,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(coordinates[name], value, rtol=TOLERANCE, atol=TOLERANCE)
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=TOLERANCE),
        parameters,
        {name: model.constrain(coordinates)[name] for name in parameters},
    )
    volume = np.log(0.5) + 3 / 2 * np.log(0.5) + np.log(2.5) + np.log(2.5 / scale)
    np.testing.assert_allclose(model.log_jacobian(coordinates), volume, rtol=TOLERANCE)


def test_models_of_one_formula_share_programs_and_are_pickled():
    one, other = (
        formula("y ~ x + (1 | state)", DATA.assign(x=X * factor), "poisson", {"x": dist.Normal(0.0, factor)})
        for factor in (1, 2)
    )
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert one != other
    assert pickle.loads(pickle.dumps(one)) == one


def test_the_response_is_not_read():
    """The column of that name may be confidential: neither values nor gaps of it may matter."""
    without = formula("y ~ x", DATA, family="poisson")
    assert formula("y ~ x", DATA.assign(y=np.nan), family="poisson") == without


def test_records_alike_take_any_number():
    model = formula("p(y, 10) ~ 1", DATA, family="binomial")
    assert model.exchangeable
    assert model.num_records is None
    assert model.support is not None
    fixed = formula("y ~ x", DATA, family="poisson")
    assert not fixed.exchangeable
    assert fixed.num_records == N


def test_columns_that_a_statistic_reads_are_fields():
    model = formula("y ~ x + (1 | state)", DATA, family="poisson", fields=("state", "size"))
    records = model.sample_records(
        jax.random.key(0),
        {name: jnp.asarray(value, float) for name, value in (EFFECTS | {"Intercept": 0.0, "x": 0.1}).items()},
        N,
    )
    np.testing.assert_array_equal(records["state"], GROUP)
    np.testing.assert_array_equal(records["size"], SIZE)
    assert model.level_names == {"state": ("A", "B", "C")}


def test_some_records_have_the_densities_of_their_places():
    model: Any = formula("y ~ bs(x, df=4) + (1 | state)", DATA, family="poisson")
    parameters = model.sample_prior(jax.random.key(0)) | {"bs(x, df=4)": jnp.array([0.1, 0.2, -0.1, 0.3])}
    whole = model.log_density(parameters, {"y": jnp.asarray(COUNTS)})
    places = jnp.array([3, 8])
    some = model.log_density(parameters, {"y": jnp.asarray(COUNTS)[places]}, places)
    np.testing.assert_allclose(some, whole[places], rtol=TOLERANCE)


NEGATIVE = dist.Normal(0.0, -1.0, validate_args=False)
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "no tilde": ("x", {}, "formula.*a response, ~ and terms"),
    "no syntax": ("y ~ x +", {}, "formula.*R's language"),
    "unknown column": ("y ~ z", {}, "data.*without 'z'"),
    "unknown function": ("y ~ f(x)", {}, "formula.*a formula can call"),
    "transformed response": ("log(y) ~ x", {}, "formula.*the left side"),
    "response on the right": ("y ~ x + y", {}, "formula.*right side"),
    "group without parentheses": ("y ~ x | state", {}, "formula.*in parentheses"),
    "constant column": ("y ~ one", {}, "formula.*constant"),
    "no trials": ("y ~ x", {"family": "binomial"}, "formula.*without trials"),
    "trials": ("p(y, size) ~ x", {}, "formula.*with trials"),
    "negative trials": ("p(y, x) ~ 1", {"family": "binomial"}, "formula.*trials 'x'"),
    "unknown family": ("y ~ x", {"family": "gamma"}, "family.*gaussian"),
    "no units": ("y ~ x", {"family": "gaussian"}, "response_sd.*units of the response"),
    "needless units": ("y ~ x", {"response_mean": 3.0}, "response_mean.*nothing for the family"),
    "unknown prior": ("y ~ x", {"priors": {"z": dist.Normal()}}, "priors.*'Intercept', 'x'|priors.*'x', 'Intercept'"),
    "no prior": ("y ~ x", {"priors": {"x": 3.0}}, r"priors\['x'\].*a distribution"),
    "negative scale": (
        "y ~ x",
        {"priors": {"x": NEGATIVE}},
        r"priors\['x'\].*constraint",
    ),
    "negative deviation": (
        "y ~ (1 | state)",
        {"priors": {"1|state_sigma": dist.Normal()}},
        r"priors\['1\|state_sigma'\].*positive",
    ),
    "skewed intercept": ("y ~ x", {"priors": {"Intercept": dist.HalfNormal()}}, r"priors\['Intercept'\].*one of"),
    "shape of a prior": ("y ~ x", {"priors": {"x": dist.Normal(jnp.zeros(2))}}, r"priors\['x'\].*shape \[2\]"),
    "name of a parameter": ("alpha ~ x", {"family": "negativebinomial"}, "formula.*another name"),
    "gap": ("y ~ gap", {}, "data.*missing"),
    "infinite": ("y ~ x + offset(log(x - x))", {}, "data.*no finite number"),
    "field": ("y ~ x", {"fields": ("z",)}, "fields.*columns of data"),
    "field with gaps": ("y ~ x", {"fields": ("gap",)}, "data.*missing values in the column 'gap'"),
    "one level": ("y ~ region", {}, "formula.*'region', which has one level alone"),
    "one level and its products": ("y ~ x * region", {}, "formula.*'region', which has one level alone"),
    "a covariate called as a parameter": ("y ~ alpha", {"family": "negativebinomial"}, "formula.*the term 'alpha'"),
    "a covariate called Intercept": ("y ~ Intercept", {}, "formula.*the term 'Intercept'"),
    "complex numbers": ("y ~ wave", {}, "data.*complex numbers for the term 'wave'"),
    "a list": ("y ~ C(area, levels=['south', 'north'])", {}, r"formula.*a list in brackets.*Categorical"),
}


@pytest.mark.parametrize("label", REFUSED)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_what_does_not_fit_is_refused(label):
    text, options, message = REFUSED[label]
    data = DATA.assign(one=1.0, gap=np.where(np.arange(N) == 3, np.nan, 1.0), region="west", wave=X * 1j)
    data = data.assign(alpha=X, Intercept=X)
    with pytest.raises((ValueError, TypeError), match=message):
        formula(text, data, **{"family": "poisson"} | options)


def test_columns_of_one_name_are_refused_where_they_are_used():
    """They were a TypeError of pandas; another column that is there twice does no harm."""
    data = pd.concat([DATA, DATA[["x"]]], axis=1)
    for text, options in {"y ~ x": {}, "y ~ area": {"weights": "x"}, "y ~ state": {"fields": ["x"]}}.items():
        with pytest.raises(ValueError, match="data: given two columns 'x'; expected one of each name"):
            formula(text, data, family="poisson", **options)
    assert formula("y ~ area", data, family="poisson").design.size == N


def test_numbers_that_are_objects_are_numbers():
    """Columns of databases were refused as of an unknown type, and as fields they became names of levels."""
    data = DATA.assign(price=[Decimal(int(size)) for size in SIZE], trials=SIZE.astype(object))
    model = formula("p(y, trials) ~ price", data, family="binomial", fields=["price"])
    np.testing.assert_array_equal(model.known_columns["price"], SIZE)
    np.testing.assert_array_equal(model.known_columns["trials"], SIZE)
    assert model.level_names == {}


def test_two_bars_say_that_effects_are_independent_which_they_are():
    """They were a ParseError of formulae."""
    one, two = (formula(f"y ~ x + (1 + x {bar} state)", DATA, family="poisson") for bar in ("|", "||"))
    assert one.design == two.design


def test_categories_have_their_own_order_and_those_of_no_record_are_left_out():
    """An order was kept of ordered categories alone, and a level of no record was refused as a constant column."""
    for ordered in (False, True):
        area = pd.Categorical(AREA, ["south", "west", "north"], ordered=ordered)
        model = formula("y ~ area + (1 | area)", DATA.assign(area=area), family="poisson")
        assert model.entry_labels({}) == {"area": (("north",),), "1|area": (("south", "north"),)}


@pytest.mark.parametrize(("text", "is_own"), [("y ~ x + area", True), ("y ~ x + (1 | state)", False)])
def test_without_groups_the_coordinates_of_both_steps_are_the_same(text, is_own):
    """A second whitening by the warm-up's draws compiled the main program again, in a call that has one already."""
    model = formula(text, DATA, family="poisson")
    tuning = jax.eval_shape(partial(fit_to_prior, model=model), jax.eval_shape(jax.random.key, 0))
    assert len(jax.tree.leaves(tuning)) == (3 if is_own else 6)


def test_windows_of_few_numbers_have_lengths_far_apart():
    """Other keys give windows of other sizes, of which each length has a program of its own."""
    assert {length_of(np.full(12, size)) for size in range(70, 129)} == {128}
    assert {length_of(np.full(3_000, size)) for size in (70, 90, 110, 128)} == {80, 96, 112, 128}


@pytest.mark.parametrize("module", ["pandas", "formulae"])
def test_a_library_that_is_not_installed_is_named(monkeypatch, module):
    """Without pandas the error was Python's own, which does not say what it is for."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"^{module}: not installed; expected for dpjax\.models\.formula\. Run pip"):
        formula("y ~ x", {"x": X}, family="poisson")


def test_a_sum_that_reads_a_covariate_has_its_posterior_by_enumeration():
    """Two coefficients of eight answers whose number, and sum of a public covariate, were released with noise."""
    z = np.linspace(-1.0, 1.5, 8)
    value, noise = np.array([5.5, 4.0]), stats.laplace(0.0, 1.0)
    data = {"x": z, "side": ["left", "right"] * 4}
    model = formula("y ~ x + side", data, family="bernoulli", fields=("x", "side"))
    release = dpjax.Release(value, dpjax.Laplace(1.0), answers, n=8)
    posterior = dpjax.sample(jax.random.key(1), model, release, num_samples=1500, progress=False)

    every = (np.arange(256)[:, None] >> np.arange(8)) % 2  # [answers, record]
    side = np.arange(8) % 2
    sums = np.stack([every.sum(axis=1), (every * z * (1 + side)).sum(axis=1)], axis=1)
    released = noise.pdf(value - sums).prod(axis=1)
    draws = np.random.default_rng(0)
    at_means, slope = draws.normal(0.0, 2.5, 100_000), draws.normal(0.0, 2.5 / np.std(z), 100_000)
    right = draws.normal(0.0, 5.0, 100_000)
    predictor = at_means[:, None] + np.outer(slope, z - z.mean()) + np.outer(right, side - 0.5)
    log_odds = np.logaddexp(0.0, -predictor), np.logaddexp(0.0, predictor)
    weights = np.exp(-log_odds[0] @ every.T - log_odds[1] @ (1 - every).T) @ released
    for name, exact in {"x": slope, "side": right}.items():
        drawn = posterior.draws[name].reshape(posterior.draws[name].shape[:2])
        mean = np.average(exact, weights=weights)
        spread = np.sqrt(np.average((exact - mean) ** 2, weights=weights))
        errors = spread * np.sqrt(np.sum(weights**2)) / np.sum(weights), dpjax.diagnostics.mcse_mean(drawn)
        assert abs(np.mean(drawn) - mean) < 5 * np.hypot(*errors)
        np.testing.assert_allclose(np.std(drawn), spread, rtol=0.15)
    assert [row for row in posterior.summary() if row.startswith("side")] == ["side[right]"]


def answers(record: dict[str, jax.Array]) -> jax.Array:
    """The number of those who answered yes, and a sum over them."""
    return jnp.stack([record["y"], record["y"] * record["x"] * (1 + record["side"])]).astype(float)
