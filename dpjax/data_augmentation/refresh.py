"""The refresh: new parameters and wholly new records are proposed together, and accepted by the release.

Moves of the records given the parameters, and of these given the records, enter some regions rarely. Examples are a
scale near zero, or a mode under a flat part of the likelihood. A refresh goes there in one step. With parameters θ'
from a fixed density q and records x' from the model given θ', the density of the records cancels, and the acceptance
probability is

    min{1, η(s | x') p(θ') q(θ) / (η(s | x) p(θ) q(θ'))}.

There are two such moves, made in a fixed order. Either q is the prior, and the ratio is that of η alone; or q is a
multivariate t distribution on the unconstrained scale, fitted to draws of the warm-up. A mixture of both as one q would
need p(θ) with its constant, which `Model.log_prior` does not promise; in each of them constants cancel.

Records are expensive to draw and cheap to move. If they are a function of parameters and latent normals, there are
several candidates for the parameters with the same latent normals. One is drawn by weights w = η p g / q, with g the
density of the latent normals if it depends on the parameters. This is iterated sampling importance resampling (Andrieu,
Lee and Vihola 2018, section 1). New latent normals, drawn at the first of their candidates, are accepted by the total
weights Σ w / Σ g of old and new candidates. These estimate without bias the weight of the latent normals, whatever the
parameters (Andrieu and Roberts 2009).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model, Parameters
from dpjax.data_augmentation.parameters.coordinates import SPREAD, Tuning
from dpjax.data_augmentation.parameters.interweaving import is_possible, likelihood_of_noise
from dpjax.data_augmentation.records.parts import NUM_PARTS
from dpjax.models.record_noise import weigh_noise
from dpjax.models.simulation import GibbsState, Position, draw_position_at, init_state, parameter_shapes
from dpjax.models.unconstrained import to_vector
from dpjax.numerics import all_finite, decision_uniforms, select_index, tree_where
from dpjax.numerics.linear_algebra import product, solve_lower
from dpjax.numerics.selection import key_of_branches
from dpjax.release import PrivateRelease

PERIOD = 16
"""Steps after which sweeps and refreshes fall due as before."""

FLOOR = 1
"""The fewest refreshes in a period: they keep remote modes in reach if they gain nothing else."""


class Rates(NamedTuple):
    """How much is made in a period of 16 steps.

    Attributes
    ----------
    sweeps
        How many sweeps, int32 [].
    refreshes
        How many refreshes, int32 [].
    parts
        To how many of the 16 parts of the records a sweep makes proposals, int32 [].
    """

    sweeps: Any
    refreshes: Any
    parts: Any = NUM_PARTS


TRIED = (Rates(PERIOD, FLOOR), Rates(4, PERIOD), Rates(1, PERIOD))
"""What the warm-up tries: from almost sweeps alone to almost refreshes alone."""

TRIED_IN_PARTS = (Rates(PERIOD, FLOOR), Rates(PERIOD, FLOOR, 1), Rates(PERIOD, PERIOD, 1), Rates(1, PERIOD))
"""What it tries if sweeps can be made over parts of the records."""


PRIOR_SHARE = 0.1
"""Share of the refreshes that propose from the prior, whatever the warm-up has seen."""

FREEDOM = 4
"""Degrees of freedom of the t distribution: few, for heavy tails, and enough that it has a variance."""

SCALE = 0.75
"""The squared scale of the t distribution, in units of the covariance of the draws. On a private regression 0.5, 0.75
and 1.0 gave acceptance rates of 0.60, 0.63 and 0.60 at ε = 1, and 0.13, 0.13 and 0.12 at ε = 10."""


NUM_CANDIDATES = 8
"""Parameters to choose from for the noise as it is.

