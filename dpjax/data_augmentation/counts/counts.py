"""Counts in place of records: the imputation whose latent data are how many records take each possible value.

Its cost does not grow with the number of records. The counts move given the parameters, or with them integrated out if
the model is conjugate. They move in pairs of cells, and by swaps of four cells if totals are known; see
`dpjax.data_augmentation.counts.moves`.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, fail, is_traced
from dpjax.base import Array, ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters
from dpjax.data_augmentation.counts.drawn_moves import (
    SWAP_ROUNDS,
    MoveGroups,
    SwapCells,
    find_corners,
    find_groups,
    move_in_windows,
    swap_drawn,
)
from dpjax.data_augmentation.counts.form import MAX_WIDTH, as_count_model, count_form
from dpjax.data_augmentation.counts.joint_moves import build_joint_step
from dpjax.data_augmentation.counts.listed_moves import check_gaps, list_moves
from dpjax.data_augmentation.counts.moves import (
    CountTarget,
    GammaFactor,
    Move,
    NoisySums,
    Proposals,
    move_all,
    spread,
    state_at,
)
from dpjax.data_augmentation.counts.starts import FEW_CELLS, find_starts, propose
from dpjax.data_augmentation.counts.sums import CellSums
from dpjax.data_augmentation.counts.table import COUNTS, Table, table_of
from dpjax.data_augmentation.kernel_checks import builds_kernel
from dpjax.data_augmentation.records.forms import SecondStep
from dpjax.mechanisms.base import as_mechanism, parts_of, scale_of, variance_of
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState, Position, init_latent, init_state, parameter_shapes
from dpjax.release import PrivateRelease, Release
from dpjax.release.summed import as_sum
from dpjax.release.unknown_count import CountPrior, UnknownCount

__all__ = ["Counts", "counts"]

START_WIDTH = 16
"""Width of windows before tuning."""

NOISY = 0.05
"""Smallest ratio of the noise variance to the variance of a cell's count from which joint moves save time."""

WIDTH_PER_SPREAD = 5.0
"""Width of windows in conditional standard deviations; wider ones cost more than they gain."""


@dataclass(frozen=True)
class Counts:
    """Imputation of counts; called with the count form of a model and a release, it builds the kernel.

    Parameters
    ----------
    width
        The number of values in a window besides the current one.
    collapse
        Whether the parameters are integrated out; None wherever the model is conjugate.
    """

    width: int | Literal["auto"]
    collapse: bool | None = None

    @builds_kernel
    def __call__(self, model: Model, release: PrivateRelease) -> ImputationKernel:
        """A kernel that leaves p(counts | parameters, release), or p(counts | release), invariant."""
        if self.width == "auto":
            remedy = "dpjax.sample tunes it; else pass a number."
            fail("width", repr(self.width), "a number once the kernel is built", remedy)
        return build_kernel(model, as_sum(release), self.is_collapsed(model, release), self.width)

    @property
    def latent_data(self) -> str:
        """Counts."""
        return "counts"

    def is_constrained(self, release: PrivateRelease) -> bool:
        """Whether a total is known."""
        return bool(table_of(release).known)

    def is_collapsed(self, model: Model, release: PrivateRelease) -> bool:
        """Whether the parameters are integrated out."""
        possible = count_form(model, release)[0].has("update")
        if self.collapse and not possible:
            fail("collapse", True, "a conjugate model", "Leave it out: the counts then move given the parameters.")
        return possible if self.collapse is None else self.collapse

    def form(self, model: Model, release: PrivateRelease) -> tuple[Model, PrivateRelease]:
        """The count form of a model and a release."""
        return count_form(model, release)

    def second_step(self, model: Model, release: PrivateRelease) -> SecondStep | None:
        """The joint moves of parameters and counts, if both are drawn, and no total is known.

        They are made by default if the noise is not small compared with the counts' sampling error.
        """
        if self.is_collapsed(model, release) or table_of(release).known or not parameter_shapes(model):
            return None
        given = as_sum(release)
        return SecondStep(partial(build_joint_step, model, given), partial(is_noisy, table_of(release), given))

    def given_parameters(self) -> "Counts":
        """With counts that move given the parameters."""
        return replace(self, collapse=False)

    @property
    def needs_tuning(self) -> bool:
        """Whether the width is left to the warm-up."""
        return self.width == "auto"

    def with_defaults(self, model: Model, release: PrivateRelease) -> "Counts":
        """With windows fitted to the spread that noise and, given parameters, equally likely cells leave the moves."""
        if not self.needs_tuning:
            return self
        formed = count_form(model, release)
        collapsed, noisy = self.is_collapsed(*formed), as_sum(formed[1])
        return replace(self, width=widest(expect_spreads(table_of(formed[1]), noisy, collapsed)))

    def tune(self, key: Key, model: Model, release: Release, latent: Latent, parameters: Parameters) -> "Counts":
        """With windows fitted to the conditional distributions of the moves at the chains' states.

        Those expected without a state stay if they are at most twice as wide: another program takes seconds to compile.
        """
        del key
        spreads = measure(model, release, self.is_collapsed(model, release), latent.records[COUNTS], parameters)
        fitted = widest(spreads)
        expected = widest(expect_spreads(table_of(release), as_sum(release), self.is_collapsed(model, release)))
        return replace(self, width=expected if fitted <= expected <= 2 * fitted else fitted)

    def state_shapes(self, model: Model, release: PrivateRelease) -> GibbsState:
        """The shapes of a state: those of the counts are known, and drawing them would be traced for seconds."""
        records = {COUNTS: jax.ShapeDtypeStruct((1, table_of(release).num_cells), jnp.result_type(int))}
        return jax.eval_shape(partial(init_state, release), Position(parameter_shapes(model), records))

    def draw_start(self, key: Key, model: Model, release: PrivateRelease) -> Position:
        """A table of whole numbers near the released sums."""
        parameters, counts = propose(model, 1, key, as_sum(release), None)
        return jax.tree.map(lambda leaf: leaf[0], Position(parameters, {COUNTS: counts[:, None]}))

    def find_starts(
        self, keys: tuple[Key, Key], model: Model, release: Release, num_chains: int, initial: Parameters | None
    ) -> GibbsState:
        """States [chain, ...] near the released sums, over-dispersed by their noise."""
        return find_starts(keys, model, release, num_chains, initial, self.is_collapsed(model, release))


