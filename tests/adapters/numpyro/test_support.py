"""NumPyro models whose records are finitely many list them all, and their probabilities sum to 1."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from numpyro.distributions import constraints
from scipy import stats

import dpjax
from dpjax.adapters.numpyro.support import domain_of_levels
from dpjax.base import Model
from dpjax.domain import LevelNumbers
from dpjax.numerics.cells import count_cells

LEVELS = (3, 4, 2)
DESIGN = np.random.default_rng(0).normal(size=(60, 5))


def log_linear(n: int) -> None:
    """The cells of a table of log-linear probabilities."""
    coef = numpyro.sample("coef", dist.Normal(0.0, 1.0).expand([5]).to_event(1))
    with numpyro.plate("records", n):
        numpyro.sample("cell", dist.Categorical(logits=jnp.asarray(DESIGN, float) @ coef))


def draw_covariates() -> tuple[jax.Array, list[jax.Array]]:
    """Three categorical fields, and the effects of their levels."""
    shares = [numpyro.sample(f"share{i}", dist.Dirichlet(jnp.ones(size))) for i, size in enumerate(LEVELS)]
    effects = [numpyro.sample(f"effect{i}", dist.Normal(0.0, 2.0).expand([size])) for i, size in enumerate(LEVELS)]
    return shares, effects


def logistic(n: int) -> None:
    """A binary field on categorical ones."""
    shares, effects = draw_covariates()
    with numpyro.plate("records", n):
        fields = [numpyro.sample(f"x{i}", dist.Categorical(share)) for i, share in enumerate(shares)]
        numpyro.sample("y", dist.Bernoulli(logits=sum(effect[x] for effect, x in zip(effects, fields, strict=True))))


def ordered(n: int) -> None:
    """Ordered categories on categorical fields."""
    shares, effects = draw_covariates()
    steps = numpyro.sample("steps", dist.Exponential(jnp.ones(3)).to_event(1))
    with numpyro.plate("records", n):
        fields = [numpyro.sample(f"x{i}", dist.Categorical(share)) for i, share in enumerate(shares)]
        place = sum(effect[x] for effect, x in zip(effects, fields, strict=True))
        numpyro.sample("y", dist.OrderedLogistic(place, jnp.cumsum(steps) - 1.0))


COVARIATES = ("x0", "x1", "x2")
PROGRAMS: dict[str, tuple[Callable, tuple[str, ...], int]] = {
    "log-linear": (log_linear, ("cell",), 60),
    "logistic": (logistic, (*COVARIATES, "y"), 3 * 4 * 2 * 2),
    "ordered": (ordered, (*COVARIATES, "y"), 3 * 4 * 2 * 4),
}


@pytest.mark.parametrize(
    "name", [name if name == "log-linear" else pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS]
)
def test_probabilities_of_all_possible_records_sum_to_one(name: str) -> None:
    program, fields, size = PROGRAMS[name]
    model = dpjax.from_numpyro(program, records=fields)

    @jax.jit
    def totals(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
        parameters = jax.vmap(model.sample_prior)(keys)
        density = jax.vmap(lambda parameters: model.log_density(parameters, model.support()))
        gradient = jax.grad(lambda parameters: jnp.sum(jnp.exp(density(parameters))))(parameters)
        return jnp.exp(density(parameters)), gradient

    probabilities, gradient = totals(jax.random.split(jax.random.key(1), 20))
    tolerance = 1e-10 if jax.config.jax_enable_x64 else 1e-5
    assert probabilities.shape == (20, size)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=tolerance)
    records = np.stack([np.asarray(model.support()[field]) for field in fields], axis=1)
    assert len(np.unique(records, axis=0)) == size
    free = [leaf for name, leaf in gradient.items() if not name.startswith("share")]
    assert max(np.abs(leaf).max() for leaf in free) < 100 * tolerance


def one_site(law: dist.Distribution) -> Model:
    def model(n: int) -> None:
        numpyro.sample("shift", dist.Normal())
        with numpyro.plate("records", n):
            numpyro.sample("y", law)

    return dpjax.from_numpyro(model, records=["y"])


@pytest.mark.x64
@pytest.mark.parametrize(
    ("law", "size"),
    [
        (dist.Binomial(99_999, 0.3), 100_000),
        (dist.Binomial(100_000, 0.3), None),
        (dist.DiscreteUniform(-5, 2**31 - 7), None),
    ],
)
def test_only_a_moderate_number_of_values_is_listed(law: dist.Distribution, size: int | None) -> None:
    model = one_site(law)
    assert (None if model.support is None else len(model.support()["y"])) == size


@pytest.mark.x64
@pytest.mark.parametrize(
    "law",
    [lambda scores: dist.Categorical(logits=scores), lambda scores: dist.Categorical(jax.nn.softmax(scores))],
    ids=["logits", "probabilities"],
)
def test_many_categories_take_no_more_memory_than_there_are(law: Callable) -> None:
    """NumPyro's own formula holds a square of numbers in a gradient."""
    size = 50_000

    def model(n: int) -> None:
        slope = numpyro.sample("slope", dist.Normal())
        with numpyro.plate("records", n):
            numpyro.sample("y", law(slope * jnp.linspace(-1.0, 1.0, size)))

    built = dpjax.from_numpyro(model, records=["y"])

    def log_likelihood(parameters: dict, counts: jax.Array) -> jax.Array:
        return counts @ built.log_density(parameters, built.support())

    program = jax.jit(jax.grad(log_likelihood)).lower({"slope": jnp.zeros(())}, jnp.ones(size)).compile()
    assert program.memory_analysis().temp_size_in_bytes < 100 * size


