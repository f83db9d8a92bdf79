"""A release in words: what was released, by what noise, and what that promises."""

from collections.abc import Callable
from math import inf, isfinite, log, log1p
from typing import Any, NamedTuple

import numpy as np

from dpjax._util.validation import fail, name_of
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
    haar_sensitivity,
    zcdp_epsilon,
    zcdp_rho,
)
from dpjax.mechanisms.base import Parts, StatesPrivacy, layers, parts_of
from dpjax.mechanisms.privacy import Neighbours
from dpjax.release.local import LocalRelease
from dpjax.release.summed import Release
from dpjax.release.unknown_count import UnknownCount
from dpjax.statistics import Histogram, RecordStatistic, Stacked
from dpjax.statistics.base import dimension_of
from dpjax.statistics.words import amount, sums

__all__ = ["Unpromised", "describe", "local_promise", "promise"]

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
    And ρ is told as ε at δ = 10⁻⁶ (`dpjax.mechanisms.zcdp_epsilon`). All of it presumes noise as the mechanism says:
    that of a program with floating-point numbers has gaps, which only those who made the release can speak of.

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


class Promise(NamedTuple):
    """What is promised of a release.

    Attributes
    ----------
    epsilon
        ε of pure differential privacy; None where there is none.
    rho
        ρ of zero-concentrated differential privacy.
    """

    epsilon: float | None
    rho: float


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


OF_YOUR_OWN = "How far one record can move a function of your own is not known."


class Unpromised(Exception):
    """The reason why nothing is known to be promised, as a sentence."""


class Sums(NamedTuple):
    """Sums that one mechanism protects.

    Attributes
    ----------
    statistic
        The function of one record.
    neighbours
        The neighbouring relation.
    n
        The number of records, or an `dpjax.UnknownCount`.
    """

    statistic: Any
    neighbours: Neighbours
    n: Any

    def sensitivity(self, norm: Any) -> float:
        """How far the sums move between neighbours, or the reason why that is not known."""
        if not isinstance(self.statistic, RecordStatistic):
            raise Unpromised(OF_YOUR_OWN)
        try:
            return self.statistic.sensitivity(norm, self.neighbours)
        except (AttributeError, ValueError):
            raise Unpromised("One record can move the sums without bound.") from None


def pure(epsilon: float) -> Promise:
    """ε-DP, which is ε²/2-zCDP: Bun and Steinke (2016), Proposition 1.4."""
    return Promise(epsilon, epsilon**2 / 2)


def compose(promises: list[Promise]) -> Promise:
    """Independent releases of the same records: ε and ρ add up."""
    epsilons = [one.epsilon for one in promises]
    epsilon = None if None in epsilons else sum(one for one in epsilons if one is not None)
    return Promise(epsilon, sum(one.rho for one in promises))


def promise(release: Release, neighbours: Neighbours) -> Promise:
    """What the released value promises under a neighbouring relation; parts that are exact are left out.

    Raises
    ------
    Unpromised
        If it does not follow from the release.
    """
    protected = [(part, sums) for part, sums in parts(release, neighbours) if not isinstance(part, Exact)]
    if not protected:
        raise Unpromised("The sums were released as they are.")
    return compose([of_sums(part, sums) for part, sums in protected])


def parts(release: Release, neighbours: Neighbours) -> list[tuple[Any, Sums]]:
    """The mechanisms of a release, each with the statistic that it protects."""
    mechanism, statistic = release.mechanism, release.statistic
    if not isinstance(mechanism, Parts):
        return [(mechanism, Sums(statistic, neighbours, release.n))]
    inside = statistic.statistics if isinstance(statistic, Stacked) else ()
    sizes = [dimension_of(one) for one in inside]
    if None in sizes:
        raise Unpromised(OF_YOUR_OWN)
    if sizes != [size for _, size in mechanism.parts]:
        raise Unpromised("Which of the mechanisms protects which statistic is not known.")
    pairs = zip(mechanism.parts, inside, strict=True)
    return [(part, Sums(one, neighbours, release.n)) for (part, _), one in pairs]


