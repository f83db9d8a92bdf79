"""The probabilities that NumPyro's distributions give to intervals."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from numpyro import distributions as dist
from numpyro.distributions import constraints

from dpjax._util.validation import fail, name_of
from dpjax.adapters.numpyro.floats import on_floats
from dpjax.adapters.numpyro.form import expand_as
from dpjax.adapters.numpyro.mixtures import distributions_of
from dpjax.adapters.numpyro.trace import unwrap
from dpjax.adapters.numpyro.truncation import BASES, TRUNCATED, bounds, log_density, sum_over_events
from dpjax.base import Array
from dpjax.numerics.incomplete import beta_tails, gamma_tails, normal_tails, student_tails
from dpjax.numerics.intervals import RealDistribution, log_interval_probability
from dpjax.numerics.tails import CAUCHY, LOG_HALF, log_complement, normal_upper

__all__ = ["log_density_between"]

Tails = Callable[[Array], tuple[Array, Array]]
"""See `dpjax.numerics.intervals.RealDistribution`."""


def log_density_between(field: str, distribution: Any, low: Array, high: Array) -> Array:
    """The log-probability of values between two ends, summed over events; the log-density where both ends are one.

    Raises
    ------
    ValueError
        If the distribution has no distribution function.
    """
    inner = unwrap(distribution)
    law = law_of(inner, low)
    if law is None:
        given = f"the field {field!r} of {name_of(inner)}, which has no cdf, for numbers known within intervals"
        expected = "a distribution of NumPyro that has one, such as Normal, LogNormal, Gamma, Weibull, StudentT or Beta"
        fail("model", given, expected, "Choose one of these, or give a Model of your own a `log_density_between`.")
    is_shown = low == high
    # Where it is not wanted, the density is that of a number in the support, if the interval has one.
    place = jnp.where(is_shown, low, jnp.nan)
    for candidate in (high, low, (low + high) / 2):
        finite = jnp.where(jnp.isfinite(candidate), candidate, 0.5)
        place = jnp.where(jnp.isnan(place) & jnp.isfinite(candidate) & inner.support(finite), finite, place)
    shown = log_density(on_floats(inner), jnp.where(jnp.isnan(place), 0.5, place))
    return sum_over_events(distribution, jnp.where(is_shown, shown, log_interval_probability(law, low, high)))


def law_of(inner: Any, like: Array) -> RealDistribution | None:
    """Both tails of values of this shape; None if the distribution has no distribution function."""
    for family, (tails, is_smooth) in FAMILIES.items():
        if isinstance(inner, family):
            return RealDistribution(partial(tails, inner), inner.log_prob if is_smooth else None)
    if isinstance(inner, TRUNCATED):
        return truncated_law(inner, like)
    if isinstance(inner, (dist.MixtureSameFamily, dist.MixtureGeneral)):
        return mixture_law(inner, like)
    if isinstance(inner, dist.TransformedDistribution):
        return transformed_law(inner, like)
    try:
        jax.eval_shape(inner.cdf, like)
    except NotImplementedError:
        return None
    return RealDistribution(lambda x: by_cdf(inner, x))


def symmetric(inner: Any, x: Array) -> tuple[Array, Array]:
    """Both tails of a distribution that is symmetric about its location."""
    place = (x - expand_as(inner.loc, x)) / expand_as(inner.scale, x)
    if isinstance(inner, dist.Normal):
        return normal_tails(place)
    standard = BASES[type(inner)]
    return standard.log_cdf(place), standard.log_cdf(-place)


def folded(inner: Any, x: Array) -> tuple[Array, Array]:
    """Both tails of the size of a variable that is symmetric about 0."""
    place = jnp.abs(x) / expand_as(inner.scale, x)
    upper = (normal_upper(place) if isinstance(inner, dist.HalfNormal) else CAUCHY.log_cdf(-place)) - LOG_HALF
    return above_zero(x, complement(upper), upper)


def above_zero(x: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Both tails of a variable that is never negative, given those at values above 0."""
    return jnp.where(x > 0, lower, -jnp.inf), jnp.where(x > 0, upper, 0.0)


