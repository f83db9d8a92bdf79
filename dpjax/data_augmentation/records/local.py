"""Local releases: given the parameters the records are independent, so all are updated at once.

Record i has density ∝ f(x_i | θ) η(z_i | x_i). It is drawn exactly if the records are finitely many or a Normal
field meets Laplace or Gaussian noise. Counts without an upper bound are drawn exactly within random windows. Before
that, one independent Metropolis step crosses what no window spans, such as the gap between no event and many. All else
is drawn by that step alone, with a proposal from f(·|θ).
"""

from typing import Any, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp

from dpjax.base import Array, ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters, Records
from dpjax.mechanisms.base import draws_latent_normal
from dpjax.mechanisms.spread import width
from dpjax.models.simulation import init_latent
from dpjax.numerics import accept, decision_uniforms, proper_density, select_indices, tree_where
from dpjax.release import LocalRelease
from dpjax.release.fields import FieldValues

MAX_SUPPORT = 1024
"""Largest number of possible records that are enumerated for an exact draw; beyond, memory [n, c] is too large."""

WINDOW = 16
"""Number of candidates per record. With noise of scale 3 a Poisson regression gained nothing from more."""

MAX_DOUBLINGS = 20
"""Largest exponent of the strides, which are powers of two."""

NOISE_DRAWS = 64
NOISE_WIDTHS = 6


def build_kernel(model: Model, release: LocalRelease) -> ImputationKernel:
    """A kernel that leaves p(records | parameters, release) invariant: exact draws if possible, else Metropolis."""
    domain = model.domain
    if domain.is_finite and domain.size <= MAX_SUPPORT:
        return build_finite_kernel(model, release)
    if model.has("normal_field") and draws_latent_normal(release.channel):
        return build_normal_kernel(model, release)
    if has_windows(release, model):
        return in_turn(build_metropolis_kernel(model, release), build_window_kernel(model, release))
    return build_metropolis_kernel(model, release)


def build_finite_kernel(model: Model, release: LocalRelease) -> ImputationKernel:
    """Exact draws from p(records | parameters, release) by enumeration of the possible records [c]."""
    support = model.domain()
    # The channel does not change: its log-densities [n, c] are computed once, when the kernel is built.
    log_channel = release.log_densities_of_support(support)

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        log_probability = log_density_of_support(model, parameters, latent.records, support) + log_channel
        cells, _ = select_indices(log_probability.T, jax.random.uniform(rng_key, (release.n,)))
        return exact(release, latent.records | jax.tree.map(lambda field: field[cells], support))

    return step


def log_density_of_support(model: Model, parameters: Parameters, records: Records, support: Records) -> Array:
    """log f(c | θ) of each possible record for each record: [1, c] if identically distributed, else [n, c]."""
    if model.exchangeable:
        return model.log_density(parameters, support)[None, :]

    def everywhere(candidate: Records) -> Array:
        return model.log_density(
            parameters,
            records | {name: jnp.broadcast_to(field, records[name].shape) for name, field in candidate.items()},
        )

    return jax.vmap(everywhere, out_axes=1)(support)


def build_normal_kernel(model: Model, release: LocalRelease) -> ImputationKernel:
    """Exact draws from p(records | parameters, release) for a Normal field seen through Laplace or Gaussian noise."""
    noise: Any = release.channel.noise

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        mean, scale = model.normal_field(parameters)
        values = noise.sample_latent_normal(rng_key, release.values, mean, scale)
        return exact(release, {release.field: values})

    return step


def build_metropolis_kernel(model: Model, release: LocalRelease) -> ImputationKernel:
    """One independent Metropolis step for every record: it leaves p(records | parameters, release) invariant."""

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        proposal_key, accept_key = jax.random.split(rng_key)
        proposals = model.sample_records(proposal_key, parameters, release.n)
        proposed, present = release.log_densities(proposals), release.log_densities(latent.records)
        accepted, broken = accept(proposed, present, jnp.log(decision_uniforms(accept_key, (release.n,))))
        moved = init_latent(release, tree_where(accepted, proposals, latent.records))
        return moved, imputation_info(accepted, jnp.sum(broken))

    return step


