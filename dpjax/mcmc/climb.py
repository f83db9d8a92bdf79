"""The starts of parameters that move alone: modes climbed to from the prior, whitened by the curvature there.

The climbs are made in coordinates in which group effects are standardised, as on their own scale there is no mode. The
curvature then says how much of each effect the data know, and by that on which scale it moves.

Chains climb separately, each from the best of some draws from the prior, so that different chains find different modes.
From prior draws themselves the first trajectories would be hundreds of gradients long. If sums are large and can be
tabulated, the climbs are made on a rough table. Climbs that have not ended are ended by Newton's steps. Windows that
reach as far as draws about a place halfway would be a hundred times too long.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from dpjax._util.validation import fail
from dpjax.base import Array, Key, Model, Parameters
from dpjax.data_augmentation.parameters.coordinates import Tuning, build_log_density, fit_to_prior
from dpjax.data_augmentation.problem import Problem
from dpjax.data_augmentation.summed_out import Likelihood, MarginalLikelihood, sum_out, thin
from dpjax.data_augmentation.summed_out.impossible import impossible_in_words
from dpjax.data_augmentation.summed_out.likelihood import MOST_LEFT_OUT, left_out_at
from dpjax.mcmc.modes import Ends, Mode, distinct_modes, far_candidates
from dpjax.models.programs import jit_model
from dpjax.models.recentred import Recentred, find_effects
from dpjax.models.simulation import parameter_shapes
from dpjax.models.unconstrained import to_vector
from dpjax.numerics import take_entry, tree_where
from dpjax.numerics.linear_algebra import factorize, product

__all__ = ["Ascent", "fit_to", "rescale_by", "settle"]

NUM_CANDIDATES = 100
"""Draws from the prior among which a chain's climb begins."""

TEMPERATURE = 4.0
"""The candidates are chosen by the likelihood to the power of its inverse."""

NUM_STEPS, FIRST_RATE, LAST_RATE = 300, 0.1, 1e-3
"""Steps of Adam, and its first and last rate, in prior standard deviations."""

NUM_ABOUT = 64
"""Normal draws about the best mode, to which sums are fitted."""

SMALL_SLOPE = 4.0
"""How many standard deviations below its mean the logarithm of a slope may be, for the scale of effects."""

MOST_CLIMBS = 64
"""Most climbs that are made; with more chains some start at the same mode."""

MOST_TOGETHER = 2**26
"""Most numbers that are summed over at once, for all climbs that an accelerator makes together."""

MOST_TABLES = 3
"""Most rough tables that are made, each about the ends of the climbs on the one before if they are beyond it."""

SHARE_OF_ENDS = 8
"""The ends of climbs are among the parameters of the next rough table with one over this as their share, or more."""

LONGEST_STEP = 0.3
"""The longest step by slope and curvature from a mode, in standard deviations: elsewhere the climb has not ended."""

LEAST_CURVATURE = 0.1
"""The least curvature, in units of the prior's precision: directions that curve less are taken to curve so much."""

MOST_LOOKS, MOST_CURVED = 20, 2_000
"""Most looks at the curvature, one after each of Newton's steps, and most directions in which they look in all."""

SHORT = 1.0
"""By how much the log-density at the end of a climb may fall short of the highest, if it is not to be looked at."""

LEAST_GAIN = 0.01
"""The least gain in log-density from a step, after which another one is made."""

SHARES = np.append(0.5 ** np.arange(8), 0.0)
"""The shares of Newton's step that are tried."""


class Climbs(NamedTuple):
    """The ends of climbs, and the log-densities of the candidates from which they began.

    Attributes
    ----------
    ends
        The parameters there [climb, ...].
    places
        The same ends in the coordinates of the prior's whitening [climb, p].
    heights
        The log-density [climb] there.
    scores
        The log-density [climb, candidate] of the candidates.
    """

    ends: Parameters
    places: Array
    heights: Array
    scores: Array


