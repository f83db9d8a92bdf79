"""SOMA and IMwG for any density of exchangeable records, with or without privacy.

The *proposal distribution* q can be sampled and has a density; draws from it replace records one at a time.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax

from dpjax._util.jit import in_full_precision
from dpjax._util.spelling import names_arguments, steps_from
from dpjax._util.validation import check_function
from dpjax.base import Array, ImputationInfo, Key, SamplingAlgorithm
from dpjax.data_augmentation import records
from dpjax.data_augmentation.records.placed import start_sweep
from dpjax.exchangeable.sweeps import draw_innovations, make_placement, sweep
from dpjax.exchangeable.targets import Function, make_target

__all__ = ["ExchangeableState", "Propose", "check_functions", "imwg", "soma"]

Propose = Callable[[Key], Any]


class ExchangeableState(NamedTuple):
    """The records of a chain and their log-weight.

    Attributes
    ----------
    records
        A pytree with leading axis [n].
    log_weight
        log π(x) − Σ log q(x_j) [].

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from dpjax import exchangeable
    >>> algorithm = exchangeable.soma(
    ...     lambda records: -jnp.sum(records) ** 2,
    ...     propose=jax.random.normal,
    ...     log_proposal=lambda record: -0.5 * record**2,
    ... )
    >>> state = algorithm.init(jnp.array([1.0, -1.0]))
    >>> float(state.log_weight)
    1.0
    """

    records: Any
    log_weight: Array


@names_arguments
def soma(
    log_density: Function,
    propose: Propose,
    log_proposal: Function,
    *,
    statistic: Function | None = None,
    attempts: int | None = None,
) -> SamplingAlgorithm:
    """A kernel that leaves a permutation-invariant density π invariant: single offer, multiple attempts (SOMA).

    Xiong and Ju (2025), Algorithm 1 with the proper weights of Corollary 6. A step makes n proposals.

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
        ``record -> [d]``, if π depends on the summed statistic alone: a proposal then costs O(n) instead of n
        evaluations of the density.
    attempts
        How many records each proposal is tried at; None for all.

    Returns
    -------
    SamplingAlgorithm
        ``init(records)`` and ``step(rng_key, state) -> (state, info)``.

    Examples
    --------
    >>> import dpjax
    >>> import jax, jax.numpy as jnp
    >>> density = lambda x: -jnp.sum(x**2) / 2 - jnp.sum(x) ** 2
    >>> algorithm = dpjax.exchangeable.soma(density, lambda key: jax.random.normal(key), lambda x: -(x**2) / 2)
    >>> algorithm.init(jnp.zeros(3)).records.shape
    (3,)
    """
    return algorithm(log_density, propose, log_proposal, statistic, records.soma(attempts))


@names_arguments
def imwg(
    log_density: Function,
    propose: Propose,
    log_proposal: Function,
    *,
    statistic: Function | None = None,
    scan: Literal["systematic", "random"] = "systematic",
) -> SamplingAlgorithm:
    """A kernel that leaves a permutation-invariant density π invariant: independent Metropolis within Gibbs (IMwG).

    Parameters
    ----------
    log_density
        As in `soma`.
    propose
        As in `soma`.
    log_proposal
        As in `soma`.
    statistic
        As in `soma`.
    scan
        The order of the updates: ``"systematic"``, one proposal for each record in order, or ``"random"``, n proposals
        for records chosen at random.

    Examples
    --------
    >>> import dpjax, jax
    >>> normal, density = jax.random.normal, jax.scipy.stats.norm.logpdf
    >>> kernel = dpjax.exchangeable.imwg(lambda records: density(records.sum(), 3.0), normal, density)
    >>> state = kernel.init(jax.random.normal(jax.random.key(1), (4,)))
    >>> state, info = kernel.step(jax.random.key(2), state)
    >>> state.records.shape
    (4,)
    """
    return algorithm(log_density, propose, log_proposal, statistic, records.imwg(scan))


def algorithm(
    log_density: Function, propose: Propose, log_proposal: Function, statistic: Function | None, choice: Any
) -> SamplingAlgorithm:
    """The sampler for an imputation choice; the number of records is that of the state."""
    check_functions(log_density, propose, log_proposal, statistic)

    @names_arguments
    @in_full_precision
    def init(records: Any, rng_key: Key | None = None) -> ExchangeableState:
        del rng_key
        target = make_target(log_density, log_proposal, statistic, records)
        return ExchangeableState(records, start_sweep(target, target.columns(records)).log_weight)

    @steps_from("init", ExchangeableState)
    @in_full_precision
    def step(rng_key: Key, state: ExchangeableState) -> tuple[ExchangeableState, ImputationInfo]:
        target = make_target(log_density, log_proposal, statistic, state.records)
        placement = make_placement(choice, target.n)
        proposal_key, sweep_key = jax.random.split(rng_key)
        proposals = jax.vmap(propose)(jax.random.split(proposal_key, placement.proposals))
        innovations = draw_innovations(sweep_key, placement)
        records, end, info = sweep(target, state.records, proposals, placement, innovations)
        return ExchangeableState(records, end.log_weight), info

    return SamplingAlgorithm(init, step)


def check_functions(log_density: Any, propose: Any, log_proposal: Any, statistic: Any) -> None:
    """Raise unless each is a function; the statistic may be None."""
    check_function("log_density", log_density, "records -> []")
    check_function("propose", propose, "key -> record")
    check_function("log_proposal", log_proposal, "record -> []")
    if statistic is not None:
        check_function("statistic", statistic, "record -> [d]")
