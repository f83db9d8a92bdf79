"""SOMA and IMwG for any density of exchangeable records, with or without privacy; single and coupled.

The *proposal* q is any law that can be drawn from and has a density; offers from it replace records one at a time.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from dpjax import imputation
from dpjax.base import Array, ImputationInfo, Key, SamplingAlgorithm
from dpjax.coupling.attempts import Innovation
from dpjax.coupling.gibbs import CoupledKernel
from dpjax.coupling.scheme import Relabel, Scheme, make_scheme
from dpjax.coupling.sides import Choice, Offers, Pair, Side, begin, collect, take
from dpjax.coupling.sweeps import draw_innovations, sweep_records
from dpjax.coupling.target import Target
from dpjax.exchangeable.targets import Function, make_target
from dpjax.imputation.soma import choose
from dpjax.numerics import proper_density
from dpjax.validation import check_function

__all__ = ["ExchangeableState", "coupled", "imwg", "soma"]

Propose = Callable[[Key], Any]


class ExchangeableState(NamedTuple):
    """A chain's records, leading axis [n], and the log-weight log π(x) − Σ log q(x_j) []."""

    records: Any
    log_weight: Array


def soma(
    log_density: Function,
    propose: Propose,
    log_proposal: Function,
    *,
    statistic: Function | None = None,
    attempts: int | None = None,
) -> SamplingAlgorithm:
    """Single offer, multiple attempts for a permutation-invariant density: it leaves π invariant.

    Xiong and Ju (2025), Algorithm 1 with the proper weights of Corollary 6. A step makes n offers.

    Parameters
    ----------
    log_density
        log π up to a constant: ``records -> []`` of records with leading axis [n], which must not depend on their
        order; with a `statistic`, ``sum [d] -> []``.
    propose
        ``key -> record``, a draw y from q.
    log_proposal
        ``record -> []``, log q up to a constant; finite wherever π is positive.
    statistic
        ``record -> [d]``, where π depends on the summed statistic alone: an attempt then costs O(n) rather than n
        evaluations of the density.
    attempts
        How many records each offer is tried at; None for all.

    Returns
    -------
    SamplingAlgorithm
        ``init(records)`` and ``step(rng_key, state) -> (state, info)``.
    """
    return algorithm(log_density, propose, log_proposal, statistic, imputation.soma(attempts))


def imwg(
    log_density: Function,
    propose: Propose,
    log_proposal: Function,
    *,
    statistic: Function | None = None,
    scan: Literal["systematic", "random"] = "systematic",
) -> SamplingAlgorithm:
    """Independent Metropolis within Gibbs for a permutation-invariant density: it leaves π invariant.

    The parameters are those of `soma`; `scan` is the order in which records get their offers.
    """
    return algorithm(log_density, propose, log_proposal, statistic, imputation.imwg(scan))


def algorithm(
    log_density: Function, propose: Propose, log_proposal: Function, statistic: Function | None, choice: Any
) -> SamplingAlgorithm:
    """The sampler of an imputation choice, for the number of records that it is given."""
    check_functions(log_density, propose, log_proposal, statistic)

    def init(records: Any, rng_key: Key | None = None) -> ExchangeableState:
        del rng_key
        target = make_target(log_density, log_proposal, statistic, records)
        return ExchangeableState(records, begin(target, target.columns(records)).log_weight)

    def step(rng_key: Key, state: ExchangeableState) -> tuple[ExchangeableState, ImputationInfo]:
        target = make_target(log_density, log_proposal, statistic, state.records)
        scheme = make_scheme(choice, target.n, False, None)
        offer_key, sweep_key = jax.random.split(rng_key)
        offers = jax.vmap(propose)(jax.random.split(offer_key, scheme.offers))
        places, select, accept = draw_innovations(sweep_key, scheme)
        return sweep(target, state.records, offers, scheme, places, select, accept)

    return SamplingAlgorithm(init, step)


def check_functions(log_density: Any, propose: Any, log_proposal: Any, statistic: Any) -> None:
    """Raise unless each is a function, the statistic where there is one."""
    check_function("log_density", log_density, "records -> []")
    check_function("propose", propose, "key -> record")
    check_function("log_proposal", log_proposal, "record -> []")
    if statistic is not None:
        check_function("statistic", statistic, "record -> [d]")


