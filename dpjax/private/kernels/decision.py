"""The acceptance test of which the decision alone is released: the one that accepts most behind a Gaussian query.

A test that accepts a log ratio r with probability a(r) leaves the posterior invariant if a(r) = e^r a(−r). Its decision
is a function of a Gaussian query of r with noise σ if Φ⁻¹(a(r)) grows by at most 1/σ for each unit of r. It is then
whether Φ⁻¹(a(r)) + Z > 0, Z ~ N(0, 1). At r = 0 both bound a by Φ(−x) with Φ(−x) / φ(x) = 2/σ. From there the
steepest such function is Φ(r/σ − x) for r ≥ 0, and with it a(r) = e^r Φ(−r/σ − x) for r < 0.
"""

from math import log, pi
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr, ndtr, ndtri

from dpjax._util.validation import check_choice, fail
from dpjax.base import Array
from dpjax.private.accounting.query import Query
from dpjax.private.fixed_point import Limbs, steps_of
from dpjax.private.kernels.penalty import PenaltyTest, ProposedMove, Release, clip_ratio
from dpjax.private.noise import Noise
from dpjax.private.targets.target import Target

__all__ = ["AcceptanceTest", "DecisionTest", "Test", "choose_test", "edge", "enlarge", "probit"]

Test = Literal["penalty", "decision"]

FARTHEST = 8.0
"""Probits beyond are moved to it: such decisions go the other way with probability 6 · 10⁻¹⁶."""
SMALLEST, LARGEST, HUGE = 1e-3, 6.0, 1e6
"""Deviations: between the first two the edge is found by iteration, and beyond the last nothing is accepted."""
NEWTON_STEPS = 5
STEEPER = 1e-5
"""By how much of 1/σ a probit may grow faster for an edge in floats; seen: 4 · 10⁻⁷."""
UNITS = 32
"""Rounding of a probit, over (4 + σ) times the unit of the dtype; seen: 3."""


class DecisionTest(NamedTuple):
    """The test that releases its decision, charged as a Gaussian query of the ratio with noise 2τb‖θ − θ′‖.

    Attributes
    ----------
    bound
        b.
    tau
        τ.
    """

    bound: float
    tau: float

    def query(self, noise: Noise) -> Query:
        """What it asks for."""
        return noise.query("acceptance decision", 2 * self.tau, dimension=1)

    def decide(self, target: Target, release: Release, move: ProposedMove, log_uniform: Array) -> tuple[Array, Array]:
        """Whether a proposal is accepted [], and the fraction of clipped ratios [], which is **not private**.

        Never if the log ratio is NaN or −∞, of which only the public part can be.
        """
        del log_uniform
        ratio = clip_ratio(target, move, self.bound)
        total, unit = ratio.likelihood.total, ratio.likelihood.unit
        multiplier = enlarge(self.tau, 2 * self.tau * jnp.asarray(ratio.limit, unit.dtype))
        steps = add(total, ratio.public / unit)
        score = probit(steps / (multiplier * steps_of(unit.dtype)), multiplier * ratio.limit)
        noisy = release(Limbs(score, jnp.zeros_like(score)), 1.0)
        return (noisy > 0) & (ratio.public > -jnp.inf), ratio.likelihood.clipped / target.num_records


AcceptanceTest = PenaltyTest | DecisionTest


def choose_test(name: Test, target: Target, bound: float, **noise: float) -> AcceptanceTest:
    """The acceptance test of a name, for noise given by the name of its argument.

    Raises
    ------
    ValueError
        If there is no such test, or a decision could show more by its rounding than a query of so much noise does.
    """
    check_choice("test", name, ("penalty", "decision"), "Pass 'penalty' to release the noisy ratio.")
    [(argument, tau)] = noise.items()
    if name == "penalty":
        return PenaltyTest(bound, tau)
    dtype = target.dtype
    largest = 1 / (32 * UNITS * float(jnp.finfo(dtype).eps))  # where half of a query's sensitivity is due to rounding
    if tau > largest:
        remedy = "Enable jax_enable_x64, or pass test='penalty'."
        fail(argument, tau, f"at most {largest:.4g} for a decision in {dtype}", remedy)
    return DecisionTest(bound, tau)


def add(total: Limbs, number: Array) -> Array:
    """The sum [] in an order in which numbers that nearly cancel are not rounded, as then one record could be."""
    return (total.high + number) + total.low


def enlarge(tau: float, deviation: Array) -> Array:
    """The noise of a decision in bounds [], at least 2τ, with which it shows no more than noise 2τ in real numbers.

    One record changes a probit by up to 1/m for noise m, and by the rounding of two probits. Infinite if that is more.
    """
    rounding = UNITS * (4 + deviation) * jnp.finfo(deviation.dtype).eps
    left = 1 / (2 * tau) - 2 * rounding
    return jnp.where(left > 0, (1 + STEEPER) / left, jnp.inf)


def probit(ratio: Array, deviation: Array) -> Array:
    """Φ⁻¹(a) [] of the acceptance probability, from r/σ and σ; it grows by at most one for each unit of r/σ."""
    distance = jnp.abs(ratio) - edge(deviation)
    log_ratio = jnp.minimum(ratio, 0.0) * deviation
    rejected = -jnp.expm1(log_ratio) + jnp.exp(log_ratio) * ndtr(-distance)
    # What is small, acceptance or rejection, is computed without the other.
    accepted = jnp.exp(jnp.maximum(log_ratio + log_ndtr(distance), -40.0))
    below = jnp.where(rejected > 0.5, ndtri(accepted), -ndtri(jnp.minimum(rejected, 0.5)))
    return jnp.clip(jnp.where(ratio < 0, below, distance), -FARTHEST, FARTHEST)


def edge(deviation: Array) -> Array:
    """x [] with Φ(−x) / φ(x) = 2/σ, or one that is larger, which keeps both conditions.

    The logarithm of Mills' ratio Φ(−x) / φ(x) is convex: Newton's steps come from below after the first. That starts
    from the root for the upper bound 4 / (3x + √(x² + 8)) of Sampford (1953).
    """
    between = jnp.clip(deviation, SMALLEST, LARGEST)
    start = bounded_edge(between)

    def step(_: int, x: Array) -> Array:
        tail, log_density = log_ndtr(-x), -(x**2) / 2 - log(2 * pi) / 2
        return x - (tail - log_density - jnp.log(2 / between)) / (x - jnp.exp(log_density - tail))

    found = jax.lax.fori_loop(0, NEWTON_STEPS, step, start)
    beyond = jnp.where(deviation < HUGE, bounded_edge(deviation), jnp.inf)
    return jnp.where(deviation <= LARGEST, found, beyond)


def bounded_edge(deviation: Array) -> Array:
    """x [] with 4 / (3x + √(x² + 8)) = 2/σ."""
    return (3 * deviation - jnp.sqrt(deviation**2 + 16)) / 4
