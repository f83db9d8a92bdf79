"""Every pair of wrapper and noise: probabilities of all outcomes add up to 1 and draws follow them, or it is refused.

What one kind of mechanism takes for granted of another was wrong without a word before, as in thresholded tables of
rounded noise.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.mechanisms import NoisyVariance, PartitionSelection, Staircase, Truncated, Tulap
from dpjax.mechanisms.base import as_mechanism
from dpjax.mechanisms.censored import Bounded
from dpjax.release.checks import check_value

NUM_DRAWS, MAX_Z = 20_000, 5.0

CELL, REACH = 0.1, 40.0
"""Densities have their kinks and jumps at multiples of CELL, and hardly any mass beyond REACH."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(6)
LEFT = CELL * np.arange(-REACH / CELL, REACH / CELL)

REAL = {
    "Laplace": dpjax.Laplace(1.3),
    "Gaussian": dpjax.Gaussian(1.3),
    "Staircase": Staircase(epsilon=1.0, sensitivity=1.2, share=0.25),
    "Tulap": Tulap(1.1),
}
WHOLE = {"DiscreteLaplace": dpjax.DiscreteLaplace(1.3), "DiscreteGaussian": dpjax.DiscreteGaussian(1.3)}
TABLES = {
    "Exact": dpjax.Exact(),
    "RandomRounding": dpjax.RandomRounding(3),
    "CellKeys": dpjax.CellKeys([[1.0, 0.0, 0.0, 0.0], [0.3, 0.4, 0.3, 0.0], [0.0, 0.3, 0.4, 0.3]]),
    "PrimarySuppression": dpjax.PrimarySuppression(3),
}
VECTORS = {
    "VectorLaplace": dpjax.VectorLaplace(1.3),
    "KNormLinf": dpjax.KNormLinf(1.3),
    "MultivariateGaussian": dpjax.MultivariateGaussian([[1.7]]),
}
CENSORED = {
    "Censored": dpjax.Censored(dpjax.Laplace(1.3), lower=0.0),
    "Censored whole": dpjax.Censored(dpjax.DiscreteLaplace(1.3), lower=0.0),
}
WRAPPED_REAL = {
    "Rounded": dpjax.Rounded(dpjax.Gaussian(1.3), 2.0),
    "Truncated": Truncated(dpjax.Laplace(1.3), lower=0.0),
    "Censored": CENSORED["Censored"],
    "PartitionSelection": PartitionSelection(CENSORED["Censored"]),
}
WRAPPED_WHOLE = {
    "Rounded whole": dpjax.Rounded(dpjax.DiscreteLaplace(1.3), 2.0),
    "Rounded odd": dpjax.Rounded(dpjax.DiscreteGaussian(1.3), 3.0),
    "Truncated whole": Truncated(dpjax.DiscreteLaplace(1.3), lower=0.0),
    "Censored whole": CENSORED["Censored whole"],
}
NOISES = {**REAL, **WHOLE, **TABLES, **VECTORS, **WRAPPED_REAL, **WRAPPED_WHOLE}


def thresholded(only_present: bool) -> Callable[[Any], Any]:
    """The mechanism of a table of which the cells from 3 on were published."""
    return lambda noise: (
        dpjax.releases.thresholded(
            ["a"], [6.0], ["a", "b"], noise, threshold=3, n=9, only_present=only_present
        ).mechanism
    )


ADDITIVE, ROUNDED = {*REAL, *WHOLE}, {"Rounded", "Rounded odd"}
WITHIN = {"Exact"}
"""Numbers that are rounded or censored without noise are known within intervals."""

CASES: dict[str, tuple[Callable[[Any], Any], set[str]]] = {
    "nothing": (lambda noise: noise, {*NOISES}),
    "Rounded 3": (lambda noise: dpjax.Rounded(noise, 3.0), ADDITIVE | WITHIN),
    "Rounded 2": (lambda noise: dpjax.Rounded(noise, 2.0), ADDITIVE | WITHIN),
    "Censored below": (lambda noise: dpjax.Censored(noise, lower=0.0), {*ADDITIVE, *ROUNDED, *WITHIN}),
    "Censored above": (lambda noise: dpjax.Censored(noise, upper=2.0), {*ADDITIVE, "Rounded", *WITHIN}),
    "Censored": (lambda noise: dpjax.Censored(noise, lower=0.0, upper=6.0), {*ADDITIVE, *ROUNDED, *WITHIN}),
    "Censored between": (lambda noise: dpjax.Censored(noise, lower=0.5), {*REAL, *WITHIN}),
    "Truncated above": (lambda noise: Truncated(noise, upper=2.0), ADDITIVE),
    "Truncated between": (lambda noise: Truncated(noise, lower=0.5, upper=6.5), ADDITIVE),
    "PartitionSelection": (PartitionSelection, {*CENSORED}),
    "thresholded": (thresholded(False), {*ADDITIVE, *ROUNDED}),
    "thresholded if present": (thresholded(True), {*ADDITIVE, *ROUNDED}),
    "NoisyVariance": (lambda noise: NoisyVariance(noise, 4, 4), {*REAL, *WRAPPED_REAL}),
    "Independent": (lambda noise: dpjax.Independent((noise,), (1,)), {*NOISES}),
}
"""What each wrapper makes of a noise, and of which it can be made."""