@names_arguments
def counts(width: int | Literal["auto"] = "auto", collapse: bool | None = None) -> Counts:
    """Impute how many records take each possible value, in place of the records.

    For models whose records take finitely many values (`Model.support`) and releases of sums with noise on each of
    them. The posterior of the parameters is the same as with records; a sweep costs the same however many records there
    are. Imputed counts are ``state.latent.records["counts"]`` [1, c].

    Parameters
    ----------
    width
        How many values beside the present one a move chooses among; ``"auto"`` to let ``dpjax.sample`` choose by the
        moves' conditional spread.
    collapse
        Whether the counts move with the parameters integrated out, which are then drawn afterwards; None wherever the
        model is conjugate (`dpjax.models.categorical`, `dpjax.models.naive_bayes`) and moves its parameters by its own
        update.

    Raises
    ------
    TypeError, ValueError
        If the width is no whole number of at least 1. When a kernel is built: if the records are continuous, take too
        many values or are not identically distributed. If there are more released values than sums, or more than 256
        possible records under a mechanism that reads all sums together. If known totals (`dpjax.Exact`) are
        contradictory or of a kind that the moves are not known to connect, as may be tables with cells that the model
        makes impossible.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.counts(width=2).width
    2
    """
    if not (isinstance(width, str) and width == "auto"):
        check_count("width", width, "Pass a whole number such as 16, or 'auto'.")
    if not (collapse is None or isinstance(collapse, bool)):
        fail("collapse", repr(collapse), "True, False or None", "None takes what the model allows.", error=TypeError)
    return Counts(width, collapse)


def is_noisy(table: Table, release: Release) -> bool:
    """Whether the noise of the most exact part is not small against the sampling error of a cell of usual size."""
    scales = [scale_of(mechanism) for mechanism, _ in parts_of(release.mechanism, len(release.value))]
    if isinstance(table.n, UnknownCount) or any(scale is None or is_traced(scale) for scale in scales):
        return True
    variance = min(float(np.median(np.square(np.asarray(scale)))) for scale in scales)
    return variance >= NOISY * table.n / table.num_cells


