"""Identities between the functions of a model that hold at every draw: round trips, determinants and densities."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.special import gammaln, logsumexp
from jax.scipy.stats import norm

from dpjax._util.validation import fail
from dpjax.base import Array, ConjugateCounts, Key, Model, NonCentred, Parameters, Records
from dpjax.models.law_moves import LawState, record_numbers
from dpjax.models.programs import jit_model
from dpjax.models.unconstrained import to_vector
from dpjax.numerics import leading_size
from dpjax.numerics.counts import binomial_log_probability

__all__ = ["check_identities", "rounding"]

SHARE = 0.01
"""Share of the draws at which an identity may fail, as they are too far out for what floats hold."""

DIGITS = 1 / 3
"""Numbers agree if they do so to a third of the digits of floats."""

MOST_LISTED = 4_096
"""Largest number of possible records of which sums are computed."""

MOST_PARAMETERS = 100
"""Largest number of parameters of which the determinant of a Jacobian is computed."""


class Identity(NamedTuple):
    """What a message says where a member gives other numbers than it should.

    Attributes
    ----------
    what
        What it gives.
    expected
        What it should give.
    remedy
        What to do.
    constant
        Whether the numbers may differ by a constant.
    """

    what: str
    expected: str
    remedy: str
    constant: bool = False


POSITIVE = "a positive density, that is 1 for finite and 0 for not"
IDENTITIES = {
    "log_prior": Identity("whether the density is finite", POSITIVE, "Compare it with what sample_prior draws."),
    "log_density": Identity("whether the density is finite", POSITIVE, "Compare it with what sample_records draws."),
    "support": Identity(
        "the share of the drawn records that it lists, or the sum of their probabilities",
        "every possible record once, with probabilities that add up to 1",
        "Compare it with sample_records, and log_density with a normalised one.",
    ),
    "constrain": Identity("parameters", "those that unconstrain was given", "Make one the inverse of the other."),
    "log_jacobian": Identity(
        "numbers, less their median,",
        "log |det| of constrain, up to a constant",
        "Leave it out for a map that is elementwise.",
        True,
    ),
    "noncentred.records": Identity(
        "records", "those from which noncentred.noise was computed", "Make one the inverse of the other."
    ),
    "noncentred.scores": Identity("noise", "that of which the scores are", "Make noise the inverse of scores."),
    "noncentred.sums": Identity("sums", "those of noncentred.records", "Compare the two."),
    "log_likelihood": Identity("densities", "the sum of log_density over the records", "Compare it with log_density."),
    "normal_field": Identity("log-densities", "those of log_density", "Compare it with log_density."),
    "binomial_field": Identity("log-densities", "those of log_density", "Compare it with log_density."),
    "conjugate": Identity(
        "log p(parameters, records), less their median,",
        "log_prior plus the sum of log_density, up to a constant",
        "Compare places, shift, sign and log_density with the prior.",
        True,
    ),
}

Pair = tuple[Array, Array]
"""What a member gives, and what it should give."""


def rounding() -> float:
    """The relative error that numbers may have."""
    return float(jnp.finfo(jnp.result_type(float)).eps) ** DIGITS


def check_identities(key: Key, model: Model, states: LawState) -> None:
    """Raise unless all identities hold at states [draw, ...]."""
    found = compute.unoptimized(key, model, states)
    for member, identity in IDENTITIES.items():
        for given, wanted in found.get(member, []):
            check_identity(member, identity, *(np.asarray(leaf, float) for leaf in (given, wanted)))


def check_identity(member: str, identity: Identity, given: np.ndarray, wanted: np.ndarray) -> None:
    """Raise if the numbers [draw, ...] differ at more than a few draws."""
    if identity.constant:
        given = given - np.nanmedian(given - wanted)
    error, size = np.abs(given - wanted), np.where(np.isfinite(wanted), np.abs(wanted), 0.0)
    # What is not finite itself is not asked for.
    bad = ~(error <= rounding() * (size + np.mean(size, axis=0) + 1e-300)) & np.isfinite(wanted)
    draws = np.any(bad.reshape(len(bad), -1), axis=1)
    if np.mean(draws) > SHARE:
        place = tuple(np.argwhere(bad)[0])
        shown = f"{identity.what} {given[place]:.6g} for {wanted[place]:.6g}, at {np.mean(draws):.0%} of the draws"
        fail(f"Model.{member}", shown, identity.expected, identity.remedy)


@jit_model
def compute(key: Key, model: Model, states: LawState) -> dict[str, list[Pair]]:
    """Both sides [draw, ...] of the identities of a model, by member, at states [draw, ...]."""
    keys = jax.random.split(key, len(jax.tree.leaves(states.records)[0]))
    return jax.vmap(lambda key, state: compute_at(key, model, state))(keys, states)


def compute_at(key: Key, model: Model, state: LawState) -> dict[str, list[Pair]]:
    """Both sides of the identities at one state."""
    parameters, records = state
    prior, density = model.log_prior(parameters), model.log_density(parameters, records)
    found = {"log_prior": [finite(prior)], "log_density": [finite(density)]}
    found |= at_levels(model, state) | of_coordinates(model, state)
    if model.has("noncentred"):
        found |= of_noise(key, model.noncentred, state)
    if model.has("log_likelihood"):
        found["log_likelihood"] = [(model.log_likelihood(parameters, model.summarize(records)), jnp.sum(density))]
    if model.has("normal_field"):
        mean, scale = model.normal_field(parameters)
        (field,) = jax.tree.leaves(records)
        found["normal_field"] = [(norm.logpdf(field, mean, scale), density)]
    if model.has("binomial_field"):
        (field,) = jax.tree.leaves(records)
        of_counts_alone = binomial_log_probability(field, *model.binomial_field(parameters))
        found["binomial_field"] = [(of_counts_alone, density)]
    if model.has("conjugate") and is_short(support := model.domain()):
        by_counts = of_counts(model.conjugate(), places_of(support, records), parameters)
        found["conjugate"] = [(by_counts, prior + jnp.sum(density))]
    return found


def finite(densities: Array) -> Pair:
    """Whether densities are finite, as they should be."""
    return jnp.isfinite(densities).astype(float), jnp.ones(densities.shape)


def is_short(levels: Records) -> bool:
    """Whether few enough values are listed."""
    return leading_size(levels) <= MOST_LISTED


def places_of(levels: Records, records: Records) -> Array:
    """Which of the listed values [c] each record has [n, c]."""
    drawn = record_numbers({name: records[name] for name in levels})
    return jnp.all(drawn[:, None] == record_numbers(levels)[None], axis=-1)


def at_levels(model: Model, state: LawState) -> dict[str, list[Pair]]:
    """Every record that is drawn is listed once, and the probabilities of all records add up to 1."""
    domain = model.domain
    levels = domain()
    if not levels or not is_short(levels):
        return {}
    times = jnp.sum(places_of(levels, state.records), axis=1).astype(float)
    pairs = [(times, jnp.ones_like(times))]
    if domain.is_finite:
        total = total_probability(model, state, levels)
        pairs.append((total, jnp.ones_like(total)))
    return {"support": pairs}


def total_probability(model: Model, state: LawState, levels: Records) -> Array:
    """The sum of the probabilities of all possible values of each record [n]."""
    parameters, records = state

    def weigh(level: Records) -> Array:
        filled = {name: jnp.broadcast_to(leaf, records[name].shape) for name, leaf in level.items()}
        return model.log_density(parameters, records | filled)

    return jnp.exp(logsumexp(jax.vmap(weigh)(levels), axis=0))


def of_coordinates(model: Model, state: LawState) -> dict[str, list[Pair]]:
    """The round trip of parameters, and the determinant of its Jacobian where there is one."""
    if not model.has("constrain") or not state.parameters:
        return {}
    vector, unravel = to_vector(model, state.parameters)

    def natural(vector: Array) -> Array:
        return ravel_pytree(model.constrain(unravel(vector)))[0]

    wanted = ravel_pytree(state.parameters)[0]
    found = {"constrain": [(natural(vector), wanted)]}
    if model.has("log_jacobian") and vector.size == wanted.size <= MOST_PARAMETERS:
        determinant = jnp.linalg.slogdet(jax.jacfwd(natural)(vector))[1]
        found["log_jacobian"] = [(model.log_jacobian(unravel(vector)), determinant)]
    return found


def of_noise(key: Key, form: NonCentred, state: LawState) -> dict[str, list[Pair]]:
    """The round trips of records and noise, where that gives a record, and sums of records."""
    parameters, records = state
    noise = form.noise(key, parameters, records)
    again, wanted = record_numbers(form.records(parameters, noise)), record_numbers(records)
    possible = jnp.ones(len(wanted), bool) if form.possible is None else form.possible(parameters, noise)
    found = {"noncentred.records": [(jnp.where(possible[:, None], again, wanted), wanted)]}
    if form.scores is not None:
        back = ravel_pytree(form.scores.noise(form.scores.scores(noise)))[0]
        found["noncentred.scores"] = [(back.astype(float), ravel_pytree(noise)[0].astype(float))]
    if form.sums is not None:
        total, fits = form.sums(noise)(parameters, lambda records: record_numbers(records).T)
        found["noncentred.sums"] = [(jnp.where(fits, total, jnp.sum(again, axis=0)), jnp.sum(again, axis=0))]
    return found


def of_counts(conjugate: ConjugateCounts, taken: Array, parameters: Parameters) -> Array:
    """log p(parameters, records) [] up to a constant, by which possible record each is [n, c]."""
    places = jnp.asarray(conjugate.places)[jnp.argmax(taken, axis=1)]
    sums = jnp.zeros(conjugate.shift.shape, places.dtype).at[places].add(1)
    marginal = jnp.sum(conjugate.sign * gammaln(sums.astype(conjugate.shift.dtype) + conjugate.shift))
    return marginal + conjugate.log_density(parameters, sums)
