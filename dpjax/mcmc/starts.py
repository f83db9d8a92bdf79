"""Starts of the chains: over-dispersed, and of positive density under the release.

Each chain takes one of several prior-predictive candidates, with probability proportional to the release's density to
the power 1/4. This is nearer to the posterior than the prior, yet wider than the posterior. If no candidate has
positive density, single records are exchanged until their statistic comes close enough to the released value.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail
from dpjax.base import Array, Imputation, Key, Latent, Model, Parameters, Records
from dpjax.clt import normal_sum
from dpjax.data_augmentation.parameters import Tuning
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.records.forms import OwnLatentData
from dpjax.data_augmentation.records.possible import limits_counts, with_possible_counts
from dpjax.data_augmentation.refresh import RefreshTuning, fit_refresh
from dpjax.mcmc.alone import make_run_alone
from dpjax.mcmc.inputs import refused_by_name
from dpjax.mcmc.run import PosteriorRun, split_key, tune_to_draws
from dpjax.mechanisms.base import parts_of
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState, Position, draw_position_at, init_state, noise_size, parameter_shapes
from dpjax.numerics import all_finite, tree_where
from dpjax.release import PrivateRelease, Release
from dpjax.release.summed import as_sum
from dpjax.runtime.devices import choose_mesh, on_one_device
from dpjax.runtime.progress import Progress
from dpjax.runtime.run import run_to_end

MIN_TRIES = 20
MAX_TRIES = 1_000
MAX_SWEEPS = 1_000
TEMPERATURE = 4.0

FEW_RECORDS = 2**16
"""For all chains together: with more, a search by a program that was compiled quickly takes longer than it saves."""

RECORDS_ON_HOST = 2**22
"""For all chains together: with more, a search takes longer on the host than an accelerator takes to compile it."""

__all__ = ["draw_large", "equilibrate", "impute_all", "tune_by"]


NUM_WARMUP, NUM_DRAWS = 300, 250
"""Steps of each chain of the approximation."""

SWEEPS = 8
"""Sweeps of the records alone: where each replaces half of them, less than a hundredth of what they were is left."""


class Candidate(NamedTuple):
    """A start and how good it is.

    Attributes
    ----------
    found
        Whether the release and the prior have positive density there [].
    score
        Candidates of equal `found` are ranked by it [].
    """

    state: GibbsState
    found: Array
    score: Array


class Misfit(Protocol):
    """How far a state is from positive density under a release, and what brings it nearer."""

    def size(self, state: GibbsState) -> Array:
        """How far it is []."""

    def exchange(self, state: GibbsState, proposals: Records) -> Array:
        """Which records [n] to exchange for their proposals [n]."""


def starts_by(imputation: Imputation) -> Callable[..., GibbsState]:
    """The search for starts that fits the latent data of an imputation: its own, or `find_starts`."""
    return imputation.find_starts if isinstance(imputation, OwnLatentData) else find_starts


def find_starts(
    keys: tuple[Key, Key],
    model: Model,
    release: PrivateRelease,
    num_chains: int,
    initial: Parameters | None,
) -> GibbsState:
    """States [chain, ...] of positive density.

    Parameters
    ----------
    keys
        For the candidates, and for the exchanges should they be needed.
    initial
        Parameters [chain, ...] to start from; only the records are then searched for. None draws them from the prior.

    Raises
    ------
    ValueError
        If no start of positive density is found for some chain.
    """
    search_key, climb_key = keys
    together = num_chains * release.n
    look = search.unoptimized if together <= FEW_RECORDS else search.on_host if together <= RECORDS_ON_HOST else search
    best = look(model, num_chains, search_key, release, initial)
    if not np.all(np.asarray(best.found)):
        best = climb(model, climb_key, release, best)
    if not np.all(np.asarray(best.found)):
        fail_to_start(release, np.asarray(best.found), initial)
    return best.state


def fail_to_start(release: PrivateRelease, found: np.ndarray, initial: Parameters | None) -> None:
    """Raise the error of a search without success."""
    chains = f"{np.sum(~found)} of {found.size} chains"
    given = f"a {type(release).__name__} of zero density at every start tried for {chains}"
    tries = (
        f"positive density at one of {MAX_TRIES} starts, or within {MAX_SWEEPS} sweeps of exchanges from the nearest"
    )
    source = "the prior" if initial is None else "`initial`"
    fail(
        "release",
        given,
        tries,
        f"Check that the model, with parameters from {source}, can give records near the released value. Check that "
        "the value, the mechanism's scale and the statistic are in the same units, and that n records can give it. Or "
        "pass `initial` parameters.",
    )


@partial(jit_model, static_argnames=("num_chains",))
def search(model: Model, num_chains: int, key: Key, release: PrivateRelease, initial: Parameters | None) -> Candidate:
    """The best of MIN_TRIES prior-predictive candidates of each chain, or of more while a chain has none."""
    noise_key, candidate_key = jax.random.split(key)
    misfit = measure_by(model, release, noise_size(noise_key, release))

    @jax.jit
    def draw(number: Array) -> Candidate:
        keys = jax.random.split(jax.random.fold_in(candidate_key, number), num_chains)
        return jax.vmap(partial(draw_candidate, model, release, misfit))(keys, initial)

    def body(carry: tuple[Array, Candidate]) -> tuple[Array, Candidate]:
        number, best = carry
        return number + 1, jax.vmap(choose_better)(best, draw(number))

    def wanted(carry: tuple[Array, Candidate]) -> Array:
        number, best = carry
        return (number < MIN_TRIES) | (~jnp.all(best.found) & (number < MAX_TRIES))

    shapes = jax.eval_shape(draw, jnp.array(0))
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    nothing = nothing._replace(score=nothing.score - jnp.inf)
    return jax.lax.while_loop(wanted, body, (jnp.array(0), nothing))[1]


def draw_candidate(
    model: Model, release: PrivateRelease, misfit: Misfit, key: Key, initial: Parameters | None
) -> Candidate:
    """One candidate: parameters from the prior unless given, and records from the model."""
    parameter_key, record_key, choice_key, *count_keys = jax.random.split(key, 4 if limits_counts(release) else 3)
    parameters = model.sample_prior(parameter_key) if initial is None else initial
    records = release.hold(draw_position_at(record_key, model, parameters, release.n).records)
    for count_key in count_keys:
        records = with_possible_counts(count_key, model, release, parameters, records)
    state = init_state(release, Position(parameters, records))
    found = is_possible(model, release, state)
    # The largest of log-weight plus Gumbel noise is a draw with probability proportional to weight.
    score = state.latent.log_density / TEMPERATURE + jax.random.gumbel(choice_key)
    worst = jnp.finfo(score.dtype).min
    nearness = jnp.nan_to_num(-misfit.size(state), nan=worst, neginf=worst)
    return Candidate(state, found, jnp.where(found, score, nearness))


def choose_better(best: Candidate, other: Candidate) -> Candidate:
    """The better of two candidates."""
    better = (other.found & ~best.found) | ((other.found == best.found) & (other.score > best.score))
    return jax.tree.map(lambda new, old: jnp.where(better, new, old), other, best)


def is_possible(model: Model, release: PrivateRelease, state: GibbsState) -> Array:
    """Whether parameters and records are finite, and prior and release have positive density [].

    Records of which something is held were not drawn as a whole, so that theirs is asked for, too.
    """
    density = model.log_prior(state.parameters) + state.latent.log_density
    if release.exact:
        density += jnp.sum(model.log_density(state.parameters, state.latent.records))
    return all_finite((state.parameters, state.latent.records, density))


class ImpossibleRecords(NamedTuple):
    """The records that are impossible, or could not have given their values; proposals are taken for them.

    What is held of them stays.
    """

    model: Model
    release: Any

    def size(self, state: GibbsState) -> Array:
        """Their number []."""
        return jnp.sum(self._impossible(state)).astype(float)

    def exchange(self, state: GibbsState, proposals: Records) -> Array:
        """Those records [n], whatever the proposals."""
        return self._impossible(state)

    def _impossible(self, state: GibbsState) -> Array:
        density = self.release.log_densities(state.latent.records)
        if self.release.exact:
            density += self.model.log_density(state.parameters, state.latent.records)
        return ~jnp.isfinite(density)


class ImpossibleWhole(NamedTuple):
    """Records that are impossible together, of which a release of another kind does not tell which; all are redrawn."""

    def size(self, state: GibbsState) -> Array:
        """1 if they are, else 0 []."""
        return (~jnp.isfinite(state.latent.log_density)).astype(float)

    def exchange(self, state: GibbsState, proposals: Records) -> Array:
        """All records [n], or none."""
        n = len(jax.tree.leaves(proposals)[0])
        return jnp.broadcast_to(~jnp.isfinite(state.latent.log_density), (n,))


class StartDistance(NamedTuple):
    """The distance of the summed statistic from the value, in units of noise.

    From where a mechanism excludes sums, first of all how far it is beyond those that are possible.
    """

    release: Release
    scale: Array

    def size(self, state: GibbsState) -> Array:
        """The distance []."""
        return self._from(state.latent.statistic)

    def exchange(self, state: GibbsState, proposals: Records) -> Array:
        """Each record [n] in turn whose proposal brings the sum nearer, until the density is positive."""
        contribution = jax.vmap(self.release.contribution)
        changes = contribution(proposals) - contribution(state.latent.records)

        def attempt(statistic: Array, change: Array) -> tuple[Array, Array]:
            nearer = self._from(statistic + change) < self._from(statistic)
            moved = nearer & ~jnp.isfinite(self.release.log_density(statistic))
            return jnp.where(moved, statistic + change, statistic), moved

        return jax.lax.scan(attempt, state.latent.statistic, changes)[1]

    def _from(self, statistic: Array) -> Array:
        near = jnp.sum(jnp.abs(self.release.noisy_sum - statistic) / self.scale)
        beyond = list(distances_beyond(self.release, statistic))
        # However large the noise is, that counts less than one record too many.
        return sum(beyond) + near / (1 + near) if beyond else near


def distances_beyond(release: Release, statistic: Array) -> Iterator[Array]:
    """How far the summed statistic [d] is beyond the possible sums, for each mechanism that excludes any."""
    if not release.is_noisy_sum:
        return
    for mechanism, where in parts_of(release.mechanism, len(release.value)):
        if mechanism.sums.bounds is not None:
            least, most = mechanism.sums.bounds(release.value[where])
            yield jnp.sum(jnp.maximum(jnp.maximum(least - statistic[where], statistic[where] - most), 0))


def measure_by(model: Model, release: PrivateRelease, scale: Array) -> Misfit:
    """A distance of states from positive density under this release, whose noise has this size."""
    if release.fields:
        return ImpossibleRecords(model, release)
    return ImpossibleWhole() if release.summed is None else StartDistance(as_sum(release), scale)


@jit_model
def climb(model: Model, key: Key, release: PrivateRelease, best: Candidate) -> Candidate:
    """Exchange records for proposals that bring the release nearer to positive density, for MAX_SWEEPS sweeps."""
    noise_key, sweep_key = jax.random.split(key)
    misfit = measure_by(model, release, noise_size(noise_key, release))

    def improve(key: Key, candidate: Candidate) -> Candidate:
        parameters, records = candidate.state.parameters, candidate.state.latent.records
        proposals = release.hold(model.sample_records(key, parameters, release.n))
        moved = misfit.exchange(candidate.state, proposals) & ~candidate.found
        state = init_state(release, Position(parameters, tree_where(moved, proposals, records)))
        return Candidate(state, is_possible(model, release, state), candidate.score)

    def body(carry: tuple[Array, Candidate]) -> tuple[Array, Candidate]:
        number, best = carry
        keys = jax.random.split(jax.random.fold_in(sweep_key, number), best.found.shape[0])
        return number + 1, jax.vmap(improve)(keys, best)

    def wanted(carry: tuple[Array, Candidate]) -> Array:
        return ~jnp.all(carry[1].found) & (carry[0] < MAX_SWEEPS)

    return jax.lax.while_loop(wanted, body, (jnp.array(0), best))[1]


@partial(jit_model, static_argnames=("imputation",))
def impute_all(
    model: Model, imputation: Imputation, key: Key, release: PrivateRelease, states: GibbsState, length: Array
) -> GibbsState:
    """The states [chain, ...] after `length` [] sweeps of the imputation, with the parameters held."""
    impute = imputation(model, release)

    def chain(key: Key, state: GibbsState) -> GibbsState:
        def sweep(number: Array, latent: Latent) -> Latent:
            return impute(jax.random.fold_in(key, number), latent, state.parameters)[0]

        return GibbsState(state.parameters, jax.lax.fori_loop(0, length, sweep, state.latent))

    return jax.vmap(chain)(jax.random.split(key, states.latent.log_density.shape[0]), states)


def draw_large(key: Key, model: Model, release: PrivateRelease, num_chains: int) -> Parameters:
    """Draws [chain, draw, ...] from the Normal approximation, for model and release as the user knows them."""
    with refused_by_name(), on_one_device(), Progress(False) as hidden:
        problem = augment(model, as_sum(release), likelihood=normal_sum())
        given = {"collect": None, "keys": split_key(key, num_chains), "mesh": choose_mesh(None, num_chains)}
        run = make_run_alone(problem, NUM_WARMUP, NUM_DRAWS, 1, None, reports=False, **given)
        status = run_to_end(run, run.at_known_starts(), None, hidden)
    if not run.is_done(status):
        raise KeyboardInterrupt("sample was interrupted while it looked for starts.")
    return {name: jnp.asarray(status.draws.parameters[name]) for name in parameter_shapes(model)}


def tune_by(run: PosteriorRun, draws: Parameters) -> tuple[Tuning | None, RefreshTuning | None]:
    """The tuning and the refreshes fitted to draws [chain, draw, ...]; None for what the plan does not use."""
    plan = run.problem.plan
    if not (plan.uses_tuning or plan.refresh):
        return None, None
    fitted = tune_to_draws.unoptimized(run.problem.model, draws)
    refresh = None if run.first_refresh is None else fit_refresh(run.first_refresh, fitted)
    return fitted if plan.uses_tuning else None, refresh


def equilibrate(key: Key, run: PosteriorRun, states: GibbsState) -> GibbsState:
    """States [chain, ...] whose records have had time to reach their distribution given parameters and release."""
    problem = run.problem
    return impute_all(problem.model, problem.conditional_imputation, key, problem.release, states, jnp.asarray(SWEEPS))
