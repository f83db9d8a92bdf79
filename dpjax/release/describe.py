"""A release in words: what was released, by what noise, and what that promises."""

from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import Any

import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import fail, name_of
from dpjax._util.words import quantity
from dpjax.mechanisms import Privacy, zcdp_epsilon
from dpjax.mechanisms.base import Mechanism, parts_of
from dpjax.mechanisms.privacy import Neighbours
from dpjax.mechanisms.promises import Promise, ProtectedSums, Unpromised
from dpjax.release.base import PrivateRelease, is_release
from dpjax.release.fields import FieldValues
from dpjax.release.levels import in_words
from dpjax.release.local import LocalRelease
from dpjax.release.microdata import Microdata
from dpjax.release.summed import Release
from dpjax.release.unknown_count import UnknownCount, number_in_words
from dpjax.statistics import RecordStatistic, Stacked
from dpjax.statistics.base import Norm, dimension_of, is_whole, words_of

__all__ = ["Unpromised", "describe", "local_promise", "promise"]

DELTA = 1e-6
"""The δ at which ρ is also stated as ε."""

RELATIONS: dict[Neighbours, str] = {
    "replace-one": "If one record is replaced",
    "add-or-remove": "If one record is added or removed",
}


@names_arguments
def describe(release: PrivateRelease) -> str:
    """A release in words: what was released, by what noise, and what that promises.

    A promise is derived from the noise and from what one record can change, under each neighbouring relation. If it
    does not follow, the text says why, and claims nothing; what was stated with the release is repeated as such.

    Parameters
    ----------
    release
        A `dpjax.Release`, a `dpjax.LocalRelease`, `dpjax.Microdata` or one of a kind of your own.

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
    Pure ε has ρ = ε tanh(ε / 2), if no less is known of the mechanism. And ρ is stated as ε at δ = 10⁻⁶
    (`dpjax.mechanisms.zcdp_epsilon`). All of it presumes noise as the mechanism says: that of a program with
    floating-point numbers has gaps, which only those who made the release can speak of. Integer noise gives away sums
    that are not whole: of those that are not known to be, the text says so.

    Examples
    --------
    >>> import dpjax
    >>> visits = dpjax.Release([41.0], dpjax.Laplace(2.0), dpjax.statistics.total("y", 0.0, 4.0), n=20)
    >>> print(dpjax.describe(visits))
    The sum of `y`, clamped to 0 to 4, over n = 20 records: 1 number.
    Noise: Laplace of scale 2.
    If one record is replaced: ε = 2, and so ρ = 1.523.
    If one record is added or removed: ε = 2, and so ρ = 1.523; this does not protect n, which is public.
    Stated with the release: nothing.
    """
    if not is_release(release):
        remedy = "Pass a dpjax.Release, a dpjax.LocalRelease or dpjax.Microdata."
        fail("release", name_of(release), "a release", remedy, error=TypeError)
    if release.local is not None:
        return "\n".join([*local_lines(release.local), stated([release.local.channel])])
    if release.fields:
        sums = [] if release.summed is None else [describe(release.summed)]
        return "\n".join([*microdata_lines(release.microdata), *sums])
    if release.summed is None:
        return f"{release!r}\nWhat a release of this kind promises is not known."
    return "\n".join(sum_lines(release.summed))


def sum_lines(release: Release) -> list[str]:
    """What is said of a sum over the records."""
    what, size = sentence(words_of(release.statistic)), quantity(len(release.value), "number")
    lines = [f"{what}, over {number_in_words(release.n)}: {size}."]
    lines += [f"Noise: {release.mechanism.promise.words()}."]
    lines += [f"{words}: {what_is_kept(release, relation)}." for relation, words in RELATIONS.items()]
    whole = [release.mechanism] if release.mechanism.parts is not None else []
    return [*lines, stated([*whole, *mechanisms(release)])]


def local_lines(release: LocalRelease) -> list[str]:
    """What is said of one value for each person, or for each unit, of which persons are a part."""
    try:
        kept = [f"To each person, whatever two values are compared: {promise_in_words(local_promise(release))}."]
    except Unpromised as reason:
        unknown = f"To each record, whatever two values are compared: no promise is known. {str(reason).rstrip('.')}."
        kept = [unknown, *unit_lines(release.channel)]
    return [
        f"The field {in_words(release.field, release.levels)} of n = {release.n:,} records, one released value each.",
        f"Noise: {release.channel.promise.words()}.",
        *kept,
    ]


