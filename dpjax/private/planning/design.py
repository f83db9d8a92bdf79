"""What readers can expect of a release, before anything is charged: simulated releases and their posteriors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.lazy import implemented_by
from dpjax._util.spelling import names_arguments, names_methods
from dpjax._util.validation import (
    check_array,
    check_count,
    check_flag,
    check_instance,
    check_key,
    check_share,
    fail,
    is_refusal,
    leaves_of,
)
from dpjax.base import Array, Key, Model, Parameters
from dpjax.clt.inputs import check_problem, obstacle_to_clt
from dpjax.diagnostics.summary import Summary, entry_names
from dpjax.mcmc.batch import sample_batch
from dpjax.mcmc.sample_clt import sample_clt
from dpjax.models.checks import check_fit
from dpjax.models.simulation import draw_parameters, draw_values, parameter_shapes
from dpjax.private.accounting.query import Budget
from dpjax.private.people import MOST_ROWS, People
from dpjax.private.releases.price import cost_of, price, read_statistic
from dpjax.private.releases.release import check_number_given, mechanism_of
from dpjax.release import Release, UnknownCount
from dpjax.release.unknown_count import expected_number, is_unknown
from dpjax.runtime.progress import Progress, ShowProgress, check_progress
from dpjax.statistics import RecordStatistic

__all__ = ["Design", "design"]

ENOUGH_RECORDS = 1_000
"""From here on the sum is taken to be Normal, if that can be done."""
NUM_CHAINS = 2

Candidates = Mapping[str, RecordStatistic | tuple[RecordStatistic, Sequence[float]]]


@names_methods
@dataclass(frozen=True, eq=False)
class Design:
    """Widths of posterior intervals that readers of releases can expect: no record was looked at.

    Attributes
    ----------
    candidates
        The names of the statistics.
    budgets
        The budgets of each.
    widths
        The widths [candidate, budget, release, ...] of the posterior intervals of each parameter, by name.
    level
        The probability of the intervals.
    approximate
        For each candidate, whether its posteriors took the sum to be Normal.

    Examples
    --------
    >>> import numpy as np
    >>> import dpjax
    >>> widths = {"mean": np.array([[[2.0, 2.2], [0.8, 1.0]]])}
    >>> budgets = tuple(dpjax.private.Budget(epsilon, 1e-6, "replace-one") for epsilon in (1.0, 4.0))
    >>> print(dpjax.private.Design(("total",), budgets, widths, 0.9, (True,)))
                    mean  se of mean
    total, ε = 1   2.100      0.1000
    total, ε = 4  0.9000      0.1000
    Mean widths of 90 % posterior intervals over 2 simulated releases, and their standard errors.
    """

    candidates: tuple[str, ...]
    budgets: tuple[Budget, ...]
    widths: dict[str, np.ndarray]
    level: float
    approximate: tuple[bool, ...]

    def table(self) -> Summary:
        """The mean widths over simulated releases and their standard errors, a row for each candidate and budget."""
        rows = tuple(f"{name}, {told}" for name in self.candidates for told in tell(self.budgets))
        columns: dict[str, np.ndarray] = {}
        for name, widths in self.scalars():
            columns[name] = widths.mean(axis=2).ravel()
            columns[f"se of {name}"] = (widths.std(axis=2, ddof=1) / sqrt(widths.shape[2])).ravel()
        number = next(iter(self.widths.values())).shape[2]
        simulated = f"over {number} simulated releases, and their standard errors."
        return Summary(
            rows, columns, f"Mean widths of {self.level:.0%} posterior intervals {simulated}".replace("%", " %")
        )

    def scalars(self) -> Iterator[tuple[str, np.ndarray]]:
        """The name of each scalar parameter, such as ``"coef[0]"``, and its widths [candidate, budget, release]."""
        for name, widths in self.widths.items():
            flat = np.moveaxis(widths.reshape(*widths.shape[:3], -1), -1, 0)
            yield from zip(entry_names(name, {"width": widths[0, 0, 0]}), flat, strict=True)

    @implemented_by("dpjax.plot.designs.plot_widths")
    def plot(self, *, axes: Any = None) -> Any:
        """The mean widths against ε, one panel for each scalar parameter and one line for each candidate.

        Parameters
        ----------
        axes
            Matplotlib axes to draw into, one for each scalar parameter; by default those of a new figure.

        Returns
        -------
        numpy.ndarray
            The axes [parameter].

        Raises
        ------
        ImportError
            If matplotlib is not installed, by ``pip install matplotlib``.
        ValueError
            If there are not as many axes as scalar parameters.
        """

    def __repr__(self) -> str:
        return str(self.table())


class Setting(NamedTuple):
    """What all simulated releases share.

    Attributes
    ----------
    key
        For the posteriors.
    model
        What readers will believe.
    values_key
        For records and noise: the same for all candidates, whose differences are then known better.
    parameters
        Those [release, ...] that records are drawn at.
    num_samples
        Draws of each chain, after as many of warm-up.
    """

    key: Key
    model: Model
    values_key: Key
    parameters: Parameters
    num_samples: int


@names_arguments
def design(
    key: Key,
    model: Model,
    candidates: Candidates | RecordStatistic,
    budgets: Sequence[Budget] | Budget,
    n: int | UnknownCount,
    *,
    parameters: Parameters | None = None,
    num_releases: int = 8,
    num_samples: int = 500,
    level: float = 0.9,
    approximate: bool | None = None,
    people: str | None = None,
    max_rows: int = 1,
    progress: ShowProgress = True,
) -> Design:
    """Forecast the widths of the posterior intervals that readers of a release will have, from simulated releases.

    Nothing is charged, as no confidential record is involved: parameters are drawn from the prior, or given, records
    from the model, and noise as `private.release` would draw it. So it may be done as often as you like, and published.

    Parameters
    ----------
    key
        One typed key.
    model
        What readers will believe about the records.
    candidates
        What could be summed, by name: a statistic as `private.release` takes it, or a pair of a
        `dpjax.statistics.stacked` and the shares of the budget that its parts get. One statistic stands for itself.
    budgets
        What each release could cost: one `private.Budget`, or several.
    n
        The number of records, or the `dpjax.UnknownCount` that readers will be given in its place. Records are then
        simulated in numbers from its prior, and the width for ``num_records`` is forecast, too. If n is confidential, a
        number is a guess, made without looking at them, and the forecast is for readers who are told it.
    parameters
        The parameters at which records are simulated: the public estimates of a pilot, by name. By default each release
        has its own, from the prior.
    num_releases
        Simulated releases of each candidate and budget: at least 2.
    num_samples
        Draws of each of the two chains for a simulated release, after as many of warm-up.
    level
        The probability of the intervals.
    approximate
        Whether `dpjax.sample_clt` draws, else `dpjax.sample_batch`; by default the first from a thousand records on,
        if it can.
    people
        The column that will say whose a row is, as for `private.release`; None if each record is another person's.
    max_rows
        The most rows of one person that will enter the sum, with ``people``: the noise covers all of them.
    progress
        What is shown of the simulated releases; see `dpjax.sample`.

    Returns
    -------
    Design
        ``print`` shows the table of mean widths, and ``plot`` the picture.

    Raises
    ------
    TypeError, ValueError
        If an argument is unusable, or model and statistics do not fit.

    Notes
    -----
    A width is forecast for readers who have the same model. If the prior is vague, parameters drawn from it may be
    nothing like the truth, and so may be the widths. Then give those of a pilot, or a prior that says what is known.

    `dpjax.sample_clt` takes seconds for a release, whatever n is; `dpjax.sample_batch` imputes the records of all.

    Examples
    --------
    >>> import dpjax, jax
    >>> from dpjax import private
    >>> model = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
    >>> budgets = [private.Budget(epsilon, 1e-6, "replace-one") for epsilon in (0.5, 8.0)]
    >>> total = dpjax.statistics.total("y", -3.0, 3.0)
    >>> expected = private.design(jax.random.key(1), model, total, budgets, 20, num_releases=2, num_samples=50)
    >>> expected.widths["mean"].shape, bool(expected.widths["mean"][0, 0].mean() > expected.widths["mean"][0, 1].mean())
    ((1, 2, 2), True)
    """
    check_key("key", key)
    check_share("level", level)
    number = check_count("num_releases", num_releases, "Pass at least 2, for a standard error.", least=2)
    num_samples = check_count("num_samples", num_samples, least=10)
    if people is not None:
        check_instance("people", people, str, "Pass the name of a column, or leave it out.")
    protected = People(people, check_count("max_rows", max_rows, most=MOST_ROWS))
    check_progress(progress)
    if approximate is not None:
        check_flag("approximate", approximate)
    named, promised = read_candidates(candidates), read_budgets(budgets)
    if isinstance(n, UnknownCount):
        for budget in promised:
            check_number_given(n, budget.neighbours, protected)
    else:
        n = check_count("n", n)
    blanks = [[blank_of(*one, budget, n, protected) for budget in promised] for one in named.values()]
    for row in blanks:
        check_fit(model, row[0])
    normal = tuple(is_normal(model, row[0], approximate) for row in blanks)
    prior_key, values_key, chains_key = jax.random.split(key, 3)
    at = draw_parameters(prior_key, model, number) if parameters is None else repeat(model, parameters, number)
    setting = Setting(chains_key, model, values_key, at, num_samples)
    with Progress(progress, "release", "drawing releases") as bar:
        bar.expect(number * len(blanks) * len(promised))
        found = [
            [widths_of(setting, one, kind, level, bar) for one in row] for row, kind in zip(blanks, normal, strict=True)
        ]
    widths: dict[str, np.ndarray] = jax.tree.map(lambda *leaves: np.stack(leaves), *map(stack_budgets, found))
    return Design(tuple(named), promised, widths, float(level), normal)


def read_candidates(candidates: Any) -> dict[str, tuple[RecordStatistic, Any]]:
    """Each statistic with the shares of its parts, by name, or an error."""
    named = candidates if isinstance(candidates, Mapping) else {"release": candidates}
    if not named or not all(isinstance(name, str) for name in named):
        remedy = "Pass a dict such as {'moments': statistic}."
        fail("candidates", list(named), "statistics by name", remedy, error=TypeError)
    pairs = {name: one if isinstance(one, tuple) and len(one) == 2 else (one, None) for name, one in named.items()}
    return {name: (read_statistic(statistic), shares) for name, (statistic, shares) in pairs.items()}


def read_budgets(budgets: Any) -> tuple[Budget, ...]:
    """The budgets, or an error."""
    listed = (budgets,) if isinstance(budgets, Budget) else budgets
    if not isinstance(listed, (list, tuple)) or not listed or not all(isinstance(one, Budget) for one in listed):
        remedy = "Pass one dpjax.private.Budget or a list of them."
        fail("budgets", repr(budgets), "at least one Budget", remedy, error=TypeError)
    return tuple(listed)


def blank_of(statistic: RecordStatistic, shares: Any, budget: Budget, n: int | UnknownCount, people: People) -> Release:
    """A release with the noise that a budget requires, and zeros for its value."""
    parts = price(statistic, cost_of(budget), budget.neighbours, shares, None, people)
    size = sum(part.size for part in parts)
    return Release(jnp.zeros(size), mechanism_of(parts, None), statistic, n)


def is_normal(model: Model, release: Release, approximate: bool | None) -> bool:
    """Whether the sum is taken to be Normal."""
    if approximate is not None:
        if approximate:
            check_problem(model, release)
        return approximate
    return expected_number(release.n) >= ENOUGH_RECORDS and obstacle_to_clt(model, release) is None


def repeat(model: Model, parameters: Any, number: int) -> Parameters:
    """The given parameters for each of so many releases, or an error if the model has others."""
    expected = parameter_shapes(model)
    remedy = "Pass one value of each of the model's."
    for leaf in leaves_of("parameters", parameters, remedy):
        check_array("parameters", leaf, np.isfinite, "finite numbers by name", remedy)
    given = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(float)), parameters)
    shapes = [jax.tree.map(jnp.shape, one) for one in (given, expected)]
    if shapes[0] != shapes[1]:
        fail("parameters", f"shapes {shapes[0]}", f"shapes {shapes[1]}", remedy)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (number, *leaf.shape)), given)


def widths_of(setting: Setting, blank: Release, is_normal: bool, level: float, bar: Progress) -> dict[str, np.ndarray]:
    """The widths [release, ...] of the intervals of each parameter given simulated releases."""
    number = len(jax.tree.leaves(setting.parameters)[0])
    simulate = draw_unknown_values if is_unknown(blank) else draw_values
    values = simulate(setting.values_key, setting.model, blank, setting.parameters, number)
    releases: list[Any] = [Release(jnp.asarray(value), blank.mechanism, blank.statistic, blank.n) for value in values]
    size: dict[str, Any] = {
        "num_chains": NUM_CHAINS,
        "num_warmup": setting.num_samples,
        "num_samples": setting.num_samples,
    }
    if is_normal:
        keys = [jax.random.fold_in(setting.key, place) for place in range(number)]
        drawn = [draw_normal(one, setting.model, release, size) for one, release in zip(keys, releases, strict=True)]
        draws = {name: np.stack([one[name] for one in drawn]) for name in drawn[0]}
    else:
        draws = sample_batch(setting.key, setting.model, releases, **size, progress=False).draws
    bar.advance(number, "designs")
    ends = {name: np.quantile(leaf, ((1 - level) / 2, (1 + level) / 2), axis=(1, 2)) for name, leaf in draws.items()}
    return {name: high - low for name, (low, high) in ends.items()}


def draw_unknown_values(key: Key, model: Model, blank: Release, parameters: Parameters, number: int) -> np.ndarray:
    """Released values [release, d] of records in numbers from the prior; of as many as the largest, some count."""
    number_key, values_key = jax.random.split(key)
    assert isinstance(blank.n, UnknownCount)
    sizes = jax.vmap(blank.n.prior.sample)(jax.random.split(number_key, number))
    most = max(1, int(jnp.max(sizes)))

    @jax.jit
    def draw(given: tuple[Key, Array, Parameters]) -> Array:
        key, size, at = given
        record_key, noise_key = jax.random.split(key)
        added = blank.contributions(model.sample_records(record_key, at, most))
        return blank.mechanism.sample(noise_key, jnp.sum(jnp.where(jnp.arange(most) < size, added, 0.0), axis=1))

    return np.asarray(jax.lax.map(draw, (jax.random.split(values_key, number), sizes, parameters)))


def draw_normal(key: Key, model: Model, release: Release, size: dict[str, Any]) -> Parameters:
    """Draws given one release whose sum is taken to be Normal, or an error that names the argument of `design`."""
    try:
        return sample_clt(key, model, release, **size, progress=False).draws
    except ValueError as error:
        if not (is_refusal(error) and str(error).startswith("num_points: given ")):
            raise
        why = str(error).removeprefix("num_points: given ").partition("; expected")[0]
        remedy = "Pass approximate=False, or a model with statistic_moments."
        return fail("approximate", f"a sum that is taken to be Normal by {why}", "moments that are known", remedy)


def stack_budgets(row: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The widths [budget, release, ...] of one candidate."""
    return {name: np.stack([one[name] for one in row]) for name in row[0]}


def tell(budgets: Sequence[Budget]) -> list[str]:
    """Each budget in words: δ only if they differ in it."""
    several = len({budget.delta for budget in budgets}) > 1
    return [f"ε = {one.epsilon:g}{f', δ = {one.delta:g}' * several}" for one in budgets]
