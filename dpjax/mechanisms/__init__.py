"""How a statistic was privatized: laws of a released value given the statistic, and what they promise."""

from dpjax.mechanisms.additive import Gaussian, Laplace
from dpjax.mechanisms.calibration import (
    gaussian_delta,
    gaussian_scale,
    laplace_scale,
    zcdp_epsilon,
    zcdp_rho,
    zcdp_scale,
)
from dpjax.mechanisms.censored import Censored
from dpjax.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from dpjax.mechanisms.noise import Additive
from dpjax.mechanisms.privacy import Privacy
from dpjax.mechanisms.randomized_response import RandomizedResponse

__all__ = [
    "Additive",
    "Censored",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "Privacy",
    "RandomizedResponse",
    "gaussian_delta",
    "gaussian_scale",
    "laplace_scale",
    "zcdp_epsilon",
    "zcdp_rho",
    "zcdp_scale",
]