class Glance(NamedTuple):
    """What is seen at one place on the way from the end of a climb to a mode.

    Attributes
    ----------
    place
        The place [p], in the coordinates of the prior's whitening.
    height
        The log-density [] there.
    curvature
        The curvature [p, p] there.
    step
        Newton's step [p] from there.
    is_mode
        Whether the density falls in all directions, and the step is short.
    gain
        What the step to this place has gained.
    number
        How often it was looked.
    """

    place: Array
    height: Array
    curvature: Array
    step: Array
    is_mode: Array
    gain: Array
    number: Array


class Ascent(NamedTuple):
    """The starts of chains, and what is known of the posterior there.

    Attributes
    ----------
    starts
        The parameters at which chains start [chain, ...].
    log_density
        The log-density [climb] at the ends of the climbs.
    tuning
        The whitening by the curvature at the best of them.
    near
        Parameters [point, ...] near the ends, to which sums are fitted.
    others
        The different modes that were found; none if all climbs end at the same.
    """

    starts: Parameters
    log_density: Array
    tuning: Tuning
    near: Parameters
    others: tuple[Mode, ...] = ()


@partial(jit_model, static_argnames=("num",))
def draw_candidates(model: Model, key: Key, num: int) -> tuple[Tuning, Array]:
    """The whitening fitted to draws from the prior, and other draws in its coordinates [climb, candidate, p].

    It is a program by itself: with all its random numbers in it, that of the climbs takes twice as long to compile.
    """
    prior_key, draw_key = jax.random.split(key)
    prior, keys = fit_to_prior(prior_key, model), jax.random.split(draw_key, (num, NUM_CANDIDATES))
    return prior, jax.vmap(jax.vmap(lambda key: prior.whiten(to_vector(model, model.sample_prior(key))[0])))(keys)


@jit_model
def whiten_starts(model: Model, prior: Tuning, initial: Parameters) -> Array:
    """Given starts [climb, ...] as the only candidates [climb, 1, p] of their climbs."""
    return jax.vmap(lambda one: prior.whiten(to_vector(model, one)[0])[None])(initial)


@partial(jit_model, static_argnames=("together",))
def climb_to_modes(
    model: Model, likelihood: Likelihood, key: Key, prior: Tuning, candidates: Array, together: int | None
) -> Climbs:
    """Climbs on p(parameters | release), each from one of some candidates [climb, candidate, p].

    So many climbs are made `together`; None makes them one after another.
    """
    shape_key, choice_key = jax.random.split(key)
    unravel = to_vector(model, model.sample_prior(shape_key))[1]
    target = build_log_density(model, prior, unravel, likelihood.build())

    def rise(given: tuple[Key, Array]) -> tuple[Array, Array, Array]:
        key, candidates = given
        scores = jax.lax.map(target, candidates)
        noise = jax.random.gumbel(key, scores.shape)
        return *ascend(target, candidates[jnp.argmax(scores / TEMPERATURE + noise)]), scores

    keys = jax.random.split(choice_key, len(candidates))
    places, heights, scores = jax.lax.map(rise, (keys, candidates), batch_size=together)
    best = places[jnp.argmax(jnp.where(jnp.isnan(heights), -jnp.inf, heights))]
    places = jnp.where(jnp.isfinite(heights)[:, None], places, best[None])
    ends = jax.vmap(lambda place: model.constrain(unravel(prior.colour(place))))(places)
    return Climbs(ends, places, heights, scores)


@jit_model
def parameters_at(model: Model, prior: Tuning, candidates: Array) -> Parameters:
    """The parameters [climb * candidate, ...] of candidates [climb, candidate, p]."""
    _, unravel = to_vector(model, model.sample_prior(jax.random.key(0)))
    flat = candidates.reshape(-1, candidates.shape[-1])
    return jax.vmap(lambda place: model.constrain(unravel(prior.colour(place))))(flat)


