"""Coupled Gibbs samplers: two chains of parameters and records that meet and stay together."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.jit import in_full_precision
from dpjax._util.validation import check_function, fail
from dpjax.base import Array, Imputation, ImputationInfo, Key, Model, Parameters
from dpjax.coupling.pairs import RecordPair
from dpjax.coupling.parameters import ParameterCoupling, build_coupled_update, couple_proposals
from dpjax.coupling.refresh import build_coupled_refresh
from dpjax.coupling.relabel import Relabelling, check_relabelling
from dpjax.coupling.sweeps import SweepInfo, sweep_records
from dpjax.data_augmentation.counts import Counts
from dpjax.data_augmentation.counts.starts import propose
from dpjax.data_augmentation.counts.table import table_of
from dpjax.data_augmentation.plan import check_tuned
from dpjax.data_augmentation.problem import Problem, impute_by
from dpjax.data_augmentation.refresh import RefreshTuning
from dpjax.data_augmentation.sweep import build_kernel
from dpjax.exchangeable.sweeps import make_placement
from dpjax.exchangeable.targets import SummedTarget
from dpjax.models.checks import check_fit
from dpjax.models.simulation import GibbsState, Position, draw_position, init_state
from dpjax.numerics import tree_where
from dpjax.release import PrivateRelease
from dpjax.release.summed import as_sum

__all__ = ["CoupledKernel", "GibbsPair", "coupled_gibbs"]


class GibbsPair(NamedTuple):
    """Two chains of parameters and records.

    Attributes
    ----------
    first
        The first chain's parameters.
    second
        The second chain's parameters.
    same_parameters
        Whether the two are the same [].
    records
        The records of both chains, with flags [n].

    Examples
    --------
    >>> import dpjax
    >>> import jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> kernel = dpjax.coupling.coupled_gibbs(model, release)
    >>> start, same = jax.jit(kernel.sample_start)(jax.random.key(1)), True
    >>> pair = kernel.join(start, start, same)
    >>> isinstance(pair, GibbsPair), bool(kernel.met(pair))
    (True, True)
    """

    first: Parameters
    second: Parameters
    same_parameters: Array
    records: RecordPair


class CoupledKernel(NamedTuple):
    """A Markov kernel of pairs, under which each chain moves by the same kernel.

    Attributes
    ----------
    sample_start
        ``key -> position``, a draw of a chain's initial position.
    join
        ``(position, position, met) -> pair``; if met [], the second is a copy of the first.
    step
        ``(rng_key, pair) -> (pair, info)``. Pairs that have met stay equal.
    met
        ``pair -> [] bool``, whether the chains have met, by their flags.
    first
        ``pair -> position`` of the first chain.
    second
        ``pair -> position`` of the second chain.

    Examples
    --------
    >>> import dpjax
    >>> import jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> kernel = dpjax.coupling.coupled_gibbs(model, release)
    >>> start_key, step_key = jax.random.split(jax.random.key(1))
    >>> starts = [jax.jit(kernel.sample_start)(key) for key in jax.random.split(start_key)]
    >>> pair, _ = jax.jit(kernel.step)(step_key, kernel.join(*starts, False))
    >>> jax.numpy.shape(kernel.met(pair)), kernel.first(pair).records["y"].shape
    ((), (10,))
    """

    sample_start: Callable[[Key], Any]
    join: Callable[[Any, Any, Array], Any]
    step: Callable[[Key, Any], tuple[Any, Any]]
    met: Callable[[Any], Array]
    first: Callable[[Any], Any]
    second: Callable[[Any], Any]


def coupled_gibbs(
    model: Model,
    release: PrivateRelease,
    imputation: Imputation | str | None = None,
    *,
    relabel: bool | Relabelling = True,
    parameters: ParameterCoupling | None = None,
    proposals: int | None = None,
    refresh: RefreshTuning | None = None,
    sample_start: Callable[[Key], Position] | None = None,
) -> CoupledKernel:
    """A kernel of two Gibbs chains, each leaving p(parameters, records | release) invariant, coupled so that they meet.

    A step updates the parameters given the records and then makes a sweep of proposals, as `dpjax.gibbs` does without
    interweaving. Proposals from f(·|θ) and f(·|θ̃) are coupled maximally, places and acceptance as in
    Xiong and Ju (2025), Appendix A.6.

    Parameters
    ----------
    model
        As in `dpjax.sample`.
    release
        One value of the sum of exchangeable records.
    imputation
        ``imwg(...)``, the default, or ``soma(...)``; or ``counts(width)``, whose chains use common random numbers and
        ignore the options below.
    relabel
        Whether the second chain's records are reordered to bring the chains closer: after each proposal
        (``"within"``), or after each sweep (``"between"``). True chooses a valid one; False is the coupling by equal
        indices of the paper. See Notes.
    parameters
        ``"maximal"``, by ``Model.update_log_density``; ``"common"`` random numbers, for an exact update that does not
        read the parameters; or ``"random walk"``, ten Metropolis steps coupled by reflection, which any model has. None
        chooses the first that the model allows.
    proposals
        How many proposals a step makes; n by default, and always for windows and systematic scans.
    refresh
        The refreshes of a run of `dpjax.sample`, ``posterior.refresh``: then each step ends with one, of a proposal
        common to both chains, which meet if both accept it. None makes none.
    sample_start
        ``key -> Position``; by default parameters from the prior and records from the model.

    Notes
    -----
    With ``relabel=False`` each chain alone is a Gibbs sampler of ordered records. With ``relabel="within"`` the first
    chain still is, and the second is up to the order of its records. Its distribution is right for the parameters and
    for every function of the records that does not depend on their order. So meeting times of relabelled pairs bound
    distances of the distributions of these alone. With ``relabel="between"`` a uniform permutation of the records ends
    every sweep, and each chain alone is a Gibbs sampler with that permutation. Interweaving is always off: its moves
    are not coupled.

    Raises
    ------
    TypeError, ValueError
        If model, release and imputation do not fit, or the release is local. If the relabelling would give the second
        chain the wrong distribution or the records are not exchangeable. If the parameters can never meet as asked for.

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> kernel = coupled_gibbs(model, release)
    >>> jax.eval_shape(kernel.sample_start, jax.random.key(1)).records["y"].shape
    (10,)
    """
    check_fit(model, release)
    release = as_sum(release, "Given the parameters its records are drawn at once; couple a Release.")
    if relabel is not False and not model.exchangeable:
        fail("relabel", relabel, "False for records that are not exchangeable", "Pass relabel=False.")
    if sample_start is not None:
        check_function("sample_start", sample_start, "key -> Position")
    problem = impute_by(model, release, imputation)
    chosen = problem.plan.imputation
    if isinstance(chosen, Counts):
        check_tuned(chosen, imputation)
        if refresh is not None:
            fail("refresh", "refreshes of counts", "None where counts stand for the records", "Leave refresh out.")
        return coupled_counts(problem, sample_start)
    placement = make_placement(chosen, release.n, proposals)
    relabelling = check_relabelling(relabel, placement)
    update = build_coupled_update(model, release.n, parameters)
    target = SummedTarget(release, release.n)
    refreshed = None if refresh is None else build_coupled_refresh(model, release, refresh)

    @in_full_precision
    def step(rng_key: Key, pair: GibbsPair) -> tuple[GibbsPair, SweepInfo]:
        parameter_key, proposal_key, sweep_key, refresh_key = jax.random.split(rng_key, 4)
        first, second, same = update(parameter_key, pair.first, pair.second, pair.same_parameters, pair.records)
        made = couple_proposals(proposal_key, model, first, second, same, placement.proposals)
        records, info = sweep_records(sweep_key, target, pair.records, made, placement, relabelling)
        if refreshed is not None:
            first, second, same, records = refreshed(refresh_key, first, second, same, records)
        return GibbsPair(first, second, same, records), info

    def join(first: Position, second: Position, met: Array) -> GibbsPair:
        flags = jnp.broadcast_to(met, (release.n,))
        same = jnp.logical_or(met, not first.parameters)
        return GibbsPair(first.parameters, second.parameters, same, RecordPair(first.records, second.records, flags))

    return CoupledKernel(
        sample_start=sample_start or partial(draw_position, model=model, n=release.n),
        join=join,
        step=step,
        met=lambda pair: pair.same_parameters & jnp.all(pair.records.same),
        first=lambda pair: Position(pair.first, pair.records.first),
        second=lambda pair: Position(pair.second, pair.records.second),
    )


class CountPair(NamedTuple):
    """Two chains of parameters and tables, and whether they are the same []."""

    first: GibbsState
    second: GibbsState
    same: Array


def coupled_counts(problem: Problem, sample_start: Callable[[Key], Position] | None) -> CoupledKernel:
    """Two chains, each leaving p(parameters, counts | release) invariant, coupled by common random numbers.

    Windows lie at fixed places of the integers, so that two counts near each other have the same window and tend to
    become equal by one uniform. Counts are integers: they have met if they are equal. The parameters, which are
    integrated out and drawn given the counts, are then the same draw.

    Raises
    ------
    ValueError
        If the parameters cannot be integrated out, so that they would never meet; or totals are known and no start is
        given.
    """
    model, release = problem.model, as_sum(problem.release)
    if not problem.is_collapsed:
        remedy = "Take a conjugate model, such as dpjax.models.categorical, or impute records: dpjax.imwg()."
        expected = "counts whose parameters are integrated out, which can meet"
        fail("imputation", repr(problem.plan.imputation), expected, remedy)
    if sample_start is None and table_of(release).known:
        remedy = "Pass key -> Position, for instance moves of some table with these totals by dpjax.gibbs."
        fail("sample_start", None, "a start that has the known totals", remedy)
    kernel = build_kernel(model, release, problem.plan)

    @in_full_precision
    def step(rng_key: Key, pair: CountPair) -> tuple[CountPair, ImputationInfo]:
        first, info = kernel(rng_key, pair.first, None)
        # Both chains use the same key on purpose; `clone` keeps the key reuse checker from reporting it.
        second, _ = kernel(jax.random.clone(rng_key), pair.second, None)
        same = jax.tree.reduce(jnp.logical_and, jax.tree.map(is_same, first.latent.records, second.latent.records))
        return CountPair(first, tree_where(same, first, second), same), info.imputation

    def join(first: Position, second: Position, met: Array) -> CountPair:
        return CountPair(init_state(release, first), init_state(release, second), jnp.asarray(met))

    def position(state: GibbsState) -> Position:
        return Position(state.parameters, state.latent.records)

    def start(key: Key) -> Position:
        parameters, counts = propose(model, 1, key, release, None)
        return jax.tree.map(lambda leaf: leaf[0], Position(parameters, {"counts": counts[:, None]}))

    return CoupledKernel(
        sample_start=sample_start or start,
        join=join,
        step=step,
        met=lambda pair: pair.same,
        first=lambda pair: position(pair.first),
        second=lambda pair: position(pair.second),
    )


def is_same(one: Array, other: Array) -> Array:
    """Whether two integer arrays are equal []."""
    return jnp.all(one == other)
