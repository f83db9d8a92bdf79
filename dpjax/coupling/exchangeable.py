"""Coupled chains of any density of exchangeable records."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.jit import in_full_precision
from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_function
from dpjax.base import Key
from dpjax.coupling.pairs import CoupledKernel, RecordPair, checked
from dpjax.coupling.relabel import Relabelling, check_relabelling
from dpjax.coupling.sweeps import SweepInfo, sweep_records
from dpjax.exchangeable.samplers import Propose, check_functions
from dpjax.exchangeable.sweeps import make_placement
from dpjax.exchangeable.targets import Function, make_target

__all__ = ["coupled_exchangeable"]


@names_arguments
def coupled_exchangeable(
    log_density: Function,
    propose: Propose,
    log_proposal: Function,
    sample_start: Callable[[Key], Any],
    *,
    imputation: Any,
    statistic: Function | None = None,
    relabel: bool | Relabelling = True,
    proposals: int | None = None,
) -> CoupledKernel:
    """A kernel of two chains of `dpjax.exchangeable.soma` or `imwg`, coupled by common proposals so that they meet.

    Parameters
    ----------
    log_density
        As in `dpjax.exchangeable.soma`.
    propose
        As in `dpjax.exchangeable.soma`.
    log_proposal
        As in `dpjax.exchangeable.soma`.
    sample_start
        ``key -> records`` with leading axis [n].
    imputation
        ``dpjax.soma(...)`` or ``dpjax.imwg(...)``.
    statistic
        As in `dpjax.exchangeable.soma`.
    relabel
        As in `dpjax.coupling.coupled_gibbs`; with relabelling, chains meet up to the order of their records.
    proposals
        As in `dpjax.coupling.coupled_gibbs`.

    Raises
    ------
    TypeError, ValueError
        If an argument is not a function, or the relabelling does not fit the placement of proposals.

    Examples
    --------
    >>> import dpjax, jax
    >>> normal, density = jax.random.normal, jax.scipy.stats.norm.logpdf
    >>> kernel = dpjax.coupling.coupled_exchangeable(
    ...     lambda records: density(records.sum(), 3.0),
    ...     normal,
    ...     density,
    ...     sample_start=lambda key: normal(key, (4,)),
    ...     imputation=dpjax.soma(),
    ... )
    """
    check_functions(log_density, propose, log_proposal, statistic)
    check_function("sample_start", sample_start, "key -> records")
    start = jax.eval_shape(sample_start, jax.eval_shape(jax.random.key, 0))
    target = make_target(log_density, log_proposal, statistic, start)
    placement = make_placement(imputation, target.n, proposals)
    relabelling = check_relabelling(relabel, placement)

    @in_full_precision
    def step(rng_key: Key, pair: RecordPair) -> tuple[RecordPair, SweepInfo]:
        proposal_key, sweep_key = jax.random.split(rng_key)
        made = jax.vmap(propose)(jax.random.split(proposal_key, placement.proposals))
        common = RecordPair(made, made, jnp.ones(placement.proposals, bool))
        return sweep_records(sweep_key, target, pair, common, placement, relabelling)

    pairs = CoupledKernel(
        sample_start=sample_start,
        join=lambda first, second, met: RecordPair(first, second, jnp.broadcast_to(met, (target.n,))),
        step=step,
        met=lambda pair: jnp.all(pair.same),
        first=lambda pair: pair.first,
        second=lambda pair: pair.second,
    )
    return checked(pairs, RecordPair)
