"""What `from_numpyro` refuses, and the words in which it does."""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import pandas
import pytest
from numpyro import distributions as dist, handlers
from numpyro.contrib.control_flow import scan
from numpyro.distributions import constraints, transforms

import dpjax
from dpjax.adapters.numpyro.refusals import check_distribution


def plated(statement: Any, **plate: Any) -> Any:
    """A model with a Normal mean and one statement inside the records' plate."""

    def model(n: int = 4) -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        with numpyro.plate("records", n, **plate):
            statement(mean)

    return model


def normal(mean: Any) -> Any:
    return numpyro.sample("y", dist.Normal(mean, 1.0))


def no_plate() -> None:
    numpyro.sample("y", dist.Normal(numpyro.sample("mean", dist.Normal(0.0, 1.0)), 1.0))


def before_plate(statement: Any) -> Any:
    """A model with a statement before its plate."""

    def model(n: int = 4) -> None:
        value = statement()
        with numpyro.plate("records", n):
            normal(0.0 if value is None else value)

    return model


def two_plates() -> None:
    with numpyro.plate("one", 3):
        numpyro.sample("x", dist.Normal(0.0, 1.0))
    with numpyro.plate("other", 3):
        numpyro.sample("y", dist.Normal(0.0, 1.0))


def nested(n: int = 3) -> None:
    with numpyro.plate("records", n), numpyro.plate("features", 2):
        numpyro.sample("y", dist.Normal(0.0, 1.0))


def coupled(mean: Any) -> None:
    x = numpyro.sample("x", dist.Normal(mean, 1.0))
    numpyro.sample("y", dist.Normal(jnp.cumsum(x), 1.0))


def joint(n: int = 4) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", n):
        pass
    numpyro.sample("y", dist.Normal(mean, 1.0).expand([n]).to_event(1))


def batch_beyond_plate(mean: Any) -> None:
    numpyro.sample("y", dist.Normal(mean, jnp.ones((2, 1))))


def masked(mean: Any) -> None:
    with handlers.mask(mask=jnp.array([True, False, True, True])):
        normal(mean)


def scaled(mean: Any) -> None:
    with handlers.scale(scale=2.0):
        normal(mean)


def law(build: Any) -> Any:
    """A model whose records have a distribution of the mean."""
    return plated(lambda mean: numpyro.sample("y", build(mean)))


def parts(mean: Any) -> Any:
    return dist.MixtureGeneral(
        dist.Categorical(probs=jnp.ones(2) / 2), [dist.Uniform(0.0, 1.0), dist.Uniform(1.0, 2.0)]
    )


