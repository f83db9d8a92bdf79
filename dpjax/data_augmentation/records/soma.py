"""Single offer, multiple attempts (SOMA): one fresh draw is tried at many records at once.

A proposal y ~ f(·|θ) gets weights w_i = η(s | Σt − t_i + t(y)), w_0 = η(s | Σt), W = Σ w_i over the records tried.
Place I ∝ w is taken with probability min(1, W / (W + w_0 − w_I)). See Xiong and Ju (2025), Algorithm 1, equation (8),
and Remark 4 for fewer than n records. An attempt is a pure function of the weights and two uniforms.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, fail
from dpjax.base import Array, ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters, Records
from dpjax.data_augmentation.kernel_checks import builds_kernel
from dpjax.data_augmentation.records.placed import Decision, ExchangeableTarget, SweepState, sweep_release
from dpjax.data_augmentation.records.proposals import check_exchangeable, check_noisy
from dpjax.models.programs import jit_model
from dpjax.numerics import decision_uniforms, proper_density, scale_weights, select_weight
from dpjax.release import PrivateRelease, Release
from dpjax.release.summed import as_sum

ENOUGH = 0.9
"""Sufficient fraction of the largest acceptance rate: the last tenth would cost many times the attempts."""

MAX_ATTEMPTS = 1024
NUM_PROPOSALS = 64


@dataclass(frozen=True)
class SOMA:
    """SOMA; called with a model and a release, it builds the kernel."""

    attempts: int | Literal["auto"] | None

    @builds_kernel
    def __call__(self, model: Model, release: PrivateRelease) -> ImputationKernel:
        """A kernel that leaves p(records | parameters, release) invariant."""
        remedy = "Records with their own released values are not exchangeable: use dpjax.imwg()."
        release = as_sum(release, remedy, asker="soma(...)")
        check_noisy(release, "soma(...)")
        check_exchangeable(model, "soma(...)")
        return build_kernel(model, release, self.num_weighed(release.n))

    @property
    def placement(self) -> Literal["soma"]:
        """By the weights."""
        return "soma"

    def num_weighed(self, n: int) -> int:
        """The number of attempts, within 1..n."""
        if self.attempts == "auto":
            fail(
                "attempts", "'auto'", "a number once the kernel is built", "dpjax.sample tunes it; else pass a number."
            )
        attempts = n if self.attempts is None else self.attempts
        if attempts > n:
            fail("attempts", attempts, f"a whole number in 1..{n}", "Try at most all n records per proposal.")
        return attempts

    @property
    def needs_tuning(self) -> bool:
        """Whether the number of attempts is left to the warm-up."""
        return self.attempts == "auto"

    def with_defaults(self, model: Model, release: PrivateRelease) -> "SOMA":
        """With all n attempts."""
        del model, release
        return replace(self, attempts=None)

    def tune(self, key: Key, model: Model, release: Release, latent: Latent, parameters: Parameters) -> "SOMA":
        """With the best number of attempts at the chains' states."""
        return replace(self, attempts=choose_attempts(key, model, release, latent, parameters))


@names_arguments
def soma(attempts: int | Literal["auto"] | None = None) -> SOMA:
    """Impute the records by single offer, multiple attempts.

    Parameters
    ----------
    attempts
        How many records each proposal is tried at. None is all n; a number m in 1..n is windows of m neighbouring
        records, visited in turn; ``"auto"`` lets ``dpjax.sample`` choose m in warm-up. For pure ε privacy a proposal is
        accepted with probability at least m / (m + e^ε − 1), so a few e^ε attempts give nearly all of the gain.

    Raises
    ------
    ValueError, TypeError
        If attempts is not a positive whole number, ``"auto"`` or None; at the build, if it exceeds n or the release
        is local (its records are not exchangeable).

    Examples
    --------
    >>> import dpjax
    >>> dpjax.soma(attempts=3).attempts
    3
    """
    if attempts is None or (isinstance(attempts, str) and attempts == "auto"):
        return SOMA(attempts)
    return SOMA(check_count("attempts", attempts, "Pass a whole number in 1..n, 'auto' or None."))


def build_kernel(model: Model, release: Release, attempts: int) -> ImputationKernel:
    """A sweep of n proposals, each tried at `attempts` records; leaves p(records | parameters, release) invariant."""

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        proposal_key, accept_key, select_key = jax.random.split(rng_key, 3)
        proposals = model.sample_records(proposal_key, parameters, release.n)
        accept_uniforms = decision_uniforms(accept_key, (release.n,))
        select_uniforms = jax.random.uniform(select_key, (release.n,))
        return sweep(release, latent.records, proposals, select_uniforms, accept_uniforms, attempts)

    return step


def choose_place(
    log_weights: Array, log_current: Array, select_uniform: Array, accept_uniform: Array
) -> tuple[Array, Array, Array]:
    """The place I ∝ w [] and whether the proposal takes it [], with the acceptance ratio before the minimum with 1 [].

    Everything is relative to the largest weight, and no logarithm is taken: in a sweep each costs as much as a loop.

    Parameters
    ----------
    log_weights : [m]
        log w_i of the records tried.
    log_current : []
        log w_0.
    """
    weights, shift = scale_weights(log_weights)
    index, total = select_weight(weights, select_uniform)
    reverse = reverse_total(weights[index], total, jnp.exp(log_current - shift))
    return index, accept_uniform * reverse < total, total / reverse


