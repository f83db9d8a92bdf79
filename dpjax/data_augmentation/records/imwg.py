"""Independent Metropolis within Gibbs (IMwG): a fresh draw from the model is proposed for each record.

A proposal y ~ f(·|θ) replaces record i with probability min(1, η(s | Σt − t_i + t(y)) / η(s | Σt)): the kernel of
Ju, Awan, Gong and Rao (2022), Algorithm 1, equation (5). In order, it is the systematic sweep with proposals that do
not depend on the records; at random places, a sweep is a pure function of the proposals, uniforms and places drawn.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import jax.numpy as jnp

from dpjax._util.validation import fail
from dpjax.base import Array, ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters, Records
from dpjax.data_augmentation.records import local
from dpjax.data_augmentation.records.births import build_births_kernel
from dpjax.data_augmentation.records.proposals import (
    check_exchangeable,
    check_noisy,
    finish,
    metropolis,
    proposal_at,
    take_sources,
)
from dpjax.data_augmentation.records.systematic import (
    Window,
    build_systematic_kernel,
    check_window,
    choose_window,
    closed_window,
    window_of,
)
from dpjax.data_augmentation.records.unknown_number import DataSetSum, data_set_form
from dpjax.numerics import decision_uniforms
from dpjax.release import LocalRelease, PrivateRelease, Release
from dpjax.release.summed import as_sum


@dataclass(frozen=True)
class IMwG:
    """IMwG; called with a model and a release, it builds the kernel."""

    scan: Literal["systematic", "random"]
    window: Window = None

    def __call__(self, model: Model, release: PrivateRelease) -> ImputationKernel:
        """A kernel that leaves p(records | parameters, release) invariant."""
        if isinstance(release, LocalRelease):
            return local.build_kernel(model, release)
        release = as_sum(release)
        check_noisy(release, "imwg(...)")
        if isinstance(release.statistic, DataSetSum):
            return build_births_kernel(model, release)
        if self.scan == "systematic":
            proposal = proposal_at(model, correlation=0.0)
            return build_systematic_kernel(model, release, proposal, 1, window_of(self.window))
        check_exchangeable(model, 'imwg(scan="random")')
        return build_random_kernel(model, release)

    @property
    def is_open(self) -> bool:
        """Whether the window is left to the warm-up."""
        return self.window == "auto"

    def closed(self) -> "IMwG":
        """With the default window of the backend."""
        return replace(self, window=closed_window(self.window))

    def adapt(self, key: Key, model: Model, release: PrivateRelease, latent: Latent, parameters: Parameters) -> "IMwG":
        """With the window of least cost at the chains' states."""
        return replace(self, window=choose_window(key, self, model, release, latent, parameters))

    def form(self, model: Model, release: PrivateRelease) -> tuple[Model, PrivateRelease]:
        """Model and release as they are, or those of whole data sets where the number of records is unknown."""
        return data_set_form(model, release) if isinstance(release, Release) else (model, release)


def imwg(scan: Literal["systematic", "random"] = "systematic", window: Window = None) -> IMwG:
    """Impute the records by independent Metropolis within Gibbs.

    Parameters
    ----------
    scan
        ``"systematic"`` proposes one draw for each record in order; ``"random"`` makes n proposals to places drawn
        uniformly with replacement. A local release needs neither: given θ its records are independent, and all are
        updated at once, by exact draws if channel and model allow. Nor does an unknown number of records: each sweep
        then adds, deletes and exchanges records in random order.
    window
        How many proposals of a systematic scan are decided on side by side, in rounds that give the scan in turn: for
        accelerators, whose time depends on the number of steps. 1 decides in turn; None is 1 on a CPU and 256
        elsewhere; ``"auto"`` lets the warm-up of ``dpjax.sample`` choose the width of 64 to 4,096 with the least time
        on an accelerator. Coupled chains and records of an unknown number always decide in turn.

    Raises
    ------
    ValueError, TypeError
        If the scan has another name, or the window is not a positive whole number or ``"auto"``, or one of a random
        scan.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.imwg(scan="random").scan
    'random'
    """
    if scan not in ("systematic", "random"):
        fail("scan", repr(scan), "'systematic' or 'random'", "Choose the order in which records get their proposals.")
    if window is not None:
        window = check_window(window)
        if scan == "random":
            fail(
                "window", window, "None with scan='random'", "Proposals to one place wait for each other: leave it out."
            )
    return IMwG(scan, window)


def build_random_kernel(model: Model, release: Release) -> ImputationKernel:
    """The random-scan kernel: it leaves p(records | parameters, release) invariant."""

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        proposal_key, accept_key, place_key = jax.random.split(rng_key, 3)
        proposals = model.sample_records(proposal_key, parameters, release.n)
        uniforms = decision_uniforms(accept_key, (release.n,))
        places = jax.random.randint(place_key, (release.n,), 0, release.n)
        return random_sweep(release, latent.records, proposals, uniforms, places)

    return step


def random_sweep(
    release: Release, records: Records, proposals: Records, uniforms: Array, places: Array
) -> tuple[Latent, ImputationInfo]:
    """One sweep as a function of its innovations: proposal k is made to record ``places[k]``, for k = 0, ..., n - 1."""
    current = release.contributions(records)
    residual = release.origin - jnp.sum(current, axis=1)

    def attempt(carry: Any, proposal: Any) -> Any:
        residual, log_density, current, source = carry
        index, place, contribution, log_uniform = proposal
        proposed = residual - contribution + current[:, place]
        (residual, log_density), (accepted, broken) = metropolis(release, residual, log_density, proposed, log_uniform)
        current = current.at[:, place].set(jnp.where(accepted, contribution, current[:, place]))
        source = source.at[place].set(jnp.where(accepted, index, source[place]))
        return (residual, log_density, current, source), (accepted, broken)

    steps = (jnp.arange(release.n), places, release.contributions(proposals).T, jnp.log(uniforms))
    start = (residual, release.log_density_at(residual), current, jnp.full(release.n, -1))
    (residual, log_density, _, source), (accepted, broken) = jax.lax.scan(attempt, start, steps)
    counts = jnp.zeros(release.n, int).at[places].add(accepted.astype(int))
    moved = take_sources(source, proposals, records)
    return finish(release, moved, residual, log_density, counts, jnp.sum(broken))