def sweep(
    target: Target, records: Any, offers: Any, scheme: Scheme, places: Array | None, select: Array, accept: Array
) -> tuple[ExchangeableState, ImputationInfo]:
    """One sweep as a function of its innovations."""
    columns = target.columns(offers).T

    def attempt(side: Side, step: Any) -> Any:
        index, offer = step
        choice, broken = choose_place(target, side, offer, scheme)
        return take(side, choice, index, offer.first), (jnp.where(choice.accepted, choice.place, target.n), broken)

    same = jnp.ones(scheme.offers, bool)
    steps = (jnp.arange(scheme.offers), Innovation(columns, columns, same, places, select, accept))
    side, (taken, broken) = jax.lax.scan(attempt, begin(target, target.columns(records)), steps)
    counts = jnp.zeros(target.n + 1, int).at[taken].add(1)[:-1]  # a rejected offer counts at the spare last place
    info = ImputationInfo(jnp.sum(counts) / scheme.offers, counts, jnp.sum(broken))
    return ExchangeableState(collect(side, records, offers), side.log_weight), info


def choose_place(target: Target, side: Side, offer: Innovation, scheme: Scheme) -> tuple[Choice, Array]:
    """What one chain does with an offer, and whether it met a weight that is not a number []."""
    if scheme.kind != "soma":
        place = jnp.asarray(offer.places)
        raw = target.log_weight_with(side.summary, side.columns, place, offer.first)
        weight = proper_density(raw)
        accepted = jnp.log(offer.accept) < weight - side.log_weight
        return Choice(place, accepted, weight), ~(raw < jnp.inf)
    raw = target.log_weights_with(side.summary, side.columns, offer.places, offer.first)
    weights = proper_density(raw)
    index, accepted, _ = choose(weights, side.log_weight, offer.select, offer.accept)
    place = index if offer.places is None else offer.places[index]
    return Choice(place, accepted, weights[index]), ~jnp.all(raw < jnp.inf)


def coupled(
    log_density: Function,
    propose: Propose,
    log_proposal: Function,
    sample_start: Callable[[Key], Any],
    *,
    imputation: Any,
    statistic: Function | None = None,
    relabel: bool | Relabel = True,
    offers: int | None = None,
) -> CoupledKernel:
    """Two chains of `soma` or `imwg`, coupled so that they meet; offers are common to both.

    Parameters
    ----------
    log_density, propose, log_proposal, statistic
        As in `soma`.
    sample_start
        ``key -> records`` with leading axis [n].
    imputation
        ``dpjax.soma(...)`` or ``dpjax.imwg(...)``.
    relabel, offers
        As in `dpjax.coupling.coupled_gibbs`; with relabelling a meeting is one of the laws of functions that do not
        depend on the order of the records.

    Raises
    ------
    TypeError, ValueError
        If the choices do not fit each other; see `dpjax.coupling.scheme.make_scheme`.
    """
    check_functions(log_density, propose, log_proposal, statistic)
    check_function("sample_start", sample_start, "key -> records")
    start = jax.eval_shape(sample_start, jax.eval_shape(jax.random.key, 0))
    target = make_target(log_density, log_proposal, statistic, start)
    scheme = make_scheme(imputation, target.n, relabel, offers)

    def step(rng_key: Key, pair: Pair) -> tuple[Pair, Any]:
        offer_key, sweep_key = jax.random.split(rng_key)
        made = jax.vmap(propose)(jax.random.split(offer_key, scheme.offers))
        return sweep_records(sweep_key, target, pair, Offers(made, made, jnp.ones(scheme.offers, bool)), scheme)

    return CoupledKernel(
        sample_start=sample_start,
        join=lambda first, second, met: Pair(first, second, jnp.broadcast_to(met, (target.n,))),
        step=step,
        met=lambda pair: jnp.all(pair.same),
        first=lambda pair: pair.first,
        second=lambda pair: pair.second,
    )