class Listed(dist.Distribution):
    """The first of some values with a probability, and one of the others else."""

    arg_constraints = {"first": constraints.unit_interval}  # noqa: RUF012
    support = constraints.real
    has_enumerate_support = True
    pytree_data_fields = ("first",)
    pytree_aux_fields = ("values",)

    def __init__(self, first: jax.Array, values: tuple[float, ...]) -> None:
        self.first, self.values = first, values
        super().__init__(jnp.shape(first))

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        shape = (*sample_shape, *self.batch_shape)
        places = jnp.where(jax.random.bernoulli(key, self.first, shape), 0, 1)
        return jnp.asarray(self.values)[places]

    def log_prob(self, value: jax.Array) -> jax.Array:
        others = jnp.log1p(-self.first) - jnp.log(len(self.values) - 1.0)
        return jnp.where(value == self.values[0], jnp.log(self.first), others)

    def enumerate_support(self, expand: bool = True) -> jax.Array:
        return jnp.asarray(self.values)


def signs(n: int) -> None:
    share = numpyro.sample("p", dist.Beta(1.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", Listed(share, (1, -1)))


@pytest.mark.parametrize(
    "values",
    [(0, 1, 2), (-1, 1), (1, -1), (7, 0, 1, -5), (2**24, 2**24 + 1, 2**24 + 4), (0.0, 0.5, 1.0), (0.1, 1.1, -0.3)],
    ids=str,
)
def test_records_are_counted_at_their_own_value(values: tuple[float, ...]) -> None:
    levels = {"x": np.array([1, 0]), "y": np.asarray(jnp.asarray(values))}
    places = np.random.default_rng(0).integers(0, [[2], [len(values)]], (2, 30))
    domain = domain_of_levels(
        {name: LevelNumbers(tuple(field.tolist()), field.dtype.str) for name, field in levels.items()}
    )
    counts = jax.jit(lambda records: count_cells(domain.cell(records), domain.size))(
        {name: jnp.asarray(levels[name][place]) for name, place in zip("xy", places, strict=True)}
    )
    expected = np.bincount(np.ravel_multi_index(places, (2, len(values))), minlength=domain.size)
    np.testing.assert_array_equal(counts, expected)


def test_the_posterior_of_signs_is_that_of_the_textbook() -> None:
    """The number of records of value 1 is uniform under a uniform prior, and the mean given it is Beta's."""
    model, ones = dpjax.from_numpyro(signs, records=["y"]), np.arange(11)
    noise = stats.laplace.pdf(8.0 - (2 * ones - 10))
    expected = np.sum(noise * (ones + 1) / 12) / np.sum(noise)
    grid = (jnp.arange(500) + 0.5) / 500
    records = jnp.where(jnp.arange(10) < ones[:, None], 1, -1)
    counts = jax.vmap(model.summarize)({"y": records})
    likelihood = jax.vmap(lambda p: jax.vmap(lambda count: model.log_likelihood({"p": p}, count))(counts))(grid)
    weights = np.exp(np.asarray(likelihood)) @ (noise * stats.binom(10, 0.5).pmf(ones))
    np.testing.assert_allclose([np.sum(weights * grid) / np.sum(weights), expected], 0.830, atol=1e-3)