REFUSED = {
    "a censored record": (
        law(lambda mean: dist.RightCensoredDistribution(dist.Normal(mean, 1.0), jnp.array(True))),
        ["y"],
        ValueError,
        "a RightCensoredDistribution, whose density is conditional on who is censored",
    ),
    "parts with bounds": (law(parts), ["y"], ValueError, "a MixtureGeneral of parts with supports of their own"),
    "a law that cannot be drawn": (
        law(lambda mean: dist.TruncatedDistribution(dist.StudentT(4.0, mean, 1.0), low=0.0)),
        ["y"],
        ValueError,
        "a LeftTruncatedDistribution that cannot be drawn from",
    ),
    "fn is no function": ("model", ["y"], TypeError, "fn: given 'model'; expected a NumPyro model"),
    "records is empty": (plated(normal), [], ValueError, "records: given (); expected one or more different names"),
    "a name twice": (plated(normal), ["y", "y"], ValueError, "different names"),
    "a field without a site": (plated(normal), ["y", "z"], ValueError, "given ['z'], and fn has the sample sites"),
    "a site without a field": (plated(coupled), ["x"], ValueError, "without the site 'y' of the same plate"),
    "no plate": (no_plate, ["y"], ValueError, "the record site 'y' inside no plate"),
    "records outside the plate": (joint, ["y"], ValueError, "the record site 'y' inside no plate"),
    "two plates": (two_plates, ["x", "y"], ValueError, "record sites in different plates ['one', 'other']"),
    "a plate within the plate": (nested, ["y"], ValueError, "belong in .to_event()"),
    "another axis": (plated(normal, dim=-2), ["y"], ValueError, "the plate 'records' on axis -2"),
    "a batch beyond the plate": (plated(batch_beyond_plate), ["y"], ValueError, "a log-density of shape [2, 4] at"),
    "subsampling": (plated(normal, subsample_size=2), ["y"], ValueError, "subsampled; expected every record"),
    "scaling": (plated(scaled), ["y"], ValueError, "the site 'y' scaled"),
    "masking": (plated(masked), ["y"], ValueError, "the site 'y' masked"),
    "a factor": (
        plated(lambda mean: (normal(mean), numpyro.factor("push", mean))),
        ["y"],
        ValueError,
        "a model with a factor, 'push'",
    ),
    "an observed record": (
        plated(lambda mean: numpyro.sample("y", dist.Normal(mean, 1.0), obs=jnp.zeros(4))),
        ["y"],
        ValueError,
        "the site 'y' observed; expected no data",
    ),
    "an observed parameter": (
        before_plate(lambda: numpyro.sample("z", dist.Normal(0.0, 1.0), obs=0.3)),
        ["y"],
        ValueError,
        "the site 'z' observed",
    ),
    "a discrete parameter": (
        before_plate(lambda: numpyro.sample("k", dist.Poisson(2.0))),
        ["y"],
        ValueError,
        "the discrete parameter 'k'",
    ),
    "an optimised parameter": (
        before_plate(lambda: numpyro.param("mean", 0.0)),
        ["y"],
        ValueError,
        "an optimised parameter (numpyro.param)",
    ),
    "a random key": (
        before_plate(lambda: (numpyro.prng_key(), None)[1]),
        ["y"],
        ValueError,
        "a random key (numpyro.prng_key)",
    ),
    "control flow": (
        before_plate(lambda: scan(lambda c, x: (c, c), jnp.zeros(()), jnp.arange(2))[0]),
        ["y"],
        ValueError,
        "NumPyro's scan or cond",
    ),
    "records that depend on each other": (plated(coupled), ["x", "y"], ValueError, "records that depend on each other"),
}


def scanned(n: int = 4) -> None:
    def step(before: Any, _: Any) -> Any:
        with numpyro.plate("records", n):
            state = numpyro.sample("y", dist.Bernoulli(0.1 + 0.8 * before))
        return state, None

    scan(step, jnp.zeros(n, int), None, length=5)


def unrolled() -> None:
    state = 0
    for day in range(3):
        state = numpyro.sample(f"x{day}", dist.Bernoulli(0.1 + 0.8 * state))


def days_in_a_plate(mean: Any) -> None:
    x = numpyro.sample("x", dist.Bernoulli(0.3))
    numpyro.sample("y", dist.Bernoulli(0.1 + 0.8 * jnp.roll(x, 1)))


def long_unrolled(mean: Any) -> None:
    state = 0
    for day in range(12):
        state = numpyro.sample(f"x{day}", dist.Bernoulli(0.1 + 0.8 * state))


SERIES = {
    "scan": lambda: dpjax.from_numpyro(scanned, ["y"]),
    "sites in no plate": lambda: dpjax.from_numpyro(unrolled, ["x0", "x1", "x2"]),
    "one of them taken for a parameter": lambda: dpjax.from_numpyro(
        before_plate(lambda: numpyro.sample("x", dist.Bernoulli(0.5))), ["y"]
    ),
    "days as records": lambda: dpjax.from_numpyro(plated(days_in_a_plate), ["x", "y"]),
    "too many sites": lambda: dpjax.marginal_likelihood(
        dpjax.from_numpyro(plated(long_unrolled), [f"x{day}" for day in range(12)]),
        dpjax.LocalRelease({f"x{day}": ([1] * 4, dpjax.RandomizedResponse(0.8, 2)) for day in range(12)}),
    ),
}


