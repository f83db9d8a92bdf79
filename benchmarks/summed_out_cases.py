"""Models of units and people, what was released of them, and the same posteriors for NumPyro with the sums by hand."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax.scipy.special import gammaln, logsumexp
from numpyro import distributions as dist
from scipy import stats

import dpjax

Function = Callable[..., Any]


class Case(NamedTuple):
    """How a model of the records is read, what was released of them, and the same posterior written for NumPyro."""

    read: Callable[[], dpjax.Model]
    release: Any
    by_hand: Callable[[], None]


def of_units(parameters: Function, law: Function, known: Any, release: Any, density: Function) -> Case:
    """One number of each unit.

    Parameters
    ----------
    parameters
        ``known -> predictor``: draws the parameters and returns what each unit's number depends on [n].
    law
        ``(predictor, known) -> distribution`` of these numbers.
    density
        ``predictor -> [n]``: the log-density of what was released of each unit.
    """

    def model(known: Any, y: Any = None) -> None:
        predictor = parameters(known)
        with numpyro.plate("units", release.n):
            numpyro.sample("y", law(predictor, known), obs=y)

    def by_hand() -> None:
        numpyro.factor("released", jnp.sum(density(parameters(known))))

    return Case(partial(dpjax.from_numpyro, model, records=["y"], known=known), release, by_hand)


def poisson(predictor: Any, known: Any) -> Any:
    """Counts of a logarithmic rate."""
    del known
    return dist.Poisson(jnp.exp(predictor))


def binomial(predictor: Any, known: Any) -> Any:
    """Counts among trials of a logit."""
    return dist.Binomial(known["trials"], logits=predictor)


def sum_of(numbers: Any, log_released: Any, trials: Any = None) -> Function:
    """The log-density as a function of logarithmic rates, or logits, with what does not depend on them computed.

    Parameters
    ----------
    numbers
        The possible ones [w, n].
    log_released
        The log-density [w, n] of what was released, given each of them.
    """
    most = np.inf if trials is None else trials
    possible, counts = (numbers >= 0) & (numbers <= most), np.clip(numbers, 0, most)
    constant = -gammaln(counts + 1.0)
    if trials is not None:
        constant = constant + gammaln(trials + 1.0) - gammaln(trials - counts + 1.0)
    constant = np.where(possible, log_released + np.asarray(constant), -np.inf)

    def density(predictor: Any) -> Any:
        norm = jnp.exp(predictor) if trials is None else trials * jax.nn.softplus(predictor)
        return logsumexp(counts * predictor - norm + constant, axis=0)

    return density


def around(released: np.ndarray, reach: int) -> np.ndarray:
    """The numbers up to so far from each [w, n]."""
    return released[None].astype(int) + np.arange(-reach, reach + 1)[:, None]


def laplace(rng: np.random.Generator, scale: float, n: int) -> np.ndarray:
    """Discrete Laplace noise."""
    return rng.geometric(1 - np.exp(-1 / scale), n) - rng.geometric(1 - np.exp(-1 / scale), n)


def regression(known: Any) -> Any:
    """A level and a slope, with effects of groups where these are known."""
    level, slope = numpyro.sample("level", dist.Normal(*known["level"])), numpyro.sample("slope", dist.Normal(0.0, 1.0))
    predictor = known["offset"] + level + slope * known["x"]
    if "group" not in known:
        return predictor
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", int(known["groups"].shape[0])):
        deviation = numpyro.sample("deviation", dist.Normal(0.0, 1.0))
    return predictor + spread * deviation[known["group"]]


def walk(known: Any) -> Any:
    """A random walk, from one time to the next."""
    level, spread = numpyro.sample("level", dist.Normal(2.0, 2.0)), numpyro.sample("spread", dist.HalfNormal(0.5))
    with numpyro.plate("steps", known["times"].shape[0]):
        step = numpyro.sample("step", dist.Normal(0.0, 1.0))
    return level + spread * jnp.cumsum(step)[known["time"]]


def areas(number: int, states: int, seed: int, level: float = -6.0) -> tuple[dict[str, Any], np.ndarray]:
    """What is known of counties, and their counts."""
    rng = np.random.default_rng(seed)
    group, x = np.arange(number) % max(states, 1), rng.normal(size=number)
    offset, effect = rng.normal(8.0, 1.0, number), 0.5 * rng.normal(size=max(states, 1)) * (states > 0)
    counts = rng.poisson(np.exp(offset + level + 0.4 * x + effect[group]))
    known = {"offset": offset, "x": x, "level": np.array([-5.0, 2.0])}
    return known | ({"group": group, "groups": np.zeros(states)} if states else {}), counts


def counties(number: int, states: int, scale: float = 5.0) -> Case:
    """Counts of counties with effects of their states, behind discrete Gaussian noise."""
    known, counts = areas(number, states, 0)
    released = counts + np.round(np.random.default_rng(10).normal(0.0, scale, number)).astype(int)
    numbers = around(released, int(7 * scale))
    density = sum_of(numbers, -((numbers - released) ** 2) / (2 * scale**2))
    release = dpjax.LocalRelease(released, dpjax.DiscreteGaussian(scale), "y")
    return of_units(regression, poisson, known, release, density)


def rounded(number: int, base: int) -> Case:
    """Counts of areas rounded at random."""
    known, counts = areas(number, 20, 3, -7.5)
    up = np.random.default_rng(4).random(number) < counts % base / base
    released = base * (counts // base + up)
    numbers = around(released, base - 1)
    density = sum_of(numbers, np.log(1 - np.abs(numbers - released) / base))
    release = dpjax.LocalRelease(released, dpjax.mechanisms.RandomRounding(base=base), "y")
    return of_units(regression, poisson, known, release, density)


def codes(counts: np.ndarray, limit: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """The release with small counts suppressed, and the numbers that each can be with their log-density."""
    small = counts < limit
    steps = np.arange(limit)[:, None]
    numbers = np.where(small, steps, counts)
    release = dpjax.releases.suppressed_units(np.where(small, np.nan, counts), limit, field="y")
    return release, numbers, np.where(small | (steps == 0), 0.0, -np.inf)


def suppressed(number: int, limit: int) -> Case:
    """Counts of areas, of which small ones are suppressed."""
    known, counts = areas(number, 20, 5, -7.0)
    release, numbers, log_released = codes(counts, limit)
    return of_units(regression, poisson, known, release, sum_of(numbers, log_released))


def sites(number: int) -> Case:
    """Events among the patients of each site of a study, with a code for fewer than five."""
    rng = np.random.default_rng(6)
    trials, treated = rng.integers(15, 120, number), rng.integers(0, 2, number)
    logit = -2.5 + 0.8 * treated + 0.6 * rng.normal(size=number)
    release, numbers, log_released = codes(rng.binomial(trials, 1 / (1 + np.exp(-logit))), 5)

    def parameters(known: Any) -> Any:
        level, effect = numpyro.sample("level", dist.Normal(0.0, 1.5)), numpyro.sample("effect", dist.Normal(0.0, 1.0))
        spread = numpyro.sample("spread", dist.HalfNormal(1.0))
        with numpyro.plate("sites", number):
            deviation = numpyro.sample("deviation", dist.Normal(0.0, 1.0))
        return level + effect * known["treated"] + spread * deviation

    known = {"trials": trials, "treated": treated.astype(float)}
    return of_units(parameters, binomial, known, release, sum_of(numbers, log_released, known["trials"]))


def weeks(number: int, scale: float = 4.0, threshold: float = -np.inf) -> Case:
    """Weekly counts whose level is a random walk, behind discrete Laplace noise; only those from a threshold on."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(np.exp(3.0 + np.cumsum(rng.normal(0.0, 0.2, number))))
    released = counts + laplace(rng, scale, number)
    noise, known = dpjax.DiscreteLaplace(scale), {"time": np.arange(number), "times": np.zeros(number)}
    small = released < threshold
    numbers = np.where(small, np.arange(128)[:, None], around(released, 64)[:-1])
    log_released = stats.dlaplace.logpmf(released - numbers, 1 / scale)
    if not small.any():
        release = dpjax.LocalRelease(released, noise, "y")
    else:
        below = stats.dlaplace.logcdf(threshold - 1 - numbers, 1 / scale)
        log_released = np.where(small, below, log_released)
        release = dpjax.releases.thresholded_units(np.where(small, np.nan, released), noise, threshold, field="y")
    return of_units(walk, poisson, known, release, sum_of(numbers, log_released))


