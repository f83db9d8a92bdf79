"""Noisy counts of all units of a country with effects of groups, beside NumPyro's NUTS on the sum written by hand.

The model is written with standardised effects and with effects on their own scale, for both.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS

import dpjax
from benchmarks.first_draws import Size, measure_first
from benchmarks.rows import Row
from benchmarks.summed_out_cases import Case, areas, around, of_units, poisson, regression, sum_of

SCALE = 5.0
"""Of the discrete Gaussian noise."""


class Country(NamedTuple):
    """How many units and groups, what is known of them and their counts, and whether NumPyro runs, too."""

    units: int
    groups: int
    make: Callable[[int, int], tuple[dict[str, Any], np.ndarray]]
    by_hand: bool = True


def usual(units: int, groups: int) -> tuple[dict[str, Any], np.ndarray]:
    """Counts from none to some thousands, a few dozen at most units."""
    return areas(units, groups, 0)


def of_all_sizes(units: int, groups: int) -> tuple[dict[str, Any], np.ndarray]:
    """Counts from none to ten millions."""
    known, _ = areas(units, groups, 0)
    rng = np.random.default_rng(1)
    known |= {"offset": rng.uniform(6.0, 22.0, units)}
    effect = 0.5 * rng.normal(size=groups)
    return known, rng.poisson(np.exp(known["offset"] - 6.0 + 0.4 * known["x"] + effect[known["group"]]).clip(0, 1e7))


def small(units: int, groups: int) -> tuple[dict[str, Any], np.ndarray]:
    """Counts of mean two, by which the effects are hardly known."""
    known, _ = areas(units, groups, 0)
    rng = np.random.default_rng(2)
    known |= {"offset": np.full(units, np.log(2.0) + 6.0)}
    effect = 0.3 * rng.normal(size=groups)
    return known, rng.poisson(np.exp(known["offset"] - 6.0 + 0.4 * known["x"] + effect[known["group"]]))


COUNTRIES = {
    "3,000 units, 50 groups": Country(3_000, 50, usual),
    "500 units, 50 groups, counts of mean two": Country(500, 50, small),
    "500 units, 50 groups, counts from 0 to 10 millions": Country(500, 50, of_all_sizes, by_hand=False),
    "30,000 units, 50 groups": Country(30_000, 50, usual, by_hand=False),
    "20 units, 2 groups": Country(20, 2, usual),
}

SIZES = {
    "full": Size(tuple(COUNTRIES)[:4]),
    "quick": Size(tuple(COUNTRIES)[1:3], steps=(200, 200)),
    "tiny": Size(tuple(COUNTRIES)[4:], 1, (20, 20)),
}


def on_own_scale(known: Any) -> Any:
    """The same regression with effects that are not standardised."""
    level, slope = numpyro.sample("level", dist.Normal(*known["level"])), numpyro.sample("slope", dist.Normal(0.0, 1.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", int(known["groups"].shape[0])):
        effect = numpyro.sample("effect", dist.Normal(0.0, spread))
    return known["offset"] + level + slope * known["x"] + effect[known["group"]]


FORMS = {"standardised": regression, "own scale": on_own_scale}


def make_case(country: Country, form: str) -> Case:
    """The model in one form, the release, and the sum by hand."""
    known, counts = country.make(country.units, country.groups)
    released = counts + np.round(np.random.default_rng(10).normal(0.0, SCALE, country.units)).astype(int)
    numbers = around(released, int(7 * SCALE))
    density = sum_of(numbers, -((numbers - released) ** 2) / (2 * SCALE**2))
    release = dpjax.LocalRelease(released, dpjax.DiscreteGaussian(SCALE), "y")
    return of_units(FORMS[form], poisson, known, release, density)


def measure(size: Size) -> Iterator[Row]:
    """Rows of each form, ours and with a dense mass matrix by NumPyro; ratios are to the better form of NumPyro."""
    for name in size.cases:
        country = COUNTRIES[name]
        cases = {form: make_case(country, form) for form in FORMS}
        ours = [measure_call(f"{name}, {form}: dpjax", case, sample, size) for form, case in cases.items()]
        if not country.by_hand:
            yield from ours
            continue
        others = [measure_call(f"{name}, {form}: NumPyro", case, by_hand, size) for form, case in cases.items()]
        best = max(row.figures["effective per s"] for row in others)
        for row in ours:
            row.figures["times NumPyro"] = row.figures["effective per s"] / best
        yield from (*ours, *others)


def measure_call(title: str, case: Case, call: Callable[..., Any], size: Size) -> Row:
    """The row of a first call, with the leapfrogs of a draw."""
    leapfrogs: dict[str, float] = {}
    shape = (case.release.n, 1)
    row = measure_first("country", title, shape, size, partial(call, case, size, leapfrogs))
    row.figures.update(leapfrogs)
    return row


def sample(case: Case, size: Size, leapfrogs: dict[str, float]) -> dict[str, np.ndarray]:
    """The draws of `dpjax.sample` by the obvious call, with the model read."""
    posterior = dpjax.sample(jax.random.key(1), case.read(), case.release, **size.options)
    steps = [np.mean(value) for name, value in posterior.info.items() if name.endswith("num_integration_steps")]
    leapfrogs["leapfrogs"] = float(sum(steps))
    return posterior.draws


def by_hand(case: Case, size: Size, leapfrogs: dict[str, float]) -> dict[str, Any]:
    """The draws of NumPyro's NUTS."""
    settings = {"num_chains": size.chains, "chain_method": "sequential", "progress_bar": False}
    kernel = NUTS(case.by_hand, dense_mass=True)
    run = MCMC(kernel, num_warmup=size.steps[0], num_samples=size.steps[1], **settings)
    run.run(jax.random.key(2), extra_fields=("num_steps",))
    leapfrogs["leapfrogs"] = float(jnp.mean(run.get_extra_fields()["num_steps"]))
    return run.get_samples(group_by_chain=True)
