"""Survey weights of a release: how they are scaled, what is refused, and that they are kept."""

import warnings

import numpy as np
import pytest

import dpjax

Y, WEIGHTS = np.array([1.0, 4.0, 2.5]), np.array([0.2, 1.0, 1.2])
ANSWER = dpjax.RandomizedResponse(0.75, 2)


def weighted(weights=WEIGHTS):
    return dpjax.LocalRelease(Y, dpjax.Gaussian(1.0), "y", weights=weights)


def test_weights_are_scaled_to_sum_to_n_and_kept():
    """Notices weights that JSON, joint or a dict of fields lose, or a release without weights that has some in JSON."""
    release = weighted()
    np.testing.assert_allclose(release.weights, WEIGHTS / 0.8, rtol=1e-6)
    again = dpjax.from_json(release.to_json())
    np.testing.assert_array_equal(again.weights, release.weights)
    both = dpjax.joint(dpjax.LocalRelease([0, 1, 1], ANSWER, "label"), release)
    np.testing.assert_array_equal(both.weights, release.weights)
    fields = dpjax.LocalRelease({"y": (Y, dpjax.Gaussian(1.0))}, weights=WEIGHTS)
    np.testing.assert_array_equal(fields.weights, release.weights)
    assert "survey weights" in repr(release)
    assert "Survey weights, scaled to sum to n: what follows is a pseudo-posterior." in dpjax.describe(release)
    assert "weights" not in dpjax.Microdata({"y": (Y, dpjax.Exact())}).to_json()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -1.0, 1.0], "weights: given .*-1.*; expected finite numbers of at least 0"),
        ([1.0, np.nan, 1.0], "weights: .*nan"),
        ([0.0, 0.0, 0.0], "weights: given zeros alone"),
        ([1.0, 1.0], r"weights: given shape \[2\]; expected shape \[3\]"),
    ],
)
def test_weights_that_are_none_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        weighted(weights)


def test_weights_that_look_like_counts_are_said_and_scaled():
    """Notices counts of equal records that are taken for weights without a word, and that weights of mean 1 are not."""
    with pytest.warns(UserWarning, match="whole numbers with mean 250 are taken as survey weights.*repeat the row"):
        release = weighted([100, 250, 400])
    np.testing.assert_allclose(release.weights, [0.4, 1.0, 1.6], rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weighted([0, 1, 2])
        weighted([100.5, 200.0, 299.5])


def test_weights_beside_a_sum_and_twice_are_refused():
    total = dpjax.Release([7.0], dpjax.Laplace(1.0), dpjax.statistics.total("y", 0.0, 5.0), n=3)
    with pytest.raises(ValueError, match="weights: given those of records beside a sum"):
        dpjax.joint(weighted(), total)
    with pytest.raises(ValueError, match="releases: given survey weights of two"):
        dpjax.joint(weighted(), dpjax.LocalRelease([0, 1, 1], ANSWER, "label", weights=WEIGHTS))
