"""From confidential records to one release of noisy sums, paid for before its noise is drawn."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_count, check_instance, fail, name_of
from dpjax.mechanisms import Gaussian, Independent, Mechanism, Privacy
from dpjax.private.accounting.composition import composed_epsilon
from dpjax.private.accounting.ledger import BudgetExceeded, Ledger
from dpjax.private.accounting.query import Budget, Query
from dpjax.private.noise import Noise, Secure, secure
from dpjax.private.noise.secure import grid_of, rounded_normal
from dpjax.private.releases.exact_sum import ExactSum, sum_on_grid
from dpjax.private.releases.price import Part, affordable_mu, price, read_statistic
from dpjax.private.releases.records import Columns, read_batches
from dpjax.release import Release, UnknownCount
from dpjax.release.checks import PrecisionWarning
from dpjax.release.unknown_count import expected_number
from dpjax.statistics import RecordStatistic

__all__ = ["mechanism_of", "noisy", "release"]


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
    noise: Noise = secure,
    name: str = "release",
) -> Release:
    """Release the sum of a statistic over confidential records with Gaussian noise: paid once, drawn from for ever.

    `dpjax.sample` draws from the posterior given the release, for as many models and as often as anyone likes, at no
    further cost. The records are read once, and the ledger is charged, in its file where it has one, before the noise
    is drawn: a process that dies in between loses budget, never privacy.

    Parameters
    ----------
    ledger
        The ledger of these records. Its relation says what is protected, and it is charged one query for each of the
        statistics side by side.
    statistic
        One of `dpjax.statistics`, whose sensitivity is known, of known dimension; a function of your own by
        `dpjax.statistics.clipped`.
    records
        A dict of arrays with one leading axis, a pandas DataFrame, or an iterable of such batches, which need not fit
        into memory together.
    n
        Under add-or-remove neighbours, where the number of records is confidential: the number if it is public all the
        same, or a `dpjax.UnknownCount`. A count among the sums tells it with noise. Under replace-one it is that of the
        records, and need not be given.
    budget
        What this release may cost; by default all that the ledger has left.
    shares : [k]
        The parts of this cost, which sum to 1, that go to the k statistics of a `dpjax.statistics.stacked`; by default
        equal ones. A statistic that is not stacked has one scale of noise for all coordinates.
    weights : [k]
        In place of shares: those with which the sum of the noise's variances, so weighted, is least.
    columns
        Of a DataFrame: the column of each field, or a list of columns for a field that is a vector; by default each
        column is a field.
    noise
        The source of the noise; with other bytes than those of the operating system it is ``"simulation-grade"``, and
        nothing is promised.
    name
        The name of the queries in the ledger.

    Returns
    -------
    dpjax.Release
        Its mechanism is a `dpjax.Gaussian`, or `dpjax.Independent` ones for statistics side by side, with what is
        promised as its ``privacy``. ``to_json`` writes all of it.

    Raises
    ------
    BudgetExceeded
        If the ledger cannot pay. Nothing is released then.
    TypeError, ValueError
        If an argument is unusable, or n is not the number of records. Nothing is charged then. If a record has an entry
        that is not finite, or contributes what is not finite or what the statistic's sensitivity is not about. Then the
        ledger is charged first: what an error reveals of a record is not free.
    ImportError
        If cryptography is not installed, which the noise needs.

    Warns
    -----
    PrecisionWarning
        If float32 cannot hold the value to the noise's precision.

    Notes
    -----
    Contributions are added as integers, in steps of at most 2⁻³² of the noise's standard deviation σ, and the noise is
    a Normal draw rounded to the same steps. So the value is what an ideal Gaussian mechanism releases of the rounded
    sum, rounded: a promise that is exact and composes with everything else in the ledger. Of counts the sum is exact;
    of other statistics it is off by at most n 2⁻³³ σ, the only difference from the law that the release states.

    What a record contributes is checked by `RecordStatistic.covers` as it is read. Under replace-one the set of all
    contributions is as wide as the statistic says.

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
    parts = price(statistic, affordable_mu(ledger, budget), relation, shares, weights)
    queries = queries_of(parts, source, name)
    check_number_given(n, relation)
    if not ledger.affordable(queries):
        raise BudgetExceeded(f"budget: given {budget}; expected what {ledger} has left. Ask for less.")
    scale = np.concatenate([np.full(part.size, part.scale) for part in parts])
    step = grid_of(scale)
    delta = (budget or ledger.budget).delta
    promise = promise_of(parts, queries, relation, delta) if source.grade == "secure" else None
    blank = Release(jnp.zeros(len(scale)), mechanism_of(parts, promise), statistic, 1)
    if n is not None:
        blank = announce(blank, n, statistic)
    total = sum_on_grid(statistic, read_batches(records, columns, blank.check_records), step)
    if not total.num_records and relation == "replace-one":  # else whether there are any is confidential
        fail("records", "none", "at least one record", "Pass the records that the sum is over.")
    number = number_of(n, total)
    if n is None:
        blank = announce(blank, number, statistic)
    ledger.charge(queries)
    total.faults.check()  # no sooner, or anyone might learn for nothing that such a record is there
    return publish(blank, total, scale, step, source)