def build_kernel(model: Model, release: Release, collapsed: bool, width: int) -> ImputationKernel:
    """The kernel of counts; with collapsed parameters it ignores those it is given."""
    table = table_of(release)
    periods = [part.sums.period for part, _ in parts_of(release.mechanism, len(release.value))]
    width = max([width, *[period for period in periods if isinstance(period, int) and period <= MAX_WIDTH]])
    moves = make_moves(table, collapsed, width)
    if not collapsed:
        check_gaps(table, moves)
    corners = make_corners(table)
    groups = make_groups(table, collapsed) if is_noisy(table, release) else None

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        target = make_target(model, release, collapsed, parameters)
        state = state_at(target, latent.records[COUNTS][0])
        changed, tried = jnp.zeros((), int), jnp.zeros((), int)
        meeting_key, *keys = jax.random.split(rng_key, 1 + len(moves) + len(corners))
        for move, key in zip(moves, keys[: len(moves)], strict=True):
            proposals = draw_proposals(key, move)
            state, more = move_all(target, move, state, proposals)
            changed += more
            tried += jnp.asarray(move.directions.num_moves, int)[proposals.order]
        for places, key in zip(corners, keys[len(moves) :], strict=True):
            state, more = swap_drawn(target, places, width, state, key)
            changed, tried = changed + more, tried + SWAP_ROUNDS
        if groups is not None:
            state, more, met = move_in_windows(target, groups, width, state, meeting_key)
            changed, tried = changed + more, tried + met
        latent = init_latent(release, {COUNTS: state.counts[None]})
        return latent, ImputationInfo(changed / jnp.maximum(tried, 1), changed[None], jnp.zeros((), int))

    return step


def make_target(model: Model, release: Release, collapsed: bool, parameters: Parameters) -> CountTarget:
    """The target of the counts, given the parameters or with these integrated out."""
    table = table_of(release)
    noisy = tuple(
        NoisySums(sums, release.value[where], mechanism)
        for (mechanism, where), sums in zip(parts_of(release.mechanism, len(release.value)), table.parts, strict=True)
        if not mechanism.sums.known
    )
    if table.prior is not None:
        prior = as_mechanism(PriorOfNumber(table.prior))
        noisy += (NoisySums(number_of(table), jnp.zeros(1, release.value.dtype), prior),)
    log_probability = None if collapsed else as_count_model(model).of_cells(parameters)
    return CountTarget(log_probability, make_gammas(model, table, collapsed), noisy)