def survival(number: int, scale: float = 2.0) -> Case:
    """Deaths in each interval among those at risk, in two arms, with discrete Laplace noise."""
    rng = np.random.default_rng(7)
    arm, time = np.repeat([0.0, 1.0], number), np.tile(np.arange(number), 2)
    hazard = 1 / (1 + np.exp(2.0 - 0.05 * time + 0.5 * arm))
    trials = np.round(300 * np.exp(-0.1 * time)).astype(int)
    released = rng.binomial(trials, hazard) + laplace(rng, scale, 2 * number)

    def parameters(known: Any) -> Any:
        effect = numpyro.sample("effect", dist.Normal(0.0, 1.0))
        return walk(known) - 4.0 + effect * known["arm"]

    numbers = around(released, 60)
    density = sum_of(numbers, stats.dlaplace.logpmf(released - numbers, 1 / scale), trials)
    release = dpjax.LocalRelease(released, dpjax.DiscreteLaplace(scale), "y")
    return of_units(
        parameters, binomial, {"trials": trials, "arm": arm, "time": time, "times": np.zeros(number)}, release, density
    )


def captures(scale: float = 3.0) -> Case:
    """How many were on each combination of three lists, with discrete Laplace noise, to tell how many are on none."""
    rng = np.random.default_rng(8)
    lists = np.array([[i >> bit & 1 for bit in range(3)] for i in range(1, 8)], float)
    true = np.prod(np.where(lists == 1, [0.4, 0.3, 0.5], [0.6, 0.7, 0.5]), axis=1)
    released = rng.poisson(600 * true) + laplace(rng, scale, 7)

    def parameters(known: Any) -> Any:
        log_number = numpyro.sample("log_number", dist.Normal(5.0, 1.0))
        with numpyro.plate("lists", 3):
            found = numpyro.sample("found", dist.Beta(1.0, 1.0))
        return log_number + known["lists"] @ jnp.log(found) + (1 - known["lists"]) @ jnp.log1p(-found)

    numbers = around(released, 90)
    density = sum_of(numbers, stats.dlaplace.logpmf(released - numbers, 1 / scale))
    release = dpjax.LocalRelease(released, dpjax.DiscreteLaplace(scale), "y")
    return of_units(parameters, poisson, {"lists": lists}, release, density)


