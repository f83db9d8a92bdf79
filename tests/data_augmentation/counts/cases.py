"""Small tables in two tellings: as a model and a release of dpjax, and as the posterior that an oracle gives them.

A 2 × 3 table has its cells in C order. Every case is built when asked for.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from dpjax import models, statistics
from dpjax.models.data_sets import NUMBER, unpack
from tests.data_augmentation.counts import oracle
from tests.data_augmentation.counts.oracle import Seen

N = 30
EVEN, SKEWED = np.ones(6), np.array([0.6, 1.0, 2.0, 3.0, 1.5, 0.8])
ROWS, COLUMNS = np.repeat([0, 1], 3), np.tile([0, 1, 2], 2)
VALUE = np.array([9, -2, 6, 3, 12, 1])
NOISE = 2.0
ROW_VALUE, ROW_NOISE = np.array([15, 18]), 1.5
COLUMN_TOTALS = np.array([11, 12, 7])
ROW_TOTALS = np.array([14, 16])

Moments = tuple[np.ndarray, np.ndarray]


class Case(NamedTuple):
    """A posterior to be met: the mean and standard deviation of each of these names in the draws."""

    model: dpjax.Model
    release: dpjax.Release
    figures: dict[str, Moments]
    law: oracle.Tables
    seen: list[Seen]


def membership(groups: np.ndarray) -> np.ndarray:
    """The matrix [groups, c] that adds up the cells of each group; -1 is in none."""
    return (groups == np.arange(groups.max() + 1)[:, None]).astype(int)


def table_release(value: np.ndarray, n: Any = N, scale: float = NOISE) -> dpjax.Release:
    return dpjax.Release(value, dpjax.DiscreteGaussian(scale), statistics.cells("cell", len(value)), n)


def table_seen(value: np.ndarray, scale: float = NOISE) -> Seen:
    return Seen(np.eye(len(value), dtype=int), value, oracle.discrete_gaussian(scale))


def sums_release(value: np.ndarray, groups: np.ndarray, mechanism: Any, n: Any = N) -> dpjax.Release:
    return dpjax.Release(value, mechanism, statistics.grouped("cell", groups), n)


def sums_seen(value: np.ndarray, groups: np.ndarray, law: oracle.LogNoise = oracle.exact) -> Seen:
    return Seen(membership(groups), value, law)


def dirichlet_case(
    alpha: np.ndarray, release: dpjax.Release, seen: list[Seen], law: oracle.Tables | None = None
) -> Case:
    law = oracle.enumerate_tables(release.n, alpha, seen) if law is None else law
    figures = {"counts": law.counts(), "probabilities": law.shares(alpha)}
    if np.ptp(law.tables.sum(axis=1)) > 0:
        figures["num_records"] = law.num_records()
    return Case(models.categorical(concentration=alpha), release, figures, law, seen)


def table(alpha: np.ndarray) -> Case:
    """Noise on the table alone."""
    return dirichlet_case(alpha, table_release(VALUE), [table_seen(VALUE)])


def row_totals() -> Case:
    """And a second release, of row totals with noise of another kind."""
    rows = sums_release(ROW_VALUE, ROWS, dpjax.DiscreteLaplace(ROW_NOISE))
    seen = [table_seen(VALUE), sums_seen(ROW_VALUE, ROWS, oracle.discrete_laplace(ROW_NOISE))]
    return dirichlet_case(SKEWED, dpjax.joint(table_release(VALUE), rows), seen)


def known(alpha: np.ndarray, *totals: tuple[np.ndarray, np.ndarray]) -> Case:
    """Known totals (value, groups) beside noise on the table."""
    parts = [sums_release(value, groups, dpjax.Exact()) for value, groups in totals]
    seen = [table_seen(VALUE), *(sums_seen(value, groups) for value, groups in totals)]
    return dirichlet_case(alpha, dpjax.joint(table_release(VALUE), *parts), seen)


COLUMNS_KNOWN = (COLUMN_TOTALS, COLUMNS)
ROWS_KNOWN = (ROW_TOTALS, ROWS)
ZERO_KNOWN = (np.array([0]), np.array([-1, -1, -1, 0, -1, -1]))
"""Cell 3, to which the release gives 3 and the prior the most."""

SMALL_ALPHA = np.array([0.7, 2.0, 1.0, 1.5])
SMALL_VALUE, SMALL_NOISE = np.array([12, 3, -1, 14]), 2.5
TOTAL_VALUE, TOTAL_NOISE = np.array([33]), 3.0
FIRST_ROW_KNOWN = (np.array([14]), np.array([0, 0, -1, -1]))


def unknown_size(prior: Any, log_size: Callable, sizes: range, *totals: tuple[np.ndarray, np.ndarray]) -> Case:
    """A 2 × 2 table of unknown size with a noisy total."""
    n, whole = dpjax.UnknownCount(prior), np.zeros(4, int)
    parts = [sums_release(TOTAL_VALUE, whole, dpjax.DiscreteLaplace(TOTAL_NOISE), n)]
    parts += [sums_release(value, groups, dpjax.Exact(), n) for value, groups in totals]
    seen = [table_seen(SMALL_VALUE, SMALL_NOISE)]
    seen += [sums_seen(TOTAL_VALUE, whole, oracle.discrete_laplace(TOTAL_NOISE))]
    seen += [sums_seen(value, groups) for value, groups in totals]
    release = dpjax.joint(table_release(SMALL_VALUE, n, SMALL_NOISE), *parts)
    law = oracle.enumerate_sizes(log_size, sizes, SMALL_ALPHA, seen)
    return dirichlet_case(SMALL_ALPHA, release, seen, law)


def uniform_size(*totals: tuple[np.ndarray, np.ndarray]) -> Case:
    return unknown_size(models.UniformCount(20, 45), oracle.uniform_size(20, 45), range(20, 46), *totals)


def poisson_size() -> Case:
    return unknown_size(models.PoissonCount(40.0), oracle.poisson_size(40.0), range(66))


def negative_binomial_size() -> Case:
    size = oracle.negative_binomial_size(45.0, 6.0)
    return unknown_size(models.NegativeBinomialCount(45.0, 6.0), size, range(66))


BAYES_N = 12
CLASS_ALPHA = np.array([2.0, 1.0])
FEATURE_ALPHA = np.array([[[1.5, 0.7], [1.0, 2.0]], [[0.8, 0.8], [3.0, 1.0]]])
BAYES_VALUE = np.array([6, 0, 3, 5, 4, 2, 2, 4])


def naive_bayes() -> Case:
    """Two classes and two features of two levels, with noise on the counts [feature, level, class]."""
    support = np.array([(i, j, k) for i in range(2) for j in range(2) for k in range(2)])
    matrix = np.array(
        [(support[:, 0] == i) & (support[:, 1 + k] == j) for k in range(2) for j in range(2) for i in range(2)], int
    )
    seen = [Seen(matrix, BAYES_VALUE, oracle.discrete_gaussian(1.5))]
    bayes = oracle.enumerate_naive_bayes(BAYES_N, CLASS_ALPHA, FEATURE_ALPHA, seen)
    law = bayes.posterior
    features = [law.shares(FEATURE_ALPHA[k, i], bayes.features[:, k, i]) for k in range(2) for i in range(2)]
    figures = {
        "counts": law.counts(),
        "class_probabilities": law.shares(CLASS_ALPHA, bayes.classes),
        "feature_probabilities": tuple(np.concatenate(parts) for parts in zip(*features, strict=True)),
    }
    model = models.naive_bayes(CLASS_ALPHA, FEATURE_ALPHA)
    statistic = statistics.class_features(2, 2, 2)
    release = dpjax.Release(BAYES_VALUE, dpjax.DiscreteGaussian(1.5), statistic, BAYES_N)
    return Case(model, release, figures, law, seen)


LOGLINEAR_N, LOGLINEAR_VALUE = 8, np.array([4, -1, 2, 0, 3, 1])
LOGLINEAR_DESIGN = np.array([[i, j - 1.0] for i in range(2) for j in range(3)])
LOGLINEAR_SCALE = 1.0


def loglinear(n: int = LOGLINEAR_N) -> dpjax.Model:
    """A log-linear 2 × 3 table: the second row's effect, and a slope along the columns."""
    import numpyro
    from numpyro import distributions as dist

    def program() -> None:
        effect = numpyro.sample("effect", dist.Normal(0.0, LOGLINEAR_SCALE).expand([2]).to_event(1))
        with numpyro.plate("records", n):
            numpyro.sample("cell", dist.Categorical(logits=jnp.asarray(LOGLINEAR_DESIGN) @ effect))

    return dpjax.from_numpyro(program, records=("cell",))