def check_arguments(budget: Any, noise: Any, name: Any) -> Secure:
    """The source of noise, or an error unless it, budget and name are what they should be."""
    if budget is not None:
        check_instance("budget", budget, Budget, "Pass a dpjax.private.Budget, or leave it out to spend what is left.")
    if not isinstance(noise, Secure):
        remedy = "Leave it out; for a simulation pass private.noise.Secure(numpy_generator.bytes)."
        fail("noise", name_of(noise), "a dpjax.private.noise.Secure", remedy, error=TypeError)
    noise.keystream(8)
    check_instance("name", name, str, "Name the query, such as 'census'.")
    return noise


def queries_of(parts: Sequence[Part], noise: Secure, name: str) -> list[Query]:
    """What is charged for each of the statistics side by side."""
    names = [name] if len(parts) == 1 else [f"{name}[{number}]" for number in range(len(parts))]
    return [Query(one, part.multiplier, noise.grade) for one, part in zip(names, parts, strict=True)]


def check_number_given(n: Any, neighbours: str) -> None:
    """Raise unless a confidential number of records is replaced by one that is public, or unknown."""
    if neighbours == "add-or-remove" and n is None:
        remedy = "Pass n= if the number is public all the same, or n=dpjax.UnknownCount(prior)."
        fail("n", "None, under add-or-remove neighbours", "what readers may know of the number of records", remedy)
    if neighbours == "replace-one" and isinstance(n, UnknownCount):
        fail("n", repr(n), "the number of records, which is public under replace-one", "Leave it out.")
    if n is not None and not isinstance(n, UnknownCount):
        check_count("n", n, "Count the records, or pass dpjax.UnknownCount(prior).", least=0)


def number_of(n: int | UnknownCount | None, total: ExactSum) -> int | UnknownCount:
    """The number of records to be published, or an error where another was given."""
    if isinstance(n, UnknownCount):
        return n
    if n is not None and n != total.num_records:
        fail("n", n, "the number of the records", "Count them, or pass dpjax.UnknownCount(prior).")
    return total.num_records


def promise_of(parts: Sequence[Part], queries: Sequence[Query], neighbours: Any, delta: float) -> Privacy:
    """What the release promises by itself, at the δ of its budget."""
    epsilon = composed_epsilon(queries, delta, neighbours)
    length = float(np.linalg.norm([part.sensitivity for part in parts]))
    return Privacy("approximate", neighbours, epsilon=epsilon, delta=delta, sensitivity=length, norm=2)


def mechanism_of(parts: Sequence[Part], promise: Privacy | None) -> Mechanism:
    """The noise: one Gaussian, or several side by side."""
    if len(parts) == 1:
        return Gaussian(parts[0].scale, privacy=promise)
    noises = tuple(Gaussian(part.scale) for part in parts)
    return Independent(noises, tuple(part.size for part in parts), privacy=promise)


def announce(blank: Release, n: int | UnknownCount, statistic: RecordStatistic) -> Release:
    """The release of the largest sum that there could be, which is warned of where single precision cannot hold it.

    The warning does not depend on the records, and comes before the charge: an error would lose what is paid for.
    """
    largest = expected_number(n) * statistic.radius(2)
    return replace(blank, value=jnp.full(len(blank.value), largest, blank.value.dtype), n=n)


def publish(blank: Release, total: ExactSum, scale: np.ndarray, step: np.ndarray, noise: Secure) -> Release:
    """The release of a total with its noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        return replace(blank, value=jnp.asarray(noisy(total.steps, scale, step, noise)))


def noisy(steps: np.ndarray, scale: np.ndarray, step: np.ndarray, noise: Secure) -> np.ndarray:
    """Integers [d] in steps of a grid plus Normal noise of standard deviation `scale` in whole steps, as floats [d]."""
    return np.asarray((steps + rounded_normal(noise.keystream, scale / step).astype(object)).astype(float) * step)