def make_rough(
    model: Model, likelihood: MarginalLikelihood, prior: Tuning, candidates: Array, ends: Parameters | None = None
) -> MarginalLikelihood | None:
    """The likelihood by a rough table about candidates [climb, candidate, p], and the ends [climb, ...] of climbs.

    None if it is not large, or there is no table.
    """
    if not likelihood.is_large:
        return None
    about = parameters_at.unoptimized(model, prior, candidates)
    if ends is not None:
        number = -(-candidates.shape[1] // SHARE_OF_ENDS)
        about = jax.tree.map(lambda *both: jnp.concatenate([both[0], jnp.repeat(both[1], number, axis=0)]), about, ends)
    return likelihood.tabulated(about, rough=True)


def ascend(target: Callable[[Array], Array], start: Array) -> tuple[Array, Array]:
    """The end of a climb by Adam (Kingma and Ba 2015), and the log-density [] there."""
    rule = optax.adam(optax.exponential_decay(FIRST_RATE, NUM_STEPS, LAST_RATE / FIRST_RATE))

    def step(carry: tuple[Array, Any], _: None) -> tuple[tuple[Array, Any], None]:
        place, memory = carry
        slope = jnp.nan_to_num(jax.grad(target)(place), posinf=0.0, neginf=0.0)
        with jax.numpy_dtype_promotion("standard"):  # as optax has it
            change, memory = rule.update(-slope, memory, place)
        return (place + change, memory), None

    (place, _), _ = jax.lax.scan(step, (start, rule.init(start)), None, NUM_STEPS)
    return place, target(place)


@jit_model
def look_around(model: Model, likelihood: Likelihood, prior: Tuning, ends: Parameters, most: Array | int) -> Ends:
    """The ends [climb, ...] of climbs, with the whitening by the curvature at each, and whether it is a mode.

    From an end that is none Newton's steps lead on, and so many looks are made at most.
    """
    _, unravel = to_vector(model, jax.tree.map(lambda leaf: leaf[0], ends))
    target = build_log_density(model, prior, unravel, likelihood.build())
    slope, basis = jax.grad(target), jnp.eye(prior.location.size, dtype=prior.location.dtype)
    back = jax.scipy.linalg.solve_triangular(prior.factor, basis, lower=True)

    def wanted(glance: Glance) -> Array:
        return ~glance.is_mode & (glance.gain > LEAST_GAIN) & (glance.number < most)

    def proceed(before: Glance) -> Glance:
        tried = before.place[None] + jnp.asarray(SHARES, before.place.dtype)[:, None] * before.step[None]
        heights = jnp.nan_to_num(jax.lax.map(target, tried), nan=-jnp.inf, posinf=jnp.inf, neginf=-jnp.inf)
        place, height = tried[jnp.argmax(heights)], jnp.max(heights)
        hessian = jax.lax.map(lambda direction: jax.jvp(slope, (place,), (direction,))[1], basis)
        curvature = -jnp.nan_to_num(hessian + hessian.T) / 2
        values, vectors = jnp.linalg.eigh(curvature)
        along = jnp.nan_to_num(product(vectors.T, slope(place))) / jnp.maximum(jnp.abs(values), LEAST_CURVATURE)
        length = jnp.sum(along**2 * jnp.maximum(jnp.abs(values), LEAST_CURVATURE))
        is_mode = (jnp.min(values, initial=jnp.inf) > LEAST_CURVATURE) & (length < LONGEST_STEP**2)
        step = product(vectors, along)
        return Glance(place, height, curvature, step, is_mode, height - before.height, before.number + 1)

    def look(parameters: Parameters) -> tuple[Parameters, Array, Tuning, Array, Parameters]:
        given, _ = to_vector(model, parameters)
        place = prior.whiten(given)
        nothing, far = jnp.zeros_like(place), jnp.full_like(place, jnp.inf, shape=())
        first = Glance(place, -far, jnp.zeros_like(basis), nothing, jnp.array(False), far, jnp.array(0))
        last = jax.lax.while_loop(wanted, proceed, first)
        values, vectors = jnp.linalg.eigh(last.curvature)
        factor = product(prior.factor, vectors / jnp.sqrt(jnp.maximum(values, LEAST_CURVATURE))[None])
        vector = jnp.where(last.number > 1, prior.colour(last.place), given)
        tuning = Tuning(vector, factorize(product(factor, factor.T)), jnp.ones((), place.dtype))
        along = unravel(jnp.sum(back * product(last.curvature, back), axis=0))
        ended = tree_where(last.number > 1, model.constrain(unravel(vector)), parameters)
        return ended, last.height, tuning, last.is_mode, along

    return Ends(*jax.lax.map(look, ends))


def end_climbs(model: Model, likelihood: Likelihood, prior: Tuning, climbs: Climbs) -> tuple[Climbs, Ends]:
    """The climbs, led on where they have not ended, and what is seen at the highest end.

    One that ends lower than the highest may have stopped halfway to the same mode.
    """
    ends, places, heights = jax.tree.map(np.array, (climbs.ends, climbs.places, climbs.heights))
    heights = np.nan_to_num(heights, nan=-np.inf, neginf=-np.inf)
    top, most = None, most_looks(places.shape[1])
    for climb in np.argsort(-heights, kind="stable"):
        # One look leads nowhere: there are too many directions for more.
        if top is not None and (most == 1 or heights[climb] >= top.heights - SHORT):
            continue
        one = jax.tree.map(lambda leaf, climb=climb: jnp.asarray(leaf[[climb]]), ends)
        seen = take_entry(look_around.unoptimized(model, likelihood, prior, one, most), 0)
        heights[climb], places[climb] = seen.heights, prior.whiten(seen.tuning.location)
        for name, leaf in seen.parameters.items():
            ends[name][climb] = leaf
        top = seen if top is None or seen.heights > top.heights else top
    assert top is not None, "there are climbs"
    return Climbs(jax.tree.map(jnp.asarray, ends), jnp.asarray(places), jnp.asarray(heights), climbs.scores), top


def most_looks(dimension: int) -> int:
    """How often it is looked around on the way from the end of a climb, with so many directions each time."""
    return max(min(MOST_LOOKS, MOST_CURVED // dimension), 1)


def find_modes(
    model: Model,
    likelihood: MarginalLikelihood,
    prior: Tuning,
    candidates: Array,
    climbs: Climbs,
    highest: Tuning,
    climb: Callable[[Array], Climbs],
) -> tuple[Mode, ...]:
    """The different modes; none if all climbs have led to one, and no candidate far from it is nearly as high.

    Parameters
    ----------
    highest
        The whitening at the highest end.
    climb
        ``candidates -> climbs``: further climbs, as many at once.
    """
    flat, scores = np.asarray(candidates).reshape(-1, candidates.shape[-1]), np.asarray(climbs.scores).reshape(-1)
    best, places = float(np.nanmax(climbs.heights)), np.asarray(climbs.places)
    top, factor = np.asarray(prior.whiten(highest.location)), whitened(prior, highest)
    heights = np.append(scores, np.full(len(places), best))
    if not far_candidates(np.concatenate([flat, places]), heights, best, [top], [factor]):
        return ()

    def look(ends: Parameters) -> Ends:
        # One after another, by the program that has looked around the highest.
        each = [jax.tree.map(lambda leaf, at=at: leaf[at : at + 1], ends) for at in range(len(places))]
        most = most_looks(places.shape[1])
        found = [look_around.unoptimized(model, likelihood, prior, one, most) for one in each]
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *found)

    ends = look(climbs.ends)
    factors = [whitened(prior, take_entry(ends.tuning, place)) for place in range(len(places))]
    far = far_candidates(flat, scores, best, places, factors)[: len(places)]
    if far:
        begin = jnp.asarray(flat[np.resize(far, len(places))])[:, None]
        more = climb(jnp.broadcast_to(begin, candidates.shape))
        ends = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), ends, look(more.ends))
    return distinct_modes(ends)