def in_turn(first: ImputationKernel, second: ImputationKernel) -> ImputationKernel:
    """The composition of two kernels; the report is that of the second, with the non-finite proposals of both."""

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        first_key, second_key = jax.random.split(rng_key)
        latent, crossed = first(first_key, latent, parameters)
        latent, drawn = second(second_key, latent, parameters)
        num_nonfinite = crossed.num_nonfinite + drawn.num_nonfinite
        return latent, drawn._replace(num_nonfinite=num_nonfinite)

    return step


def exact(release: LocalRelease, records: dict[str, Array]) -> tuple[Latent, ImputationInfo]:
    """The state and report after an exact draw of every record."""
    return init_latent(release, records), imputation_info(jnp.ones(release.n, bool), jnp.array(0))


def imputation_info(accepted: Array, num_nonfinite: Array) -> ImputationInfo:
    """The report of one proposal to each record, accepted or not [n]."""
    return ImputationInfo(jnp.mean(accepted), accepted.astype(int), num_nonfinite)


class LocalWindows(NamedTuple):
    """Candidates [W, n] of the records, and the log-density [W, n] of the released values given each."""

    candidates: Array
    log_channel: Array


def has_windows(release: LocalRelease | None, model: Model) -> TypeGuard[LocalRelease]:
    """Whether there is a local release, and it shows whole numbers."""
    return release is not None and model.count_field is not None and model.count_field == release.field


def draw_windows(key: Key, release: LocalRelease, records: Records, doublings: Array) -> LocalWindows:
    """Windows around the records, with strides that are powers of two up to `doublings`, such as `count_doublings`."""
    offset_key, stride_key = jax.random.split(key)
    values = records[release.field]
    stride = 2 ** jax.random.randint(stride_key, doublings.shape, 0, doublings + 1, values.dtype)
    offsets = jax.random.randint(offset_key, values.shape, 0, WINDOW, values.dtype)
    stride = jnp.broadcast_to(stride, values.shape)[None]
    candidates = values[None] + stride * (jnp.arange(WINDOW, dtype=values.dtype)[:, None] - offsets[None])
    log_channel = jax.vmap(lambda row: release.log_densities(records | {release.field: row}))(candidates)
    return LocalWindows(candidates, log_channel)


def count_doublings(release: FieldValues) -> Array:
    """How often 1 must be doubled for windows of that stride to span some deviations of the channel's noise.

    One number [] for all records; [n] if the channel has parameters of its own for each.
    """

    def deviation_of(channel: Any, value: Array) -> Array:
        return width(jax.random.key(0), channel, value, jnp.std, NOISE_DRAWS)

    if release.varies:
        deviation = release.over_records(deviation_of, release.values)
    else:
        deviation = deviation_of(release.channel, release.largest)
    least, most = release.possible_ends()
    span = jnp.where(jnp.isfinite(most - least), most - least, 0.0)
    deviation = jnp.maximum(deviation, (span if release.varies else jnp.max(span)) / NOISE_WIDTHS)
    wanted = jnp.log2(NOISE_WIDTHS * deviation / WINDOW)
    return jnp.clip(jnp.ceil(jnp.nan_to_num(wanted)), 0, MAX_DOUBLINGS).astype(int)


def log_weights(
    model: Model, release: LocalRelease, windows: LocalWindows, parameters: Parameters, records: Records
) -> Array:
    """The log-density [W, n] of each candidate and of the value released for it, given the parameters.

    Candidates of non-finite density are impossible.
    """

    def log_density(row: Array) -> Array:
        return model.log_density(parameters, records | {release.field: row})

    return proper_density(jax.vmap(log_density)(windows.candidates) + windows.log_channel)


def choose_candidates(key: Key, windows: LocalWindows, weights: Array) -> Array:
    """One candidate [n] for each record, with probabilities proportional to exp(weights)."""
    chosen = jax.random.categorical(key, weights, axis=0)
    return jnp.take_along_axis(windows.candidates, chosen[None], axis=0)[0]


def build_window_kernel(model: Model, release: LocalRelease) -> ImputationKernel:
    """Exact draws of all records within windows: they leave p(records | parameters, release) invariant."""
    doublings = count_doublings(release)

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        window_key, choice_key = jax.random.split(rng_key)
        windows = draw_windows(window_key, release, latent.records, doublings)
        weights = log_weights(model, release, windows, parameters, latent.records)
        drawn = latent.records | {release.field: choose_candidates(choice_key, windows, weights)}
        return init_latent(release, drawn), ImputationInfo(jnp.ones(()), jnp.ones(release.n, int), jnp.array(0))

    return step