@pytest.mark.parametrize("case", SERIES)
def test_what_is_said_of_a_series_leads_to_what_works(case: str) -> None:
    """Catches advice that ends at the next refusal, such as a plate around sites that depend on each other."""
    with pytest.raises(ValueError, match="MarkovChain"):
        SERIES[case]()


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_what_and_why(case: str) -> None:
    model, records, error, words = REFUSED[case]
    with pytest.raises(error) as raised:
        dpjax.from_numpyro(model, records=records)
    assert words in str(raised.value)
    assert ";" in str(raised.value)  # given; expected. remedy


SQUARE = transforms.PowerTransform(2.0)
SHIFT = transforms.AffineTransform(0.0, 1.0)
SHARED = {
    "an absolute value": lambda a: (dist.Normal(a, 1.0), transforms.AbsTransform()),
    "a square": lambda a: (dist.Normal(a, 1.0), SQUARE),
    "a square on an interval": lambda a: (dist.Uniform(-1.0, 2.0), SQUARE),
    "an absolute value on an interval": lambda a: (dist.Uniform(-1.0, 2.0), transforms.AbsTransform()),
    "a square on an interval that moves": lambda a: (dist.Uniform(a - 1.0, a + 2.0), SQUARE),
    "a square of a truncated law": lambda a: (dist.TruncatedNormal(a, 1.0, low=-2.0, high=3.0), SQUARE),
    "a square below a bound": lambda a: (dist.TruncatedNormal(a, 1.0, high=1.0), SQUARE),
    "a square of negative numbers, whose root is positive": lambda a: (dist.Uniform(-2.0, 0.0), SQUARE),
    "squares of a vector": lambda a: (dist.Normal(a, 1.0).expand([2]).to_event(1), SQUARE),
    "some squares of a vector": lambda a: (
        dist.Normal(a, 1.0).expand([2]).to_event(1),
        transforms.CatTransform([SQUARE, SHIFT], dim=-1, lengths=[1, 1]),
    ),
    "squares side by side": lambda a: (dist.Normal(a, 1.0).expand([2]), transforms.IndependentTransform(SQUARE, 1)),
    "a square in a chain": lambda a: (dist.Normal(a, 1.0), transforms.ComposeTransform([SHIFT, SQUARE])),
    "an absolute value in a chain": lambda a: (
        dist.Normal(a, 1.0),
        transforms.ComposeTransform([SHIFT, transforms.AbsTransform()]),
    ),
    "a square inside": lambda a: (
        dist.TransformedDistribution(dist.Normal(a, 1.0), SQUARE).expand([2]).to_event(1),
        SHIFT,
    ),
    "a square of a shifted positive number": lambda a: (
        dist.HalfNormal(1.0),
        [transforms.AffineTransform(-1.0, 1.0, domain=constraints.positive), SQUARE],
    ),
}
ONE_TO_ONE = {
    "a square on the unit interval": lambda a: (dist.Uniform(0.0, 1.0), SQUARE),
    "a square on an interval from 0": lambda a: (dist.Uniform(0, jnp.exp(a)), SQUARE),
    "a square above 0": lambda a: (dist.TruncatedNormal(a, 1.0, low=0.0), SQUARE),
    "squares of positive numbers": lambda a: (dist.HalfNormal(1.0).expand([2]).to_event(1), SQUARE),
    "an inverse": lambda a: (dist.Gamma(2.0, jnp.exp(a)), transforms.PowerTransform(-1.0)),
    "an exponential": lambda a: (dist.Normal(a, 1.0), [SHIFT, transforms.ExpTransform()]),
    "a square of an exponential": lambda a: (
        dist.Normal(a, 1.0),
        transforms.ComposeTransform([transforms.AffineTransform(a, -2.0), transforms.ExpTransform(), SQUARE]),
    ),
    "a square within bounds of parameters": lambda a: (dist.LogUniform(jnp.exp(a), 1.0 + jnp.exp(a)), SQUARE),
    "a square of a multiple": lambda a: (
        dist.Exponential(1.0),
        [transforms.AffineTransform(0.0, jnp.exp(a), domain=constraints.positive), SQUARE],
    ),
    "an interval moved to positive numbers": lambda a: (
        dist.Uniform(0.0, 1.0),
        [transforms.AffineTransform(1.0, 2.0, domain=constraints.unit_interval), SQUARE],
    ),
    "a logarithm": lambda a: (dist.Exponential(jnp.exp(a)), transforms.ExpTransform().inv),
    "squares in another order": lambda a: (
        dist.HalfNormal(1.0).expand([4]).to_event(1),
        [transforms.ReshapeTransform((2, 2), (4,)), SQUARE],
    ),
}


