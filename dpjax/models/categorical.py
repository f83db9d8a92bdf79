"""Categorical records, such as the cells of a contingency table, with a Dirichlet prior."""

from collections.abc import Callable, Sequence
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jax.typing import ArrayLike

from dpjax._util.validation import check_count, check_positive, fail
from dpjax.base import Array, ConjugateCounts, Key, Model, NonCentred, Parameters, Records
from dpjax.models.arguments import as_vector
from dpjax.models.bijections import SIMPLEX, scales
from dpjax.models.distributions import accept_distributions
from dpjax.models.priors import may_underflow
from dpjax.models.recipe import numbered
from dpjax.numerics.cells import all_edges, cell_edges, cells_at, count_cells, log_probability, uniforms_within
from dpjax.numerics.dirichlet import dirichlet_log_density, draw_dirichlet
from dpjax.numerics.scores import UNIFORM_SCORES

__all__ = ["categorical"]

FORMS = (("cell", "a uniform within its cell"),)


@accept_distributions
@numbered
def categorical(concentration: ArrayLike, shape: Sequence[int] | None = None) -> Model:
    """Records ``{"cell": [] int}`` with P(cell = j) = probabilities[j].

    Parameters
    ----------
    concentration : [c]
        The Dirichlet prior of ``probabilities`` [c].
    shape
        For a table of two or more variables, its numbers of levels, with cells in C order. The model then also reports
        ``odds_ratio`` and ``log_odds_ratio``: for levels i and i + 1 of the first variable and j and j + 1 of the
        second, at each level of all others. Their shape is ``[r - 1, s - 1, ...]``, or ``[...]`` if both variables have
        two levels: [] for a 2×2 table.

    Notes
    -----
    The update is an exact Dirichlet draw. The non-centred form has one uniform number for each record. It is left out
    if a concentration is so small that probabilities underflow: below 0.16 in float32, 0.02 in float64.

    Raises
    ------
    TypeError, ValueError
        If a concentration is not positive, there are fewer than two, or the shape does not hold c cells.
    """
    alpha = as_vector("concentration", concentration, "Pass one positive number for each cell.", least=2)
    check_positive("concentration", concentration)
    num_cells, underflows = alpha.size, may_underflow(alpha)

    def summarize(records: Records) -> Array:
        return count_cells(records["cell"], num_cells)

    def draw_given(key: Key, counts: Array) -> Parameters:
        return {"probabilities": draw_dirichlet(key, alpha + counts)}

    def log_density_given(parameters: Parameters, counts: Array) -> Array:
        return dirichlet_log_density(alpha + counts, parameters["probabilities"])

    def conjugate() -> ConjugateCounts:
        # Arrays on the host, which decide what is compiled and need no program of their own.
        cells = np.arange(num_cells, dtype=jnp.result_type(int))
        return ConjugateCounts(
            places=np.stack([cells, np.full_like(cells, num_cells)], axis=1),
            shift=jnp.append(alpha, jnp.sum(alpha)),
            sign=np.append(np.ones(num_cells), -1.0),
            update=lambda key, sums: draw_given(key, sums[:-1].astype(float)),
            log_density=lambda parameters, sums: log_density_given(parameters, sums[:-1].astype(float)),
        )

    none = jnp.zeros(num_cells)
    return Model(
        sample_prior=lambda key: draw_given(key, none),
        log_prior=lambda parameters: log_density_given(parameters, none),
        sample_records=lambda key, parameters, n: records_at(parameters, jax.random.uniform(key, (n,), float)),
        log_density=lambda parameters, records: log_probability(parameters["probabilities"], records["cell"]),
        update=lambda key, parameters, records: draw_given(key, summarize(records)),
        noncentred=None if underflows else NonCentred(noise_of, records_at, scores=UNIFORM_SCORES, forms=FORMS),
        **scales({"probabilities": SIMPLEX}),
        summarize=summarize,
        log_likelihood=lambda parameters, counts: jnp.sum(xlogy(counts, parameters["probabilities"])),
        support=lambda: {"cell": jnp.arange(num_cells)},
        derived=None if shape is None else odds_ratios(check_table(shape, num_cells)),
        update_log_density=lambda new, parameters, records: log_density_given(new, summarize(records)),
        conjugate=conjugate,
    )


def records_at(parameters: Parameters, noise: Array) -> Records:
    """The cells that contain these uniforms [n]."""
    return {"cell": cells_at(noise, cell_edges(parameters["probabilities"]))}


def noise_of(key: Key, parameters: Parameters, records: Records) -> Array:
    """Uniforms [n] drawn within the records' cells."""
    edges, cell = all_edges(cell_edges(parameters["probabilities"])), records["cell"]
    return uniforms_within(key, edges[cell], edges[cell + 1])


def check_table(shape: Sequence[int], num_cells: int) -> tuple[int, ...]:
    """The table's shape, or an error if its size is not the number of cells."""
    expected = f"two or more numbers of levels with product {num_cells}"
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence):
        fail("shape", repr(shape), expected, "Pass a tuple such as (2, 3).", error=TypeError)
    levels = tuple(check_count("shape", level, "A variable has at least two levels.", least=2) for level in shape)
    if len(levels) < 2 or prod(levels) != num_cells:
        fail("shape", levels, expected, "Pass one concentration for each cell of the table.")
    return levels


def odds_ratios(shape: tuple[int, ...]) -> Callable[[Parameters], Parameters]:
    """The local odds ratios of the first two variables of a table, given all others."""

    def derived(parameters: Parameters) -> Parameters:
        table = jnp.log(parameters["probabilities"]).reshape(shape)
        ratios = jnp.diff(jnp.diff(table, axis=0), axis=1)
        ratios = ratios[0, 0] if shape[:2] == (2, 2) else ratios
        return {"odds_ratio": jnp.exp(ratios), "log_odds_ratio": ratios}

    return derived
