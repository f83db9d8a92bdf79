"""A neural posterior estimate: a Normal whose mean and covariance a network finds from the released values.

It is trained on simulations from the prior. Xiong, Ju and Zhang (2023, arXiv 2310.12781) train a normalizing flow
instead, in rounds of simulations that come closer and closer to the release.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import dpjax

WIDTHS = (64, 64)
BATCH, RATE = 500, 3e-3


def fit(key: jax.Array, model: dpjax.Model, release: dpjax.Release, simulations: int, epochs: int) -> Any:
    """The mean [k] and the standard deviations [k] of the coefficients, by a network trained on so many simulations."""
    simulate_key, network_key, train_key = jax.random.split(key, 3)
    coef, values = simulate(simulate_key, model, release, simulations)
    centre, spread = jnp.mean(values, axis=0), jnp.std(values, axis=0)
    network = make_network(network_key, (values.shape[1], *WIDTHS, count(coef.shape[1])))
    network = train(train_key, network, (values - centre) / spread, coef, epochs)
    mean, factor = read(apply(network, (release.value - centre) / spread), coef.shape[1])
    inverse = np.linalg.inv(np.asarray(factor, float))
    return np.asarray(mean), np.sqrt(np.diag(inverse.T @ inverse))


def simulate(key: jax.Array, model: dpjax.Model, release: dpjax.Release, number: int) -> tuple[jax.Array, jax.Array]:
    """Coefficients [number, k] from the prior, and a released value [number, d] of records of each."""

    def one(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        prior_key, record_key, noise_key = jax.random.split(key, 3)
        parameters = model.sample_prior(prior_key)
        records = model.sample_records(record_key, parameters, release.n)
        return parameters["coef"], release.sample(noise_key, records).value

    coef, values = jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=BATCH))(jax.random.split(key, number))
    return coef, values


def count(k: int) -> int:
    """The numbers of a mean [k] and a triangle [k, k]."""
    return k + k * (k + 1) // 2


def make_network(key: jax.Array, sizes: tuple[int, ...]) -> list[tuple[jax.Array, jax.Array]]:
    """Weights and offsets of each layer."""
    pairs = zip(sizes, sizes[1:], jax.random.split(key, len(sizes) - 1), strict=False)
    return [(jax.random.normal(one, (i, o)) / jnp.sqrt(i), jnp.zeros(o)) for i, o, one in pairs]


def apply(network: list[tuple[jax.Array, jax.Array]], values: jax.Array) -> jax.Array:
    """The output of the network."""
    *hidden, (weights, offsets) = network
    for layer in hidden:
        values = jax.nn.silu(values @ layer[0] + layer[1])
    return values @ weights + offsets


def read(output: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    """The mean [k], and the triangular factor [k, k] of the inverse of the covariance."""
    factor = jnp.zeros((k, k)).at[jnp.tril_indices(k)].set(output[k:])
    return output[:k], jnp.tril(factor, -1) + jnp.diag(jnp.exp(jnp.diag(factor)))


def train(key: jax.Array, network: Any, values: jax.Array, coef: jax.Array, epochs: int) -> Any:
    """The network after so many passes over the simulations, by Adam with a rate that falls to zero."""
    batches = len(values) // BATCH
    optimizer = optax.adam(optax.cosine_decay_schedule(RATE, epochs * batches))

    def loss(network: Any, rows: jax.Array) -> jax.Array:
        def lost(value: jax.Array, truth: jax.Array) -> jax.Array:
            mean, factor = read(apply(network, value), coef.shape[1])
            return jnp.sum((factor.T @ (truth - mean)) ** 2) / 2 - jnp.sum(jnp.log(jnp.diag(factor)))

        return jnp.mean(jax.vmap(lost)(values[rows], coef[rows]))

    def step(state: Any, rows: jax.Array) -> tuple[Any, None]:
        updates, memory = optimizer.update(jax.grad(loss)(state[0], rows), state[1])
        return (optax.apply_updates(state[0], updates), memory), None

    def epoch(state: Any, key: jax.Array) -> tuple[Any, None]:
        order = jax.random.permutation(key, len(values))
        return jax.lax.scan(step, state, order[: batches * BATCH].reshape(batches, BATCH))

    start = network, optimizer.init(network)
    return jax.jit(lambda keys: jax.lax.scan(epoch, start, keys))(jax.random.split(key, epochs))[0][0]
