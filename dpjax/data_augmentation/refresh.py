"""The refresh: new parameters and wholly new records are proposed together, and accepted by the release.

Moves of the records given the parameters, and of these given the records, enter some regions rarely: a scale near zero,
or a mode under a flat part of the likelihood. A refresh goes there in one step. With parameters θ' from a fixed density
q and records x' from the model given θ', the density of the records cancels, and the acceptance probability is

    min{1, η(s | x') p(θ') q(θ) / (η(s | x) p(θ) q(θ'))}.

There are two such moves, and which one is made is drawn first. Either q is the prior, and the ratio is that of η alone;
or q is a multivariate t distribution on the unconstrained scale, fitted to draws of the warm-up. A mixture of both as
one q would need p(θ) with its constant, which `Model.log_prior` does not promise; in each of them constants cancel.

Records are expensive to draw and cheap to move: where they are a function of parameters and noise, each refresh is
followed by a choice among several parameters from the t distribution and the present ones, with the noise held.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model, Parameters
from dpjax.data_augmentation.parameters.coordinates import SPREAD, Tuning, constrain, log_jacobian, to_vector
from dpjax.data_augmentation.parameters.interweaving import is_possible, likelihood_of_noise
from dpjax.models.simulation import GibbsState, Position, init_state, parameter_shapes
from dpjax.numerics import all_finite, decision_uniforms, select_index, take_if
from dpjax.numerics.linear_algebra import product, solve_lower
from dpjax.release import PrivateRelease

PERIOD = 16
"""Steps after which sweeps and refreshes fall due as before."""

FLOOR = 1
"""The fewest refreshes in a period: they keep remote modes in reach where they gain nothing else."""

TRIED = ((PERIOD, FLOOR), (4, PERIOD), (1, PERIOD))
"""Sweeps and refreshes in a period that the warm-up tries: from almost sweeps alone to almost refreshes alone."""

PRIOR_SHARE = 0.1
"""Share of the refreshes that propose from the prior, whatever the warm-up has seen."""

FREEDOM = 4
"""Degrees of freedom of the t distribution: the fewest with a variance that are a sum of exponential draws."""

SCALE = 0.75
"""The squared scale of the t distribution, in units of the covariance of the draws. On a private regression 0.5, 0.75
and 1.0 gave acceptance rates of 0.60, 0.63 and 0.60 at ε = 1, and 0.13, 0.13 and 0.12 at ε = 10."""


NUM_CANDIDATES = 8
"""Parameters to choose from for the noise as it is. On a private regression 0, 2, 4, 8 and 16 gave 47,000, 48,000,
57,000, 62,000 and 52,000 effective draws per CPU second for 100 records at ε = 3, and 1,400, 2,200, 2,600, 3,600 and
2,800 for 1,000 records at ε = 1."""

MANY_RECORDS = 2**14
"""Candidates are weighed one after another where they have more records together."""


class RefreshTuning(NamedTuple):
    """The t distribution that refreshes propose from, and how often sweeps and refreshes are made.

    Attributes
    ----------
    location
        Its centre [k], on the unconstrained scale.
    factor
        A lower-triangular factor [k, k] of its squared scale.
    prior_share
        The probability [] that a refresh proposes from the prior instead; 1 where nothing is fitted yet.
    sweeps
        How many sweeps are made in 16 steps, int32 [].
    refreshes
        How many refreshes are made in 16 steps, int32 [].
    kept
        The autocorrelations [3] that were left of a parameter by a step of 16 sweeps and a refresh in 16 steps, of 4
        and 16, and of 1 and 16; −1 where they were not measured.

    Examples
    --------
    >>> import dpjax
    >>> import jax
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
    kept: Array


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


def prior_alone(model: Model) -> RefreshTuning:
    """Refreshes by the prior, as rarely as they are ever made, beside a sweep in every step."""
    vector = jax.eval_shape(lambda parameters: to_vector(model, parameters)[0], parameter_shapes(model))
    location, factor = np.zeros(vector.shape, vector.dtype), np.eye(vector.size, dtype=vector.dtype)
    kept = np.full(len(TRIED), -1.0, vector.dtype)
    rates = np.int32(PERIOD), np.int32(FLOOR), kept
    return RefreshTuning(*map(jnp.asarray, (location, factor, np.ones((), vector.dtype), *rates)))


def fit_refresh(old: RefreshTuning, whitening: Tuning) -> RefreshTuning:
    """The refreshes as often as before, by the mean and covariance of the draws that a whitening was fitted to.

    Where these are not finite, they are by the prior alone. The leaves may have a leading axis [release, ...].
    """
    # On the host: each operation on the device would be compiled.
    location, factor = np.asarray(whitening.location), np.asarray(whitening.factor)
    fine = np.all(np.isfinite(location), axis=-1) & np.all(np.isfinite(factor), axis=(-2, -1))
    fitted = np.where(fine[..., None], location, np.asarray(old.location))
    scaled = np.where(fine[..., None, None], factor * (SCALE**0.5 / SPREAD), np.asarray(old.factor))
    arrays = fitted, scaled, np.where(fine, PRIOR_SHARE, 1.0)
    names = "location", "factor", "prior_share"
    return old._replace(
        **{name: jnp.asarray(array.astype(location.dtype)) for name, array in zip(names, arrays, strict=True)}
    )


