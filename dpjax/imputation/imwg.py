"""Independent Metropolis within Gibbs (IMwG): each record is offered a fresh draw from the model.

An offer y ~ f(·|θ) replaces record i with probability min(1, η(s | Σt − t_i + t(y)) / η(s | Σt)): the kernel of
Ju, Awan, Gong and Rao (2022), Algorithm 1, equation (5). A sweep is a pure function of the offers, uniforms and
indices; the kernel draws these and calls it.
"""

from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp

from dpjax.base import Array, ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters, Records
from dpjax.imputation import local
from dpjax.imputation.births import build_births_kernel
from dpjax.imputation.data_sets import DataSetSum, data_set_form
from dpjax.imputation.offers import Decisions, check_exchangeable, check_noisy, finish, metropolis, take_sources
from dpjax.imputation.rounds import decide_in_rounds, default_window
from dpjax.numerics import decision_uniforms, take_if
from dpjax.release import LocalRelease, PrivateRelease, Release
from dpjax.release.summed import as_sum
from dpjax.validation import check_count, fail


@dataclass(frozen=True)
class IMwG:
    """The choice of IMwG; call it with a model and a release for the kernel."""

    scan: Literal["systematic", "random"]
    window: int | None = None

    def __call__(self, model: Model, release: PrivateRelease) -> ImputationKernel:
        """A kernel that leaves p(records | parameters, release) invariant."""
        if isinstance(release, LocalRelease):
            return local.build_kernel(model, release)
        release = as_sum(release)
        check_noisy(release, "imwg(...)")
        if isinstance(release.statistic, DataSetSum):
            return build_births_kernel(model, release)
        if self.scan == "systematic":
            return build_systematic_kernel(model, release, default_window() if self.window is None else self.window)
        check_exchangeable(model, 'imwg(scan="random")')
        return build_random_kernel(model, release)

    def form(self, model: Model, release: PrivateRelease) -> tuple[Model, PrivateRelease]:
        """Model and release as they are, or those of whole data sets where the number of records is unknown."""
        return data_set_form(model, release) if isinstance(release, Release) else (model, release)


def imwg(scan: Literal["systematic", "random"] = "systematic", window: int | None = None) -> IMwG:
    """Impute the records by independent Metropolis within Gibbs.

    Parameters
    ----------
    scan
        ``"systematic"`` offers each record one draw in order; ``"random"`` makes n offers to places drawn
        uniformly with replacement. A local release needs neither: given θ its records are independent, and
        all are updated at once, by exact draws where the channel and the model allow. Nor does an unknown number of
        records: each sweep then adds, deletes and exchanges records in an order of its own.
    window
        How many offers of a systematic scan are decided on side by side, in rounds that give the scan in turn (see
        `dpjax.imputation.rounds`): for accelerators, whose time goes by the number of steps. 1 decides in turn; None
        does so on a CPU, and takes windows of 256 elsewhere. Coupled chains and records of an unknown number go in turn
        whatever it is.

    Raises
    ------
    ValueError, TypeError
        If the scan has another name, or the window is not a positive whole number, or one of a random scan.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.imwg(scan="random").scan
    'random'
    """
    if scan not in ("systematic", "random"):
        fail("scan", repr(scan), "'systematic' or 'random'", "Choose the order in which records get their offers.")
    if window is not None:
        window = check_count("window", window, "Pass a positive whole number, or None.")
        if scan == "random":
            fail("window", window, "None with scan='random'", "Offers to one place wait for each other: leave it out.")
    return IMwG(scan, window)


def build_systematic_kernel(model: Model, release: Release, window: int) -> ImputationKernel:
    """The systematic-scan kernel: it leaves p(records | parameters, release) invariant."""

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        offer_key, accept_key = jax.random.split(rng_key)
        offers = model.sample_records(offer_key, parameters, release.n)
        uniforms = decision_uniforms(accept_key, (release.n,))
        return systematic_sweep(release, latent.records, offers, uniforms, window=window)

    return step