@pytest.mark.parametrize("case", SHARED)
def test_values_that_a_transform_shares_are_refused(case: str) -> None:
    words = "the site 'y', a TransformedDistribution whose transform several values share"
    with pytest.raises(ValueError, match=words):
        dpjax.from_numpyro(law(lambda a: dist.TransformedDistribution(*SHARED[case](a))), records=["y"])


def test_a_prior_whose_transform_shares_values_is_refused() -> None:
    prior = dist.TransformedDistribution(dist.Uniform(-1.0, 2.0), SQUARE)
    with pytest.raises(ValueError, match="the site 'a', a TransformedDistribution whose transform several values"):
        dpjax.from_numpyro(before_plate(lambda: numpyro.sample("a", prior)), records=["y"])


@pytest.mark.parametrize("general", [True, False])
def test_a_transform_that_shares_values_is_found_in_a_mixture(general: bool) -> None:
    def mixture(a: jax.Array) -> Any:
        weights, size = dist.Categorical(jnp.array([0.3, 0.7])), () if general else (2,)
        part = dist.TransformedDistribution(dist.Normal(a, jnp.ones(size)), SQUARE)
        return dist.MixtureGeneral(weights, [part, part]) if general else dist.MixtureSameFamily(weights, part)

    with pytest.raises(ValueError, match="the site 'y', a TransformedDistribution whose transform several values"):
        dpjax.from_numpyro(law(mixture), records=["y"])


@pytest.mark.parametrize("case", ONE_TO_ONE)
def test_transforms_that_are_one_to_one_are_accepted(case: str) -> None:
    def check(a: jax.Array) -> jax.Array:
        check_distribution("y", dist.TransformedDistribution(*ONE_TO_ONE[case](a)))
        return a

    jax.eval_shape(check, jnp.zeros(()))


def known(covariate: Any, slope: float = 1.0, y: Any = None) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", len(covariate)):
        numpyro.sample("y", dist.Normal(mean + slope * covariate, 1.0), obs=y)