def complement(upper: Array) -> Array:
    """The logarithm of P(X ≤ x) by that of P(X > x), without a slope where nothing is below x."""
    return jnp.where(upper < 0, log_complement(jnp.where(upper < 0, upper, -1.0)), -jnp.inf)


def by_log_survival(x: Array, log_survival: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Both tails by the upper one at values above 0."""
    upper = log_survival(jnp.where(x > 0, x, 1.0))
    return above_zero(x, complement(upper), upper)


def of_gamma(inner: Any, x: Array) -> tuple[Array, Array]:
    """Both tails of a Gamma variable."""
    return above_zero(
        x, *gamma_tails(jnp.where(x > 0, x, 1.0) * expand_as(inner.rate, x), expand_as(inner.concentration, x))
    )


def of_inverse_gamma(inner: Any, x: Array) -> tuple[Array, Array]:
    """Both tails of the inverse of a Gamma variable."""
    return above_zero(
        x, *gamma_tails(expand_as(inner.rate, x) / jnp.where(x > 0, x, 1.0), expand_as(inner.concentration, x))[::-1]
    )


def of_beta(inner: Any, x: Array) -> tuple[Array, Array]:
    """Both tails of a Beta variable."""
    inside = jnp.where((x > 0) & (x < 1), x, 0.5)
    lower, upper = beta_tails(inside, expand_as(inner.concentration1, x), expand_as(inner.concentration0, x))
    lower, upper = above_zero(x, lower, upper)
    return jnp.where(x < 1, lower, 0.0), jnp.where(x < 1, upper, -jnp.inf)


def of_student(inner: Any, x: Array) -> tuple[Array, Array]:
    """Both tails of Student's t."""
    return student_tails((x - expand_as(inner.loc, x)) / expand_as(inner.scale, x), expand_as(inner.df, x))


def of_exponential(inner: Any, x: Array) -> tuple[Array, Array]:
    """Both tails of an Exponential variable."""
    return by_log_survival(x, lambda y: -expand_as(inner.rate, y) * y)


def of_function(inner: Any, x: Array) -> tuple[Array, Array]:
    """Both tails of a rising function of an Exponential variable, such as a Weibull or a Pareto variable."""
    is_share = isinstance(inner, dist.Kumaraswamy)
    inside = jnp.where((x < 1) if is_share else True, x, 0.5)
    lower, upper = by_log_survival(inside, lambda y: -on_floats(inner).transform.noise(y))
    lower, upper = above_zero(x, lower, upper)
    return (jnp.where(x < 1, lower, 0.0), jnp.where(x < 1, upper, -jnp.inf)) if is_share else (lower, upper)


FAMILIES: dict[Any, tuple[Callable[..., tuple[Array, Array]], bool]] = {
    tuple(set(BASES) - {dist.Laplace}): (symmetric, True),
    dist.Laplace: (symmetric, False),
    dist.StudentT: (of_student, True),
    dist.Gamma: (of_gamma, True),
    dist.InverseGamma: (of_inverse_gamma, True),
    dist.Beta: (of_beta, True),
    dist.Exponential: (of_exponential, True),
    dist.Weibull: (of_function, True),
    (dist.Pareto, dist.Kumaraswamy): (of_function, False),
    (dist.HalfNormal, dist.HalfCauchy): (folded, True),
}
"""Distributions whose tails are right at any distance, and whether their density is smooth in the support."""


def by_cdf(inner: Any, x: Array) -> tuple[Array, Array]:
    """Both tails by NumPyro's distribution function, to its own precision."""
    below = jnp.clip(inner.cdf(x), 0.0, 1.0)
    lower = jnp.where(below > 0, jnp.log(jnp.where(below > 0, below, 1.0)), -jnp.inf)
    return lower, jnp.where(below < 1, jnp.log1p(-jnp.where(below < 1, below, 0.0)), -jnp.inf)


def truncated_law(inner: Any, like: Array) -> RealDistribution | None:
    """Both tails of a distribution within bounds, by that of its base."""
    base = law_of(inner.base_dist, like)
    if base is None:
        return None

    def tails(x: Array) -> tuple[Array, Array]:
        low, high = (expand_as(bound, x) for bound in bounds(inner))
        total = log_interval_probability(base, low, high)
        inside = jnp.clip(x, low, high)
        below, above = (log_interval_probability(base, *ends) - total for ends in ((low, inside), (inside, high)))
        below, above = jnp.where(x < high, below, 0.0), jnp.where(x < high, above, -jnp.inf)
        return jnp.where(x > low, below, -jnp.inf), jnp.where(x > low, above, 0.0)

    return RealDistribution(tails)


def mixture_law(inner: Any, like: Array) -> RealDistribution | None:
    """Both tails of a mixture, by those of its components."""
    weights = jax.nn.log_softmax(inner.mixing_distribution.logits)
    parts = [unwrap(part) for part in distributions_of(inner)]
    if isinstance(inner, dist.MixtureSameFamily):
        wide = jnp.broadcast_to(like[..., None], (*like.shape, weights.shape[-1]))
        law = law_of(parts[0], wide)
        laws = None if law is None else [law]
    else:
        found = [law_of(part, like) for part in parts]
        laws = None if any(law is None for law in found) else [law for law in found if law is not None]
    if laws is None:
        return None

    def tails(x: Array) -> tuple[Array, Array]:
        each: Any
        if len(laws) == 1:
            each = laws[0].tails(jnp.broadcast_to(x[..., None], (*x.shape, weights.shape[-1])))
        else:
            each = tuple(jnp.stack(sides, axis=-1) for sides in zip(*(law.tails(x) for law in laws), strict=True))
        lower, upper = (logsumexp(weights + side, axis=-1) for side in each)
        return jnp.minimum(lower, 0.0), jnp.minimum(upper, 0.0)

    return RealDistribution(tails, inner.log_prob if all(law.log_density is not None for law in laws) else None)


def transformed_law(inner: Any, like: Array) -> RealDistribution | None:
    """Both tails of a monotone function of a variable, by those of the variable."""
    base = law_of(unwrap(inner.base_dist), like)
    ends = [codomain_ends(transform) for transform in inner.transforms]
    if base is None or inner.event_shape or any(end is None for end in ends):
        return None

    def tails(x: Array) -> tuple[Array, Array]:
        beyond = jnp.zeros_like(x)
        is_rising = jnp.ones(x.shape, bool)
        for transform, (low, high) in zip(reversed(inner.transforms), reversed(ends), strict=True):  # type: ignore[misc]
            side = jnp.where(is_rising, 1.0, -1.0)
            beyond = jnp.where(beyond != 0, beyond, jnp.where(x <= low, -side, jnp.where(x >= high, side, 0.0)))
            inside = jnp.where((x > low) & (x < high), x, 0.5)
            x, is_rising = transform.inv(inside), is_rising == (transform.sign > 0)
        lower, upper = base.tails(x)
        lower, upper = jnp.where(is_rising, lower, upper), jnp.where(is_rising, upper, lower)
        lower = jnp.where(beyond < 0, -jnp.inf, jnp.where(beyond > 0, 0.0, lower))
        return lower, jnp.where(beyond > 0, -jnp.inf, jnp.where(beyond < 0, 0.0, upper))

    return RealDistribution(tails, None if base.log_density is None else inner.log_prob)


def codomain_ends(transform: Any) -> tuple[float, float] | None:
    """Between which numbers the results of a monotone transform are; None if that is not known."""
    try:
        transform.sign  # noqa: B018
    except NotImplementedError:
        return None
    if transform.codomain is constraints.real:
        return -jnp.inf, jnp.inf
    if transform.codomain is constraints.positive:
        return 0.0, jnp.inf
    return (0.0, 1.0) if transform.codomain is constraints.unit_interval else None