On a private regression 0, 2, 4, 8 and 16 gave 47,000, 48,000, 57,000, 62,000 and 52,000 effective draws per CPU second
for 100 records at ε = 3. For 1,000 records at ε = 1 they gave 1,400, 2,200, 2,600, 3,600 and 2,800.
"""

RECORDS_ALL_WEIGHED = 512
"""From so many records on new noise is weighed with all its candidates, for fewer with the first alone: beside the
records, candidates then cost more. On a private regression at ε = 1 all candidates gave 0.6, 1.4 and 1.4 times as many
effective draws per CPU second for 100, 1,000 and 10,000 records."""

MOST_TOGETHER = 2**14
"""Candidates are weighed one after another if they have more records together."""


class RefreshTuning(NamedTuple):
    """The t distribution that refreshes propose from, and how often sweeps and refreshes are made.

    Attributes
    ----------
    location
        Its centre [k], on the unconstrained scale.
    factor
        A lower-triangular factor [k, k] of its squared scale.
    prior_share
        The share [] of refreshes that propose from the prior instead; 1 if nothing is fitted yet.
    sweeps
        How many sweeps are made in 16 steps, int32 [].
    refreshes
        How many refreshes are made in 16 steps, int32 []; 0 if the warm-up tried many and accepted none.
    parts
        To how many of 16 parts of the records a sweep makes proposals, int32 []: fewer than all of them only for some
        thousand records and more, one part after another.
    kept
        The autocorrelations [tried] that were left of a parameter by a step at each of the rates that the warm-up
        tries; −1 if they were not measured.
    made
        How many refreshes all chains made while the warm-up tried these rates, int32 [].
    accepted
        How many of them were accepted, int32 [].

    Examples
    --------
    >>> from dpjax.data_augmentation.refresh import RefreshTuning
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> posterior = dpjax.sample(jax.random.key(1), model, release, num_warmup=100, num_samples=200, progress=False)
    >>> isinstance(posterior.refresh, RefreshTuning), posterior.refresh.location.shape
    (True, (1,))
    >>> print(int(posterior.refresh.sweeps), int(posterior.refresh.refreshes))
    16 1
    """

    location: Array
    factor: Array
    prior_share: Array
    sweeps: Array
    refreshes: Array
    parts: Array
    kept: Array
    made: Array
    accepted: Array


class RefreshInfo(NamedTuple):
    """What some refreshes report.

    Attributes
    ----------
    num_made
        How many were made [].
    num_accepted
        How many were accepted [].
    num_nonfinite
        How many were rejected because a density, parameter or record was not finite [].
    """

    num_made: Array
    num_accepted: Array
    num_nonfinite: Array


Refreshes = Callable[[Key, Array, GibbsState, RefreshTuning], tuple[GibbsState, RefreshInfo]]
"""``(rng_key, number, state, tuning) -> (state, info)``: the refreshes that are due at the step of a number."""


def prior_alone(model: Model, tried: tuple[Rates, ...] = TRIED) -> RefreshTuning:
    """Refreshes by the prior, as rarely as they are ever made, beside a sweep in every step.

    Parameters
    ----------
    tried
        The rates that the warm-up is to try.
    """
    vector = jax.eval_shape(lambda parameters: to_vector(model, parameters)[0], parameter_shapes(model))
    location, factor = np.zeros(vector.shape, vector.dtype), np.eye(vector.size, dtype=vector.dtype)
    kept = np.full(len(tried), -1.0, vector.dtype)
    numbers = location, factor, np.ones((), vector.dtype), *map(np.int32, TRIED[0]), kept, np.int32(0), np.int32(0)
    return RefreshTuning(*map(jnp.asarray, numbers))


def fit_refresh(old: RefreshTuning, whitening: Tuning) -> RefreshTuning:
    """The refreshes as often as before, by the mean and covariance of the draws that a whitening was fitted to.

    If these are not finite, they are by the prior alone. The leaves may have a leading axis [release, ...].
    """
    # On the host: each operation on the device would be compiled.
    location, factor = np.asarray(whitening.location), np.asarray(whitening.factor)
    finite = np.all(np.isfinite(location), axis=-1) & np.all(np.isfinite(factor), axis=(-2, -1))
    fitted = np.where(finite[..., None], location, np.asarray(old.location))
    scaled = np.where(finite[..., None, None], factor * (SCALE**0.5 / SPREAD), np.asarray(old.factor))
    arrays = fitted, scaled, np.where(finite, PRIOR_SHARE, 1.0)
    names = "location", "factor", "prior_share"
    return old._replace(
        **{name: jnp.asarray(array.astype(location.dtype)) for name, array in zip(names, arrays, strict=True)}
    )


def with_rates(tuning: RefreshTuning, rates: Rates) -> RefreshTuning:
    """The tuning with other rates, for all releases if there are several."""
    shape = np.shape(tuning.sweeps)
    return tuning._replace(
        **{name: jnp.asarray(np.full(shape, rate, np.int32)) for name, rate in rates._asdict().items()}
    )


def num_made(rate: Array, number: Array | np.int32) -> Array:
    """How many of `rate` in a period were due before the step of this number, int32 []: floor(t r)."""
    return number // PERIOD * rate + number % PERIOD * rate // PERIOD


def num_due(rate: Array, number: Array) -> Array:
    """How many of `rate` in a period fall due at the step of this number, int32 []: floor((t + 1) r) − floor(t r)."""
    return num_made(rate, number + 1) - num_made(rate, number)


def parts_due(tuning: RefreshTuning, number: Array | np.int32) -> tuple[Array, Array]:
    """The first part of the records in the sweep at the step of this number, and how many parts it has, int32 []."""
    return num_made(tuning.sweeps, number) * tuning.parts % NUM_PARTS, tuning.parts


def t_draw(normals: Array, tuning: RefreshTuning) -> Array:
    """The vector [k] from the t distribution, by standard Normal draws [k + FREEDOM]."""
    chi_square = jnp.sum(normals[-FREEDOM:] ** 2)
    return tuning.location + product(tuning.factor, normals[:-FREEDOM]) * jnp.sqrt(FREEDOM / chi_square)


def t_log_density(vector: Array, tuning: RefreshTuning) -> Array:
    """The log-density [] of the t distribution at a vector [k], up to a constant."""
    whitened = solve_lower(tuning.factor, (vector - tuning.location)[:, None])
    return -(FREEDOM + vector.size) / 2 * jnp.log1p(jnp.sum(whitened**2) / FREEDOM)


def is_by_prior(tuning: RefreshTuning, number: Array) -> Array:
    """Whether the refresh of a number is of the share by the prior, which come at even distances []."""
    place = (number % 1000).astype(tuning.prior_share.dtype)
    return jnp.floor((place + 1) * tuning.prior_share) > jnp.floor(place * tuning.prior_share)


def draw_vectors(key: Key, model: Model, tuning: RefreshTuning, from_prior: Array, num: int) -> Array:
    """Draws [num, k] from the prior or the t distribution, on the unconstrained scale."""
    dtype, own_key = tuning.location.dtype, key_of_branches(key)

    def by_prior() -> Array:
        keys = jax.random.split(own_key(), num)
        drawn = jax.vmap(model.sample_prior)(keys)
        return jax.vmap(lambda parameters: to_vector(model, parameters)[0])(drawn).astype(dtype)

    def by_fit() -> Array:
        normals = jax.random.normal(own_key(), (num, tuning.location.size + FREEDOM), dtype)
        return jax.vmap(t_draw, in_axes=(0, None))(normals, tuning)

    return jax.lax.cond(from_prior, by_prior, by_fit)


def log_weight(model: Model, parameters: Parameters, tuning: RefreshTuning, from_prior: Array) -> Array:
    """log p(θ) − log q(θ) [] on the unconstrained scale, up to a constant; 0 if q is the prior."""
    vector, unravel = to_vector(model, parameters)
    log_prior = model.log_prior(parameters) + model.log_jacobian(unravel(vector))
    return jnp.where(from_prior, 0.0, log_prior - t_log_density(vector, tuning))


class Candidates(NamedTuple):
    """Parameters to choose from for the same noise of the records.

    Attributes
    ----------
    state
        The first of them, with the records that they and the noise give.
    noise
        The noise in the model's non-centred form; None if there is no other candidate.
    vectors
        The others [m, k], on the unconstrained scale.
    log_weights
        log w [1 + m]; those that are not finite weigh nothing.
    log_noise
        log Σ g [], up to a constant.
    num_nonfinite
        How many weights were not finite, int [].
    """

    state: GibbsState
    noise: Any
    vectors: Array
    log_weights: Array
    log_noise: Array
    num_nonfinite: Array

    @property
    def log_total(self) -> Array:
        """The weight of the latent normals: log(Σ w / Σ g) []."""
        return jax.nn.logsumexp(self.log_weights) - self.log_noise


def alone(model: Model, tuning: RefreshTuning, from_prior: Array, state: GibbsState) -> Candidates:
    """A state without other candidates."""
    weight = state.latent.log_density + log_weight(model, state.parameters, tuning, from_prior)
    finite = (weight < jnp.inf) & all_finite((state.parameters, state.latent.records))
    log_weights = jnp.where(finite, weight, -jnp.inf)[None]
    vectors = jnp.zeros((0, tuning.location.size), tuning.location.dtype)
    return Candidates(state, None, vectors, log_weights, jnp.zeros_like(weight), (~finite).astype(int))


def weigh(
    model: Model,
    release: PrivateRelease,
    tuning: RefreshTuning,
    from_prior: Array,
    state: GibbsState,
    noise: Any,
    vectors: Array,
) -> Candidates:
    """A state and other candidates.

    Parameters
    ----------
    from_prior
        Whether q is the prior [], and else the t distribution.
    noise
        That of the state's records, in the model's non-centred form.
    vectors
        The others [m, k], drawn from q, on the unconstrained scale.
    """
    unravel = to_vector(model, state.parameters)[1]
    log_likelihood = likelihood_of_noise(model, release, noise)

    def log_noise(parameters: Parameters) -> Array:
        return weigh_noise(model.noncentred, parameters, noise)[0]

    def weigh_vector(vector: Array) -> tuple[Array, Array]:
        parameters = model.constrain(unravel(vector))
        weight = log_likelihood(parameters) + log_weight(model, parameters, tuning, from_prior)
        return weight, log_noise(parameters)

    first = alone(model, tuning, from_prior, state)
    own = log_noise(state.parameters)
    in_turn = len(vectors) * release.n > MOST_TOGETHER
    weights, densities = jax.lax.map(weigh_vector, vectors) if in_turn else jax.vmap(weigh_vector)(vectors)
    finite = weights < jnp.inf
    log_weights = jnp.concatenate([first.log_weights + own, jnp.where(finite, weights, -jnp.inf)])
    total = jax.nn.logsumexp(jnp.append(densities, own))
    return Candidates(state, noise, vectors, log_weights, total, first.num_nonfinite + jnp.sum(~finite))


def decide(present: Candidates, proposed: Candidates, log_uniform: Array) -> tuple[Candidates, RefreshInfo]:
    """The candidates that a refresh ends with, as a function of its innovations."""
    log_ratio = proposed.log_total - present.log_total
    accepted = (log_ratio < jnp.inf) & (log_uniform < log_ratio)
    info = RefreshInfo(jnp.ones((), int), accepted.astype(int), proposed.num_nonfinite)
    return tree_where(accepted, proposed, present), info


def choose_candidate(
    model: Model, release: PrivateRelease, candidates: Candidates, uniform: Array, otherwise: GibbsState
) -> GibbsState:
    """The state of the candidate that a uniform draw [] from [0, 1) chooses by the weights.

    It is `otherwise` if that state is impossible: by rounding, if the noise of the mechanism is bounded.
    """
    index, _ = select_index(candidates.log_weights, uniform)
    unravel = to_vector(model, candidates.state.parameters)[1]
    parameters = model.constrain(unravel(candidates.vectors[jnp.maximum(index, 1) - 1]))
    other = init_state(release, Position(parameters, model.noncentred.records(parameters, candidates.noise)))
    chosen = tree_where(index > 0, other, candidates.state)
    possible = (index == 0) | is_possible(model, parameters, other.latent.records)
    return tree_where(possible & jnp.isfinite(chosen.latent.log_density), chosen, otherwise)


def propose(key: Key, model: Model, release: PrivateRelease, vector: Array, like: GibbsState) -> GibbsState:
    """The parameters of a vector [k] on the unconstrained scale, of the form of a state, and new records given them."""
    parameters = model.constrain(to_vector(model, like.parameters)[1](vector))
    return init_state(release, draw_position_at(key, model, parameters, release.n))


Refresh = Callable[[Key, GibbsState, RefreshTuning, Array], tuple[GibbsState, RefreshInfo]]
"""``(rng_key, state, tuning, from_prior) -> (state, info)``."""


def build_refresh(model: Model, release: PrivateRelease) -> Refresh:
    """One refresh, and the choice after it if there is one; it leaves p(parameters, records | release) invariant."""
    has_choice = model.has("noncentred")
    all_weighed = has_choice and release.n >= RECORDS_ALL_WEIGHED
    num_others = NUM_CANDIDATES - 1 if has_choice else 0

    def surround(key: Key, tuning: RefreshTuning, from_prior: Array, state: GibbsState, others: Array) -> Candidates:
        noise = model.noncentred.noise(key, state.parameters, state.latent.records)
        return weigh(model, release, tuning, from_prior, state, noise, others)

    def refresh(
        rng_key: Key, state: GibbsState, tuning: RefreshTuning, from_prior: Array
    ) -> tuple[GibbsState, RefreshInfo]:
        vector_key, record_key, present_key, new_key, kept_key, decision_key = jax.random.split(rng_key, 6)
        # All vectors and both uniforms in one draw each: most of what a refresh of few records costs is its draws.
        num = 1 + (2 if all_weighed else 1) * num_others
        vectors = draw_vectors(vector_key, model, tuning, from_prior, num)
        others, more = vectors[1 : 1 + num_others], vectors[1 + num_others :]
        uniforms = decision_uniforms(decision_key, (2,), vectors.dtype)
        drawn = propose(record_key, model, release, vectors[0], state)
        if all_weighed:
            present = surround(present_key, tuning, from_prior, state, others)
            proposed = surround(new_key, tuning, from_prior, drawn, more)
        else:
            present, proposed = (alone(model, tuning, from_prior, one) for one in (state, drawn))
        kept, info = decide(present, proposed, jnp.log(uniforms[0]).astype(float))
        if not has_choice:
            return kept.state, info
        if not all_weighed:
            kept = surround(kept_key, tuning, from_prior, kept.state, others)
            info = info._replace(num_nonfinite=info.num_nonfinite + kept.num_nonfinite)
        return choose_candidate(model, release, kept, uniforms[1], state), info

    return refresh


def build_refreshes(model: Model, release: PrivateRelease) -> Refreshes:
    """The refreshes that are due at a step.

    They leave p(parameters, records | release) invariant. The number is the same for all chains, so that those that are
    not due are not made, also where chains are side by side.
    """
    # For chains side by side the body of a loop is traced several times, but a function that it calls only once.
    refresh = jax.jit(build_refresh(model, release))

    def step(rng_key: Key, number: Array, state: GibbsState, tuning: RefreshTuning) -> tuple[GibbsState, RefreshInfo]:
        made = num_made(tuning.refreshes, number)

        def body(index: Array, carry: tuple[GibbsState, RefreshInfo]) -> tuple[GibbsState, RefreshInfo]:
            state, total = carry
            from_prior = is_by_prior(tuning, made + index)
            state, info = refresh(jax.random.fold_in(rng_key, index), state, tuning, from_prior)
            return state, jax.tree.map(jnp.add, total, info)

        none = RefreshInfo(*jnp.zeros((3,), int))
        return jax.lax.fori_loop(0, num_due(tuning.refreshes, number), body, (state, none))

    return step
