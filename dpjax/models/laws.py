"""Whether the functions of a model describe one distribution: what they draw is compared with what they say of it.

States drawn from the model move by moves that its densities leave invariant (`law_moves`). If samplers and densities
agree, a state and what it moves to can be exchanged, so that the change T of any function has a symmetric distribution.
Then Σ T_i of independent states is above z √(Σ T_i²) in size with a probability of at most 2 exp(−z²/2), for any number
of states (Hoeffding 1963). Identities without randomness are compared number by number (`law_identities`).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_key, fail
from dpjax.base import Key, Model
from dpjax.models.checks import check_model
from dpjax.models.law_features import Label, Scales, features, find_facts, find_scales, labels_of
from dpjax.models.law_identities import check_identities, rounding
from dpjax.models.law_moves import MOST_LEVELS, MOVES, LawFacts, LawState, MoveComparison, draw_all
from dpjax.models.programs import jit_model
from dpjax.models.simulation import draw_position, position_shapes

__all__ = ["check"]

LEVEL = 1e-6
"""Probability at most with which a comparison of a right model fails."""

NUM_RECORDS = 4
"""Number of records of a state, if the model has no number of its own."""

NUM_STATES, MOST_NUMBERS, BATCH = 2**13, 2**22, 256
"""Number of states; of numbers that they hold together, levels included; and of states that move at once."""

REFERENCE = 512
"""Number of further states that tell in which units changes are measured."""


@names_arguments
def check(key: Key, model: Model) -> dict[str, float]:
    """Raise unless the functions of a model describe one distribution, as far as draws from it tell.

    Compared are ``sample_prior`` and ``log_prior``, ``sample_records`` and ``log_density``, and what the model has of
    ``update``, ``update_log_density``, ``noncentred``, ``constrain`` and ``log_jacobian``, ``support``, ``summarize``
    and ``log_likelihood``, ``normal_field``, ``binomial_field``, and ``conjugate``. It takes seconds. Call it once for
    a model of your own.

    Parameters
    ----------
    key
        One typed key. A right model fails for one key in some hundred thousand.
    model
        The model.

    Returns
    -------
    dict
        A bound on the p-value of each comparison by draws. A comparison that is not there could not be made, such as
        that of ``log_prior`` for parameters that are whole numbers.

    Raises
    ------
    TypeError, ValueError
        If a function has a wrong shape, see `check_model`, or two functions do not agree. The message names the member
        and what was compared.

    Notes
    -----
    Small errors are not found, such as a scale that is wrong by a few parts in a hundred, nor are those of
    ``statistic_moments`` and ``mixed``.

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
    >>> found = dpjax.models.check(jax.random.key(1), model)
    >>> min(found.values()) > 1e-6
    True
    >>> wrong = model._replace(log_density=lambda parameters, records: model.log_density(parameters, records) / 2)
    >>> dpjax.models.check(jax.random.key(1), wrong)
    Traceback (most recent call last):
        ...
    ValueError: Model.log_likelihood: ...
    """
    check_key("key", key)
    check_model(model)
    reference_key, identity_key, move_key, sum_key = jax.random.split(key, 4)
    n = model.num_records or NUM_RECORDS
    shapes = position_shapes(model, n)
    numbers = max(sum(leaf.size for leaf in jax.tree.leaves(shapes.records)), 1)
    states = draw_states.unoptimized(reference_key, model, int(np.clip(MOST_NUMBERS // numbers, 16, REFERENCE)), n)
    check_identities(identity_key, model, states)
    scales = find_scales(np.random.default_rng(np.asarray(jax.random.key_data(sum_key))), model, states)
    facts = find_facts(model, states)
    domain = model.domain
    numbers *= min(domain.size, MOST_LEVELS) if domain.is_finite else 1
    count = int(np.clip(MOST_NUMBERS // numbers, BATCH, NUM_STATES))
    leaves = jax.tree.leaves(shapes.parameters)
    real = bool(leaves) and all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves)
    made = tuple(place for place, comparison in enumerate(MOVES) if comparison.applies(model, real))
    sums = SumLaw(*map(np.asarray, sum_changes.unoptimized(move_key, model, made, count, n, facts, scales)))
    labels = labels_of(model, LawState(*shapes))
    parts = [SumLaw(*(leaf[place] for leaf in sums)) for place in range(len(made))]
    return {
        MOVES[place].name: judge(MOVES[place], part, count, labels) for place, part in zip(made, parts, strict=True)
    }


class SumLaw(NamedTuple):
    """Sums over states of features [..., f] before and after a move, and of the squares of their changes."""

    before: Any
    after: Any
    size: Any


@partial(jit_model, static_argnames=("count", "n"))
def draw_states(key: Key, model: Model, count: int, n: int) -> LawState:
    """States [count, ...] with n records each."""
    return LawState(*jax.vmap(partial(draw_position, model=model, n=n))(jax.random.split(key, count)))


@partial(jit_model, static_argnames=("made", "count", "n"))
def sum_changes(
    key: Key, model: Model, made: tuple[int, ...], count: int, n: int, facts: LawFacts, scales: Scales
) -> SumLaw:
    """The sums [move, f] for a number of states that are moved by some of `MOVES`."""

    def one(key: Key) -> SumLaw:
        draw_key, own_key = jax.random.split(key)
        draws = draw_all(draw_key, model, n)
        pairs = [MOVES[place].move(jax.random.fold_in(own_key, place), model, facts, draws) for place in made]
        states = [jax.tree.map(lambda *leaves: jnp.stack(leaves), *each) for each in zip(*pairs, strict=True)]
        before, after = (jax.vmap(partial(features, model, scales))(each) for each in states)
        # What is rounded on the way there and back does not count as a change.
        after = jnp.where(jnp.abs(after - before) > rounding(), after, before)
        return SumLaw(before, after, jnp.square(after - before))

    def batch(keys: Key) -> SumLaw:
        return jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), jax.vmap(one)(keys))

    parts = jax.lax.map(batch, jax.random.split(key, (count // BATCH, BATCH)))
    return jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), parts)


def judge(comparison: MoveComparison, sums: SumLaw, count: int, labels: list[Label]) -> float:
    """A bound on the p-value of a comparison, or an error if it is too small."""
    errors = np.sqrt(sums.size)
    counted = np.array([label.of_parameters or comparison.with_records for label in labels]) & (errors > 0)
    deviations = np.abs(sums.after - sums.before) * counted / np.where(counted, errors, 1.0)
    worst = int(np.argmax(deviations))
    bound = float(min(1.0, 2 * max(np.sum(counted), 1) * np.exp(-(deviations[worst] ** 2) / 2)))
    if bound < LEVEL:
        before, after = sums.before[worst] / count, sums.after[worst] / count
        given = (
            f"a function that does not fit: a move by it changes the average of {labels[worst].name} from {before:.3g} "
            f"to {after:.3g}, by {deviations[worst]:.1f} standard errors (each number is squashed to (-1, 1))"
        )
        fail(f"Model.{comparison.member}", given, comparison.expected, comparison.remedy)
    return bound