def whitened(prior: Tuning, tuning: Tuning) -> np.ndarray:
    """The factor [k, k] of a whitening in the coordinates of the prior's."""
    found: np.ndarray = np.linalg.solve(np.asarray(prior.factor, float), np.asarray(tuning.factor, float))
    return found


def recentre(model: Model, likelihood: Likelihood) -> Model:
    """The model with its group effects standardised, on scales that can be changed; itself if it has none."""
    if likelihood.predicted is None:
        return model
    rows, known, field = likelihood.predicted
    shapes = parameter_shapes(model)
    powers = {name: jnp.zeros(shapes[name].shape) for name in find_effects(model, rows, known, field)}
    return Recentred(model, rows, known, powers, field) if powers else model


def rescale(model: Recentred, curvatures: Parameters, near: Parameters) -> Recentred:
    """The model with its effects on scales by the curvatures along standardised effects, and parameters [point, ...].

    The prior of these has the curvature 1, and the data have the rest, which grows with the square of the slope. Its
    share is the power, where the slope is as small as it may be: there NUTS would not get on with a larger one.
    """
    slopes = measure_slopes.unoptimized(model, near)
    shrink = {name: np.exp(-2 * SMALL_SLOPE * np.std(np.asarray(logs))) for name, logs in slopes.items()}
    known = {name: shrink[name] * np.maximum(np.asarray(curvatures[name]) - 1, 0) for name in slopes}
    return replace(model, powers={name: jnp.asarray(share / (1 + share)) for name, share in known.items()})


