"""Both tails of the Normal, Gamma, Beta and Student's t distributions in log space, and their derivatives.

The smaller tail is computed, by a series or a continued fraction whose logarithm does not underflow; the other is its
complement. The derivative in the value is the density by the tail. That in a shape is a forward derivative of the loop.
"""

from collections.abc import Callable
from math import log

import jax
import jax.numpy as jnp
from jax.scipy.special import betaln, gammaln
from jax.scipy.stats import norm

from dpjax.base import Array
from dpjax.numerics.tails import log_complement, normal_upper

__all__ = ["beta_tails", "gamma_tails", "normal_tails", "student_tails"]

MOST_ROUNDS = 5_000
"""Most rounds of a loop, each of `TERMS` terms: shapes of a million need so many."""

TERMS = 4
"""Terms in a round: an iteration of the loop costs many times as much as a term."""

BothTails = tuple[Array, Array]
"""The logarithms of P(X ≤ x) and P(X > x)."""


def with_derivatives(tails: Callable[..., BothTails], log_density: Callable[..., Array]) -> Callable[..., BothTails]:
    """``(value, *shapes) -> tails`` with the derivatives of both, given what computes them and the log-density."""

    @jax.custom_jvp
    def both(value: Array, *shapes: Array) -> BothTails:
        return tails(value, *shapes)

    def derive(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[BothTails, BothTails]:
        found, density = both(*primals), log_density(*primals)
        slopes = [sign * jnp.exp(density - jnp.maximum(tail, -1e30)) for sign, tail in zip((1, -1), found, strict=True)]
        changes = [
            jnp.where(tail > -jnp.inf, slope, 0) * tangents[0] for tail, slope in zip(found, slopes, strict=True)
        ]
        for place, tangent in enumerate(tangents[1:], 1):

            def along(shape: Array, place: int = place) -> BothTails:
                return tails(*primals[:place], shape, *primals[place + 1 :])

            _, rates = jax.jvp(along, (primals[place],), (jnp.ones_like(primals[place]),))
            changes = [change + rate * tangent for change, rate in zip(changes, rates, strict=True)]
        return found, (changes[0], changes[1])

    both.defjvp(derive)
    return lambda *given: both(*jnp.broadcast_arrays(*given))


def gamma_log_density(value: Array, shape: Array) -> Array:
    """The log-density of a Gamma variable of rate 1."""
    return (shape - 1) * jnp.log(value) - value - gammaln(shape)


def gamma_by_loops(value: Array, shape: Array) -> BothTails:
    """The tails of a Gamma variable of rate 1 at a value above 0."""
    is_low = value < shape + 1
    front = shape * jnp.log(value) - value - gammaln(shape)
    series = add_series(jnp.where(is_low, value, shape / 2), shape)
    low = front + jnp.log(series)
    high = front + jnp.log(gamma_fraction(jnp.where(is_low, shape + 2, value), shape))
    return choose(is_low, low, high)


def add_series(value: Array, shape: Array) -> Array:
    """1 / a + x / (a (a + 1)) + x² / (a (a + 1) (a + 2)) + ..."""

    def add(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        total, term = carry
        for step in range(1, TERMS + 1):
            term = term * value / (shape + (number * TERMS + step).astype(value.dtype))
            total = total + term
        return total, term

    return until(add, lambda carry: carry[1] > jnp.finfo(value.dtype).eps * carry[0], (1 / shape, 1 / shape))[0]


def gamma_fraction(value: Array, shape: Array) -> Array:
    """Γ(a, x) / (xᵃ e⁻ˣ) as a continued fraction, for x above a + 1."""
    first = value + 1 - shape

    def terms(step: Array) -> tuple[Array, Array]:
        return -step * (step - shape), first + 2 * step

    return 1 / first * lentz(terms, 1 / first)


def beta_log_density(value: Array, first: Array, second: Array) -> Array:
    """The log-density of a Beta variable."""
    return (first - 1) * jnp.log(value) + (second - 1) * jnp.log1p(-value) - log_beta(first, second)


def log_beta(first: Array, second: Array) -> Array:
    """The logarithm of the beta function; JAX's is made for single precision, and off by 5e-8 in double."""
    if first.dtype == jnp.float32:
        return betaln(first, second)
    return gammaln(first) + gammaln(second) - gammaln(first + second)


def beta_by_loops(value: Array, first: Array, second: Array) -> BothTails:
    """The tails of a Beta variable at a value between 0 and 1."""
    return beta_at(jnp.log(value), jnp.log1p(-value), value, 1 - value, first, second)


def beta_at(log_value: Array, log_rest: Array, value: Array, rest: Array, first: Array, second: Array) -> BothTails:
    """The same, given 1 less the value, too, and the logarithms of both."""
    is_low = value < (first + 1) / (first + second + 2)
    front = first * log_value + second * log_rest - log_beta(first, second)
    low = front - jnp.log(first) + jnp.log(beta_fraction(jnp.where(is_low, value, 0.0), first, second))
    high = front - jnp.log(second) + jnp.log(beta_fraction(jnp.where(is_low, 0.0, rest), second, first))
    return choose(is_low, low, high)


def beta_fraction(value: Array, first: Array, second: Array) -> Array:
    """The continued fraction of the incomplete beta function, for values below its mean."""

    def even(step: Array) -> Array:
        return step * (second - step) * value / ((first + 2 * step - 1) * (first + 2 * step))

    def odd(step: Array) -> Array:
        return -(first + step) * (first + second + step) * value / ((first + 2 * step) * (first + 2 * step + 1))

    start = 1 / (1 - (first + second) * value / (first + 1))

    def step(number: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        result, above, below, _ = carry
        for place in range(1, TERMS // 2 + 1):
            at = (number * (TERMS // 2) + place).astype(value.dtype)
            for numerator in (even(at), odd(at)):
                below = 1 / away_from_zero(1 + numerator * below)
                above = away_from_zero(1 + numerator / above)
                result = result * above * below
        return result, above, below, above * below

    one = jnp.ones_like(start)
    return until(step, lambda carry: jnp.abs(carry[3] - 1) > jnp.finfo(value.dtype).eps, (start, one, start, 2 * one))[
        0
    ]


def lentz(terms: Callable[[Array], tuple[Array, Array]], inverse: Array) -> Array:
    """A continued fraction by its first value, by the modified method of Lentz (Thompson and Barnett 1986).

    Parameters
    ----------
    terms
        ``step -> (a, b)``: the numerator and the denominator of each step from 1 on.
    inverse
        1 divided by the first denominator.
    """

    def step(number: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        result, above, below, _ = carry
        for place in range(1, TERMS + 1):
            numerator, denominator = terms((number * TERMS + place).astype(inverse.dtype))
            below = 1 / away_from_zero(numerator * below + denominator)
            above = away_from_zero(denominator + numerator / above)
            result = result * above * below
        return result, above, below, above * below

    one, large = jnp.ones_like(inverse), jnp.full_like(inverse, 1 / jnp.sqrt(jnp.finfo(inverse.dtype).tiny))
    start = (one, large, inverse, 2 * one)
    return until(step, lambda carry: jnp.abs(carry[3] - 1) > jnp.finfo(inverse.dtype).eps, start)[0]


def away_from_zero(number: Array) -> Array:
    """A number, or a tiny one in place of 0."""
    return jnp.where(number == 0, jnp.sqrt(jnp.finfo(number.dtype).tiny), number)


def until(
    step: Callable[..., tuple[Array, ...]], wanted: Callable[..., Array], start: tuple[Array, ...]
) -> tuple[Array, ...]:
    """The carry of a loop after rounds of several terms, as long as more are wanted of some entry."""

    def goes_on(state: tuple[Array, tuple[Array, ...]]) -> Array:
        return (state[0] < MOST_ROUNDS) & jnp.any(wanted(state[1]))

    def turn(state: tuple[Array, tuple[Array, ...]]) -> tuple[Array, tuple[Array, ...]]:
        return state[0] + 1, step(*state)

    return jax.lax.while_loop(goes_on, turn, (jnp.array(0), start))[1]


def choose(is_low: Array, low: Array, high: Array) -> BothTails:
    """Both tails by the lower one where it was computed, else by the upper one."""
    tail = jnp.minimum(jnp.where(is_low, low, high), 0.0)
    other = log_complement(tail)
    return jnp.where(is_low, tail, other), jnp.where(is_low, other, tail)


def student_log_density(value: Array, degrees: Array) -> Array:
    """The log-density of Student's t."""
    return (
        -(degrees + 1) / 2 * jnp.log1p(value**2 / degrees)
        - jnp.log(degrees) / 2
        - log_beta(degrees / 2, jnp.full_like(degrees, 0.5))
    )


def student_by_loops(value: Array, degrees: Array) -> BothTails:
    """The tails of Student's t: half of those of the Beta variable ν / (ν + t²)."""
    size = jnp.abs(value)
    log_ratio = 2 * jnp.log(jnp.maximum(size, jnp.sqrt(jnp.finfo(size.dtype).tiny))) - jnp.log(degrees)
    log_share, log_rest = -jnp.logaddexp(0.0, log_ratio), -jnp.logaddexp(0.0, -log_ratio)
    halves = degrees / 2, jnp.full_like(degrees, 0.5)
    beyond = beta_at(log_share, log_rest, jnp.exp(log_share), jnp.exp(log_rest), *halves)[0] - log(2)
    return symmetric_by(lambda _: beyond)(value)


def symmetric_by(log_tail: Callable[[Array], Array]) -> Callable[[Array], BothTails]:
    """Both tails of a distribution that is symmetric about 0, by the logarithm of P(X > x) for x of at least 0."""

    def tails(value: Array) -> BothTails:
        beyond = log_tail(jnp.abs(value))
        rest = log_complement(beyond)
        return jnp.where(value < 0, beyond, rest), jnp.where(value < 0, rest, beyond)

    return tails


normal_tails = with_derivatives(symmetric_by(normal_upper), norm.logpdf)
"""``(value,)``: those of a standard Normal variable."""

gamma_tails = with_derivatives(gamma_by_loops, gamma_log_density)
"""``(value, shape)``: those of a Gamma variable of rate 1, at values above 0."""

beta_tails = with_derivatives(beta_by_loops, beta_log_density)
"""``(value, first, second)``: those of a Beta variable, at values between 0 and 1."""

student_tails = with_derivatives(student_by_loops, student_log_density)
"""``(value, degrees)``: those of Student's t."""
