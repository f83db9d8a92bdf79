"""The released sum by quadrature over the noise of the records: a function of parameters and of that noise's frame."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from dpjax.base import Array, Model, Parameters
from dpjax.mechanisms.base import parts_of
from dpjax.mechanisms.spread import simulated_variance
from dpjax.models.noise_columns import num_rows, records_at
from dpjax.numerics import affine
from dpjax.numerics.affine import Frame
from dpjax.numerics.linear_algebra import factorize, product
from dpjax.numerics.quadrature import Rule, make_rule
from dpjax.release import Release

__all__ = ["Sums", "build_sums", "noise_variance"]

Sums = Callable[[Parameters, Array], Array]
"""``(parameters, coordinates [m] of a frame) -> [d]``."""

LEAST_NODES, MOST_NODES = 512, 4_096
RECORDS_PER_NODE = 32
"""So that all evaluations at the nodes together cost about as much as one at the records."""


def build_sums(model: Model, release: Release) -> Sums:
    """The sum of the statistic over n records whose noise has a given frame and is otherwise as Normal noise is.

    The nodes have mean 0 and unit covariance, so that the sum is that of the records themselves wherever a statistic is
    a polynomial of at most second degree in their noise.
    """
    k, n = num_rows(model), release.n
    nodes, weights = standard_rule(k, n)

    def sums(parameters: Parameters, coordinates: Array) -> Array:
        columns = affine.to_frame(coordinates, k, n).place(nodes)
        return n * product(release.contributions(records_at(model, parameters, columns)), weights)

    return sums


def standard_rule(k: int, n: int) -> Rule:
    """Nodes [k, q] and weights [q] of mean 0 and unit covariance, more of them the more records there are."""
    with jax.ensure_compile_time_eval():
        nodes, weights = make_rule(jax.random.key(0), k, min(max(n // RECORDS_PER_NODE, LEAST_NODES), MOST_NODES))
        mean = product(nodes, weights)
        spread = nodes - mean[:, None]
        return Rule(Frame(mean, factorize(product(spread * weights[None], spread.T))).standardise(nodes), weights)


def noise_variance(release: Release) -> Array:
    """The variances [d] of Normal noise as wide as the release's."""
    parts = parts_of(release.mechanism, release.value.size)
    keys = jax.random.split(jax.random.key(0), len(parts))
    pairs = zip(keys, parts, strict=True)
    return jnp.concatenate([simulated_variance(key, part, release.value[where]) for key, (part, where) in pairs])