def with_rates(tuning: RefreshTuning, sweeps: int, refreshes: int) -> RefreshTuning:
    """As many sweeps and refreshes in 16 steps, for all releases where there are several."""
    made = (jnp.asarray(np.full(np.shape(tuning.sweeps), number, np.int32)) for number in (sweeps, refreshes))
    return tuning._replace(**dict(zip(("sweeps", "refreshes"), made, strict=True)))


def num_due(rate: Array, number: Array) -> Array:
    """How many of `rate` in a period fall due at the step of this number, int32 []: floor((t + 1) r) − floor(t r)."""
    place = number % PERIOD
    return (place + 1) * rate // PERIOD - place * rate // PERIOD


def t_draw(normals: Array, exponentials: Array, tuning: RefreshTuning) -> Array:
    """The vector [k] from the t distribution, by standard Normal [k] and exponential [2] draws."""
    chi_square = 2 * jnp.sum(exponentials)
    return tuning.location + product(tuning.factor, normals) * jnp.sqrt(FREEDOM / chi_square)


def t_log_density(vector: Array, tuning: RefreshTuning) -> Array:
    """The log-density [] of the t distribution at a vector [k], up to a constant."""
    whitened = solve_lower(tuning.factor, (vector - tuning.location)[:, None])
    return -(FREEDOM + vector.size) / 2 * jnp.log1p(jnp.sum(whitened**2) / FREEDOM)


def log_weight(model: Model, parameters: Parameters, tuning: RefreshTuning) -> Array:
    """log p(θ) − log q(θ) [] on the unconstrained scale for the t distribution, up to a constant."""
    vector, unravel = to_vector(model, parameters)
    log_prior = model.log_prior(parameters) + log_jacobian(model, unravel(vector))
    return log_prior - t_log_density(vector, tuning)


def decide(
    model: Model,
    tuning: RefreshTuning,
    state: GibbsState,
    proposed: GibbsState,
    from_prior: Array,
    log_uniform: Array,
) -> tuple[GibbsState, RefreshInfo]:
    """One refresh as a function of its innovations: it leaves p(parameters, records | release) invariant.

    Parameters
    ----------
    proposed
        Parameters from the prior or the t distribution, and records from the model given them.
    from_prior
        Which of the two they are from [].
    """
    change = log_weight(model, proposed.parameters, tuning) - log_weight(model, state.parameters, tuning)
    log_ratio = proposed.latent.log_density - state.latent.log_density + jnp.where(from_prior, 0.0, change)
    fine = all_finite((proposed.parameters, proposed.latent.records)) & (log_ratio < jnp.inf)
    accepted = fine & (log_uniform < log_ratio)
    info = RefreshInfo(jnp.ones((), int), accepted.astype(int), (~fine).astype(int))
    return take_if(accepted, proposed, state), info


def build_proposal(model: Model, release: PrivateRelease) -> Callable[[Key, RefreshTuning], tuple[GibbsState, Array]]:
    """The proposal ``(rng_key, tuning) -> (state, from_prior)``, from the prior or the t distribution."""

    def propose(rng_key: Key, tuning: RefreshTuning) -> tuple[GibbsState, Array]:
        choice_key, prior_key, normal_key, exponential_key, record_key = jax.random.split(rng_key, 5)
        from_prior = jax.random.uniform(choice_key, dtype=tuning.prior_share.dtype) < tuning.prior_share
        drawn = model.sample_prior(prior_key)
        _, unravel = to_vector(model, drawn)
        normals = jax.random.normal(normal_key, tuning.location.shape, tuning.location.dtype)
        exponentials = jax.random.exponential(exponential_key, (2,), tuning.location.dtype)
        fitted = constrain(model, unravel(t_draw(normals, exponentials, tuning)))
        parameters = take_if(from_prior, drawn, fitted)
        records = model.sample_records(record_key, parameters, release.n)
        return init_state(release, Position(parameters, records)), from_prior

    return propose


