"""Every move of counts leaves the joint distribution of parameters, table and release as it is; mutations do not."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import dpjax
from dpjax import models, statistics
from dpjax.data_augmentation.counts import joint_moves, moves as core
from dpjax.numerics.counts import draw_binomial, draw_multinomial
from tests.data_augmentation.counts import cases, perfect
from tests.data_augmentation.counts.perfect import REJECT, corrected, lattice_p_value

N = 12
ALPHA = np.array([0.8, 2.0, 1.0, 1.5, 0.6, 3.0])
ROWS, COLUMNS = np.repeat([0, 1], 3), np.tile([0, 1, 2], 2)
GAUSSIAN, LAPLACE = 1.5, 1.0
TABLE = models.categorical(ALPHA)


def on_table(n: Any = N) -> dpjax.Release:
    return dpjax.Release(jnp.zeros(6), dpjax.DiscreteGaussian(GAUSSIAN), statistics.cells("cell", 6), n)


def on_rows(n: Any = N) -> dpjax.Release:
    return dpjax.Release(jnp.zeros(2), dpjax.DiscreteLaplace(LAPLACE), statistics.grouped("cell", ROWS), n)


def known(groups: np.ndarray, n: Any = N) -> dpjax.Release:
    """Known totals; those of the template, from which the cells that must be empty are read, are positive."""
    value = np.full(groups.max() + 1, N // (groups.max() + 1))
    return dpjax.Release(value, dpjax.Exact(), statistics.grouped("cell", groups), n)


def table_p_value(ends: perfect.Ends, noises: list, size: Any = None) -> float:
    """That counts, probabilities and noise follow their laws, and counts and noise are independent.

    Known totals have no noise: None in the place of a law. Numbers of records have a law where they differ.
    """
    sizes = {N: 1.0} if size is None else size

    def count_law(cell: int) -> Any:
        laws = [(chance, perfect.beta_binomial(n, ALPHA, cell)) for n, chance in sizes.items()]
        return lambda count: sum(chance * law(count) for chance, law in laws)

    p_values = [lattice_p_value(ends.counts[:, cell], count_law(cell), range(max(sizes) + 1)) for cell in range(6)]
    p_values += [noise_p_value(noise, law) for noise, law in zip(ends.noise.T, noises, strict=True)]
    shares = ends.parameters["probabilities"]
    p_values += [stats.kstest(shares[:, k], stats.beta(ALPHA[k], ALPHA.sum() - ALPHA[k]).cdf).pvalue for k in range(6)]
    if size is not None:
        number, law = ends.counts.sum(axis=1), np.vectorize(lambda n: size.get(n, 0.0))
        p_values += [lattice_p_value(number, law, range(max(sizes) + 1))]
    return min(corrected(p_values), perfect.independence_p_value(ends.counts, ends.noise))


def noise_p_value(noise: np.ndarray, law: Any) -> float:
    if law is None:
        return float(np.all(noise == 0))
    return lattice_p_value(np.rint(noise).astype(int), law, range(-8, 9))


ON_TABLE, ON_ROWS = [perfect.discrete_gaussian(GAUSSIAN)] * 6, [perfect.discrete_laplace(LAPLACE)] * 2
ON_COLUMNS_KNOWN, ON_ROWS_KNOWN = [None] * 3, [None] * 2


def given_rows() -> tuple:
    return dpjax.joint(on_table(), on_rows()), ON_TABLE + ON_ROWS


def columns_known() -> tuple:
    return dpjax.joint(on_table(), known(COLUMNS)), ON_TABLE + ON_COLUMNS_KNOWN


def margins_known() -> tuple:
    return dpjax.joint(on_table(), known(COLUMNS), known(ROWS)), ON_TABLE + ON_COLUMNS_KNOWN + ON_ROWS_KNOWN


BUILDS = {
    "table": lambda: (on_table(), ON_TABLE),
    "rows": given_rows,
    "columns": columns_known,
    "margins": margins_known,
}
COLLAPSED = {"imputation": dpjax.counts(width=4)}
HELD = {"imputation": dpjax.counts(width=4, collapse=False), "interweave": False}
TOGETHER = HELD | {"interweave": True}
CASES = {
    "pairs": ("table", COLLAPSED),
    "pairs given the parameters": ("table", HELD),
    "joint moves": ("rows", TOGETHER),
    "pairs, several releases": ("rows", COLLAPSED),
    "pairs within known totals": ("columns", COLLAPSED),
    "swaps": ("margins", COLLAPSED),
    "swaps given the parameters": ("margins", HELD),
}
SLOW = (
    "pairs given the parameters",
    "pairs, several releases",
    "pairs within known totals",
    "swaps given the parameters",
)


def p_value(name: str, num_chains: int = 4_000) -> float:
    build, choices = CASES[name]
    release, noises = BUILDS[build]()
    return table_p_value(perfect.run(jax.random.key(21), TABLE, release, num_chains=num_chains, **choices), noises)


@pytest.mark.keys
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CASES])
def test_the_joint_law_is_invariant(name: str) -> None:
    assert p_value(name) > REJECT


SIZES = dict.fromkeys(range(6, 16), 0.1)


def unknown_size_p_value(collapse: bool) -> float:
    n = dpjax.UnknownCount(models.UniformCount(min(SIZES), max(SIZES)))
    release = dpjax.joint(on_table(n), on_rows(n))
    imputation = dpjax.counts(width=4, collapse=collapse)
    return table_p_value(
        perfect.run(jax.random.key(22), TABLE, release, imputation=imputation), ON_TABLE + ON_ROWS, SIZES
    )


@pytest.mark.keys
@pytest.mark.parametrize("collapse", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_births_and_deaths_leave_the_joint_law_invariant(collapse: bool) -> None:
    assert unknown_size_p_value(collapse) > REJECT


@pytest.mark.slow
@pytest.mark.parametrize("interweave", [True, False])
def test_a_loglinear_table_stays_in_its_law(interweave: bool) -> None:
    """Parameters by a BlackJAX kernel, Normal a priori; counts are mixtures of Binomial laws on a grid of them."""
    n = cases.LOGLINEAR_N
    choices = {"imputation": dpjax.counts(width=4), "interweave": interweave}
    ends = perfect.run(jax.random.key(23), cases.loglinear(), on_table(n), **choices)
    axis = np.linspace(-6.0, 6.0, 61)
    points = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    weights = special.softmax(stats.norm.logpdf(points, 0.0, cases.LOGLINEAR_SCALE).sum(axis=1))
    shares = special.softmax(points @ cases.LOGLINEAR_DESIGN.T, axis=1)
    p_values = [
        lattice_p_value(ends.counts[:, k], lambda c, k=k: weights @ stats.binom.pmf(c, n, shares[:, [k]]), range(n + 1))
        for k in range(6)
    ]
    p_values += [noise_p_value(noise, law) for noise, law in zip(ends.noise.T, ON_TABLE, strict=True)]
    normal = stats.norm(0.0, cases.LOGLINEAR_SCALE)
    p_values += [stats.kstest(effect, normal.cdf).pvalue for effect in ends.parameters["effect"].T]
    assert min(corrected(p_values), perfect.independence_p_value(ends.counts, ends.noise)) > REJECT


def forget_factorials() -> Callable:
    """Ratios without the factorials of the counts."""
    log_ratios = core.log_ratios

    def forgetful(target: core.CountTarget, *rest: Any) -> jax.Array:
        factorials, *others = target.gammas
        return log_ratios(target._replace(gammas=(factorials._replace(sign=0 * factorials.sign), *others)), *rest)

    return forgetful


@pytest.mark.slow
def test_a_forgotten_factorial_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "log_ratios", forget_factorials())
    assert p_value("pairs") < REJECT


MANY_MOVES = 64
"""Of parameters and counts together in a sweep: the other steps of one with four hide how leavers are spread."""


def spread_by_the_new_law(key: jax.Array, counts: jax.Array, old: jax.Array, new: jax.Array) -> jax.Array:
    """Leavers are not spread by what it gains: the pair of tables is then not symmetric."""
    stay_key, spread_key = jax.random.split(key)
    stay = draw_binomial(stay_key, counts, jnp.exp(jnp.minimum(new - old, 0.0)))
    return stay + draw_multinomial(spread_key, jnp.sum(counts - stay), jnp.exp(new))


@pytest.mark.slow
def test_many_joint_moves_leave_the_joint_law_invariant(monkeypatch: pytest.MonkeyPatch) -> None:
    """And leavers that are spread by the new law are rejected."""
    monkeypatch.setattr(joint_moves, "NUM_MOVES", MANY_MOVES)
    assert p_value("joint moves") > REJECT
    monkeypatch.setattr(joint_moves, "move_records", spread_by_the_new_law)
    assert p_value("joint moves") < REJECT