def reverse_total(weight: Array, total: Array, current: Array) -> Array:
    """W + w_0 − w_I, the total weight [] of the attempt back: a proposal is taken with probability min(1, W / it).

    Parameters
    ----------
    weight : []
        w_I, in one unit with the others.
    total : []
        W.
    current : []
        w_0.
    """
    # W − w_I cannot be negative; rounding can make it so if w_I is nearly all of W.
    return jnp.maximum(total - weight, 0.0) + current


def window_starts(n: int, attempts: int) -> np.ndarray:
    """The first record of the window of each of n proposals: windows side by side, the last ending at n, in turn."""
    firsts = np.minimum(np.arange(0, n, attempts), n - attempts)
    return np.resize(firsts, n)


def sweep(
    release: Release,
    records: Records,
    proposals: Records,
    select_uniforms: Array,
    accept_uniforms: Array,
    attempts: int,
) -> tuple[Latent, ImputationInfo]:
    """One sweep as a function of its innovations: proposal k is tried at the records of window k, k = 0, ..., n - 1."""
    innovations = first_places(release.n, attempts), select_uniforms, accept_uniforms
    return sweep_release(release, records, proposals, partial(decide_among, attempts), innovations)


def first_places(n: int, attempts: int) -> Array | None:
    """The first record of the window of each proposal; None if these are all records."""
    return None if attempts == n else jnp.asarray(window_starts(n, attempts))


def decide_among(
    attempts: int,
    target: ExchangeableTarget,
    state: SweepState,
    column: Array,
    innovation: tuple[Array | None, Array, Array],
) -> tuple[Decision, Array]:
    """The decision of SOMA on a proposal to a window of so many records, by its first record and two uniforms."""
    first, select_uniform, accept_uniform = innovation
    raw = target.log_weights_with(state.summary, state.columns, None if first is None else (first, attempts), column)
    weights = proper_density(raw)
    index, accepted, _ = choose_place(weights, state.log_weight, select_uniform, accept_uniform)
    place = index if first is None else first + index
    return Decision(place, accepted, weights[index]), ~jnp.all(raw < jnp.inf)


def choose_attempts(key: Key, model: Model, release: Release, latent: Latent, parameters: Parameters) -> int:
    """The smallest power of two (or n) at which SOMA accepts 90 % as often as with n, or with 1,024 attempts.

    Parameters
    ----------
    latent
        The records of the chains, leaves [chain, ...].
    parameters
        Their parameters, leaves [chain, ...].
    """
    sizes = candidate_sizes(release.n)
    keys = jax.random.split(key, latent.log_density.shape[0])
    rates = mean_acceptance(model, sizes, release, latent, parameters, keys)
    return next(size for size, rate in zip(sizes, rates, strict=True) if rate >= ENOUGH * rates[-1])


def candidate_sizes(n: int, most: int = MAX_ATTEMPTS) -> tuple[int, ...]:
    """The powers of two below n, and n, all at most `most`."""
    largest = min(n, most)
    return (*(2**power for power in range(largest.bit_length()) if 2**power < largest), largest)


@partial(jit_model, static_argnames=("sizes",))
def mean_acceptance(
    model: Model, sizes: tuple[int, ...], release: Release, latent: Latent, parameters: Parameters, keys: Key
) -> Array:
    """The acceptance probability for each number of attempts [sizes], averaged over proposals and chains."""

    def chain(key: Key, latent: Latent, parameters: Parameters) -> Array:
        proposals = release.contributions(model.sample_records(key, parameters, NUM_PROPOSALS)).T
        tried = release.contributions(jax.tree.map(lambda field: field[: sizes[-1]], latent.records))
        residual = release.noisy_sum - latent.statistic

        def proposal(contribution: Array) -> Array:
            log_weights = proper_density(release.log_densities_at((residual - contribution)[:, None] + tried))
            return expected_acceptance(log_weights, latent.log_density, sizes)

        return jnp.mean(jax.vmap(proposal)(proposals), axis=0)

    return jnp.mean(jax.vmap(chain)(keys, latent, parameters), axis=0)


def expected_acceptance(log_weights: Array, log_current: Array, sizes: tuple[int, ...]) -> Array:
    """Σ (w_i / W) α_i over the first m records [sizes]: the chance that a proposal of given weights is accepted."""
    scale = jnp.maximum(jnp.max(log_weights), log_current)
    weights, current = jnp.exp(log_weights - scale), jnp.exp(log_current - scale)

    def first(size: int) -> Array:
        tried = weights[:size]
        total = jnp.sum(tried)
        return jnp.sum(tried / jnp.maximum(jnp.maximum(total, total - tried + current), jnp.finfo(tried.dtype).tiny))

    return jnp.stack([first(size) for size in sizes])
