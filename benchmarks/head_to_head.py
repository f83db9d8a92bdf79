"""Intervals of dpjax and of published methods, from releases of the same kind, truth and budget.

Each setting is that of a paper and has a module: `head_to_head_normal` and `head_to_head_logistic` are those of repro
samples, and `head_to_head_regression` is that of a neural posterior estimate.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any, NamedTuple

import jax
import numpy as np

import dpjax
from benchmarks import (
    head_to_head_bootstrap,
    head_to_head_logistic,
    head_to_head_normal,
    head_to_head_regression,
    neural_posterior,
)
from benchmarks.coverage import holds
from benchmarks.rows import Row
from benchmarks.timing import Timing, timing_since
from dpjax.diagnostics import ess_bulk, split_r_hat

LEVEL = 0.95
FIT_CHAINS, PRECISION = 32, 0.1
"""Of maximum likelihood."""

ENDS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)


@dataclass(frozen=True)
class Size:
    """How much is measured.

    releases, fits
        Of the Normal distribution and of the logistic regression: releases from which posteriors are sampled, and
        those of them to which maximum likelihood is fitted.
    records
        Of a logistic regression.
    chains, steps
        Of each posterior, with steps of warm-up and draws.
    sweeps, refits
        Of maximum likelihood and of its bootstrap.
    resamples
        Simulated releases of each bootstrap around an estimate.
    simulations, epochs
        Simulated releases that train a network, and how often it sees each.
    """

    releases: tuple[int, int] = (1_000, 24)
    fits: tuple[int, int] = (150, 8)
    records: int = 1_000
    chains: int = 4
    steps: tuple[int, int] = (500, 1_000)
    sweeps: int = 20_000
    refits: int = 100
    resamples: int = 200
    simulations: int = 100_000
    epochs: int = 20

    @property
    def sampling(self) -> dict[str, Any]:
        """How posteriors are sampled."""
        steps = {"num_warmup": self.steps[0], "num_samples": self.steps[1]}
        return {"num_chains": self.chains, **steps, "progress": False}


SIZES = {
    "full": Size(),
    "quick": Size((2, 2), (2, 2)),
    "tiny": Size((2, 2), (2, 2), 20, 2, (20, 20), 64, 20, 10, 1_000, 2),
}


@dataclass(frozen=True)
class Setting:
    """Releases of one kind at one truth.

    name, n
        What it is called, and the records of a release.
    model
        That of the records.
    published
        What is published of release i, as numbers.
    release_of
        The release of these numbers.
    truth
        The true values of what is asked for.
    read
        Those values, of parameters with any leading axes.
    likelihood
        The kinds of intervals of maximum likelihood.
    """

    name: str
    n: int
    model: dpjax.Model
    published: Callable[[int], Any]
    release_of: Callable[[Any], dpjax.Release]
    truth: dict[str, float]
    read: Callable[[Any], dict[str, Any]]
    likelihood: tuple[str, ...]

    def releases(self, number: int) -> list[dpjax.Release]:
        """The first so many of them."""
        return [self.release_of(self.published(place)) for place in range(number)]


class Intervals(NamedTuple):
    """Lower and upper ends [2, release] of each quantity, the CPU seconds of all releases, and the chains of each."""

    ends: dict[str, np.ndarray]
    seconds: float
    chains: int = 0


def measure(size: Size) -> Iterator[Row]:
    """The rows of each setting: a row for each way to intervals, or for each printed release."""
    normal, logistic = make_normal(), make_logistic(size.records)
    yield from measure_posterior(
        normal, size.releases[0], size, {"its prior made flat": head_to_head_normal.flat_weights}
    )
    yield from measure_bootstrap(normal, size.releases[0], size)
    yield from measure_likelihood(normal, size.fits[0], size)
    for epsilon in head_to_head_regression.PRINTED:
        yield from measure_regression(epsilon, size)
    yield from measure_posterior(logistic, size.releases[1], size, {})
    yield from measure_likelihood(logistic, size.fits[1], size)


def make_normal() -> Setting:
    """The Normal mean and standard deviation."""
    simulate = partial(head_to_head_normal.simulate, parameters=head_to_head_normal.TRUTH)
    return Setting(
        "Normal",
        head_to_head_normal.N,
        head_to_head_normal.make_model(),
        lambda place: np.asarray(simulate(jax.random.key(place))),
        head_to_head_normal.release_of,
        dict(zip(("mu", "sigma"), head_to_head_normal.TRUTH, strict=True)),
        lambda parameters: {name: parameters[name] for name in ("mu", "sigma")},
        ("wald", "profile", "bootstrap"),
    )


def make_logistic(records: int) -> Setting:
    """The slope of the logistic regression."""
    return Setting(
        "logistic regression",
        records,
        head_to_head_logistic.make_model(),
        lambda place: head_to_head_logistic.simulate(np.random.default_rng(place), records),
        partial(head_to_head_logistic.release_of, n=records),
        {"slope": float(head_to_head_logistic.COEFFICIENTS[1])},
        lambda parameters: {"slope": parameters["coef"][..., 1]},
        ("wald", "profile"),
    )


def measure_posterior(
    setting: Setting, number: int, size: Size, weights: dict[str, Callable[[Any], np.ndarray]]
) -> Iterator[Row]:
    """Rows of the posterior, and of the same draws with the weights of other priors."""
    releases = setting.releases(number)
    began = process_time()
    batch = dpjax.sample_batch(jax.random.key(1), setting.model, releases, **size.sampling)
    seconds = process_time() - began
    draws = setting.read(batch.draws)
    worst = max(float(np.median([split_r_hat(one) for one in drawn])) for drawn in draws.values())
    yield row_of(
        setting, "posterior", Intervals(intervals_of(draws, None), seconds, size.chains), {"median R-hat": worst}
    )
    for name, weigh in weights.items():
        yield row_of(
            setting, f"posterior, {name}", Intervals(intervals_of(draws, weigh(batch.draws)), seconds, size.chains)
        )


def intervals_of(draws: dict[str, np.ndarray], weights: np.ndarray | None) -> dict[str, np.ndarray]:
    """Quantiles [2, release] of draws [release, chain, draw], and of those with weights."""
    given = [None] * len(next(iter(draws.values()))) if weights is None else weights.reshape(len(weights), -1)

    def quantiles(drawn: np.ndarray) -> np.ndarray:
        pairs = zip(drawn.reshape(len(drawn), -1), given, strict=True)
        return np.stack([np.quantile(one, ENDS, weights=w, method="inverted_cdf") for one, w in pairs], axis=1)

    return {name: quantiles(np.asarray(drawn)) for name, drawn in draws.items()}


def measure_bootstrap(setting: Setting, number: int, size: Size) -> Iterator[Row]:
    """Rows of bootstrap intervals around two estimates of the Normal mean and standard deviation."""
    published = np.array([setting.published(place) for place in range(number)])
    for name, estimate in head_to_head_bootstrap.ESTIMATES.items():
        began = process_time()
        found = head_to_head_bootstrap.bootstrap(jax.random.key(2), published, estimate, ENDS, size.resamples)
        seconds = process_time() - began
        for kind, ends in found.items():
            each = dict(zip(setting.truth, np.moveaxis(ends, -1, 0), strict=True))
            yield row_of(setting, f"{name} estimate, {kind} bootstrap", Intervals(each, seconds))


def measure_likelihood(setting: Setting, number: int, size: Size) -> Iterator[Row]:
    """A row for each kind of interval of maximum likelihood; the seconds of the fit are in each."""
    releases = setting.releases(number)
    found = [fit_intervals(setting, place, release, size) for place, release in enumerate(releases)]
    for method in setting.likelihood:
        ends = {name: np.stack([one[method].ends[name] for one in found], axis=1) for name in setting.truth}
        seconds = sum(one[method].seconds for one in found)
        yield row_of(setting, f"maximum likelihood, {method}", Intervals(ends, seconds, FIT_CHAINS))


def fit_intervals(setting: Setting, place: int, release: dpjax.Release, size: Size) -> dict[str, Intervals]:
    """The intervals [2] of each method, and the seconds of the fit and of them."""
    options = {"num_chains": FIT_CHAINS, "num_steps": size.sweeps, "precision": PRECISION, "progress": False}
    began = process_time()
    with warnings.catch_warnings():
        # Now and then a deviation is estimated at an end: that is in the coverage.
        warnings.simplefilter("ignore", UserWarning)
        fit = dpjax.maximum_likelihood(jax.random.key(place), setting.model, release, **options)
    fitting, found = process_time() - began, {}
    for method in setting.likelihood:
        began = process_time()
        intervals = fit.confidence_interval(LEVEL, method, num_refits=size.refits)
        lower, upper = setting.read(intervals.lower), setting.read(intervals.upper)
        ends = {name: np.array([lower[name], upper[name]]) for name in lower}
        found[method] = Intervals(ends, fitting + process_time() - began)
    return found


def row_of(setting: Setting, way: str, found: Intervals, further: dict[str, float] | None = None) -> Row:
    """The shares of intervals that hold the truth, the mean of their finite widths, and the share of infinite ones."""
    figures, number = {}, len(next(iter(found.ends.values()))[0])
    for name, ends in found.ends.items():
        figures[f"coverage of {name}"] = float(np.mean(holds(ends, np.full(number, setting.truth[name]))))
        width = ends[1] - ends[0]
        finite = np.isfinite(width)
        figures[f"width of {name}"] = float(np.mean(width[finite])) if np.any(finite) else 0.0
        if not np.all(finite):
            figures[f"infinite for {name}"] = float(1 - np.mean(finite))
    figures |= {"releases": float(number), "s per release": found.seconds / number} | (further or {})
    timing = Timing(None, found.seconds, found.seconds, 1)
    return Row("head_to_head", f"{setting.name}: {way}", setting.n, len(found.ends), found.chains, timing, figures)


def measure_regression(epsilon: float, size: Size) -> Iterator[Row]:
    """Means and standard deviations of the coefficients given a printed release, exactly and by a network."""
    model, release = head_to_head_regression.make_model(), head_to_head_regression.release_at(epsilon)
    began = process_time()
    drawn = np.asarray(dpjax.sample(jax.random.key(3), model, release, **size.sampling).draws["coef"])
    figures = moments_of(np.mean(drawn, axis=(0, 1)), np.std(drawn, axis=(0, 1)))
    effective = {"effective draws": float(np.min(ess_bulk(drawn)))}
    yield regression_row(epsilon, "posterior", size.chains, began, figures | effective)
    began = process_time()
    found = neural_posterior.fit(jax.random.key(4), model, release, size.simulations, size.epochs)
    yield regression_row(epsilon, "network", 0, began, moments_of(*found) | {"simulations": float(size.simulations)})


def moments_of(mean: np.ndarray, deviation: np.ndarray) -> dict[str, float]:
    """The figures of means [k] and standard deviations [k]."""
    named = {"mean": mean, "sd": deviation}
    return {f"{name} of b{place}": float(one) for name, each in named.items() for place, one in enumerate(each)}


def regression_row(epsilon: float, way: str, chains: int, began: float, figures: dict[str, float]) -> Row:
    """A row of the regression, with the seconds since a reading of `time.process_time`."""
    case, timing = f"regression, ε = {epsilon:g}: {way}", timing_since(began)
    figures |= {"s per release": timing.best_seconds}
    return Row("head_to_head", case, head_to_head_regression.N, 9, chains, timing, figures)