def inside(mechanism: Any) -> Any:
    """The mechanism, or the noise on a variance or of the one part."""
    if isinstance(mechanism, dpjax.Independent):
        return mechanism.mechanisms[0]
    return mechanism.on_variance if isinstance(mechanism, NoisyVariance) else mechanism


def atoms(noise: Any, statistic: float) -> np.ndarray:
    """All values that may have a positive probability, 81 of them; NaN stands for none."""
    layers = [*as_mechanism(noise)._layers]
    steps = [float(layer.step) for layer in layers if isinstance(layer, dpjax.Rounded)]
    if steps or as_mechanism(noise).integer_noise:
        listed = [value for value in (*steps, 1.0)[0] * np.arange(-40, 41) if is_possible(noise, value)]
    elif as_mechanism(noise).sums.known:
        listed = [statistic]
    else:
        bounds = [
            bound for layer in layers if isinstance(layer, dpjax.Censored) for bound in (layer.lower, layer.upper)
        ]
        listed = [float(bound) for bound in bounds if bound is not None]
    return np.pad(np.array(listed), (0, 81 - len(listed)), constant_values=np.nan)


def is_possible(noise: Any, value: float) -> bool:
    """Whether a release of this value is accepted."""
    try:
        check_value("value", np.array([value]), noise)
    except ValueError:
        return False
    return True


def cells(noise: Any) -> np.ndarray:
    """Which of all cells, that begin at LEFT, have values with a density."""
    known = as_mechanism(noise)
    if known.integer_noise or known.sums.known or any(isinstance(layer, dpjax.Rounded) for layer in known._layers):
        return np.zeros(len(LEFT), bool)
    has, middle = np.ones(len(LEFT), bool), LEFT + CELL / 2
    for layer in known._layers:
        if isinstance(layer, Bounded):
            has &= (middle > (-np.inf if layer.lower is None else layer.lower)) & (
                middle < (np.inf if layer.upper is None else layer.upper)
            )
    return has


def outcomes(mechanism: Any, sums: jax.Array, statistic: float) -> tuple[np.ndarray, np.ndarray]:
    """Where outcomes end, and their probabilities: atoms, and cells with a density."""
    points, nodes = atoms(inside(mechanism), statistic), LEFT[:, None] + CELL / 2 * (1 + NODES)
    values = jnp.asarray(np.append(np.nan_to_num(points), nodes), float)
    found = np.exp(np.asarray(jax.vmap(lambda value: mechanism.log_density(value[None], sums))(values)))
    masses = found[len(points) :].reshape(nodes.shape) @ WEIGHTS * CELL / 2
    is_atom, has_density = ~np.isnan(points), cells(inside(mechanism))
    ends = np.append(points[is_atom], LEFT[has_density] + CELL)
    order = np.argsort(ends)
    return ends[order], np.append(found[: len(points)][is_atom], masses[has_density])[order]


def check_outcomes(name: str, mechanism: Any, statistic: float) -> None:
    """All probabilities add up to 1, and as many draws are at most each end as they say."""
    sums = jnp.asarray([0.0, 4 * statistic] if isinstance(mechanism, NoisyVariance) else [statistic])
    ends, masses = outcomes(mechanism, sums, statistic)
    assert abs(masses.sum() - 1) < 1e-6, (name, masses.sum())
    draws = jax.vmap(mechanism.sample, in_axes=(0, None))(jax.random.split(jax.random.key(1), NUM_DRAWS), sums)
    last = np.append(np.diff(ends) > CELL / 2, True)
    below = np.searchsorted(np.sort(np.asarray(draws).ravel()), ends[last] + 1e-6) / NUM_DRAWS
    cdf = np.cumsum(masses)[last]
    z = (below - cdf) / np.sqrt(np.maximum(cdf * (1 - cdf), 1 / NUM_DRAWS) / NUM_DRAWS)
    assert np.max(np.abs(z)) < MAX_Z, (name, np.max(np.abs(z)))


def check_certain(mechanism: Any) -> None:
    """Without noise one outcome is certain, and all others are impossible."""
    for number in (0.3, 1.0, 7.0):
        drawn = mechanism.sample(jax.random.key(1), jnp.array([number]))
        assert mechanism.log_density(drawn, jnp.array([number])) == 0
        other = drawn + 6.0 if isinstance(mechanism, dpjax.Rounded) else jnp.array([1.5])
        assert mechanism.log_density(other, jnp.array([number])) == -np.inf


@pytest.mark.x64
@pytest.mark.parametrize("wrapper", CASES)
def test_probabilities_of_all_outcomes_add_up_to_one(wrapper: str) -> None:
    wrap, possible = CASES[wrapper]
    for name, noise in NOISES.items():
        if name in possible & WITHIN:
            check_certain(wrap(noise))
        elif name in possible:
            check_outcomes(name, wrap(noise), 1.0 if as_mechanism(noise).integer_noise else 0.3)
        else:
            with pytest.raises((TypeError, ValueError), match=r"^(mechanism|noise|on_variance|lower|upper): given "):
                wrap(noise)