def build_random_kernel(model: Model, release: Release) -> ImputationKernel:
    """The random-scan kernel: it leaves p(records | parameters, release) invariant."""

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        offer_key, accept_key, place_key = jax.random.split(rng_key, 3)
        offers = model.sample_records(offer_key, parameters, release.n)
        uniforms = decision_uniforms(accept_key, (release.n,))
        places = jax.random.randint(place_key, (release.n,), 0, release.n)
        return random_sweep(release, latent.records, offers, uniforms, places)

    return step


def systematic_sweep(
    release: Release, records: Records, offers: Records, uniforms: Array, block: int = 1, window: int = 1
) -> tuple[Latent, ImputationInfo]:
    """One sweep as a function of its innovations: offer i is made to record i, for i = 0, ..., n - 1.

    Only the residual [d] and the log-density [] travel through the sweep; the accepted offers are moved into the
    records afterwards, at once.

    Parameters
    ----------
    records
        A pytree with leading axis [n].
    offers
        Another of the same structure.
    uniforms : [⌈n / block⌉]
        The offers to block i are accepted if ``uniforms[i]`` is below the acceptance ratio.
    block
        How many neighbouring records are accepted or rejected together; the last block may be shorter.
    window
        How many blocks are decided on side by side; 1 for one after the other.
    """
    current = release.contributions(records)
    changes = sum_blocks(release.contributions(offers) - current, block)
    # The sum is taken afresh in each sweep, so that rounding does not pile up over sweeps.
    residual = release.origin - jnp.sum(current, axis=1)
    log_uniforms = jnp.log(uniforms)
    if window == 1:
        decisions = decide_in_turn(release, residual, changes, log_uniforms)
    else:
        decisions = decide_in_rounds(release, residual, changes, log_uniforms, window)
    accepted = decisions.accepted if block == 1 else jnp.repeat(decisions.accepted, block)[: release.n]
    moved = take_if(accepted, offers, records)
    where, num_broken = (decisions.residual, decisions.log_density), jnp.sum(decisions.broken)
    return finish(release, moved, *where, accepted.astype(int), num_broken, decisions.num_rounds)


def decide_in_turn(release: Release, residual: Array, changes: Array, log_uniforms: Array) -> Decisions:
    """The decisions on offers that change the sum by the columns of changes [d, offers], one after the other."""

    def attempt(carry: Any, offer: Any) -> Any:
        (residual, log_density), (change, log_uniform) = carry, offer
        return metropolis(release, residual, log_density, residual - change, log_uniform)

    start = (residual, release.log_density_at(residual))
    (residual, log_density), (accepted, broken) = jax.lax.scan(attempt, start, (changes.T, log_uniforms))
    return Decisions(residual, log_density, accepted, broken)


def sum_blocks(columns: Array, block: int) -> Array:
    """The sums [d, ⌈n / block⌉] of columns [d, n] over neighbouring ones; the last block may be shorter."""
    if block == 1:
        return columns
    d, n = columns.shape
    return jnp.sum(jnp.pad(columns, ((0, 0), (0, -n % block))).reshape(d, -1, block), axis=2)


def random_sweep(
    release: Release, records: Records, offers: Records, uniforms: Array, places: Array
) -> tuple[Latent, ImputationInfo]:
    """One sweep as a function of its innovations: offer k is made to record ``places[k]``, for k = 0, ..., n - 1."""
    current = release.contributions(records)
    residual = release.origin - jnp.sum(current, axis=1)

    def attempt(carry: Any, offer: Any) -> Any:
        residual, log_density, current, source = carry
        index, place, contribution, log_uniform = offer
        proposed = residual - contribution + current[:, place]
        (residual, log_density), (accepted, broken) = metropolis(release, residual, log_density, proposed, log_uniform)
        current = current.at[:, place].set(jnp.where(accepted, contribution, current[:, place]))
        source = source.at[place].set(jnp.where(accepted, index, source[place]))
        return (residual, log_density, current, source), (accepted, broken)

    steps = (jnp.arange(release.n), places, release.contributions(offers).T, jnp.log(uniforms))
    start = (residual, release.log_density_at(residual), current, jnp.full(release.n, -1))
    (residual, log_density, _, source), (accepted, broken) = jax.lax.scan(attempt, start, steps)
    counts = jnp.zeros(release.n, int).at[places].add(accepted.astype(int))
    moved = take_sources(source, offers, records)
    return finish(release, moved, residual, log_density, counts, jnp.sum(broken))