ARGUMENTS = {
    "missing": ({}, TypeError, "fn's argument 'covariate': given nothing"),
    "misspelt": ({"covariate": jnp.arange(3.0), "slop": 2.0}, TypeError, "argument 'slop'"),
    "another size": ({"covariate": jnp.arange(3.0), "n": 4}, ValueError, "the plate 'records' has 3"),
    "no size": ({"covariate": jnp.arange(3.0), "n": 0}, ValueError, "n: given 0"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_of_the_model_are_checked(case: str) -> None:
    arguments, error, words = ARGUMENTS[case]
    with pytest.raises(error) as raised:
        dpjax.from_numpyro(known, records=["y"], **arguments)
    assert words in str(raised.value)


def test_records_with_laws_of_their_own_go_with_their_number_and_their_imputation() -> None:
    model = dpjax.from_numpyro(known, records=["y"], covariate=jnp.arange(3.0))
    statistic = dpjax.statistics.total("y", -3, 3)
    with pytest.raises(ValueError, match=r"release: given a release of n = 4 records; expected n = 3"):
        dpjax.gibbs(model, dpjax.Release([0.0], dpjax.Laplace(1.0), statistic, 4))
    release = dpjax.Release([0.0], dpjax.Laplace(1.0), statistic, 3)
    for imputation in (dpjax.soma(), dpjax.imwg(scan="random")):
        with pytest.raises(ValueError, match="records that are not identically distributed"):
            dpjax.gibbs(model, release, imputation=imputation)


def test_an_error_inside_the_model_says_where_it_was_met() -> None:
    def broken(n: int = 3) -> None:
        raise RuntimeError("from the model")

    with pytest.raises(RuntimeError, match="from the model") as raised:
        dpjax.from_numpyro(broken, records=["y"])
    assert "while dpjax inspected it" in " ".join(raised.value.__notes__)


@pytest.mark.parametrize("groups", [[0, 1, 0], pandas.Series([0, 1, 0])], ids=["a list", "a column"])
def test_arguments_that_are_no_arrays_are_named(groups: Any) -> None:
    """JAX says of either that it is no index, and prints the whole column."""

    def grouped(group: Any, y: Any = None) -> None:
        means = numpyro.sample("means", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        with numpyro.plate("people", len(group)):
            numpyro.sample("y", dist.Normal(means[group], 1.0), obs=y)

    with pytest.raises(
        TypeError, match=r"^argument 'group': given a (list|Series), with which fn raised .*numpy.asarray"
    ):
        dpjax.from_numpyro(grouped, records="y", group=groups)
    assert dpjax.from_numpyro(grouped, records="y", group=jnp.asarray(groups)).layout.size == 3


def by_length(y=None) -> None:
    with numpyro.plate("people", len(y)):
        numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y)


def by_shape(y) -> None:
    with numpyro.plate("people", y.shape[0]):
        numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y)


def by_mean(n, y=None) -> None:
    with numpyro.plate("people", n):
        numpyro.sample("y", dist.Normal(jnp.mean(y), 1.0), obs=y)


@pytest.mark.parametrize("program", [by_length, by_shape, by_mean])
def test_a_model_that_reads_its_data_is_refused_with_the_argument_to_add(program: Any, compilations: list[str]) -> None:
    """Most NumPyro models take the size of their plate from the data."""
    remedy = rf"Write def {program.__name__}\(n, y=None\) and numpyro.plate\(..., n\): dpjax passes the n"
    with pytest.raises(ValueError, match=f"fn: given a model with code that reads its data.*NoneType.*{remedy}"):
        dpjax.from_numpyro(program, records=["y"])
    assert compilations == []


def shrunk(n, y=None) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0 / n))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


@pytest.mark.x64
def test_a_prior_that_depends_on_the_number_of_records_is_that_of_one_number() -> None:
    def release(n: int) -> dpjax.Release:
        return dpjax.Release(jnp.asarray([2.0]), dpjax.Laplace(1.0), dpjax.statistics.total("y", -1, 1), n)

    model = dpjax.from_numpyro(shrunk, ("y",), n=7)
    assert model.num_records == 7
    dpjax.gibbs(model, release(7), imputation=dpjax.imwg())
    with pytest.raises(ValueError, match="n = 7"):
        dpjax.gibbs(model, release(100), imputation=dpjax.imwg())


def test_a_missing_event_dimension_is_named():
    """NumPyro's own words name neither the model nor a remedy."""

    def model(n=10):
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        with numpyro.plate("records", n):
            numpyro.sample("x", dist.Normal(mean, 1.0))

    with pytest.raises(ValueError, match=r"^fn: given a model whose shapes .* \.to_event\(1\)"):
        dpjax.from_numpyro(model, records=["x"])


def test_a_missing_number_of_records_is_asked_for():
    """The number that dpjax looks at a model with does not show in an error of shapes."""

    def model(n: int, x: Any, y: Any = None) -> None:
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(x, 1.0), obs=y)

    with pytest.raises(ValueError, match="n: given nothing"):
        dpjax.from_numpyro(model, records=["y"], x=jnp.arange(7.0))


@pytest.mark.x64
@pytest.mark.parametrize("law", [dist.Weibull(1.0, 0.005), dist.Kumaraswamy(0.005, 1.0), dist.Pareto(1.0, 0.005)])
def test_priors_of_small_shape_warn(law: Any):
    def model(n: int = 4) -> None:
        theta = numpyro.sample("theta", law)
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(jnp.tanh(theta), 1.0))

    with pytest.warns(UserWarning, match="beyond the range"):
        dpjax.from_numpyro(model, records=["y"])
