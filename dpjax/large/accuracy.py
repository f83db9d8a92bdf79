"""How far the quadrature of the moments is from a finer one, in units of what the release leaves open."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Model, Parameters
from dpjax.large.moments import Source, build_moments
from dpjax.large.noise import noise_law
from dpjax.numbered import jit_model
from dpjax.numerics.linear_algebra import factorize, solve_lower
from dpjax.numerics.quadrature import Rule, pad
from dpjax.release import Release
from dpjax.validation import fail

__all__ = ["LARGEST_ERROR", "Errors", "check_errors", "measure_errors"]

LARGEST_ERROR = 0.1
"""Of the mean of the value in its standard deviations, and of its variance in any direction relative to that."""

NUM_DRAWS = 64
"""Draws of the posterior at which the error is measured."""

SHARE = 0.9
"""The error is the one that this share of the draws does not exceed."""


class Errors(NamedTuple):
    """The error of quadrature: of the mean, in standard deviations of the value, and of its variance, relative []."""

    mean: Any
    variance: Any


def measure_errors(
    model: Model, release: Release, source: Source, rule: Any, finer: Any, simulated: Array, parameters: Parameters
) -> Errors:
    """The errors against a finer rule at draws [draw, ...] of the posterior; infinite where they are not numbers."""
    same = pad(rule, len(finer.weights)) if isinstance(rule, Rule) else rule  # by the same program
    coarse, fine = (moments_at(model, release, source, nodes, parameters) for nodes in (same, finer))
    errors = compare(release, noise_law(release, simulated).variance, coarse, fine)
    finite = [np.nan_to_num(np.asarray(error, float), nan=np.inf, posinf=np.inf) for error in errors]
    return Errors(*(float(np.quantile(error, SHARE, method="higher")) for error in finite))


@partial(jit_model, static_argnames=("source",))
def moments_at(
    model: Model, release: Release, source: Source, rule: Any, parameters: Parameters
) -> tuple[Array, Array]:
    """The moments [draw, d] and [draw, d, d] at each draw."""
    return jax.lax.map(build_moments(model, release, source, rule), parameters)


@jax.jit
def compare(release: Release, variance: Array, coarse: tuple[Array, Array], fine: tuple[Array, Array]) -> Errors:
    """The errors [draw] of coarse moments, for noise of this variance [d]."""

    def one(coarse: tuple[Array, Array], fine: tuple[Array, Array]) -> Errors:
        factor = factorize(fine[1] + jnp.diag(variance / release.n))
        shift = jnp.sqrt(jnp.asarray(release.n, variance.dtype)) * solve_lower(factor, (coarse[0] - fine[0])[:, None])
        change = solve_lower(factor, solve_lower(factor, coarse[1] - fine[1]).T)
        return Errors(jnp.sqrt(jnp.sum(jnp.square(shift))), jnp.max(jnp.abs(jnp.linalg.eigvalsh(change))))

    return jax.vmap(one)(coarse, fine)


def choose_draws(draws: Parameters) -> Parameters:
    """Evenly spaced ones among draws [chain, draw, ...] of all chains, on one axis."""
    merged = {name: leaf.reshape(-1, *leaf.shape[2:]) for name, leaf in draws.items()}
    total = len(next(iter(merged.values())))
    chosen = np.linspace(0, total - 1, min(NUM_DRAWS, total)).round().astype(int)
    return {name: jnp.asarray(leaf[chosen]) for name, leaf in merged.items()}


def check_errors(errors: Errors, num_points: int, statistic: str) -> None:
    """Raise if the quadrature is too coarse for the number of records."""
    if max(errors) <= LARGEST_ERROR:
        return
    given = (
        f"{num_points} points, by which the mean of the released sum is off by {errors.mean:.2g} of its standard "
        f"deviation and its variance by {100 * errors.variance:.2g} %"
    )
    remedy = (
        f"Pass more points, which clamps and steps of {statistic} need the more the more records there are; or give "
        "the model statistic_moments, or use dpjax.sample."
    )
    fail("num_points", given, f"errors up to {LARGEST_ERROR}, and {100 * LARGEST_ERROR:g} %", remedy)
