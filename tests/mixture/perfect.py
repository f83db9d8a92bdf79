"""The joint-distribution test of a mixture: a chain started from the joint distribution of everything must stay in it.

Thousands of chains each draw a concentration, a mixing measure, labels, records and released values, then run a few
sweeps. The number of clusters keeps its law, the noise that the records imply keeps the channel's, and so do the
parameters of the first record's cluster. In place of the channel there may be a release of all records, of which the
mechanism, statistic and n count.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import dpjax
from dpjax.mixture import NormalInverseGamma
from dpjax.mixture.base import Mixing
from dpjax.mixture.binned import bin_release
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.samplers.base import Setup, step
from dpjax.mixture.samplers.weights import start_concentration
from dpjax.models import GammaPrior
from tests.mixture.crp import number_of_clusters

N = 5
NOISE = 0.8
BASE = NormalInverseGamma(0.5, 0.5, 3.0, 2.0)
LAPLACE = stats.laplace(scale=NOISE)


class Ends(NamedTuple):
    """What the chains hold at the end, [chains, ...]."""

    num_clusters: np.ndarray
    noise: np.ndarray
    theta: dict[str, np.ndarray]
    concentration: np.ndarray
    overflow: np.ndarray
    acceptance_rate: np.ndarray


def run(
    key: jax.Array,
    setup: Setup,
    concentration: float | GammaPrior,
    channel: Any,
    *,
    component: Any = BASE,
    discount: float | None = None,
    believed: tuple[Any, ...] | None = None,
    num_chains: int = 4_000,
    num_sweeps: int = 4,
) -> Ends:
    """The state of perfectly started chains after some sweeps.

    Parameters
    ----------
    believed
        The channel, concentration and, if given, component and discount that the sweeps work with, where they are not
        the true ones: a mutation that costs no compilation.
    """
    truth = (channel, concentration, component, discount)
    believed = truth if believed is None else (*believed, *truth[len(believed) :])
    keys = jax.random.split(key, num_chains)
    return Ends(*jax.device_get(simulate(setup, num_sweeps, keys, truth, believed)))


@partial(jax.jit, static_argnums=(0, 1))
def simulate(setup: Setup, num_sweeps: int, keys: jax.Array, truth: tuple, believed: tuple) -> tuple:
    """The ends of all chains."""

    def chain(key: jax.Array) -> tuple:
        alpha_key, stick_key, theta_key, label_key, record_key, value_key, run_key = jax.random.split(key, 7)
        alpha = start_concentration(alpha_key, truth[1])
        sticks = draw_prior_sticks(stick_key, alpha, truth[3], setup.capacity)
        beyond = jnp.cumprod(1 - sticks)
        weights = sticks * jnp.append(jnp.ones_like(beyond[:1]), beyond[:-1])
        theta = truth[2].sample_prior(theta_key, setup.capacity)
        labels = jax.random.categorical(label_key, jnp.log(weights), shape=(N,)).astype(jnp.int32)
        records = truth[2].sample(record_key, {name: leaf[labels] for name, leaf in theta.items()})
        values = release_values(value_key, truth[0], records)
        problem = make_problem(values, *believed)
        mixing = Mixing(weights, theta, beyond[-1])
        state = setup.sampler.init(problem, setup.slots, mixing, alpha, labels, records)

        def move(state: Any, index: jax.Array) -> tuple:
            return step(problem, setup, jax.random.fold_in(run_key, index), state)

        state, info = jax.lax.scan(move, state, jnp.arange(num_sweeps))
        first = {name: leaf[state.labels[0]] for name, leaf in state.mixing.theta.items()}
        found = (jnp.sum(state.counts > 0), implied_noise(truth[0], values, state.records), first)
        return *found, state.concentration, info.overflow, info.acceptance_rate

    return jax.vmap(chain)(keys)


def draw_prior_sticks(key: jax.Array, alpha: jax.Array, discount: jax.Array | None, size: int) -> jax.Array:
    """The sticks [size] of the process."""
    if discount is None:
        return 1 - jax.random.uniform(key, (size,)) ** (1 / alpha)
    d = jnp.asarray(discount, float)
    return jax.random.beta(key, 1 - d, alpha + d * jnp.arange(1, size + 1, dtype=d.dtype))


def release_values(key: jax.Array, channel: Any, records: jax.Array) -> jax.Array:
    """What is released of the records [N]."""
    if isinstance(channel, dpjax.Release):
        return channel.sample(key, as_fields(channel, records)).value
    return records if channel is None else jax.vmap(channel.sample)(jax.random.split(key, N), records)


def make_problem(values: jax.Array, channel: Any, concentration: Any, component: Any, discount: Any) -> MixtureProblem:
    """What the sweeps believe."""
    if isinstance(channel, dpjax.Release):
        channel = bin_release(replace(channel, value=values))
    return MixtureProblem(values, channel, component, concentration, discount)


def implied_noise(channel: Any, values: jax.Array, records: jax.Array) -> jax.Array:
    """The noise that turns the records into what was released."""
    if not isinstance(channel, dpjax.Release):
        return values - records
    total = channel.total(as_fields(channel, records))
    return rank_draws(channel, values, total) if hasattr(channel.mechanism, "value_size") else values - total


def rank_draws(channel: dpjax.Release, values: jax.Array, total: jax.Array) -> jax.Array:
    """The rank among all values possible of each draw from a smoothed histogram, given its density: uniform."""
    heights = (1 - channel.mechanism.weight) * total / channel.n + channel.mechanism.weight / len(total)
    places = values * len(total)
    below = jnp.arange(len(total), dtype=places.dtype)[None] - places[:, None]
    return jnp.sum(heights[None] * jnp.clip(-below, 0, 1), axis=1)


def as_fields(release: dpjax.Release, records: jax.Array) -> dict[str, jax.Array]:
    return {release.statistic.field: records}


BASE_LAWS = {"mean": stats.t(6.0, loc=0.5, scale=np.sqrt(2.0 / 3.0 / 0.5)), "variance": stats.invgamma(3.0, scale=2.0)}


def p_value(
    ends: Ends,
    concentration: float | GammaPrior,
    noise_law: Any = LAPLACE,
    laws: dict[str, Any] = BASE_LAWS,
    discount: float = 0.0,
) -> float:
    """The smallest p-value, times their number, that the ends follow the laws they began with."""
    p_values = [cluster_p_value(ends.num_clusters, concentration, discount)]
    if noise_law is not None:
        p_values += [stats.kstest(ends.noise[:, place], noise_law.cdf).pvalue for place in (0, -1)]
    p_values += [stats.kstest(ends.theta[name], law.cdf).pvalue for name, law in laws.items()]
    if isinstance(concentration, GammaPrior):
        law = stats.gamma(float(concentration.shape), scale=1 / float(concentration.rate))
        p_values.append(stats.kstest(ends.concentration, law.cdf).pvalue)
    return min(1.0, min(p_values) * len(p_values))


def cluster_p_value(num_clusters: np.ndarray, concentration: float | GammaPrior, discount: float = 0.0) -> float:
    """By χ², that the numbers of clusters follow the law that the concentration gives them."""
    law = mean_law_of_clusters(concentration, discount)
    observed = np.bincount(num_clusters, minlength=N + 1)[1:]
    return float(stats.chisquare(observed, law * observed.sum()).pvalue)


def mean_law_of_clusters(concentration: float | GammaPrior, discount: float) -> np.ndarray:
    """P(K = k), averaged over the prior of the concentration where it has one."""
    if not isinstance(concentration, GammaPrior):
        return number_of_clusters(N, concentration, discount)
    law = stats.gamma(float(concentration.shape), scale=1 / float(concentration.rate))
    grid = law.ppf((np.arange(2_000) + 0.5) / 2_000)
    return np.mean([number_of_clusters(N, alpha, discount) for alpha in grid], axis=0)
