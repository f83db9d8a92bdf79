"""Every pair of a rule on counts and what it is around: against sums over all values of that, or refused.

The rules are zeros that are kept, counts that are withheld by their value or their count, and residues. Each pair is
written as JSON and described, too.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import mechanisms
from dpjax.mechanisms import KeptZeros, Modulo, SumOf, Suppressed
from dpjax.mechanisms.base import as_mechanism
from dpjax.release.checks import check_value
from dpjax.release.json import decode_mechanism, encode_mechanism

COUNTS, VALUES = np.arange(10.0), np.arange(-90, 121) / 2
"""Also halves, which some real noise gives, and a code may be."""

KEYS = mechanisms.CellKeys([[1.0, 0.0, 0.0, 0.0], [0.3, 0.4, 0.3, 0.0], [0.0, 0.3, 0.4, 0.3]])
NOISE = {
    "real": dpjax.Laplace(1.3),
    "whole": dpjax.DiscreteLaplace(1.3),
    "both": SumOf([dpjax.DiscreteLaplace(1.3), dpjax.Gaussian(0.3)]),
}
INNER = NOISE | {
    "exact": dpjax.Exact(),
    "random": mechanisms.RandomRounding(3),
    "keys": KEYS,
    "primary": mechanisms.PrimarySuppression(3),
    "coarse": mechanisms.Coarsened.multiples(5),
    "heaped": mechanisms.Heaped(0.3, 5),
    "residues": Modulo(dpjax.DiscreteLaplace(1.3), modulus=7),
    "zeros": KeptZeros(dpjax.DiscreteLaplace(1.3)),
    "real zeros": KeptZeros(dpjax.Laplace(1.3)),
    "withheld": Suppressed(mechanisms.RandomRounding(3), 6),
    "small": Suppressed(dpjax.DiscreteLaplace(1.3), 5, by="count", code=-0.5),
    "rounded": mechanisms.Rounded(dpjax.Laplace(1.3), 2.0),
    "rounded whole": mechanisms.Rounded(dpjax.DiscreteLaplace(1.3), 2.0),
    "clamped": dpjax.Censored(dpjax.Laplace(1.3), lower=0.0),
    "clamped whole": dpjax.Censored(dpjax.DiscreteLaplace(1.3), lower=0.0),
    "drawn anew": mechanisms.Truncated(dpjax.DiscreteLaplace(1.3), lower=0.0),
    "reports": mechanisms.ReportSums(0.8, 0.2, 12),
    "answers": dpjax.RandomizedResponse(0.7, 13),
}
WITHIN = {"primary", "coarse", "heaped", "random", "keys", "reports", "residues"}
"""Whole values of counts by rules of their own."""

RULES: dict[str, tuple[Any, set[str]]] = {
    "zeros kept": (KeptZeros, {*INNER} - {"answers"}),
    "by value": (
        lambda inner: Suppressed(inner, 5, least=1, code=-0.5),
        WITHIN - {"coarse"} | {"zeros", "withheld", "rounded whole", "clamped whole", "drawn anew"},
    ),
    "by count": (
        lambda inner: Suppressed(inner, 5, least=1, by="count", code=-0.5),
        WITHIN | {"whole", "zeros", "withheld", "rounded", "rounded whole", "clamped", "clamped whole", "drawn anew"},
    ),
    "residues": (lambda inner: Modulo(inner, modulus=7), {*NOISE}),
}
"""What each rule makes of a mechanism, and of which it can be made."""


def terms(mechanism: Any) -> np.ndarray:
    """The densities [value, count] of all values given all counts, 0 of those that a release refuses."""
    columns = jnp.asarray(VALUES, float)[:, None], jnp.asarray(COUNTS, float)[None]
    found = np.exp(np.asarray(as_mechanism(mechanism).log_density_terms(*columns), float))
    return np.where(np.array([is_possible(mechanism, value) for value in VALUES])[:, None], found, 0.0)


def is_possible(mechanism: Any, value: float) -> bool:
    """Whether a release of this value is accepted."""
    try:
        check_value("value", np.array([value]), mechanism)
    except ValueError:
        return False
    return True


def expected(rule: str, name: str, inner: np.ndarray) -> np.ndarray:
    """The same of a rule, by sums over all values of the inner one."""
    is_small = (VALUES >= 1) & (VALUES < 5)
    is_code = VALUES[:, None] == -0.5
    if rule == "zeros kept":
        # Without an atom at 0, a published 0 is a count of 0.
        has_atom = name in {*INNER} - {"real", "both", "real zeros"}
        noisy = inner if has_atom else np.where(VALUES[:, None] == 0, 0.0, inner)
        return np.where(COUNTS == 0, VALUES[:, None] == 0, noisy)
    if rule == "by value":
        withheld = inner[is_small & (VALUES % 1 == 0)].sum(axis=0)
        return np.where(is_code, withheld, np.where(is_small[:, None], 0.0, inner))
    if rule == "by count":
        hidden = (COUNTS >= 1) & (COUNTS < 5)
        return np.where(hidden, is_code, np.where(is_code, 0.0, inner))
    shifts = 14 * np.arange(-20, 21)[:, None]
    places = np.arange(len(VALUES)) + shifts
    folded = np.where((places >= 0) & (places < len(VALUES)), 1.0, 0.0)[..., None] * inner[places % len(VALUES)]
    return np.where(((VALUES >= 0) & (VALUES < 7))[:, None], folded.sum(axis=0), 0.0)


@pytest.mark.x64
@pytest.mark.parametrize("rule", RULES)
def test_each_pair_is_right_or_refused(rule: str) -> None:
    """Catches a rule that takes for granted what another mechanism is not; some pairs ended in an error of Python."""
    wrap, possible = RULES[rule]
    for name, inner in INNER.items():
        if name not in possible:
            with pytest.raises((TypeError, ValueError), match=r"^(mechanism|code|modulus): given "):
                wrap(inner)
            continue
        mechanism = wrap(inner)
        found = terms(mechanism)
        np.testing.assert_allclose(found, expected(rule, name, terms(inner)), atol=1e-9, err_msg=name)
        check_bounds(name, mechanism, found)
        assert decode_mechanism(encode_mechanism(mechanism)) == mechanism, name
        assert mechanism.promise.words(), name


def check_bounds(name: str, mechanism: Any, found: np.ndarray) -> None:
    """Counts that a value leaves are between its bounds, and no density is above the largest."""
    values = jnp.asarray(VALUES, float)
    if mechanism.sums.bounds is not None:
        low, high = (np.broadcast_to(np.asarray(end), len(VALUES))[:, None] for end in mechanism.sums.bounds(values))
        outside = (low > COUNTS) | (high < COUNTS)
        assert not np.any(outside & (found > 0)), name
    if mechanism.sums.largest is not None:
        for first, last in ((0, 9), (0, 0), (3, 5)):
            ends = (jnp.full(len(VALUES), float(end)) for end in (first, last))
            largest = np.exp(np.asarray(mechanism.sums.largest(values, *ends)))
            assert not np.any(found[:, first : last + 1].max(axis=1) > largest * (1 + 1e-9) + 1e-12), name
