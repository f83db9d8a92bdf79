"""Bad input: every message names the argument, what was given, what was expected and the remedy."""

import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.mechanisms import (
    Censored,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Privacy,
    RandomizedResponse,
    gaussian_delta,
    gaussian_scale,
    laplace_scale,
    zcdp_epsilon,
    zcdp_rho,
    zcdp_scale,
)

CODES = jnp.array([0, 1])
POSITIVE = "finite numbers above 0"

# (what is called, error, argument, given, expected, remedy)
TABLE = (
    (lambda: Laplace(0.0), ValueError, "scale", "0.0", POSITIVE, "sensitivity / epsilon"),
    (lambda: Laplace([1.0, -2.0]), ValueError, "scale", "[1.0, -2.0]", POSITIVE, "sensitivity / epsilon"),
    (lambda: Laplace(1j * np.ones(2)), TypeError, "scale", "complex128", POSITIVE, "sensitivity / epsilon"),
    (lambda: Gaussian(jnp.nan), ValueError, "scale", "nan", POSITIVE, "standard deviation"),
    (lambda: Gaussian(-1), ValueError, "scale", "-1", POSITIVE, "standard deviation"),
    (lambda: DiscreteLaplace(jnp.inf), ValueError, "scale", "inf", POSITIVE, "alpha"),
    (lambda: DiscreteGaussian(np.zeros(3)), ValueError, "scale", "[0.0, 0.0, 0.0]", POSITIVE, "not its square"),
    (lambda: RandomizedResponse(), ValueError, "keep, matrix", "neither", "exactly one", "matrix alone"),
    (lambda: RandomizedResponse(0.5, 2, np.eye(2)), ValueError, "keep, matrix", "both", "exactly one", "matrix alone"),
    (lambda: RandomizedResponse(0.0, 2), ValueError, "keep", "0.0", "(0, 1]", "P(released = true)"),
    (lambda: RandomizedResponse(1.5, 2), ValueError, "keep", "1.5", "(0, 1]", "P(released = true)"),
    (lambda: RandomizedResponse(0.5), TypeError, "num_categories", "None", "whole number >= 2", "number of categories"),
    (
        lambda: RandomizedResponse(0.5, 1),
        ValueError,
        "num_categories",
        "1",
        "whole number >= 2",
        "number of categories",
    ),
    (lambda: RandomizedResponse(matrix=[0.5, 0.5]), ValueError, "matrix", "[2]", "[k, k]", "P(released | true = j)"),
    (lambda: RandomizedResponse(matrix=np.eye(3), num_categories=4), ValueError, "matrix", "[3, 3]", "[4, 4]", "Row j"),
    (lambda: RandomizedResponse(matrix=[[1.2, -0.2], [0, 1]]), ValueError, "matrix", "-0.2", "at least 0", "Row j"),
    (lambda: RandomizedResponse(matrix=[[0.9, 0.5], [0.1, 0.5]]), ValueError, "matrix", "1.4", "sum to 1", "transpose"),
    (
        lambda: RandomizedResponse(0.5, 2).log_density(CODES, jnp.zeros(2)),
        TypeError,
        "statistic",
        "float",
        "integers",
        ".astype(int)",
    ),
    (lambda: RandomizedResponse(0.5, 2).log_density(CODES > 0, CODES), TypeError, "value", "bool", "integers", "Code"),
    (lambda: Censored(Laplace(1.0)), ValueError, "lower, upper", "neither", "at least one", "lower=0"),
    (lambda: Censored(Laplace(1.0), 2.0, 1.0), ValueError, "lower, upper", "2.0", "lower < upper", "Exchange"),
    (
        lambda: Censored(Laplace(1.0), [0.0, 0.0], [1.0, 0.0]),
        ValueError,
        "lower, upper",
        "0.0]",
        "lower < upper",
        "drop",
    ),
    (lambda: Censored(Laplace(1.0), -jnp.inf), ValueError, "lower", "-inf", "finite numbers", "Leave out"),
    (lambda: Censored(Laplace, 0.0), TypeError, "mechanism", "Laplace", "additive", "Laplace(scale)"),
    (lambda: Censored(RandomizedResponse(0.5, 2), 0), TypeError, "mechanism", "Randomized", "additive", "tails"),
    (lambda: Censored(Censored(Laplace(1.0), 0), 0), TypeError, "mechanism", "Censored", "additive", "tails"),
    (lambda: Privacy("renyi", "replace-one"), ValueError, "notion", "renyi", "zcdp", "Name"),
    (lambda: Privacy("pure", "replace", epsilon=1.0), ValueError, "neighbours", "replace", "replace-one", "State"),
    (lambda: Privacy("pure", "replace-one"), ValueError, "epsilon", "None", "a number", "published"),
    (lambda: Privacy("approximate", "replace-one", epsilon=1.0), ValueError, "delta", "None", "a number", "published"),
    (lambda: Privacy("zcdp", "replace-one", rho=0.0), ValueError, "rho", "0.0", POSITIVE, "above zero"),
    (lambda: Privacy("approximate", "replace-one", 1.0, 1.0), ValueError, "delta", "1.0", "(0, 1)", "DP"),
    (lambda: Privacy("pure", "replace-one", 1.0, norm=3), ValueError, "norm", "3", "1 or 2", "norm"),
    (lambda: Privacy("pure", "replace-one", jnp.ones(())), TypeError, "epsilon", "Array", "plain number", "float(...)"),
    (
        lambda: Privacy("pure", "replace-one", 1.0, sensitivity=-1.0),
        ValueError,
        "sensitivity",
        "-1.0",
        POSITIVE,
        "Pass",
    ),
    (lambda: laplace_scale(0.0, 1.0), ValueError, "epsilon", "0.0", POSITIVE, "Pass"),
    (lambda: laplace_scale(1.0, -1.0), ValueError, "sensitivity", "-1.0", POSITIVE, "Pass"),
    (lambda: gaussian_delta(1.0, 0.0, 1.0), ValueError, "scale", "0.0", POSITIVE, "Pass"),
    (lambda: gaussian_scale(1.0, 0.0, 1.0), ValueError, "delta", "0.0", "(0, 1)", "DP"),
    (lambda: gaussian_scale(1.0, 1.0, 1.0), ValueError, "delta", "1.0", "(0, 1)", "DP"),
    (lambda: gaussian_scale(np.inf, 0.1, 1.0), ValueError, "epsilon", "inf", POSITIVE, "Pass"),
    (lambda: zcdp_scale(-1.0, 1.0), ValueError, "rho", "-1.0", POSITIVE, "Pass"),
    (lambda: zcdp_rho(1.0, 0.0), ValueError, "sensitivity", "0.0", POSITIVE, "Pass"),
    (lambda: zcdp_epsilon(1.0, 2.0), ValueError, "delta", "2.0", "(0, 1)", "DP"),
)


@pytest.mark.parametrize(("call", "error", "argument", "given", "expected", "remedy"), TABLE)
def test_messages_have_four_parts(call, error, argument, given, expected, remedy):
    with pytest.raises(error) as caught:
        call()
    before, found, after = str(caught.value).partition("; expected ")
    assert found
    assert before.startswith(f"{argument}: given ")
    assert given in before
    named, found, advice = after.partition(". ")
    assert found
    assert expected in named
    assert remedy in advice
