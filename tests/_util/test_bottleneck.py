"""The one number of each record through which a function depends on its first argument."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax._util.bottleneck import find_bottleneck

SLOPES = {"level": jnp.float32(0.5), "slope": jnp.float32(2.0), "scale": jnp.float32(1.5)}
COUNTS = jnp.arange(4.0, dtype="float32")
COVARIATE = jnp.asarray([0.1, -1.0, 2.0, 0.3], "float32")


def poisson(parameters, counts, covariate):
    predictor = parameters["level"] + parameters["slope"] * covariate
    return counts * predictor - jnp.exp(predictor) - jax.scipy.special.gammaln(counts + 1)


def dispersed(parameters, counts, covariate):
    return poisson(parameters, counts, covariate) * parameters["scale"]


def shared(parameters, counts, covariate):
    return counts * jnp.exp(parameters["level"]) - covariate


def interacting(parameters, counts, covariate):
    return jnp.sin(parameters["level"] + parameters["slope"] * covariate * counts)


def own(parameters, counts, covariate):
    return jnp.square(counts - parameters["level"]) * covariate


@pytest.mark.parametrize(("function", "shape"), [(poisson, (4,)), (shared, ()), (own, ())])
def test_both_parts_together_are_the_function(function, shape):
    """A part that lacks an equation, or takes its inputs in another order, gives other values."""
    found = find_bottleneck(function, SLOPES, COUNTS, COVARIATE)
    assert found is not None
    assert found.shape == shape
    number = found.before(SLOPES, COUNTS, COVARIATE)
    np.testing.assert_allclose(found.after(number, COUNTS, COVARIATE), function(SLOPES, COUNTS, COVARIATE), rtol=1e-6)
    np.testing.assert_allclose(found.after(number, COUNTS + 1, COVARIATE), function(SLOPES, COUNTS + 1, COVARIATE))


def test_the_earliest_number_is_found():
    """The predictor and not its exponential, which bends more."""
    found = find_bottleneck(poisson, SLOPES, COUNTS, COVARIATE)
    np.testing.assert_allclose(found.before(SLOPES, COUNTS, COVARIATE), 0.5 + 2 * COVARIATE, rtol=1e-6)


@pytest.mark.parametrize("function", [dispersed, interacting])
def test_where_several_numbers_matter_none_is_found(function):
    """A scale beside the predictor, or a number that depends on the counts, would be left out of a table in silence."""
    assert find_bottleneck(function, SLOPES, COUNTS, COVARIATE) is None