def loglinear_case() -> Case:
    def log_cells(points: np.ndarray) -> np.ndarray:
        logits = points @ LOGLINEAR_DESIGN.T
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    axes = [np.linspace(-6.0, 6.0, 61)] * 2
    seen = [table_seen(LOGLINEAR_VALUE)]
    grid = oracle.grid_tables(LOGLINEAR_N, log_cells, axes, LOGLINEAR_SCALE, seen)
    figures = {"counts": grid.tables.counts(), "effect": (grid.mean, grid.sd)}
    return Case(loglinear(), table_release(LOGLINEAR_VALUE, LOGLINEAR_N), figures, grid.tables, seen)


GAP = 3
GAP_N, GAP_VALUE = 15, np.array([5, -1, 3, 4, 1, 6])


def with_gap() -> dpjax.Model:
    """A table with a cell that no record can be in, whatever the parameters, and no update of its own."""
    rest = models.categorical(np.delete(SKEWED, GAP))
    places = np.delete(np.arange(6), GAP)

    def log_density(parameters: dict, records: dict) -> jax.Array:
        shares = jnp.log(parameters["probabilities"])
        return jnp.concatenate([shares[:GAP], jnp.array([-jnp.inf]), shares[GAP:]])[records["cell"]]

    unused = ("update", "update_log_density", "noncentred", "summarize", "log_likelihood", "conjugate")
    return rest._replace(
        sample_records=lambda key, parameters, n: {
            "cell": jnp.asarray(places)[rest.sample_records(key, parameters, n)["cell"]]
        },
        log_density=log_density,
        support=lambda: {"cell": jnp.arange(6)},
        **dict.fromkeys(unused),
    )


