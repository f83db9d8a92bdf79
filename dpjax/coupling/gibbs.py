"""Coupled Gibbs samplers: two chains of parameters and records that meet and stay together."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Imputation, Key, Model, Parameters
from dpjax.coupling.kernel import CoupledKernel
from dpjax.coupling.pairs import RecordPair
from dpjax.coupling.parameters import ParameterCoupling, build_coupled_update, couple_offers
from dpjax.coupling.relabel import Relabelling, check_relabelling
from dpjax.coupling.sweeps import SweepInfo, sweep_records
from dpjax.coupling.tables import coupled_counts
from dpjax.exchangeable.placement import make_placement
from dpjax.exchangeable.targets import SummedTarget
from dpjax.models.fit import check_fit
from dpjax.plan import check_closed, choose_imputation
from dpjax.release import PrivateRelease
from dpjax.release.summed import as_sum
from dpjax.simulate import draw_position
from dpjax.states import Position
from dpjax.tables import Counts, count_form
from dpjax.validation import check_function, fail

__all__ = ["GibbsPair", "coupled_gibbs"]


class GibbsPair(NamedTuple):
    """Two chains: their parameters, whether these are the same [], and their records with flags [n].

    Attributes
    ----------
    first
        The first chain's parameters.
    second
        The second chain's.
    same_parameters
        Whether these are the same [].
    records
        Their records, with flags [n].

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


def coupled_gibbs(
    model: Model,
    release: PrivateRelease,
    imputation: Imputation | None = None,
    *,
    relabel: bool | Relabelling = True,
    parameters: ParameterCoupling | None = None,
    offers: int | None = None,
    sample_start: Callable[[Key], Position] | None = None,
) -> CoupledKernel:
    """Two Gibbs chains of p(parameters, records | release), coupled so that they meet.

    A step updates the parameters given the records and then makes a sweep of offers, in this order, as `dpjax.gibbs`
    does without interweaving. Offers from f(·|θ) and f(·|θ̃) are coupled maximally, places and acceptance as in
    Xiong and Ju (2025), Appendix A.6.

    Parameters
    ----------
    model
        As in `dpjax.sample`.
    release
        One value of the sum of exchangeable records.
    imputation
        ``imwg(...)``, the default, or ``soma(...)``; or ``counts(width)``, whose chains move by common random numbers
        and leave the options below aside.
    relabel
        Whether the second chain's records are put in another order that brings the chains together: after each
        attempt (``"within"``), or after each sweep (``"between"``); True takes what is valid, False is the papers'
        coupling by equal indices. See Notes.
    parameters
        ``"maximal"`` or ``"common"``; None takes the former where the model has ``update_log_density``.
    offers
        How many offers a step makes; n by default, and always of windows and of systematic scans.
    sample_start
        ``key -> Position``; by default parameters from the prior and records from the model.

    Notes
    -----
    Each chain alone is a Gibbs sampler, by equal indices of ordered records. With ``relabel="within"`` the first
    chain still is one, and the second is one up to the order of its records: its law is right for the parameters and
    for every function of the records that does not depend on their order, and nothing is claimed of the rest. So the
    meeting of relabelled pairs bounds the distance of the laws of these, and not, say, of the first record's. With
    ``relabel="between"`` a uniform permutation of the records ends every sweep; of the chain with that permutation
    both are exact copies. Interweaving is always off: its moves are not coupled.

    Raises
    ------
    TypeError, ValueError
        If the parts do not fit, the release is local, relabelling is asked where it would give the wrong law or of
        records with laws of their own, or parameters can never meet.
    """
    check_fit(model, release)
    release = as_sum(release, "Given the parameters its records are drawn at once; couple a Release.")
    if relabel is not False and not model.exchangeable:
        fail("relabel", relabel, "False for records with laws of their own", "Order means something here.")
    if sample_start is not None:
        check_function("sample_start", sample_start, "key -> Position")
    chosen = choose_imputation(model, release, imputation)
    if isinstance(chosen, Counts):
        check_closed(chosen, imputation)
        return coupled_counts(*count_form(model, release), chosen, sample_start)
    placement = make_placement(chosen, release.n, offers)
    relabelling = check_relabelling(relabel, placement)
    update = build_coupled_update(model, parameters)
    target = SummedTarget(release, release.n)

    def step(rng_key: Key, pair: GibbsPair) -> tuple[GibbsPair, SweepInfo]:
        parameter_key, offer_key, sweep_key = jax.random.split(rng_key, 3)
        first, second, same = update(parameter_key, pair.first, pair.second, pair.same_parameters, pair.records)
        made = couple_offers(offer_key, model, first, second, same, placement.offers)
        records, info = sweep_records(sweep_key, target, pair.records, made, placement, relabelling)
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
