"""Numbers of units with gaps: suppressed counts, and noisy numbers below a threshold."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import mechanisms, releases

NAN = float("nan")
TRUTH = np.array([7, 3, 12])


def test_gaps_are_suppressed_counts():
    """Catches gaps that are taken for missing values, and zeros that are suppressed though they are published."""
    records = {"y": jnp.asarray(TRUTH)}
    release = releases.suppressed_units([NAN, NAN, 12], limit=10)
    np.testing.assert_array_equal(release.log_densities(records), 0.0)
    zeros = releases.suppressed_units([NAN, NAN, 12], limit=10, least=1, field="y")
    np.testing.assert_array_equal(zeros.log_densities({"y": jnp.array([0, 9, 12])}), [-np.inf, 0.0, 0.0])


@pytest.mark.parametrize("scales", [2.0, np.array([2.0, 1.0, 4.0])])
def test_gaps_are_below_the_threshold(scales: Any):
    """Catches gaps that say nothing, and the scale of another unit."""
    records = {"y": jnp.asarray(TRUTH)}
    whole = releases.thresholded_units([NAN, NAN, 14], dpjax.DiscreteLaplace(scales), threshold=10)
    ratio = 1 / np.broadcast_to(scales, 3)
    expected = np.where([True, True, False], stats.dlaplace.logcdf(9 - TRUTH, ratio), stats.dlaplace.logpmf(2, ratio))
    np.testing.assert_allclose(whole.log_densities(records), expected, rtol=1e-4)
    real = releases.thresholded_units([NAN, NAN, 14.5], dpjax.Laplace(scales), threshold=10)
    law = stats.laplace(scale=np.broadcast_to(scales, 3))
    expected = np.where([True, True, False], law.logcdf(10 - TRUTH), law.logpdf(2.5))
    np.testing.assert_allclose(real.log_densities(records), expected, rtol=1e-4)
    rounded = releases.thresholded_units([NAN, NAN, 15], mechanisms.Rounded(dpjax.Laplace(scales), 5.0), threshold=10)
    assert rounded.values.tolist() == [5.0, 5.0, 15.0]


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "a count that is suppressed": (lambda: releases.suppressed_units([12, 3], limit=10), "values: given"),
    "a negative count": (lambda: releases.suppressed_units([12, -1], limit=10), "values: given negative"),
    "a table": (lambda: releases.suppressed_units(np.ones((2, 2)), limit=10), "values: given shape"),
    "a number below": (lambda: releases.thresholded_units([12, 3], dpjax.Laplace(1.0), 10), "values: given 3"),
    "too few scales": (
        lambda: releases.thresholded_units([12, 13, 14], dpjax.Laplace([1.0, 2.0]), 10),
        "mechanism.scale: given",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_units_are_named(case: str):
    build, message = BAD[case]
    with pytest.raises(ValueError, match=f"^{message}"):
        build()


def test_counts_that_were_rounded_before_they_were_withheld_are_noticed():
    """Taken as exact without a word; a table of few counts may have multiples of three by chance."""
    rounded = np.where(np.arange(20) % 4, 3.0 * np.arange(2, 22), NAN)
    words = "^{}: all 15 published counts are multiples of 3. "
    with pytest.warns(UserWarning, match=words.format("values")) as found:
        releases.suppressed_units(rounded, limit=6)
    assert [one.filename for one in found] == [__file__]
    with pytest.warns(UserWarning, match=words.format("value")):
        releases.suppressed(rounded, dpjax.statistics.cells("cell", 20), limit=6, n=900)
    releases.suppressed_units(rounded[:8], limit=6)
