"""Every form against SciPy: round trip, transport to other parameters, draws and densities, in both tails."""

from typing import Any

import jax
import numpy as np
import pytest
from numpyro import distributions as dist

from dpjax.adapters.numpyro.form import Form
from dpjax.numerics.scores import UNIFORM_SCORES
from tests.adapters.numpyro import family_runs as runs
from tests.adapters.numpyro.ended import ENDS
from tests.adapters.numpyro.families import CONTINUOUS, DISCRETE
from tests.adapters.numpyro.family_cases import cases
from tests.adapters.numpyro.pit import p_value, scores

REJECT = 1e-6
"""Some 600 tests are made of one set of draws in each precision."""


def tolerance(single: float, double: float) -> float:
    return double if jax.config.jax_enable_x64 else single


def oracles(name: str) -> list[Any]:
    family = runs.family_of(name)
    return [family.oracle(*point) for point in family.at()]


def worst_transport(name: str, moved: np.ndarray) -> float:
    laws = oracles(name)
    return min(p_value(laws[(k + 1) % len(laws)], moved[k], name in DISCRETE) for k in range(len(laws)))


def worst_round_trip(name: str, values: np.ndarray, again: np.ndarray) -> float:
    """The largest change of a Normal score; of discrete values the share that change, a rounding error of a cell."""
    if name in DISCRETE:
        return float(np.mean(again != values))
    changes = [
        scores(law, after) - scores(law, before)
        for law, after, before in zip(oracles(name), again, values, strict=True)
    ]
    return float(np.max(np.abs(np.nan_to_num(changes, nan=99.0))))


@pytest.mark.parametrize("name", cases([*CONTINUOUS, *DISCRETE]))
def test_scipy_agrees_with_draws_and_densities(name: str) -> None:
    run = runs.run(name)
    for law, point, draws, values, density in zip(
        oracles(name), runs.family_of(name).at(), run.draws, run.values, run.density, strict=True
    ):
        assert p_value(law, draws, name in DISCRETE) > REJECT, point
        expected = (law.logpmf if name in DISCRETE else law.logpdf)(np.asarray(values, np.float64))
        error = np.abs(density - expected) / (1 + np.abs(expected))
        assert np.max(error) < tolerance(3e-3, 1e-6 if "NegativeBinomial" in name else 1e-7), point


@pytest.mark.parametrize("name", cases([*CONTINUOUS, *DISCRETE]))
def test_noise_gives_its_value_back(name: str) -> None:
    run = runs.run(name)
    # Next to an end cell the floats are a sixty-fourth of it apart.
    assert worst_round_trip(name, run.values, run.again) < tolerance(1e-2, 1e-3 if name in ENDS else 1e-5)


@pytest.mark.parametrize("name", cases([*CONTINUOUS, *DISCRETE]))
def test_noise_of_one_law_gives_values_of_another(name: str) -> None:
    """Where its density depends on the parameters, that density is what the change of variables says."""
    run = runs.run(name)
    if run.free or name in DISCRETE:
        assert worst_transport(name, run.moved) > REJECT
    tilt = run.tilt[~np.isnan(run.tilt)]
    off = np.abs(tilt - np.median(tilt)) > tolerance(2e-2, 2e-2 if name in ENDS else 1e-5)
    # Exactly on the edge of an end cell the derivative is the mean of those of both sides.
    assert np.mean(off) <= (1e-3 if name in ENDS else 0.0)


def saturating(inner: Any) -> Form:
    """A mutation: the distribution function itself, which ends at 1."""

    def noise(key: jax.Array, value: jax.Array) -> jax.Array:
        return jax.numpy.clip(inner.cdf(value), 1e-300, 1 - jax.numpy.finfo(value.dtype).epsneg)

    return Form("uniform", noise, inner.icdf, scores=UNIFORM_SCORES)


def unsigned(inner: Any) -> Form:
    """A mutation: the branch above 0, whatever the value."""
    base = inner.base_dist
    return Form(
        "unsigned",
        lambda key, value: (value - base.loc) / base.scale,
        lambda noise: jax.numpy.abs(base.loc + base.scale * noise),
    )


@pytest.mark.x32
@pytest.mark.parametrize(("name", "wrong"), [("Normal above 0", saturating), ("FoldedNormal", unsigned)])
def test_a_wrong_form_is_found(name: str, wrong: Any) -> None:
    family, run = runs.family_of(name), runs.run(name)
    points = family.at()
    laws = [runs.law_at(family, point) for point in points]
    forms = [wrong(law.base_dist if isinstance(law, dist.ExpandedDistribution) else law) for law in laws]
    noise = [form.noise(jax.random.key(0), value) for form, value in zip(forms, run.values, strict=True)]
    moved = np.stack([forms[(k + 1) % len(forms)].value(noise[k]) for k in range(len(forms))])
    assert worst_transport(name, moved) < REJECT