def choose_parameters(
    model: Model,
    release: PrivateRelease,
    tuning: RefreshTuning,
    state: GibbsState,
    noise: Any,
    vectors: Array,
    uniform: Array,
) -> tuple[GibbsState, Array]:
    """One choice of parameters as a function of its innovations: it leaves p(parameters | noise, release) invariant.

    One of the present parameters and the candidates is drawn by weights p η / q (iterated sampling importance
    resampling; Andrieu, Lee and Vihola 2018, section 1).

    Parameters
    ----------
    noise
        That of the records, in the model's non-centred form.
    vectors
        Candidates [m, k] drawn from the t distribution, on the unconstrained scale.
    uniform
        A uniform draw [] from [0, 1).

    Returns
    -------
    state
        With the records that the chosen parameters give.
    num_nonfinite
        Whether anything was not finite, int []; what is so is never chosen.
    """
    assert model.noncentred is not None
    _, unravel = to_vector(model, state.parameters)
    log_likelihood = likelihood_of_noise(model, release, noise)

    def weigh(parameters: Parameters) -> Array:
        return log_likelihood(parameters) + log_weight(model, parameters, tuning)

    def weigh_vector(vector: Array) -> Array:
        return weigh(constrain(model, unravel(vector)))

    in_turn = len(vectors) * release.n > MANY_RECORDS
    log_weights = jax.lax.map(weigh_vector, vectors) if in_turn else jax.vmap(weigh_vector)(vectors)
    if model.noncentred.log_density is None:
        present = state.latent.log_density + log_weight(model, state.parameters, tuning)
    else:
        present = weigh(state.parameters)
    log_weights = jnp.concatenate([present[None], log_weights])
    fine = log_weights < jnp.inf
    index, _ = select_index(jnp.where(fine, log_weights, -jnp.inf), uniform)
    parameters = constrain(model, unravel(vectors[jnp.maximum(index, 1) - 1]))
    chosen = init_state(release, Position(parameters, model.noncentred.records(parameters, noise)))
    # Rounding can make present parameters impossible, where the noise of the mechanism is bounded, or chosen ones.
    possible = jnp.isfinite(log_weights[0]) & jnp.isfinite(chosen.latent.log_density)
    possible &= is_possible(model, parameters, chosen.latent.records)
    return take_if((index > 0) & possible, chosen, state), jnp.any(~fine).astype(int)


def build_choice(
    model: Model, release: PrivateRelease
) -> Callable[[Key, GibbsState, RefreshTuning], tuple[GibbsState, Array]]:
    """The step ``(rng_key, state, tuning) -> (state, num_nonfinite)`` that chooses parameters with the noise held.

    It leaves p(parameters, records | release) invariant.
    """
    assert model.noncentred is not None
    noise_of = model.noncentred.noise

    def choose(rng_key: Key, state: GibbsState, tuning: RefreshTuning) -> tuple[GibbsState, Array]:
        noise_key, normal_key, exponential_key, choice_key = jax.random.split(rng_key, 4)
        noise = noise_of(noise_key, state.parameters, state.latent.records)
        dtype = tuning.location.dtype
        normals = jax.random.normal(normal_key, (NUM_CANDIDATES, tuning.location.size), dtype)
        exponentials = jax.random.exponential(exponential_key, (NUM_CANDIDATES, 2), dtype)
        vectors = jax.vmap(t_draw, in_axes=(0, 0, None))(normals, exponentials, tuning)
        uniform = jax.random.uniform(choice_key, dtype=dtype)
        return choose_parameters(model, release, tuning, state, noise, vectors, uniform)

    return choose


def build_refresh(
    model: Model, release: PrivateRelease
) -> Callable[[Key, GibbsState, RefreshTuning], tuple[GibbsState, RefreshInfo]]:
    """One refresh ``(rng_key, state, tuning) -> (state, info)``, and the choice after it where there is one.

    It leaves p(parameters, records | release) invariant.
    """
    propose = build_proposal(model, release)
    choose = None if model.noncentred is None else build_choice(model, release)

    def refresh(rng_key: Key, state: GibbsState, tuning: RefreshTuning) -> tuple[GibbsState, RefreshInfo]:
        proposal_key, decision_key, choice_key = jax.random.split(rng_key, 3)
        proposed, from_prior = propose(proposal_key, tuning)
        log_uniform = jnp.log(decision_uniforms(decision_key))
        state, info = decide(model, tuning, state, proposed, from_prior, log_uniform)
        if choose is None:
            return state, info
        state, num_nonfinite = choose(choice_key, state, tuning)
        return state, info._replace(num_nonfinite=info.num_nonfinite + num_nonfinite)

    return refresh


def build_refreshes(model: Model, release: PrivateRelease) -> Refreshes:
    """The refreshes that are due at a step.

    They leave p(parameters, records | release) invariant. The number is the same for all chains, so that those that are
    not due are not made, also where chains are side by side.
    """
    refresh = build_refresh(model, release)

    def step(rng_key: Key, number: Array, state: GibbsState, tuning: RefreshTuning) -> tuple[GibbsState, RefreshInfo]:
        def body(index: Array, carry: tuple[GibbsState, RefreshInfo]) -> tuple[GibbsState, RefreshInfo]:
            state, total = carry
            state, info = refresh(jax.random.fold_in(rng_key, index), state, tuning)
            return state, jax.tree.map(jnp.add, total, info)

        none = RefreshInfo(*jnp.zeros((3,), int))
        return jax.lax.fori_loop(0, num_due(tuning.refreshes, number), body, (state, none))

    return step