@frozen_pytree
@dataclass(frozen=True)
class PriorOfNumber:
    """The prior of the number of records, in the place of the noise of a sum."""

    prior: CountPrior = field(metadata={"static": True})

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-probability of each number [...]."""
        del value
        return self.prior.log_probability(statistic.astype(int))


@lru_cache(maxsize=64)
def number_of(table: Table) -> CellSums:
    """The number of records as a sum over cells."""
    return CellSums(np.zeros((table.num_cells, 1), int), np.ones((table.num_cells, 1)), 1)


def make_gammas(model: Model, table: Table, collapsed: bool) -> tuple[GammaFactor, ...]:
    """The factorials of the counts, and what integrating the parameters out leaves."""
    own, *total = factorial_sums(table)
    factorials: tuple[GammaFactor, ...] = (GammaFactor(own, np.ones(own.size), -np.ones(own.size, int)),)
    factorials += tuple(GammaFactor(number, np.ones(1), np.ones(1, int)) for number in total)
    if not collapsed:
        return factorials
    assert table.conjugate is not None
    sums, sign = table.conjugate
    return *factorials, GammaFactor(sums, as_count_model(model).model.conjugate().shift, sign)


@lru_cache(maxsize=64)
def factorial_sums(table: Table) -> tuple[CellSums, ...]:
    """The sums with factorials of their own: each count, and their total if that is not known."""
    cells = np.arange(table.num_cells)
    own = CellSums(cells[:, None], np.ones((len(cells), 1)), len(cells))
    return (own,) if table.prior is None else (own, number_of(table))


def gamma_sums(table: Table, collapsed: bool) -> tuple[CellSums, ...]:
    """The sums of the factors of `make_gammas`."""
    if not collapsed:
        return factorial_sums(table)
    assert table.conjugate is not None
    return *factorial_sums(table), table.conjugate[0]


def make_moves(table: Table, collapsed: bool, width: int) -> tuple[Move, ...]:
    """The moves of a sweep with windows of this width."""
    gammas = gamma_sums(table, collapsed)
    noisy = table.noisy if table.prior is None else (*table.noisy, number_of(table))
    return list_moves(table, gammas, noisy, width)


@lru_cache(maxsize=64)
def make_corners(table: Table) -> tuple[SwapCells, ...]:
    """Where the rows and columns of each kind of swap meet."""
    found = (find_corners(swap) for swap in table.fibre.swaps)
    return tuple(corners for corners in found if corners is not None)


@lru_cache(maxsize=64)
def make_groups(table: Table, collapsed: bool) -> MoveGroups | None:
    """The groups within which occupied cells meet, if there are any."""
    sums = (*table.noisy, *gamma_sums(table, collapsed), *table.entangled)
    return find_groups(table.fibre.groups, table.noisy, sums)


def draw_proposals(key: Key, move: Move) -> Proposals:
    """The random numbers of one kind of move."""
    order_key, offset_key, uniform_key = jax.random.split(key, 3)
    orders, *shape = move.directions.real.shape
    return Proposals(
        jax.random.randint(order_key, (), 0, orders),
        jax.random.randint(offset_key, shape, 0, move.width + 1),
        jax.random.uniform(uniform_key, shape, float),
    )


def measure(model: Model, release: Release, collapsed: bool, counts: Array, parameters: Parameters) -> list[np.ndarray]:
    """The conditional standard deviations of the moves of each kind, at counts [chain, 1, c] and parameters."""
    few = len(counts) * table_of(release).num_cells <= FEW_CELLS
    by_chain = (spreads_at.unoptimized if few else spreads_at)(model, release, collapsed, counts, parameters)
    real = [move.directions.real[0] for move in make_moves(table_of(release), collapsed, MAX_WIDTH)]
    return [np.asarray(each)[:, inside].ravel() for each, inside in zip(by_chain, real, strict=True)]


@partial(jit_model, static_argnames=("collapsed",))
def spreads_at(model: Model, release: Release, collapsed: bool, counts: Array, parameters: Parameters) -> list[Array]:
    """The conditional standard deviations [chain, batch, move] of all moves."""
    moves = make_moves(table_of(release), collapsed, MAX_WIDTH)

    def at_state(counts: Array, parameters: Parameters) -> list[Array]:
        target = make_target(model, release, collapsed, parameters)
        return [spread(target, move, state_at(target, counts[0])) for move in moves]

    return jax.vmap(at_state)(counts, parameters)


def expect_spreads(table: Table, release: Release, collapsed: bool) -> list[np.ndarray]:
    """About what `measure` gives, without a state: by the variance of the noise and cells of equal size.

    Nothing is said of mechanisms whose variance is not known.
    """
    parts = [part for part in parts_of(release.mechanism, len(release.value)) if not part[0].sums.known]
    noisy = [(variance_of(mechanism), where.stop - where.start) for mechanism, where in parts]
    if any(variance is None or is_traced(variance) for variance, _ in noisy):
        return []
    variances = [np.broadcast_to(np.asarray(variance), size) for variance, size in noisy]
    sampling = 0.0 if collapsed or isinstance(table.n, UnknownCount) else table.num_cells / table.n
    return [expect_spread(move, variances, sampling) for move in make_moves(table, collapsed, MAX_WIDTH)]


def expect_spread(move: Move, variances: list[np.ndarray], sampling: float) -> np.ndarray:
    """The conditional standard deviations of moves under noise of these variances and one precision for each cell."""
    cells, real = move.directions.cells[0], move.directions.real[0]
    precision = np.full(real.shape, sampling * cells.shape[-1])
    for touched, variance in zip(move.noisy, variances, strict=False):
        precision += np.sum(touched.weight[0] ** 2 / variance[touched.index[0]], axis=-1)
    return np.sqrt(1 / precision[real & (precision > 0)])


def widest(spreads: list[np.ndarray]) -> int:
    """The width of windows for moves of all kinds."""
    return max(map(fit_width, spreads), default=START_WIDTH)


def fit_width(spreads: np.ndarray) -> int:
    """The power of two that suits the widest quarter of the moves, of those that have a spread at all."""
    spreads = spreads[np.isfinite(spreads)]
    wanted = WIDTH_PER_SPREAD * float(np.quantile(spreads, 0.75, method="nearest")) if spreads.size else 1.0
    return int(np.clip(2 ** np.ceil(np.log2(max(wanted, 1.0))), 4, MAX_WIDTH))