def schools(number: int) -> Case:
    """Shares of pupils who pass, published as ranges of twenty per cent, with known numbers of pupils."""
    rng = np.random.default_rng(9)
    trials, x = rng.integers(20, 150, number), rng.normal(size=number)
    district = np.arange(number) % 15
    passed = rng.binomial(trials, 1 / (1 + np.exp(-0.4 - 0.6 * x - 0.5 * rng.normal(size=15)[district])))
    bins = np.minimum(5 * passed // trials, 4)
    numbers = np.arange(trials.max() + 1)[:, None]
    inside = (numbers <= trials) & (np.minimum(5 * numbers // trials, 4) == bins)
    with np.errstate(divide="ignore"):
        log_released = np.log(inside.astype(float))
    known = {"trials": trials, "x": x, "offset": np.zeros(number), "level": np.array([0.0, 1.5])}
    known |= {"group": district, "groups": np.zeros(15)}
    release = dpjax.releases.likelihoods(log_released.T, field="y")
    return of_units(regression, binomial, known, release, sum_of(numbers, log_released, known["trials"]))


def hospitals(number: int, scale: float = 30.0) -> Case:
    """Sums of the days of each hospital's patients with Laplace noise, and effects of hospitals."""
    rng = np.random.default_rng(11)
    patients, beds = rng.integers(20, 200, number), rng.normal(size=number)
    mean = 6.0 + 0.5 * beds + 0.8 * rng.normal(size=number)
    released = patients * mean + 5.0 * np.sqrt(patients) * rng.normal(size=number) + rng.laplace(0.0, scale, number)

    def parameters(known: Any) -> Any:
        level, slope = numpyro.sample("level", dist.Normal(0.0, 10.0)), numpyro.sample("slope", dist.Normal(0.0, 2.0))
        within, spread = numpyro.sample("within", dist.HalfNormal(10.0)), numpyro.sample("spread", dist.HalfNormal(2.0))
        variance = known["patients"] * within**2 + (known["patients"] * spread) ** 2
        return known["patients"] * (level + slope * known["beds"]), jnp.sqrt(variance)

    def density(predictor: Any) -> Any:
        mean, deviation = predictor
        off, ratio = (released - mean) / deviation, deviation / scale
        tails = [ratio**2 / 2 + s * ratio * off + jax.scipy.stats.norm.logcdf(-s * off - ratio) for s in (1, -1)]
        return jnp.logaddexp(*tails) - jnp.log(2 * scale)

    known = {"patients": patients.astype(float), "beds": beds}
    release = dpjax.LocalRelease(released, dpjax.Laplace(scale), "y")
    return of_units(parameters, lambda predictor, _: dist.Normal(*predictor), known, release, density)


def estimates(number: int) -> Case:
    """Direct estimates of areas, each with its standard error: the model of Fay and Herriot (1979)."""
    rng = np.random.default_rng(12)
    x, errors = rng.normal(size=number), rng.uniform(0.2, 2.0, number)
    released = 1.0 + 0.7 * x + 0.5 * rng.normal(size=number) + errors * rng.normal(size=number)

    def parameters(known: Any) -> Any:
        level, slope = numpyro.sample("level", dist.Normal(0.0, 5.0)), numpyro.sample("slope", dist.Normal(0.0, 5.0))
        return level + slope * known["x"], numpyro.sample("spread", dist.HalfNormal(2.0))

    def density(predictor: Any) -> Any:
        return dist.Normal(predictor[0], jnp.sqrt(predictor[1] ** 2 + errors**2)).log_prob(released)

    release = dpjax.releases.estimates(released, errors, field="y")
    return of_units(parameters, lambda predictor, _: dist.Normal(*predictor), {"x": x}, release, density)


def question(number: int) -> Case:
    """Answers to an unrelated question: with probability 0.7 the sensitive one, else one of known frequency 0.4."""
    rng = np.random.default_rng(2)
    group = rng.integers(0, 2, number)
    truth = rng.random(number) < np.array([0.2, 0.35])[group]
    answers = np.where(rng.random(number) < 0.7, truth, rng.random(number) < 0.4).astype(int)

    def parameters(known: Any) -> Any:
        with numpyro.plate("groups", 2):
            share = numpyro.sample("share", dist.Beta(1.0, 1.0))
        return share[known["group"]]

    def density(share: Any) -> Any:
        return dist.Bernoulli(0.12 + 0.7 * share).log_prob(answers)

    channel = dpjax.RandomizedResponse(matrix=[[0.88, 0.12], [0.18, 0.82]])
    release = dpjax.LocalRelease(answers, channel, "y")
    return of_units(parameters, lambda share, _: dist.Bernoulli(share), {"group": group}, release, density)


def list_experiment(number: int) -> Case:
    """How many of four statements apply, or of five with a sensitive one: who was asked which is known."""
    rng = np.random.default_rng(13)
    asked, age = rng.integers(0, 2, number), rng.normal(size=number)
    count = rng.binomial(4, 0.4, number)
    sensitive = rng.random(number) < 1 / (1 + np.exp(1.0 - 0.7 * age))
    answers = count + asked * sensitive
    of_count, of_sensitive = np.repeat(np.arange(5), 2), np.tile([0, 1], 5)  # of each cell
    inside = of_count + asked[:, None] * of_sensitive == answers[:, None]
    with np.errstate(divide="ignore"):
        log_released = np.log(inside.astype(float))

    def parameters(known: Any) -> Any:
        level, slope = numpyro.sample("level", dist.Normal(0.0, 1.5)), numpyro.sample("slope", dist.Normal(0.0, 1.0))
        share = numpyro.sample("share", dist.Beta(1.0, 1.0))
        return level + slope * known["age"], share

    def law(predictor: Any, _: Any) -> Any:
        logit, share = predictor
        of_item = jnp.where(of_sensitive == 1, -jax.nn.softplus(-logit)[:, None], -jax.nn.softplus(logit)[:, None])
        return dist.Categorical(logits=of_item + dist.Binomial(4, share).log_prob(jnp.asarray(of_count)))

    def density(predictor: Any) -> Any:
        logit, share = predictor
        control = dist.Binomial(4, share)
        some = control.log_prob(jnp.asarray(np.minimum(answers, 4)))
        low = jnp.where(answers <= 4, some, -jnp.inf) - jax.nn.softplus(logit)
        high = jnp.where(answers >= 1, control.log_prob(jnp.asarray(np.maximum(answers - 1, 0))), -jnp.inf)
        return jnp.where(asked == 1, jnp.logaddexp(low, high - jax.nn.softplus(-logit)), some)

    release = dpjax.releases.likelihoods(log_released, field="y")
    return of_units(parameters, law, {"age": age}, release, density)


def links(number: int) -> Case:
    """How often links were seen and shared, both with Normal noise."""
    rng = np.random.default_rng(14)
    seen = rng.normal(50.0, 12.0, number)
    shared = 2.0 + 0.3 * seen + 3.0 * rng.normal(size=number)
    noise = np.array([10.0, 4.0])
    values = np.stack([seen, shared], axis=1) + noise * rng.normal(size=(number, 2))

    def parameters() -> Any:
        mean, spread = numpyro.sample("mean", dist.Normal(30.0, 20.0)), numpyro.sample("spread", dist.HalfNormal(20.0))
        level, slope = numpyro.sample("level", dist.Normal(0.0, 10.0)), numpyro.sample("slope", dist.Normal(0.0, 1.0))
        return mean, spread, level, slope, numpyro.sample("within", dist.HalfNormal(10.0))

    def model(n: int, seen: Any = None, shared: Any = None) -> None:
        mean, spread, level, slope, within = parameters()
        with numpyro.plate("links", n):
            seen = numpyro.sample("seen", dist.Normal(mean, spread), obs=seen)
            numpyro.sample("shared", dist.Normal(level + slope * seen, within), obs=shared)

    def by_hand() -> None:
        mean, spread, level, slope, within = parameters()
        between = slope * spread**2
        variances = jnp.array([spread**2 + noise[0] ** 2, slope * between + within**2 + noise[1] ** 2])
        covariance = jnp.diag(variances) + between * (1 - jnp.eye(2))
        law = dist.MultivariateNormal(jnp.stack([mean, level + slope * mean]), covariance)
        numpyro.factor("released", jnp.sum(law.log_prob(values)))

    fields = {"seen": (values[:, 0], dpjax.Gaussian(noise[0])), "shared": (values[:, 1], dpjax.Gaussian(noise[1]))}
    return Case(partial(dpjax.from_numpyro, model, records=["seen", "shared"]), dpjax.Microdata(fields), by_hand)


CASES: dict[str, Callable[[], Case]] = {
    "26 weeks, random walk": lambda: weeks(26),
    "26 weeks, those from 20 on": lambda: weeks(26, threshold=20),
    "unrelated question, 260 answers": lambda: question(260),
    "unrelated question, 100,000 answers": lambda: question(100_000),
    "list experiment, 500 answers": lambda: list_experiment(500),
    "300 counties, 50 states": lambda: counties(300, 50),
    "3,000 counties, 50 states": lambda: counties(3_000, 50),
    "300 areas rounded at random to 5": lambda: rounded(300, 5),
    "300 areas rounded at random to 3": lambda: rounded(300, 3),
    "300 areas, below 10 suppressed": lambda: suppressed(300, 10),
    "300 areas, below 7 suppressed": lambda: suppressed(300, 7),
    "30 sites, a code below 5": lambda: sites(30),
    "deaths in 12 intervals, two arms": lambda: survival(12),
    "capture and recapture, three lists": captures,
    "150 schools, shares in ranges": lambda: schools(150),
    "60 hospitals, noisy sums": lambda: hospitals(60),
    "100 areas, estimates with standard errors": lambda: estimates(100),
    "200 links, noise on both counts": lambda: links(200),
}
