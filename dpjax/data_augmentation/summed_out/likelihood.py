"""The density of what was released as a function of the parameters alone, with the hidden records summed out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.printing import Printed
from dpjax._util.spelling import names_arguments
from dpjax._util.validation import fail
from dpjax._util.words import quantity
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.records.microdata import cross, hidden_fields, split_hidden
from dpjax.data_augmentation.summed_out.binomial_field import BinomialField
from dpjax.data_augmentation.summed_out.chains import ChainField, obstacle_to_chain
from dpjax.data_augmentation.summed_out.contract import Likelihood
from dpjax.data_augmentation.summed_out.groups import GroupedTerms
from dpjax.data_augmentation.summed_out.normal_fields import NormalFields, are_normal
from dpjax.data_augmentation.summed_out.normal_within import NormalWithin
from dpjax.data_augmentation.summed_out.rows import Rows, group_each, group_records
from dpjax.data_augmentation.summed_out.tabulated import TabulatedWindows, as_double, in_double_precision, tabulate
from dpjax.data_augmentation.summed_out.terms import Listed, NormalField, NotSummableError, Terms, Windows
from dpjax.data_augmentation.summed_out.totals import GroupTotals, check_straight, find_totals, limited
from dpjax.data_augmentation.summed_out.trees import with_totals
from dpjax.data_augmentation.summed_out.unknown_noise import UnknownNoise, extended, windows_through
from dpjax.data_augmentation.summed_out.windows import FEW_NUMBERS, first_windows, fit_windows, thin_windows
from dpjax.data_augmentation.summed_out.within import fields_within, hold_within
from dpjax.models.checks import check_fit
from dpjax.models.positions import check_parameters
from dpjax.models.programs import as_number, jit_model
from dpjax.models.simulation import draw_parameters, parameter_shapes, some_records
from dpjax.models.within import KnownWithin
from dpjax.numerics import leading_size, take_entry
from dpjax.release import Microdata, PrivateRelease
from dpjax.release.weights import check_unweighted, weighted_people

__all__ = [
    "MarginalLikelihood",
    "marginal_likelihood",
    "obstacle_to_sums",
    "sum_out",
    "sum_out_each",
    "thin",
    "try_sum_out",
]

MAX_COMBINATIONS = 1024
"""Most combinations of the hidden values of a record."""

LARGE = 2**12
"""Numbers that are summed over for all rows; with more, optimised programs are faster, compilation included."""

LEFT_OUT = "left_out"
"""The report on what windows left out."""

NUM_NOISES = 16
"""At how many parameters windows reach as far as noise that is not known."""

FITTED = 1e-10
"""What windows may leave out at the parameters to which they are fitted, so that there is a margin for others."""

MOST_LEFT_OUT = 1e-6
"""Largest share of the likelihood that windows of whole numbers may leave out."""


class MarginalLikelihood(Likelihood, Printed):
    """The log-density of a release given the parameters, with what is hidden of each record summed out.

    A pytree, to be passed to compiled functions and called in them. It is differentiable in the parameters.

    Attributes
    ----------
    model
        The model of the rows.
    terms
        What is hidden of each, and how it is summed out.
    weights
        How many records each row stands for [m]: those that agree in all that is known of them are one row.
    rows
        The row of each record [n].

    Examples
    --------
    >>> import dpjax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> likelihood = dpjax.marginal_likelihood(model, dpjax.LocalRelease([1.0, 9.0], dpjax.Gaussian(1.0), "y"))
    >>> round(float(likelihood({"mean": 2.0})), 3), likelihood.is_approximate
    (-8.447, False)
    """

    model: Model
    terms: Terms
    weights: Array
    rows: Array

    def __repr__(self) -> str:
        lines = [
            f"MarginalLikelihood of {quantity(np.size(self.rows), 'record')}",
            f"model: {repr(self.model).partition(chr(10))[0]}",
            f"summed out by: {type(self.terms).__name__}, {quantity(np.size(self.weights), 'row')}",
        ]
        return "\n".join(lines)

    def build(self) -> Any:
        """The function ``parameters -> []`` with what does not depend on the parameters computed once."""
        terms, weights = self.terms.build(self.model), self.weights
        return lambda parameters: jnp.sum(weights * terms(parameters))

    def check_is_of(self, model: Model, release: PrivateRelease) -> None:
        """See `Likelihood`; windows may be fitted to any parameters, so that they need only agree where they meet."""
        remedy = "Pass dpjax.marginal_likelihood(model, release) of the same model and release."
        if np.size(self.rows) != release.n:
            given = f"one of {quantity(np.size(self.rows), 'record')}"
            fail("likelihood", given, f"one of the release of {quantity(release.n, 'record')}", remedy)
        if release.is_estimated:
            fail("likelihood", "one of known noise", "one of noise that is not known, as the release's is", remedy)
        made = sum_out(model, release)
        one, other = self.whole.terms, made.terms
        alike = have_equal_arrays((self.model, self.rows, self.shares), (made.model, made.rows, made.shares))
        if not (alike and (agree(one, other) if self.is_approximate else have_equal_arrays(one, other))):
            fail("likelihood", "one of another model or release", "one of these", remedy)

    @property
    def shares(self) -> Array:
        """The weights relative to their mean, which a power of the likelihood has, too."""
        return self.weights / jnp.mean(self.weights)

    @property
    def is_approximate(self) -> bool:
        """Whether the sums may leave something out."""
        return self.terms.is_approximate

    @property
    def rounding(self) -> float:
        """The size of rounding errors of the log-density, which is a sum over the rows."""
        return float(64 * len(self.weights) * jnp.finfo(self.weights.dtype).eps)

    @property
    def is_shortened(self) -> bool:
        """Whether some numbers of the windows are left out, or the sums are looked up in a table."""
        strides = self.terms.stride if isinstance(self.terms, Windows) else 1
        return self.is_tabulated or bool(np.any(np.asarray(strides) > 1))

    @property
    def is_tabulated(self) -> bool:
        """Whether the sums are looked up in a table."""
        return isinstance(self.terms, TabulatedWindows)

    @property
    def whole(self) -> "MarginalLikelihood":
        """The likelihood by the sums that a table stands for."""
        return replace(self, terms=self.terms.windows) if isinstance(self.terms, TabulatedWindows) else self

    def tabulated(self, parameters: Parameters, rough: bool = False) -> "MarginalLikelihood | None":
        """The likelihood by a table about parameters [draw, ...], up to a factor that is constant; see `tabulate`."""
        terms = tabulate(self.model, self.terms, parameters, rough) if isinstance(self.terms, Windows) else None
        return None if terms is None else replace(self, terms=terms)

    @property
    def size(self) -> int:
        """How many numbers are summed over, for all rows."""
        return self.terms.size

    @property
    def is_large(self) -> bool:
        """Whether a gradient takes longer than what else a step is made of."""
        return self.size > LARGE

    @property
    def is_limited(self) -> bool:
        """See `Likelihood`: then they are the same for all keys."""
        return self.terms.is_limited and self.size <= FEW_NUMBERS

    @property
    def predicted(self) -> tuple[Model, Records, str] | None:
        """See `Likelihood`; None if what is hidden of a row is not one field."""
        field = self.terms.hidden_field
        return None if field is None else (self.model, self.terms.known, field)

    def left_out(self, parameters: Parameters) -> Array:
        """A bound [] of what the sums leave out of the likelihood, relative to it; 0 if they are exact.

        It is the largest density of the release outside of the numbers summed over, times the probability that the
        model has there.
        """
        return jnp.sum(self.weights * self.terms.left_out(self.model, parameters))

    def tempered(self, power: Array) -> "MarginalLikelihood":
        """The likelihood raised to a power []."""
        return replace(self, weights=power * self.weights)

    def sample_records(self, key: Key, parameters: Parameters) -> Records:
        """A draw of the records [n] given the parameters and the release, exact but for what the sums leave out."""
        if not isinstance(self.model, KnownWithin):
            return self.terms.draw(key, self.model, parameters, self.rows)
        key, within_key = jax.random.split(key)
        drawn = self.terms.draw(key, self.model, parameters, self.rows)
        return self.model.draw(within_key, parameters, drawn, self.rows)


@names_arguments
def marginal_likelihood(
    model: Model, release: PrivateRelease, parameters: Parameters | None = None
) -> MarginalLikelihood:
    """The log-density of a release given the parameters, as a function of these, with the records summed out.

    For a release of values of single records, which are independent of each other given the parameters. What is hidden
    of a record has finitely many values, up to 1,024 combinations; or it is a whole number, summed over a window. Or it
    is a Normal number behind Laplace or Gaussian noise; if Gaussian, also rounded or clamped. Or it is up to eight
    numbers that are Normal together, missing or behind Gaussian noise. Or numbers are known within intervals, as those
    below a limit of detection. Or it is a chain in time, `dpjax.MarkovChain` or `dpjax.NormalChain`.

    Parameters
    ----------
    model
        What is believed about the records.
    release
        A `dpjax.LocalRelease`, or `dpjax.Microdata` without a sum beside the fields. Totals of groups of records may
        be joined to either, if what is hidden of each is one whole number.
    parameters
        Parameters [draw, ...] at which windows of whole numbers are to leave out less than 10⁻⁶ of the likelihood, such
        as draws of a first run. Without them the windows reach as far as the noise.

    Returns
    -------
    MarginalLikelihood
        A function ``parameters -> []``, a pytree. ``left_out(parameters)`` [] bounds what the windows leave out.
        ``sample_records(key, parameters)`` draws the records.

    Raises
    ------
    TypeError, ValueError
        If model and release do not fit, or the records cannot be summed out.

    Examples
    --------
    >>> import dpjax, jax, numpyro
    >>> from numpyro import distributions as dist
    >>> def visits(n, y=None):
    ...     rate = numpyro.sample("rate", dist.Gamma(2.0, 0.1))
    ...     with numpyro.plate("weeks", n):
    ...         numpyro.sample("y", dist.Poisson(rate), obs=y)
    >>> release = dpjax.LocalRelease([12, 19, 15], dpjax.DiscreteLaplace(2.0), field="y")
    >>> likelihood = dpjax.marginal_likelihood(dpjax.from_numpyro(visits, records="y"), release)
    >>> round(float(likelihood({"rate": 15.0})), 3)
    -7.963
    """
    check_fit(model, release)
    if parameters is not None:
        parameters = check_parameters("parameters", model, parameters, num_draws_of(parameters))
    return sum_out(model, release, parameters)


def num_draws_of(parameters: Any) -> tuple[int, ...]:
    """The number of draws as a leading axis, if the parameters are arrays by name."""
    found = [np.shape(leaf)[:1] for leaf in parameters.values()] if isinstance(parameters, dict) else []
    return found[0] if found and found[0] else (1,)


def obstacle_to_sums(model: Model, release: PrivateRelease) -> str:
    """What is in the way of summing the records out; empty if nothing is."""
    if not release.fields:
        return "a sum over the records"
    if release.summed is not None and fields_within(model, release):
        return "a sum beside numbers that are known within intervals"
    model, people = hold_within(model, release.microdata)
    hidden = hidden_fields(model, people)
    groups, others = split_hidden(model, people, hidden)
    if people.summed is not None and isinstance(found := totals_beside(model, people), str):
        return found
    if people.summed is None and closed_form(model, people):
        return ""
    combinations = int(np.prod([leading_size(group) for group in groups]))
    if combinations > MAX_COMBINATIONS:
        return f"{combinations} combinations of the hidden values of a record"
    if not others:
        return ""
    if model.count_field in others and len(hidden) == 1 and not people.exact:
        return ""
    if model.has("chain_field"):
        return obstacle_to_chain(model, people)
    if not groups and are_normal(model, people, others):
        return ""
    return f"the hidden field{'s' if len(others) > 1 else ''} {', '.join(map(repr, others))}"


def have_equal_arrays(one: Any, other: Any) -> bool:
    """Whether two trees have equal arrays up to rounding, whatever the functions of their structure."""
    leaves, others = ([np.asarray(leaf) for leaf in jax.tree.leaves(tree)] for tree in (one, other))
    if [leaf.shape for leaf in leaves] != [leaf.shape for leaf in others]:
        return False
    return all(np.allclose(a, b, rtol=1e-5, equal_nan=True) for a, b in zip(leaves, others, strict=True))


def agree(one: Terms, other: Terms) -> bool:
    """Whether windows know the same of records, and give numbers that both have the same density."""
    if not (isinstance(one, Windows) and isinstance(other, Windows)):
        return True
    if not have_equal_arrays(*({**terms.known, terms.field: terms.seen} for terms in (one, other))):
        return False
    (keys, values), (others, expected) = one.listed, other.listed
    _, here, there = np.intersect1d(keys, others, return_indices=True)
    return np.allclose(values[here], expected[there], rtol=1e-4, atol=1e-4)


def closed_form(model: Model, release: Microdata) -> Any:
    """The kind of closed form that the sum over the one field has; None if it has none."""
    field = next(iter(release.fields.values()))
    kinds = (NormalField, NormalWithin, BinomialField) if len(release.fields) == 1 else ()
    return next((kind for kind in kinds if kind.fits(model, field)), None)


def sum_out(model: Model, release: PrivateRelease, parameters: Parameters | None = None) -> Any:
    """The likelihood; windows of whole numbers are fitted to parameters [draw, ...] if any are given."""
    if release.is_estimated:
        return sum_out_estimated(model, release, parameters)
    if found := obstacle_to_sums(model, release):
        expected = "values of single records, of which what is hidden can be listed"
        check_unweighted(model, release, "release", found)
        remedy = "Impute the records: dpjax.sample(..., imputation=dpjax.imwg())."
        fail(
            "release", found, expected, f"{remedy} Fields that are one state at several times are a dpjax.MarkovChain."
        )
    return sum_freely(model, release, parameters)


def sum_out_estimated(model: Model, release: Any, parameters: Parameters | None) -> UnknownNoise:
    """The likelihood of the parameters and of the numbers of the noise, which are parameters, too.

    Windows of whole numbers reach as far as the noise at any of some parameters [draw, ...], by default of the prior.
    """
    if parameters is None:
        parameters = draw_parameters.unoptimized(jax.random.key(0), extended(model, release), NUM_NOISES)
    number = len(jax.tree.leaves(parameters)[0])
    some = [take_entry(parameters, place) for place in range(0, number, -(-number // NUM_NOISES))]
    known = release.at(some[0])
    check_fit(model, known)
    if found := obstacle_to_sums(model, known):
        expected = "known noise, or values of single records, of which what is hidden can be listed"
        fail("release", f"noise that is not known before {found}", expected, "Pass the numbers of the noise.")
    if within := sorted(set(release.unknown_fields) & set(fields_within(model, known))):
        given = f"intervals of {within[0]!r} that depend on numbers that are not known"
        fail("release", given, "known ends of intervals", "Pass the numbers of that mechanism.")
    alike = group_records(*hold_within(model, weighted_people(model, known)))
    terms = make_terms(alike.model, alike.release, None)
    if isinstance(terms, Windows):
        rows = [release.with_channels(alike.release, one) for one in some]
        terms = windows_through(alike.model, rows, terms.field, terms.known)
    return UnknownNoise(as_likelihood(alike, terms), alike.release, release)


def try_sum_out(model: Model, release: PrivateRelease) -> MarginalLikelihood | None:
    """The likelihood with windows as wide as the noise, or None if the records cannot be summed out.

    Such windows can be too long for all records, or for the totals of their groups.
    """
    if found := obstacle_to_sums(model, release):
        check_unweighted(model, release, "release", found)
        return None
    try:
        return sum_freely(model, release, None)
    except NotSummableError as error:
        check_unweighted(model, release, "release", str(error))
        return None


def sum_freely(model: Model, release: PrivateRelease, parameters: Parameters | None) -> MarginalLikelihood:
    """The likelihood where nothing is in the way of sums."""
    model, people = hold_within(model, weighted_people(model, release))
    if people.summed is not None:
        return sum_out_beside_totals(model, people, parameters)
    alike = group_records(model, people)
    return as_likelihood(alike, make_terms(alike.model, alike.release, parameters))


def sum_out_each(model: Model, releases: Sequence[Any], parameters: Sequence[Parameters | None]) -> MarginalLikelihood:
    """The likelihoods of several releases of one kind, leaves [release, ...], by sums over as many numbers each.

    Parameters
    ----------
    parameters
        Parameters [draw, ...] of each release, to which windows of whole numbers are fitted; None for none.
    """
    if any(release.is_estimated for release in releases):
        fail("releases", "noise that is not known", "one release at a time", "Use dpjax.sample for each.")
    people = [weighted_people(model, release) for release in releases]
    if any(each.summed is not None for each in people):
        remedy = "Use dpjax.sample for each, or impute the records: imputation=dpjax.imwg()."
        fail("releases", "totals beside values of single records", "these values alone, to be summed over", remedy)
    if any(fields_within(model, each) for each in people):
        given = "numbers that are known within intervals"
        fail("releases", given, "one release at a time", "Use dpjax.sample for each.")
    alike = group_each(model, people)
    terms = [make_terms(rows.model, rows.release, near) for rows, near in zip(alike, parameters, strict=True)]
    length = max(each.length for each in terms)
    found = [as_likelihood(rows, each.padded(length)) for rows, each in zip(alike, terms, strict=True)]
    return jax.tree.map(lambda *leaves: jnp.stack([as_number(leaf) for leaf in leaves]), *found)


def as_likelihood(alike: Rows, terms: Terms) -> MarginalLikelihood:
    """The likelihood of rows whose hidden fields are summed out in this way."""
    return MarginalLikelihood(alike.model, terms, jnp.asarray(alike.weights, float), jnp.asarray(alike.rows))


def sum_out_beside_totals(model: Model, people: Microdata, parameters: Parameters | None) -> MarginalLikelihood:
    """The likelihood of records of which totals of groups were released, too."""
    totals = totals_beside(model, people)
    assert not isinstance(totals, str), "there is no obstacle"
    terms = make_terms(model, limited(people, totals), parameters, partial(with_totals, totals), gapless=True)
    assert isinstance(terms, GroupedTerms)
    check_straight(model, people, totals, terms.records)
    return MarginalLikelihood(model, terms, jnp.ones(people.n), jnp.arange(people.n))


def totals_beside(model: Model, people: Microdata) -> GroupTotals | str:
    """The totals of groups beside what was released of each record, or in words what is in the way of them."""
    hidden = hidden_fields(model, people)
    groups, others = split_hidden(model, people, hidden)
    return find_totals(model, people, hidden, groups[0] if len(groups) == 1 and not others else None)


def make_terms(
    model: Model,
    release: Microdata,
    parameters: Parameters | None,
    finish: Callable[[Any], Terms] = lambda terms: terms,
    gapless: bool = False,
) -> Terms:
    """What is hidden of each record; `finish` adds what was released of several, maybe only to windows without gaps."""
    known = release.hold(some_records.unoptimized(model, release.n))
    hidden = hidden_fields(model, release)
    groups, others = split_hidden(model, release, hidden)
    form = None if gapless else closed_form(model, release)
    if form is not None:
        ((key, field),) = release.fields.items()
        return form(known, field, ~release.missing.get(key, jnp.zeros(release.n, bool)))
    if not others:
        values = reduce(cross, groups) if groups else {}
        return finish(Listed(known, values, release.log_densities_of_support(values).T))
    if model.has("chain_field"):
        work = jax.eval_shape(model.chain_field, parameter_shapes(model)).work
        return finish(ChainField(known, release, next(iter(others)), work))
    if model.count_field not in others:
        return NormalFields(known, release, tuple(others))
    (name,) = others
    windows, found = first_windows(model, release, name, known, gapless)
    if parameters is None:
        return finish(windows)
    return fit_windows(found, windows, parameters, FITTED, finish, gapless)


def left_out_at(likelihood: MarginalLikelihood, parameters: Parameters) -> float:
    """The largest bound of what the sums leave out at parameters [draw, ...]; infinite where it is undefined."""
    if not likelihood.is_approximate:
        return 0.0
    found = np.asarray(measure_left_out.unoptimized(likelihood.model, likelihood, parameters))
    return float(np.max(np.nan_to_num(found, nan=np.inf, posinf=np.inf)))


@jit_model
def measure_left_out(model: Model, likelihood: MarginalLikelihood, parameters: Parameters) -> Array:
    """The bounds [draw] of what the sums leave out at parameters [draw, ...]."""
    del model
    return jax.lax.map(likelihood.left_out, parameters)


def in_words(left_out: float) -> str:
    """What is said of sums that leave out more than they may."""
    return f"The sums over hidden numbers may leave out a share of {left_out:.2g} of the likelihood"


def thin(likelihood: MarginalLikelihood, parameters: Parameters) -> MarginalLikelihood:
    """The likelihood by fewer numbers of its windows, where that is as good at parameters [draw, ...]."""
    if not isinstance(likelihood, MarginalLikelihood) or not isinstance(likelihood.terms, Windows):
        return likelihood
    return replace(likelihood, terms=thin_windows(likelihood.model, likelihood.terms, parameters))


def error_of_thinning(thinned: MarginalLikelihood, whole: MarginalLikelihood, parameters: Parameters) -> float:
    """The largest difference of two log-likelihoods at parameters [draw, ...], up to a constant."""
    with in_double_precision():
        exact = as_double((thinned, whole, parameters))
        program = log_ratios.on_host if whole.is_large else log_ratios.unoptimized
        errors = np.asarray(program(exact[0].model, *exact))
    return float(np.max(np.abs(errors - np.mean(errors))))


@jit_model
def log_ratios(model: Model, thinned: MarginalLikelihood, whole: MarginalLikelihood, parameters: Parameters) -> Array:
    """The differences [draw] of two log-likelihoods at parameters [draw, ...]."""
    del model
    one, other = thinned.build(), whole.build()
    return jax.lax.map(lambda at: one(at) - other(at), parameters)
