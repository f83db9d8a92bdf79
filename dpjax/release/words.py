"""A release in words: what was released, by what noise, and what that promises."""

from collections.abc import Callable
from typing import Any

from dpjax.mechanisms import (
    Censored,
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Gaussian,
    HaarWavelet,
    Laplace,
    PartitionSelection,
    Privacy,
    RandomizedResponse,
    SmoothedHistogram,
    zcdp_epsilon,
)
from dpjax.mechanisms.base import Parts, StatesPrivacy, layers, parts_of
from dpjax.mechanisms.privacy import Neighbours
from dpjax.release.local import LocalRelease
from dpjax.release.promises import Promise, Unpromised, local_promise, promise
from dpjax.release.summed import Release
from dpjax.release.unknown import UnknownCount
from dpjax.statistics.words import amount, sums
from dpjax.validation import fail, name_of

__all__ = ["describe"]

DELTA = 1e-6
"""The δ at which ρ is also told as ε."""

RELATIONS: dict[Neighbours, str] = {
    "replace-one": "Where one record is replaced",
    "add-or-remove": "Where one record is added or removed",
}


def describe(release: Release | LocalRelease) -> str:
    """A release in words: what was released, by what noise, and what that promises.

    A promise is derived from the noise and from what one record can change, under each neighbouring relation. Where it
    does not follow, the text says why, and claims nothing; what was stated with the release is repeated as such.

    Parameters
    ----------
    release
        A `dpjax.Release` or a `dpjax.LocalRelease`.

    Returns
    -------
    str
        One sentence a line.

    Raises
    ------
    TypeError
        If it is no release.

    Notes
    -----
    ε of Laplace noise is Δ₁ / b, ρ of Gaussian noise Δ₂² / 2σ²; independent releases add up; clamping costs nothing.
    And ρ is told as ε at δ = 10⁻⁶ (`dpjax.zcdp_epsilon`). All of it presumes noise as the mechanism says: that of a
    program with floating-point numbers has gaps, which only those who made the release can speak of.

    Examples
    --------
    >>> import dpjax
    >>> visits = dpjax.Release([41.0], dpjax.Laplace(2.0), dpjax.statistics.total("y", 0.0, 4.0), n=20)
    >>> print(dpjax.describe(visits))
    The sum of `y`, clamped to 0 to 4, over n = 20 records: 1 number.
    Noise: Laplace of scale 2.
    Where one record is replaced: ε = 2, and so ρ = 2.
    Where one record is added or removed: ε = 2, and so ρ = 2; that n is public is not covered.
    Stated with the release: nothing.
    """
    if isinstance(release, LocalRelease):
        return "\n".join([*local_lines(release), stated([release.channel])])
    if not isinstance(release, Release):
        remedy = "Pass a dpjax.Release or a dpjax.LocalRelease."
        fail("release", name_of(release), "a release", remedy, error=TypeError)
    lines = [
        f"{sentence(sums(release.statistic))}, over {number(release.n)}: {quantity(len(release.value), 'number')}."
    ]
    lines += [f"Noise: {noise(release.mechanism)}."]
    lines += [f"{words}: {told(release, relation)}." for relation, words in RELATIONS.items()]
    return "\n".join([*lines, stated(mechanisms(release))])


def local_lines(release: LocalRelease) -> list[str]:
    """What is said of one value for each person."""
    try:
        kept = promise_in_words(local_promise(release))
    except Unpromised as reason:
        kept = f"no promise is known. {str(reason).rstrip('.')}"
    return [
        f"The field `{release.field}` of n = {release.n:,} records, one released value each.",
        f"Noise: {noise(release.channel)}.",
        f"To each person, whatever two values are compared: {kept}.",
    ]


def told(release: Release, neighbours: Neighbours) -> str:
    """What the value promises under a relation, or why that is not known."""
    try:
        kept = promise_in_words(promise(release, neighbours))
    except Unpromised as reason:
        return f"no promise is known. {str(reason).rstrip('.')}"
    counted = neighbours == "add-or-remove" and not isinstance(release.n, UnknownCount)
    limits = ["that n is public is not covered"] if counted else []
    if any(isinstance(part, Exact) for part in mechanisms(release)):
        limits += ["exact sums are not covered"]
    return "; ".join([kept, *limits])