def rescale_by(model: Recentred, draws: Parameters) -> Recentred:
    """The model with its effects on scales by draws [chain, draw, ...]: by how much of a standardised one they know."""
    merged = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), draws)
    variances = measure_variances.unoptimized(model, merged)
    return rescale(model, {name: 1 / np.asarray(leaf) for name, leaf in variances.items()}, merged)


@jit_model
def measure_variances(model: Recentred, draws: Parameters) -> Parameters:
    """The variances of the coordinates in which effects are standardised, over draws [draw, ...]."""
    standard = standardised_effects(model)
    return jax.tree.map(lambda leaf: jnp.var(leaf, axis=0), jax.vmap(standard.unconstrain)(draws))


@jit_model
def measure_slopes(model: Recentred, near: Parameters) -> dict[str, Array]:
    """The logarithms of the slopes of all effects at parameters [point, ...]: [point]."""
    return jax.vmap(lambda one: model.log_slopes(model.unconstrain(one)))(near)


def standardised_effects(model: Model) -> Model:
    """The model in the coordinates of the climbs."""
    if not isinstance(model, Recentred):
        return model
    return replace(model, powers=jax.tree.map(jnp.zeros_like, model.powers))


@jit_model
def points_near(model: Model, key: Key, tuning: Tuning, modes: Parameters) -> Parameters:
    """The modes [climb, ...], and Normal draws by a whitening in the coordinates of the model [point, ...]."""
    _, unravel = to_vector(model, jax.tree.map(lambda leaf: leaf[0], modes))
    normals = jax.random.normal(key, (NUM_ABOUT, tuning.location.size), tuning.location.dtype)
    about = jax.vmap(lambda one: model.constrain(unravel(tuning.colour(one))))(normals)
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), modes, about)


