"""From confidential records to one release of noisy sums, charged before its noise is drawn."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, prod
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, check_instance, fail, name_of
from dpjax._util.warn import warn_at_the_call
from dpjax.mechanisms import DiscreteLaplace, Gaussian, Independent, Laplace, Mechanism, Privacy
from dpjax.private.accounting.composition import composed_epsilon
from dpjax.private.accounting.ledger import BudgetExceeded, Ledger
from dpjax.private.accounting.query import Budget, Query
from dpjax.private.noise import Noise, Secure, secure
from dpjax.private.noise.discrete_laplace import discrete_laplace
from dpjax.private.noise.secure import rounded_normal
from dpjax.private.people import UNSAID, People, Unsaid, check_said, read_people
from dpjax.private.releases.exact_sum import ExactSum, find_fixed, sum_on_grid
from dpjax.private.releases.layout import Columns, Dtypes, lay_out
from dpjax.private.releases.price import Part, affordable, price, read_statistic
from dpjax.private.releases.records import charged, read_batches
from dpjax.release import Release, UnknownCount
from dpjax.release.checks import PrecisionWarning
from dpjax.release.unknown_count import expected_number
from dpjax.statistics import RecordStatistic
from dpjax.statistics.base import Norm

__all__ = ["check_number_given", "mechanism_of", "noisy", "release"]

REPLACED = (
    "private.release: of the records, {replaced} had an entry that could not be used, such as NaN or a text that is no"
    " level. Each was replaced by a fixed value, and rows without an identifier were left out. This number is not"
    " private: keep it to yourself. Impute such entries beforehand, or leave the records out."
)
"""The warning for the data holder alone."""


@names_arguments
def release(
    ledger: Ledger,
    statistic: RecordStatistic,
    records: Any,
    *,
    n: int | UnknownCount | None = None,
    budget: Budget | None = None,
    shares: Sequence[float] | None = None,
    weights: Sequence[float] | None = None,
    columns: Columns | None = None,
    dtypes: Dtypes | None = None,
    people: str | Unsaid | None = UNSAID,
    max_rows: int | None = None,
    normalise: Callable[[Any], Any] | None = None,
    noise: Noise = secure,
    name: str = "release",
) -> Release:
    """Release the sum of a statistic over confidential records with noise: charged once, drawn from for ever.

    `dpjax.sample` draws from the posterior given the release, for as many models and as often as anyone likes, at no
    further cost. The records are read once. The ledger is charged before the noise is drawn, in its file if it has one:
    a process that dies in between loses budget, never privacy.

    Parameters
    ----------
    ledger
        The ledger of these records. Its relation says what is protected, and it is charged one query for each of the
        statistics side by side.
    statistic
        One of `dpjax.statistics`, whose sensitivity is known, of known dimension; a function of your own by
        `dpjax.statistics.clipped`.
    records
        A dict of arrays or lists with one leading axis, a table of pandas, polars or pyarrow, or an iterable of such
        batches, which need not fit into memory together. Fields with declared levels hold their names or codes.
    n
        Under add-or-remove neighbours, if the number of records is confidential: the number if it is public all the
        same, or a `dpjax.UnknownCount`. A count among the sums tells it with noise. Under replace-one it is that of the
        records, and need not be given. If a person can have several rows (``max_rows`` above 1), the number of rows is
        confidential, and n is a `dpjax.UnknownCount`.
    budget
        What this release may cost; by default all that the ledger has left. With δ = 0 the noise is Laplace noise, and
        else Gaussian.
    shares : [k]
        The parts of this cost, which sum to 1, that go to the k statistics of a `dpjax.statistics.stacked`; by default
        equal ones. A statistic that is not stacked has one scale of noise for all coordinates.
    weights : [k]
        In place of shares: those with which the sum of the noise's variances, so weighted, is least.
    columns
        For a table: the column of each field, or a list of columns for a field that is a vector. By default each
        column is a field.
    dtypes
        The type of fields by name, such as ``{"age": int, "x": (float, 2)}`` with the length of a vector. By default
        it is what a statistic of dpjax reads. A function of your own is given the numbers of an array. Of a list, a
        table or an array of objects it is given single floats; of batches it needs the types of all its fields.
    people
        The field or column that says whose a row is, if one person can have several rows. What is promised then is
        promised to people: at most ``max_rows`` rows of each, chosen at random, enter the sum, and the noise covers
        all of them. None states that each row is another person's. It can be left out if the statistic depends on all
        columns of the records, and these are no batches.
    max_rows
        The most rows of one person that enter the sum, with ``people``.
    normalise
        A function of one identifier, such as ``str.strip``, for whole numbers, texts or bytes. By default they are
        compared as they stand: " 7", "7" and 7 are different people. A row of which it fails, or that has no
        identifier, is left out if the number of rows is confidential; else it is a person's of which nothing is known.
    noise
        The source of the noise; with other bytes than those of the operating system it is ``"simulation-grade"``, and
        nothing is promised.
    name
        The name of the queries in the ledger.

    Returns
    -------
    dpjax.Release
        Its mechanism is a `dpjax.Gaussian`; with δ = 0 a `dpjax.DiscreteLaplace` for sums of whole numbers, and a
        `dpjax.Laplace` for others. It is a `dpjax.mechanisms.Independent` of these for statistics side by side. What is
        promised is its ``privacy``. ``to_json`` writes all of it.

    Raises
    ------
    BudgetExceeded
        If the ledger has too little left. Nothing is released then.
    TypeError, ValueError
        If an argument is unusable, or fields have other names or types than the statistic reads. Nothing is charged
        then. If n is not the number of records, or these end in an error or are of unequal number by field. Then the
        ledger is charged first: what an error reveals of a record is not free.
    ImportError
        If cryptography is not installed, which the noise needs.

    Warns
    -----
    PrecisionWarning
        If float32 cannot hold the value to the noise's precision.
    UserWarning
        If records had entries that are none, with their number, which is not private. It comes last.

    Notes
    -----
    *Gaussian noise.* Contributions are added as integers, in steps of at most 2⁻³² of the noise's standard deviation σ,
    and the noise is a Normal draw rounded to the same steps. So the value is what an ideal Gaussian mechanism releases
    of the rounded sum, rounded: a promise that is exact and composes with everything else in the ledger. The sum of
    counts is exact. For other statistics it is off by at most n 2⁻³³ σ, the only difference from the distribution that
    the release states.

    *People with several rows.* If a person has at most k rows in a sum, adding or removing the person moves it by k
    times the radius of one contribution. Replacing the person moves it by k times the larger of radius and diameter.
    The rows of a person are chosen by random numbers of their own, so that the promise holds for every choice.

    *Laplace noise.* It is drawn exactly, as a whole number of steps with probabilities proportional to
    exp(-|k| step / b), by Algorithm 2 of Canonne, Kamath and Steinke (2020). Sums of whole numbers have steps of 1, and
    others of at most 2⁻³² b, by which their L1 sensitivity is larger for each coordinate. A number takes about 15 µs.

    *What is read.* Before the charge no record is looked at, only names and types of columns. After it each entry is
    converted by itself to the type of its field, so that none changes what another record contributes. Read are the
    fields on which the statistic depends. An entry that the type does not hold is replaced by a fixed value, as a NaN
    is. So is a whole number that floats do not tell apart, from 2⁵³ on or in float32 2²⁴, for a function of your own
    that did not get ``dtypes``. What is converted before, by ``numpy.array`` or by pandas, has to be converted without
    regard to the records: read a table with types that you state.

    *What stands for an entry that is none.* No category, and so no cell of a table; the centre of bounds, or the edge
    or point in the middle; equal shares; 0 for a function of your own. `RecordStatistic.fixed_values` says it.

    What a record contributes is checked by `RecordStatistic.covers` as it is read. If it is not covered, the
    contribution of a record of fixed values takes its place. Under replace-one the set of all contributions is as wide
    as the statistic says.

    An error tells whoever runs the program something of the records, and so does the running time: neither is for
    publication.

    Examples
    --------
    >>> import dpjax
    >>> from dpjax import private
    >>> ledger = private.Ledger(private.Budget(1.0, 1e-6, neighbours="replace-one"))
    >>> incomes = {"y": [1.2, 0.4, 2.2, 3.1, 0.9, 1.6]}
    >>> published = private.release(ledger, dpjax.statistics.total("y", 0.0, 4.0), incomes)
    >>> published.n, round(published.mechanism.scale, 1), round(ledger.privacy_spent().epsilon, 6)
    (6, 16.9, 1.0)
    """
    check_instance("ledger", ledger, Ledger, "Pass the dpjax.private.Ledger of these records.")
    source = check_arguments(budget, noise, name)
    statistic, relation = read_statistic(statistic), ledger.budget.neighbours
    protected = read_people(people, max_rows, normalise)
    parts = price(statistic, affordable(ledger, budget), relation, shares, weights, protected)
    queries = queries_of(parts, source, name)
    check_number_given(n, relation, protected)
    if not ledger.affordable(queries):
        left = ledger.remaining(parts[0].noise)
        raise BudgetExceeded(f"budget: given {budget}; expected at most what is left, {left}. Ask for less.")
    delta = (budget or ledger.budget).delta
    promise = promise_of(parts, queries, relation, delta, protected) if source.grade == "secure" else None
    blank = Release(jnp.zeros(sum(part.size for part in parts)), mechanism_of(parts, promise), statistic, 1)
    if n is not None:
        blank = announce(blank, n, statistic)
    layout = lay_out(records, statistic, columns, dtypes, protected, blank.check_records)
    check_said(people, layout.beside)
    norm: Norm = 1 if delta == 0 else 2
    find_fixed(statistic, layout.fixed, norm)
    ledger.charge(queries)
    with charged():  # no sooner, or anyone might learn for nothing what the records are
        batches = read_batches(records, layout, protected, source)
        total = sum_on_grid(statistic, batches, steps_of(parts), layout.fixed, norm=norm)
        number = number_of(n, total, relation)
    published = publish(blank, total, number, parts, source, n is not None)
    report(total.num_replaced)
    return published


def check_arguments(budget: Any, noise: Any, name: Any) -> Secure:
    """The source of noise, or an error unless it, budget and name are what they should be."""
    if budget is not None:
        check_instance("budget", budget, Budget, "Pass a dpjax.private.Budget, or leave it out to spend what is left.")
    if not isinstance(noise, Secure):
        remedy = "Leave it out; for a simulation pass private.noise.Secure(numpy_generator.bytes)."
        fail("noise", name_of(noise), "a dpjax.private.noise.Secure", remedy, error=TypeError)
    noise.random_bytes(8)
    check_instance("name", name, str, "Name the query, such as 'census'.")
    return noise


def queries_of(parts: Sequence[Part], noise: Secure, name: str) -> list[Query]:
    """What is charged for each of the statistics side by side."""
    names = [name] if len(parts) == 1 else [f"{name}[{number}]" for number in range(len(parts))]
    return [Query(one, part.multiplier, noise.grade, noise=part.noise) for one, part in zip(names, parts, strict=True)]


def check_number_given(n: Any, neighbours: str, people: People) -> None:
    """Raise unless a confidential number of records is replaced by one that is public, or unknown."""
    if people.can_differ:
        if not isinstance(n, UnknownCount):
            given = f"{n!r}, with max_rows={people.max_rows}"
            remedy = "Pass n=dpjax.UnknownCount(prior): how many rows are left of all people is confidential."
            fail("n", given, "an unknown number of rows", remedy)
        return
    if neighbours == "add-or-remove" and n is None:
        remedy = "Pass n= if the number is public all the same, or n=dpjax.UnknownCount(prior)."
        fail("n", "None, under add-or-remove neighbours", "what readers may know of the number of records", remedy)
    if neighbours == "replace-one" and isinstance(n, UnknownCount):
        fail("n", repr(n), "the number of records, which is public under replace-one", "Leave it out.")
    if n is not None and not isinstance(n, UnknownCount):
        check_count("n", n, "Count the records, or pass dpjax.UnknownCount(prior).", least=0)


def number_of(n: int | UnknownCount | None, total: ExactSum, neighbours: str) -> int | UnknownCount:
    """The number of records to be published, or an error if another was given, or there are none."""
    if not total.num_records and neighbours == "replace-one":  # else whether there are any is confidential
        fail("records", "none", "at least one record", "Pass the records that the sum is over.")
    if isinstance(n, UnknownCount):
        return n
    if n is not None and n != total.num_records:
        fail("n", n, "the number of the records", "Count them, or pass dpjax.UnknownCount(prior).")
    return total.num_records


def promise_of(
    parts: Sequence[Part], queries: Sequence[Query], neighbours: Any, delta: float, people: People
) -> Privacy:
    """What the release promises by itself, at the δ of its budget."""
    epsilon = composed_epsilon(queries, delta, neighbours)
    lengths = [part.sensitivity for part in parts]
    most = people.max_rows if people.can_differ else None
    if delta == 0:
        total = float(np.sum(lengths))
        return Privacy("pure", neighbours, epsilon=epsilon, sensitivity=total, norm=1, max_rows=most)
    length = float(np.linalg.norm(lengths))
    return Privacy("approximate", neighbours, epsilon, delta, sensitivity=length, norm=2, max_rows=most)


def mechanism_of(parts: Sequence[Part], promise: Privacy | None) -> Mechanism:
    """The noise: one mechanism, or several side by side."""
    if len(parts) == 1:
        return family_of(parts[0])(parts[0].scale, privacy=promise)
    noises = tuple(family_of(part)(part.scale) for part in parts)
    return Independent(noises, tuple(part.size for part in parts), privacy=promise)


def family_of(part: Part) -> Callable[..., Mechanism]:
    """The family of the noise; on a fine grid it is the continuous one, rounded."""
    if part.noise == "gaussian":
        return Gaussian
    return DiscreteLaplace if part.step == 1 else Laplace


def announce(blank: Release, n: int | UnknownCount, statistic: RecordStatistic) -> Release:
    """The release of the largest sum that there could be, which is warned of if single precision cannot hold it."""
    largest = ceil(expected_number(n) * statistic.radius(2))  # some noise is whole
    return replace(blank, value=jnp.full(len(blank.value), largest, blank.value.dtype), n=n)


def publish(
    blank: Release, total: ExactSum, n: int | UnknownCount, parts: Sequence[Part], noise: Secure, is_announced: bool
) -> Release:
    """The release of a total with its noise; what it is warned of, unless it was announced, does not lose it."""
    value = jnp.asarray(noisy(total.steps, parts, noise))
    with warnings.catch_warnings():
        if is_announced:
            warnings.simplefilter("ignore", PrecisionWarning)
        try:
            return replace(blank, value=value, n=n)
        except PrecisionWarning:  # filters that make errors of warnings
            warnings.simplefilter("ignore", PrecisionWarning)
            return replace(blank, value=value, n=n)


def report(replaced: int) -> None:
    """Warn the data holder of records that were replaced; filters that make errors of warnings lose no release."""
    if not replaced:
        return
    said = REPLACED.format(replaced=replaced)
    try:
        warn_at_the_call(said)
    except UserWarning:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warn_at_the_call(said)


def noisy(steps: np.ndarray, parts: Sequence[Part], noise: Secure) -> np.ndarray:
    """Integers [..., d] in steps of a grid plus noise in whole steps, as floats [..., d]."""
    drawn = [noise_in_steps(part, (*steps.shape[:-1], part.size), noise) for part in parts]
    return np.asarray((steps + np.concatenate(drawn, axis=-1)).astype(float) * steps_of(parts))


def noise_in_steps(part: Part, shape: tuple[int, ...], noise: Secure) -> np.ndarray:
    """The noise of the coordinates of a part, as Python's integers."""
    if part.noise == "laplace":
        scale = Fraction(part.scale) / Fraction(part.step)
        return discrete_laplace(noise.random_bytes, [scale] * prod(shape)).reshape(shape)
    return rounded_normal(noise.random_bytes, np.full(shape, part.scale / part.step)).astype(object)


def steps_of(parts: Sequence[Part]) -> np.ndarray:
    """The steps [d] of the grids."""
    return np.concatenate([np.full(part.size, part.step) for part in parts])