def promise_in_words(kept: Promise) -> str:
    """The numbers of a promise."""
    if kept.epsilon is not None:
        return f"ε = {kept.epsilon:.4g}, and so ρ = {kept.rho:.4g}"
    return f"ρ = {kept.rho:.4g}, and so ε = {zcdp_epsilon(kept.rho, DELTA):.4g} at δ = {DELTA:g}"


def mechanisms(release: Release) -> list[Any]:
    """The mechanisms side by side."""
    return [part for part, _ in parts_of(release.mechanism, len(release.value))]


def stated(found: list[Any]) -> str:
    """What was published of the promise, beside the noise."""
    said = [layer.privacy for one in found for layer in layers(one) if isinstance(layer, StatesPrivacy)]
    words = "; ".join(statement(one) for one in said if isinstance(one, Privacy))
    return f"Stated with the release: {words or 'nothing'}."


def statement(privacy: Privacy) -> str:
    """A promise as it was stated."""
    numbers = {"ε": privacy.epsilon, "δ": privacy.delta, "ρ": privacy.rho}
    given = ", ".join(f"{name} = {value:g}" for name, value in numbers.items() if value is not None)
    return f"{privacy.notion} privacy, {given}, {privacy.neighbours} neighbours"


def quantity(size: int, thing: str) -> str:
    """A number of things."""
    return f"{size:,} {thing}{'' if size == 1 else 's'}"


def number(n: Any) -> str:
    """The number of records."""
    return "an unknown number of records" if isinstance(n, UnknownCount) else f"n = {quantity(n, 'record')}"


def sentence(text: str) -> str:
    """With a capital at its head."""
    return text[0].upper() + text[1:]


def noise(mechanism: Any) -> str:
    """The law of the noise."""
    if isinstance(mechanism, Parts):
        return "; ".join(f"{noise(part)} ({quantity(size, 'number')})" for part, size in mechanism.parts)
    known = NOISES.get(type(mechanism))
    return known(mechanism) if known else f"that of {name_of(mechanism)}"


def of_censored(mechanism: Censored) -> str:
    """Noise that is clamped."""
    bounds = {"below": mechanism.lower, "above": mechanism.upper}
    clamped = " and ".join(f"{side} at {amount(bound)}" for side, bound in bounds.items() if bound is not None)
    return f"{noise(mechanism.mechanism)}, then clamped {clamped}"


def of_response(mechanism: RandomizedResponse) -> str:
    """A channel of categories."""
    if mechanism.matrix is not None:
        return f"randomized response by a matrix of {mechanism.num_categories} categories"
    kept = f"the true one of {mechanism.num_categories} categories with probability {amount(mechanism.keep)}"
    return f"randomized response, {kept}"


def of_smoothed(mechanism: SmoothedHistogram) -> str:
    """Draws from a histogram."""
    weight = amount(mechanism.weight)
    return f"{mechanism.num_draws} draws from the histogram, mixed with a uniform law of weight {weight}"


NOISES: dict[type, Callable[[Any], str]] = {
    Laplace: lambda noise: f"Laplace of scale {amount(noise.scale)}",
    Gaussian: lambda noise: f"Gaussian of standard deviation {amount(noise.scale)}",
    DiscreteLaplace: lambda noise: f"discrete Laplace of scale {amount(noise.scale)}",
    DiscreteGaussian: lambda noise: f"discrete Gaussian of scale {amount(noise.scale)}",
    HaarWavelet: lambda noise: (
        f"Laplace of scale {amount(noise.scale)} on Haar coefficients to level {noise.resolution}"
    ),
    Exact: lambda _: "none, these are exact",
    PartitionSelection: lambda rule: f"{noise(rule.mechanism)}, of sums above 0 only",
    Censored: of_censored,
    RandomizedResponse: of_response,
    SmoothedHistogram: of_smoothed,
}