def settle(
    problem: Problem, key: Key, initial: Parameters | None, num_chains: int, in_turn: bool
) -> tuple[Problem, Ascent]:
    """The problem with the sums on which chains climbed, rough if they are from a table, and where chains start.

    Parameters
    ----------
    in_turn
        Whether chains climb one after another, as is best on CPUs.

    Raises
    ------
    ValueError
        If the density is not positive where the climbs end.
    """
    whole = problem.swept_release
    problem = replace(problem, model=recentre(problem.model, whole), likelihood=whole)
    num = min(num_chains, MOST_CLIMBS)
    draw_key, climb_key, further_key, about_key = jax.random.split(key, 4)
    prior, candidates = draw_candidates.unoptimized(problem.model, draw_key, num)
    if initial is not None:
        candidates = whiten_starts.unoptimized(
            problem.model, prior, {name: leaf[:num] for name, leaf in initial.items()}
        )
    likelihood = make_rough(problem.model, whole, prior, candidates) or whole

    def climb(key: Key, candidates: Array) -> Climbs:
        together = None if in_turn else max(min(num, MOST_TOGETHER // likelihood.size), 1)
        program = climb_to_modes.on_host if likelihood.is_large else climb_to_modes.unoptimized
        return program(problem.model, likelihood, key, prior, candidates, together)

    climbs = climb(climb_key, candidates)
    for attempt in range(1, MOST_TABLES + 1):
        if likelihood is whole or np.isfinite(left_out_at(likelihood, climbs.ends)):
            break
        # The prior did not expect where the data are.
        rough = make_rough(problem.model, whole, prior, candidates, climbs.ends) if attempt < MOST_TABLES else None
        likelihood = rough or whole
        again = jnp.broadcast_to(climbs.places[:, None], candidates.shape)
        climbs = climb(jax.random.fold_in(climb_key, attempt), again)._replace(scores=climbs.scores)
    if not np.any(np.isfinite(climbs.heights)):
        given = "a release of zero or undefined density at all modes climbed to from the prior"
        given += impossible_in_words(problem.model, whole)
        remedy = "Check that the model, with parameters from the prior, can give such values. Or pass `initial`."
        fail("release", given, "positive density somewhere", remedy)
    climbs, top = end_climbs(problem.model, likelihood, prior, climbs)
    others = find_modes(problem.model, likelihood, prior, candidates, climbs, top.tuning, partial(climb, further_key))
    near = points_near.unoptimized(problem.model, about_key, top.tuning, climbs.ends)
    if isinstance(problem.model, Recentred):
        about = jax.tree.map(lambda leaf: leaf[num:], near)
        problem = replace(problem, model=rescale(problem.model, top.curvatures, about))
        best = jax.tree.map(lambda leaf: leaf[None], top.parameters)
        top = take_entry(look_around.unoptimized(problem.model, likelihood, prior, best, 1), 0)
    places = np.arange(num_chains) % num
    starts = jax.tree.map(lambda leaf: leaf[places], climbs.ends) if initial is None else initial
    # With what the warm-up fits, too, so that the program stays the same.
    tuning = top.tuning._replace(noncentred=prior.noncentred)
    return replace(problem, likelihood=likelihood), Ascent(starts, climbs.heights, tuning, near, others)


def fit_to(problem: Problem, parameters: Parameters) -> Problem:
    """The problem with sums fitted to parameters [draw, ...], from a table if they are large and it is possible."""
    present = problem.swept_release.whole
    good = present.is_limited and left_out_at(present, parameters) <= MOST_LEFT_OUT / 4
    if good or not present.is_approximate:
        return problem
    # A table costs the same however long the windows are. Of records that are drawn, short ones are better.
    if not problem.plan.draws_records and (table := good_table(present, parameters, MOST_LEFT_OUT / 4)):
        return replace(problem, likelihood=table)
    likelihood = sum_out(problem.given_model, problem.given_release, parameters)
    # By itself a table leaves out no more than the windows, where it is.
    if table := good_table(likelihood, parameters, np.finfo(float).max):
        return replace(problem, likelihood=table)
    # Of records that are drawn every number is possible.
    return replace(problem, likelihood=likelihood if problem.plan.draws_records else thin(likelihood, parameters))


def good_table(likelihood: MarginalLikelihood, parameters: Parameters, most: float) -> MarginalLikelihood | None:
    """The likelihood by a table about parameters [draw, ...], if it is large; None if that leaves out too much."""
    table = likelihood.tabulated(parameters) if likelihood.is_large else None
    return table if table is None or left_out_at(table, parameters) <= most else None