def of_sums(mechanism: Any, sums: Sums) -> Promise:
    """What a mechanism promises of sums over records; nothing of a subclass, whose law may be another."""
    derive = DERIVATIONS.get(type(mechanism))
    if derive is None:
        raise Unpromised(f"What {type(mechanism).__name__} promises is not known.")
    return derive(mechanism, sums)


def of_laplace(mechanism: Laplace | DiscreteLaplace, sums: Sums) -> Promise:
    """ε = Δ₁ / b, on sums that are whole in the discrete case."""
    return pure(sums.sensitivity(1) / smallest(mechanism.scale))


def of_gaussian(mechanism: Gaussian | DiscreteGaussian, sums: Sums) -> Promise:
    """ρ = Δ₂² / 2σ²."""
    return Promise(None, zcdp_rho(smallest(mechanism.scale), sums.sensitivity(2)))


def promise_of_censored(mechanism: Censored, sums: Sums) -> Promise:
    """Clamping what is noisy already costs nothing."""
    return of_sums(mechanism.mechanism, sums)


def of_smoothed_histogram(mechanism: SmoothedHistogram, sums: Sums) -> Promise:
    """Theorem 4.2 of Wasserman and Zhou (2010), of a public number of records."""
    if sums.neighbours != "replace-one" or isinstance(sums.n, UnknownCount) or type(sums.statistic) is not Histogram:
        raise Unpromised("It is known of a histogram of a public number of records only, where one is replaced.")
    weight = float(mechanism.weight)
    height = (1 - weight) * sums.statistic.dimension / (weight * sums.n)
    return pure(mechanism.num_draws * log1p(height))


DERIVATIONS: dict[type, Callable[[Any, Sums], Promise]] = {
    Laplace: of_laplace,
    DiscreteLaplace: of_laplace,
    Gaussian: of_gaussian,
    DiscreteGaussian: of_gaussian,
    Censored: promise_of_censored,
    SmoothedHistogram: of_smoothed_histogram,
}


def local_promise(release: LocalRelease) -> Promise:
    """What the channel promises to each person, whatever two values of theirs are compared.

    Raises
    ------
    Unpromised
        If it does not follow from the release.
    """
    channel = release.channel
    coordinates = int(np.prod(release.values.shape[1:], dtype=int))
    if type(channel) is RandomizedResponse:
        epsilon = coordinates * response_epsilon(channel)
    elif type(channel) is HaarWavelet:
        epsilon = haar_sensitivity(channel.resolution) / smallest(channel.scale)
    else:
        raise Unpromised("How far apart two values of a person can be is not part of the release.")
    if not isfinite(epsilon):
        raise Unpromised("Some answers are possible for some values only, and give them away.")
    return pure(epsilon)


def response_epsilon(channel: RandomizedResponse) -> float:
    """The largest log ratio of the probabilities of one answer given two values."""
    if channel.matrix is not None:
        rows = np.asarray(channel.matrix, float)
        possible = rows[:, rows.max(axis=0) > 0]
        return float(np.max(np.log(possible.max(axis=0)) - log_or_minus_inf(possible.min(axis=0))))
    keep = float(channel.keep)  # type: ignore[arg-type]
    other = (1 - keep) / ((channel.num_categories or 2) - 1)
    return abs(log(keep) - log(other)) if other > 0 else inf


def log_or_minus_inf(numbers: np.ndarray) -> np.ndarray:
    """The logarithm, −∞ of 0."""
    return np.log(numbers, out=np.full_like(numbers, -inf), where=numbers > 0)


def smallest(scale: Any) -> float:
    """The smallest scale, which bounds what all promise together."""
    return float(np.min(np.asarray(scale)))
