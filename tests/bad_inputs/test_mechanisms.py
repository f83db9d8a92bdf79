"""Bad scales, budgets, channels and bounds."""

import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import Censored, Gaussian, HaarWavelet, Laplace, Privacy, RandomizedResponse, SmoothedHistogram
from dpjax.mechanisms import PoissonBinomial

NO_SCALE = {
    "none": None,
    "zero": 0.0,
    "negative": -1.0,
    "infinite": np.inf,
    "missing": np.nan,
    "text": "1.0",
    "an array of text": np.array(["a"]),
    "a dict": {"scale": 1.0},
    "a set": {1.0},
    "a function": np.sqrt,
    "complex": 1j,
    "a ragged list": [[1.0], [1.0, 2.0]],
    "one bad entry": [1.0, 0.0],
    "objects": np.array([None, 1.0]),
    "a mechanism": Laplace(1.0),
}
NO_NUMBER = {
    name: NO_SCALE[name] for name in ("none", "zero", "negative", "missing", "text", "a dict", "one bad entry")
}
NO_COUNT = {"none": None, "a fraction": 2.5, "zero": 0, "negative": -1, "text": "3", "true": True, "a list": [3]}

CASES = {
    **{
        f"{name} of scale {scale}": (lambda kind=kind, value=value: kind(value), "scale")
        for name, kind in [("Laplace", Laplace), ("DiscreteGaussian", dpjax.DiscreteGaussian)]
        for scale, value in NO_SCALE.items()
    },
    **{
        f"{name} of scale {scale}": (lambda kind=kind, value=value: kind(value), "scale")
        for name, kind in [
            ("Gaussian", Gaussian),
            ("DiscreteLaplace", dpjax.DiscreteLaplace),
            ("HaarWavelet", lambda scale: HaarWavelet(scale, 3)),
        ]
        for scale, value in NO_NUMBER.items()
        if name != "HaarWavelet" or scale != "one bad entry"
    },
    **{
        f"HaarWavelet of resolution {name}": (lambda value=value: HaarWavelet(1.0, value), "resolution")
        for name, value in NO_COUNT.items()
        if name != "zero"
    },
    **{
        f"SmoothedHistogram of draws {name}": (lambda value=value: SmoothedHistogram(0.5, value), "num_draws")
        for name, value in NO_COUNT.items()
    },
    **{
        f"SmoothedHistogram of weight {name}": (lambda value=value: SmoothedHistogram(value, 3), "weight")
        for name, value in {**NO_NUMBER, "above one": 1.5}.items()
    },
    **{
        f"PoissonBinomial of theta {name}": (lambda value=value: PoissonBinomial(value, 3), "theta")
        for name, value in {**NO_NUMBER, "above one half": 0.51}.items()
    },
    **{
        f"PoissonBinomial of trials {name}": (lambda value=value: PoissonBinomial(0.2, value), "num_trials")
        for name, value in NO_COUNT.items()
    },
    "PoissonBinomial of equal bounds": (lambda: PoissonBinomial(0.2, 3, 1, 1), "lower, upper"),
    "PoissonBinomial of an infinite bound": (lambda: PoissonBinomial(0.2, 3, -np.inf), "lower"),
    "PoissonBinomial of no epsilon": (lambda: PoissonBinomial.from_epsilon(None, 3), "epsilon"),
    "PoissonBinomial of epsilon zero": (lambda: PoissonBinomial.from_epsilon(0, 3), "epsilon"),
    "a count above the trials": (lambda: dpjax.LocalRelease([4], PoissonBinomial(0.2, 3)), "values"),
    "a fraction of a trial": (lambda: dpjax.LocalRelease([0.5], PoissonBinomial(0.2, 3)), "values"),
    "a sum of counts": (
        lambda: dpjax.Release([4], PoissonBinomial(0.2, 3), dpjax.statistics.total("y", 0, 1), 2),
        "mechanism",
    ),
    **{
        f"RandomizedResponse that keeps {name}": (lambda value=value: RandomizedResponse(value, 3), "keep")
        for name, value in {**NO_NUMBER, "above one": 1.5}.items()
    },
    **{
        f"RandomizedResponse of categories {name}": (
            lambda value=value: RandomizedResponse(0.5, value),
            "num_categories",
        )
        for name, value in {**NO_COUNT, "one": 1}.items()
    },
    **{
        f"a channel matrix {name}": (lambda value=value: RandomizedResponse(matrix=value), "matrix")
        for name, value in {
            "of negative numbers": [[1.5, -0.5], [0.5, 0.5]],
            "whose rows do not sum to one": [[0.5, 0.4], [0.5, 0.5]],
            "transposed": [[0.9, 0.3], [0.1, 0.7]],
            "that is not square": [[0.5, 0.5]],
            "that is a vector": [0.5, 0.5],
            "of text": "identity",
            "that is ragged": [[1.0], [0.5, 0.5]],
            "that is a dict": {"a": 1.0},
            "with a missing entry": [[np.nan, 1.0], [0.5, 0.5]],
        }.items()
    },
    "a channel of nothing": (lambda: RandomizedResponse(), "keep, matrix"),
    "a channel of both": (lambda: RandomizedResponse(0.5, 2, np.eye(2)), "keep, matrix"),
    "Censored of a class": (lambda: Censored(Laplace, lower=0), "mechanism"),
    "Censored of a number": (lambda: Censored(1.0, lower=0), "mechanism"),
    "Censored of a channel": (lambda: Censored(RandomizedResponse(0.5, 2), lower=0), "mechanism"),
    "Censored without bounds": (lambda: Censored(Laplace(1.0)), "lower, upper"),
    "Censored with bounds exchanged": (lambda: Censored(Laplace(1.0), lower=1, upper=0), "lower, upper"),
    "Censored with equal bounds": (lambda: Censored(Laplace(1.0), lower=[0, 1], upper=[1, 1]), "lower, upper"),
    **{
        f"Censored at {name}": (lambda value=value: Censored(Laplace(1.0), lower=value), "lower")
        for name, value in {"infinity": -np.inf, "a missing number": np.nan, "text": "0", "a dict": {}}.items()
    },
    "gaussian_scale of no epsilon": (lambda: dpjax.gaussian_scale(None, 1e-6, 1.0), "epsilon"),
    "gaussian_scale of a negative epsilon": (lambda: dpjax.gaussian_scale(-1.0, 1e-6, 1.0), "epsilon"),
    "gaussian_scale of delta above one": (lambda: dpjax.gaussian_scale(1.0, 1.5, 1.0), "delta"),
    "gaussian_scale of delta zero": (lambda: dpjax.gaussian_scale(1.0, 0.0, 1.0), "delta"),
    "gaussian_scale of text": (lambda: dpjax.gaussian_scale("1", 1e-6, 1.0), "epsilon"),
    "gaussian_scale of no sensitivity": (lambda: dpjax.gaussian_scale(1.0, 1e-6, None), "sensitivity"),
    "gaussian_scale of two": (lambda: dpjax.gaussian_scale([1.0, 2.0], 1e-6, 1.0), "epsilon"),
    "gaussian_delta of a negative scale": (lambda: dpjax.mechanisms.gaussian_delta(1.0, -1.0, 1.0), "scale"),
    "gaussian_delta of a missing epsilon": (lambda: dpjax.mechanisms.gaussian_delta(np.nan, 1.0, 1.0), "epsilon"),
    "laplace_scale of zero": (lambda: dpjax.laplace_scale(0.0, 1.0), "epsilon"),
    "laplace_scale of a negative sensitivity": (lambda: dpjax.laplace_scale(1.0, -1.0), "sensitivity"),
    "laplace_scale of none": (lambda: dpjax.laplace_scale(None, 1.0), "epsilon"),
    "zcdp_scale of none": (lambda: dpjax.zcdp_scale(None, 1.0), "rho"),
    "zcdp_rho of text": (lambda: dpjax.mechanisms.zcdp_rho("1", 1.0), "scale"),
    "zcdp_rho of zero": (lambda: dpjax.mechanisms.zcdp_rho(0, 1.0), "scale"),
    "zcdp_epsilon of a negative rho": (lambda: dpjax.mechanisms.zcdp_epsilon(-1.0, 1e-6), "rho"),
    "zcdp_epsilon of delta above one": (lambda: dpjax.mechanisms.zcdp_epsilon(1.0, 2.0), "delta"),
    "haar_scale of an unknown calibration": (lambda: dpjax.mechanisms.haar_scale(1.0, 3, "loose"), "calibration"),
    "haar_scale of no epsilon": (lambda: dpjax.mechanisms.haar_scale(None, 3), "epsilon"),
    "haar_scale of a fraction": (lambda: dpjax.mechanisms.haar_scale(1.0, 2.5), "resolution"),
    "haar_sensitivity of a negative level": (lambda: dpjax.mechanisms.haar_sensitivity(-1), "resolution"),
    "smoothing_weight of no bins": (lambda: dpjax.mechanisms.smoothing_weight(1.0, 3, 0, 10), "num_bins"),
    "smoothing_weight of a negative epsilon": (lambda: dpjax.mechanisms.smoothing_weight(-1.0, 3, 2, 10), "epsilon"),
    "smoothing_weight of none": (lambda: dpjax.mechanisms.smoothing_weight(None, 3, 2, 10), "epsilon"),
    "Privacy of an unknown notion": (lambda: Privacy("renyi", "replace-one"), "notion"),
    "Privacy of unknown neighbours": (lambda: Privacy("pure", "friends", epsilon=1.0), "neighbours"),
    "Privacy of a negative epsilon": (lambda: Privacy("pure", "replace-one", epsilon=-1.0), "epsilon"),
    "Privacy of a text": (lambda: Privacy("pure", "replace-one", epsilon="1"), "epsilon"),
    "Privacy of delta above one": (lambda: Privacy("approximate", "replace-one", epsilon=1.0, delta=2.0), "delta"),
    "RandomizedResponse of a fractional code": (
        lambda: RandomizedResponse(0.5, 2).log_density(jnp.array([0.5]), jnp.array([0])),
        "value",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused(refused, case):
    refused(*CASES[case])
