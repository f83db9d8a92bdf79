"""Coupled Gibbs samplers: two chains of parameters and records that meet and stay together."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.jit import in_full_precision
from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_function, fail
from dpjax.base import Array, Imputation, Key, Model, Parameters
from dpjax.coupling.latent_data import coupled_latent_data
from dpjax.coupling.pairs import CoupledKernel, RecordPair, checked
from dpjax.coupling.parameters import ParameterCoupling, build_coupled_update, couple_proposals
from dpjax.coupling.refresh import build_coupled_refresh
from dpjax.coupling.relabel import Relabelling, check_relabelling
from dpjax.coupling.sweeps import SweepInfo, sweep_records
from dpjax.data_augmentation.plan import check_tuned
from dpjax.data_augmentation.problem import impute_by
from dpjax.data_augmentation.records.placed import SummedTarget
from dpjax.data_augmentation.refresh import RefreshTuning
from dpjax.exchangeable.sweeps import make_placement
from dpjax.models.checks import check_fit
from dpjax.models.simulation import Position, draw_position
from dpjax.release import PrivateRelease
from dpjax.release.summed import as_sum

__all__ = ["GibbsPair", "coupled_gibbs"]


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
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> kernel = dpjax.coupling.coupled_gibbs(model, release)
    >>> start, same = jax.jit(kernel.sample_start)(jax.random.key(1)), True
    >>> pair = kernel.join(start, start, same)
    >>> isinstance(pair, dpjax.coupling.GibbsPair), bool(kernel.met(pair))
    (True, True)
    """

    first: Parameters
    second: Parameters
    same_parameters: Array
    records: RecordPair


@names_arguments
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
    >>> kernel = dpjax.coupling.coupled_gibbs(model, release)
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
    chosen, own = problem.plan.imputation, problem.plan.own_latent_data
    if own is not None:
        check_tuned(own, imputation)
        if refresh is not None:
            given, what = f"refreshes of {own.latent_data}", f"None where {own.latent_data} stand for the records"
            fail("refresh", given, what, "Leave refresh out.")
        return coupled_latent_data(problem, own, sample_start)
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

    pairs = CoupledKernel(
        sample_start=sample_start or partial(draw_position, model=model, n=release.n),
        join=join,
        step=step,
        met=lambda pair: pair.same_parameters & jnp.all(pair.records.same),
        first=lambda pair: Position(pair.first, pair.records.first),
        second=lambda pair: Position(pair.second, pair.records.second),
    )
    return checked(pairs, GibbsPair)