def unit_lines(channel: Mechanism) -> list[str]:
    """What noise promises if records are units and a person counts in one; nothing if that does not follow from it."""
    one_count = ProtectedSums(lambda norm: 1.0, "add-or-remove", None, None, True)
    try:
        kept = promise_in_words(channel.promise.of_sums(one_count))
    except Unpromised:
        return []
    whose = "if records are units such as areas, and adding or removing a person moves one of their numbers by 1"
    return [f"To each person, {whose}: {kept}."]


def microdata_lines(release: Microdata) -> list[str]:
    """What is said of several fields of each person."""
    perturbed = [field for field in release.fields.values() if not field.channel.sums.known]
    others = f", of which the last {release.num_others:,} are not in the sum" if release.num_others else ""
    names, in_parts = {field.field for field in release.fields.values()}, fields_in_parts(release)
    lines = [f"{quantity(len(names), 'field')} of n = {release.n:,} records{others}."]
    for key, field in release.fields.items():
        gaps = int(np.sum(release.missing.get(key, 0)))
        if field.field in in_parts:
            ends = f", of {quantity(release.n - gaps, 'record')}."
        else:
            ends = f"; missing in {quantity(gaps, 'record')}." if gaps else "."
        lines.append(f"{in_words(field.field, field.levels)}: {field.channel.promise.words()}{ends}")
    try:
        kept = promise_in_words(promise_to_people(release))
    except Unpromised as reason:
        kept = f"no promise is known. {str(reason).rstrip('.')}"
    if len(perturbed) < len(release.fields):
        kept += "; fields that are exact, and which values are missing, are not covered"
    weighted = ["Survey weights, scaled to sum to n: what follows is a pseudo-posterior."]
    return [
        *lines,
        *(weighted if release.weights is not None else []),
        *([f"To each person, whatever two values are compared: {kept}."] if perturbed else []),
        stated([field.channel for field in release.fields.values()]),
    ]


def fields_in_parts(release: Microdata) -> set[str]:
    """The names of the fields that were released in parts."""
    names = [field.field for field in release.fields.values()]
    return {name for name in names if names.count(name) > 1}


def promise_to_people(release: Microdata) -> Promise:
    """What all channels promise together to the person whose values came through the weakest ones.

    A part of a field is left out for those of whom it was not released; one of a whole field counts for everybody.
    """
    perturbed = {key: field for key, field in release.fields.items() if not field.channel.sums.known}
    promises = [local_promise(field) for field in perturbed.values()]
    if not promises:
        return compose([])
    in_parts = fields_in_parts(release)
    present = [
        ~np.asarray(release.missing[key])
        if field.field in in_parts and key in release.missing
        else np.ones(release.n, bool)
        for key, field in perturbed.items()
    ]
    kinds = np.unique(np.array(present).reshape(len(present), release.n).T, axis=0)
    composed = [compose([one for one, seen in zip(promises, kind, strict=True) if seen]) for kind in kinds]
    # Another person may have the largest ε than has the largest ρ.
    return weakest(composed)


def what_is_kept(release: Release, neighbours: Neighbours) -> str:
    """What the value promises under a relation, or why that is not known."""
    try:
        kept = promise_in_words(promise(release, neighbours))
    except Unpromised as reason:
        return f"no promise is known. {str(reason).rstrip('.')}"
    counted = neighbours == "add-or-remove" and not isinstance(release.n, UnknownCount)
    limits = ["this does not protect n, which is public"] if counted else []
    if any(part.sums.known for part in mechanisms(release)):
        limits += ["exact sums are not covered"]
    if any(part.sums.whole(1) and not sums.is_whole for part, sums in parts(release, neighbours)):
        limits += ["on whole-valued sums alone"]
    return "; ".join([kept, *limits])


def promise_in_words(kept: Promise) -> str:
    """The numbers of a promise."""
    if kept.epsilon == 0:
        return "ε = 0, since the sums do not tell one record"
    if kept.epsilon is not None:
        return f"ε = {kept.epsilon:.4g}, and so ρ = {kept.rho:.4g}"
    return f"ρ = {kept.rho:.4g}, and so ε = {zcdp_epsilon(kept.rho, DELTA):.4g} at δ = {DELTA:g}"


def mechanisms(release: Release) -> list[Any]:
    """The mechanisms side by side."""
    return [part for part, _ in parts_of(release.mechanism, len(release.value))]


