"""Numbers that look right and are not, by one table."""

import numpy as np
import pytest

import dpjax

MASKED = np.ma.array([1.0, 2.0], mask=[True, False])
STATISTIC = dpjax.statistics.cells("cell", 2)

BAD = {
    "no scale": (lambda: dpjax.Laplace([]), "scale"),
    "masked scale": (lambda: dpjax.Laplace(MASKED), "scale"),
    "masked value": (lambda: dpjax.Release(MASKED, dpjax.Laplace(1.0), STATISTIC, n=3), "value"),
    "masked records": (lambda: dpjax.LocalRelease(MASKED, dpjax.Laplace(1.0), "y"), "values"),
}


@pytest.mark.parametrize(("build", "argument"), BAD.values(), ids=BAD)
def test_bad_numbers_are_refused_by_name(build, argument):
    with pytest.raises((TypeError, ValueError), match=f"{argument}: given .*; expected "):
        build()