def gap() -> Case:
    """What is left is a table of the other cells; tables with someone in that cell have probability 0."""
    rest = np.delete(np.arange(6), GAP)
    tables, seen = oracle.compositions(GAP_N, 6), [table_seen(GAP_VALUE)]
    log_prior = oracle.log_ways(tables) + oracle.log_dirichlet(tables[:, rest], SKEWED[rest])
    law = oracle.condition(tables, np.where(tables[:, GAP] > 0, -np.inf, log_prior), seen)
    mean, sd = law.shares(SKEWED[rest], law.tables[:, rest])
    return Case(
        with_gap(), table_release(GAP_VALUE, GAP_N), {"counts": law.counts(), "probabilities": (mean, sd)}, law, seen
    )


BUILDS: dict[str, Callable[[], Case]] = {
    "even": lambda: table(EVEN),
    "skewed": lambda: table(SKEWED),
    "row totals": row_totals,
    "known columns": lambda: known(SKEWED, COLUMNS_KNOWN),
    "known margins": lambda: known(SKEWED, COLUMNS_KNOWN, ROWS_KNOWN),
    "known zero": lambda: known(SKEWED, ZERO_KNOWN),
    "known zero and columns": lambda: known(SKEWED, ZERO_KNOWN, COLUMNS_KNOWN),
    "impossible cell": gap,
    "uniform size": uniform_size,
    "uniform size, known row": lambda: uniform_size(FIRST_ROW_KNOWN),
    "Poisson size": poisson_size,
    "negative binomial size": negative_binomial_size,
    "naive Bayes": naive_bayes,
    "log-linear": loglinear_case,
}

build = cache(lambda name: BUILDS[name]())


@cache
def tally(name: str) -> Callable:
    """What `dpjax.sample` collects of a case: the counts of the imputed table [c], whichever form it is kept in."""
    support = build(name).model.support()

    def counts(state: Any) -> jax.Array:
        records = state.latent.records
        if "counts" in records:
            return records["counts"][0]
        rows, real = one_data_set(records) if NUMBER in records else (records, True)
        same = [jax.vmap(lambda one, field=field: matches(one, rows[field]))(support[field]) for field in support]
        return jnp.sum(jnp.all(jnp.stack(same), axis=0), axis=1, where=real)

    return counts


def one_data_set(records: Any) -> tuple[Any, jax.Array]:
    """The rows of the only data set [capacity, ...], and which of them are real [1, capacity]."""
    rows, real = unpack(records)
    return jax.tree.map(lambda leaf: leaf[0], rows), real


def matches(one: jax.Array, field: jax.Array) -> jax.Array:
    """Which entries of a field [n, ...] are equal to one of its possible values [...]."""
    return jnp.all((field == one[None]).reshape(len(field), -1), axis=1)