def stated(found: list[Any]) -> str:
    """What was published of the promise, beside the noise."""
    said = [layer.promise.stated for one in found for layer in one._layers]
    words = "; ".join(statement(one) for one in said if isinstance(one, Privacy))
    return f"Stated with the release: {words or 'nothing'}."


def statement(privacy: Privacy) -> str:
    """A promise as it was stated."""
    numbers = {"ε": privacy.epsilon, "δ": privacy.delta, "ρ": privacy.rho}
    given = ", ".join(f"{name} = {value:g}" for name, value in numbers.items() if value is not None)
    whom = "" if privacy.max_rows is None else f", for persons of at most {quantity(privacy.max_rows, 'record')} each"
    return f"{privacy.notion} privacy, {given}, {privacy.neighbours} neighbours{whom}"


def sentence(text: str) -> str:
    """With a capital at its head."""
    return text[0].upper() + text[1:]


OF_YOUR_OWN = "How far one record can move a function of your own is not known."


def sums_of(statistic: Any, neighbours: Neighbours, n: Any) -> ProtectedSums:
    """The sums of a statistic over n records, as far as they matter to a promise."""
    known = None if isinstance(n, UnknownCount) else n
    counts = isinstance(statistic, RecordStatistic) and statistic.counts_each_once
    sensitivity = partial(sensitivity_of, statistic, neighbours)
    return ProtectedSums(
        sensitivity, neighbours, known, dimension_of(statistic) if counts else None, is_whole(statistic)
    )


def sensitivity_of(statistic: Any, neighbours: Neighbours, norm: Norm) -> float:
    """How far the sums move between neighbours, or the reason why that is not known."""
    if not isinstance(statistic, RecordStatistic):
        raise Unpromised(OF_YOUR_OWN)
    try:
        return statistic.sensitivity(norm, neighbours)
    except TypeError:
        raise Unpromised(OF_YOUR_OWN) from None
    except ValueError:  # by which statistics say that they have no bound
        raise Unpromised("One record can move the sums without bound.") from None


def compose(promises: list[Promise]) -> Promise:
    """Independent releases of the same records: ε and ρ add up."""
    return combine(sum, promises)


def weakest(promises: list[Promise]) -> Promise:
    """What each of several promises implies: the largest ε and the largest ρ."""
    return combine(max, promises)


def combine(by: Callable[[list[float]], float], promises: list[Promise]) -> Promise:
    """ε and ρ, each combined by itself; no ε if one of the promises has none."""
    epsilons = [one.epsilon for one in promises if one.epsilon is not None]
    epsilon = by(epsilons) if len(epsilons) == len(promises) else None
    return Promise(epsilon, by([one.rho for one in promises]))


def promise(release: Release, neighbours: Neighbours) -> Promise:
    """What the released value promises under a neighbouring relation; parts that are exact are left out.

    Raises
    ------
    Unpromised
        If it does not follow from the release.
    """
    protected = [(part, sums) for part, sums in parts(release, neighbours) if not part.sums.known]
    if not protected:
        raise Unpromised("The sums were released as they are.")
    return compose([part.promise.of_sums(sums) for part, sums in protected])


def parts(release: Release, neighbours: Neighbours) -> list[tuple[Any, ProtectedSums]]:
    """The mechanisms of a release, each with the sums that it protects."""
    found, statistic = release.mechanism.parts, release.statistic
    if found is None:
        return [(release.mechanism, sums_of(statistic, neighbours, release.n))]
    inside = statistic.statistics if isinstance(statistic, Stacked) else ()
    sizes = [dimension_of(one) for one in inside]
    if None in sizes:
        raise Unpromised(OF_YOUR_OWN)
    if sizes != [size for _, size in found]:
        raise Unpromised("Which of the mechanisms protects which statistic is not known.")
    return [(part, sums_of(one, neighbours, release.n)) for (part, _), one in zip(found, inside, strict=True)]


def local_promise(release: FieldValues) -> Promise:
    """What the channel promises to each person, whatever two values of theirs are compared.

    Raises
    ------
    Unpromised
        If it does not follow from the release.
    """
    num_coordinates = int(np.prod(release.values.shape[1:], dtype=int))
    kept = release.channel.promise.local(num_coordinates)
    if not isfinite(kept.rho):
        raise Unpromised("Some answers are possible for some values only, and give them away.")
    return kept
